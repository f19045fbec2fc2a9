//! Promise: the sink `http` sends every item once, as JSON that says what came, in requests of the configured size, and cuts
//! what a receiver finds too long down to one item.

use crate::bodies::{encoded, put};
use crate::peer::{Peer, Reply};
use crate::rig::{PART, Rig, SECOND, settings};
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Deserializer, Value};
use tidegate_journal::dead_letters::read;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_sinks::{Compression, Http, Json, Layout, OtlpSettings, Transport};

const LAYOUTS: [Layout; 3] = [Layout::Request, Layout::Lines, Layout::Array];
const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Gzip(1), Compression::Zstd(1)];

/// The signal and the numbers of the items in a body of JSON.
pub(crate) fn numbers(raw: &[u8]) -> (Signal, Vec<u64>) {
    let text = str::from_utf8(raw).unwrap();
    let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
    // An event of Splunk has no signal.
    let of = |item: &Value| match item["signal"].as_str().unwrap_or("event") {
        "event" => (Signal::Logs, number(&item["fields"]["otel.log.severity.text"])),
        "traces" => (Signal::Traces, number(&item["name"])),
        "logs" => (Signal::Logs, number(&item["severity_text"])),
        _ => (Signal::Metrics, number(&item["name"])),
    };
    let items: Vec<(Signal, u64)> = if text.starts_with("{\"resource") {
        let request: Value = serde_json::from_str(text).unwrap();
        let list = |of: &Value, name: &str| of[name].as_array().cloned().unwrap_or_default();
        let mut items = Vec::new();
        for (groups, scopes, name, signal, field) in [
            ("resourceSpans", "scopeSpans", "spans", Signal::Traces, "name"),
            ("resourceLogs", "scopeLogs", "logRecords", Signal::Logs, "severityText"),
            ("resourceMetrics", "scopeMetrics", "metrics", Signal::Metrics, "name"),
        ] {
            for scope in list(&request, groups).iter().flat_map(|group| list(group, scopes)) {
                items.extend(list(&scope, name).iter().map(|item| (signal, number(&item[field]))));
            }
        }
        items
    } else if text.starts_with('[') {
        serde_json::from_str::<Vec<Value>>(text).unwrap().iter().map(of).collect()
    } else {
        assert!(text.ends_with('\n'));
        let lines = Deserializer::from_str(text).into_iter::<Value>().map(|line| of(&line.unwrap()));
        let lines: Vec<_> = lines.collect();
        assert_eq!(lines.len(), text.lines().count());
        lines
    };
    let signal = items.first().map_or(Signal::Logs, |(signal, _)| *signal);
    assert!(items.iter().all(|(other, _)| *other == signal), "a request has one signal");
    (signal, items.into_iter().map(|(_, number)| number).collect())
}

/// A request of one resource with a text of `envelope` bytes, and items with texts of so many.
pub(crate) fn request(
    signal: Signal,
    envelope: usize,
    items: impl IntoIterator<Item = (u64, usize)>,
) -> Vec<u8> {
    let text = |field: u8, key: &str, len: usize| {
        let (mut value, mut pair, mut out) = (vec![], vec![], vec![]);
        put(&mut value, 1, "x".repeat(len).as_bytes());
        put(&mut pair, 1, key.as_bytes());
        put(&mut pair, 2, &value);
        put(&mut out, field, &pair);
        out
    };
    let (attributes, name) = if signal == Signal::Traces { (9, 5) } else { (6, 3) };
    let (mut scope, mut group, mut request) = (vec![], vec![], vec![]);
    for (number, len) in items {
        let mut item = text(attributes, "padding", len);
        put(&mut item, name, number.to_string().as_bytes());
        put(&mut scope, 2, &item);
    }
    put(&mut group, 1, &text(1, "envelope", envelope));
    put(&mut group, 2, &scope);
    put(&mut request, 1, &group);
    request
}

impl Rig {
    /// Puts a request with the next `items` items, each of `len` bytes, in an envelope of so many.
    pub(crate) async fn put_real(
        &mut self,
        signal: Signal,
        encoding: Encoding,
        envelope: usize,
        (items, len): (u64, usize),
    ) {
        let raw = request(signal, envelope, (self.next..self.next + items).map(|number| (number, len)));
        self.next += items;
        let body = encoded(encoding, &raw);
        self.append(signal, Protocol::Otlp, encoding, &body, raw.len(), items).await;
    }
}

fn json(peer: &Peer, layout: Layout) -> OtlpSettings {
    settings(peer, Transport::Json(Json { layout, put: false }))
}

#[tokio::test]
async fn every_item_arrives_once_in_every_layout_and_compression() {
    for layout in LAYOUTS {
        for compression in COMPRESSIONS {
            let mut rig = Rig::new(PART);
            let peer = Peer::new();
            for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
                for signal in [Signal::Traces, Signal::Logs] {
                    for _ in 0..20 {
                        rig.put_real(signal, encoding, 50, (5, 40)).await;
                    }
                }
            }
            let endpoint = format!("{}in?key=1", peer.url()).parse().unwrap();
            let settings = OtlpSettings { endpoints: vec![endpoint], compression, ..json(&peer, layout) };
            rig.drain(settings).await;
            rig.assert_exact(&[&peer]);
            assert_eq!((rig.dropped(), rig.page().delivered), (vec![], 600));
            let arrived = peer.arrived();
            assert!(arrived.len() < 30, "{} requests", arrived.len());
            let (content_type, encoding) = match (layout, compression) {
                (Layout::Lines, _) => ("application/x-ndjson", compression),
                _ => ("application/json", compression),
            };
            let encoding = match encoding {
                Compression::None => Encoding::Identity,
                Compression::Gzip(_) => Encoding::Gzip,
                Compression::Zstd(_) => Encoding::Zstd,
            };
            for request in arrived {
                assert_eq!(request.headers[CONTENT_TYPE], content_type);
                assert_eq!((request.encoding, request.method), (encoding, Method::POST));
                let path = match (layout, request.signal) {
                    (Layout::Request, Signal::Traces) => "/in/v1/traces",
                    (Layout::Request, _) => "/in/v1/logs",
                    _ => "/in",
                };
                assert_eq!(request.path, path);
            }
        }
    }
}

/// A URL that names the signal is used as it is; so are a method and a content type that were given.
#[tokio::test]
async fn requests_are_made_as_configured() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put_real(Signal::Logs, Encoding::Identity, 0, (1, 1)).await;
    let mut settings = settings(&peer, Transport::Json(Json { layout: Layout::Request, put: true }));
    settings.endpoints = vec![format!("{}otlp/v1/logs", peer.url()).parse().unwrap()];
    settings.headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/json"));
    rig.drain(settings).await;
    let [request] = peer.arrived().try_into().unwrap();
    assert_eq!((request.method, request.path.as_str()), (Method::PUT, "/otlp/v1/logs"));
    assert_eq!(request.headers[CONTENT_TYPE], "text/json");
}

/// However much longer JSON is, requests of several items are no longer than configured.
#[tokio::test]
async fn requests_are_as_long_as_configured() {
    for layout in LAYOUTS {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        for round in 0..30 {
            let (envelope, items, len) = if round % 10 == 9 { (4000, 100, 10) } else { (100, 10, 300) };
            rig.put_real(Signal::Logs, Encoding::Identity, envelope, (items, len)).await;
        }
        rig.put_real(Signal::Logs, Encoding::Gzip, 10, (1, 90 << 10)).await;
        rig.drain(OtlpSettings { max_request_bytes: 64 << 10, ..json(&peer, layout) }).await;
        rig.assert_exact(&[&peer]);
        for request in peer.arrived() {
            assert!(request.raw_len <= 64 << 10 || request.numbers.len() == 1, "{} bytes", request.raw_len);
        }
    }
}

/// A request too large for the receiver is halved, down to one item; that one becomes a dead letter, and the others
/// arrive.
#[tokio::test]
async fn requests_that_are_too_long_are_halved_down_to_one_item() {
    for layout in LAYOUTS {
        for compression in [Compression::None, Compression::Gzip(1)] {
            let mut rig = Rig::new(PART);
            let peer = Peer::new();
            let lens = (0..40).map(|number| (number, if number == 17 { 5000 } else { 100 }));
            let raw = request(Signal::Logs, 30, lens);
            rig.append(Signal::Logs, Protocol::Otlp, Encoding::Identity, &raw, raw.len(), 40).await;
            rig.next = 40;
            rig.put_real(Signal::Logs, Encoding::Identity, 30, (5, 100)).await;
            peer.always(Reply::AtMost(2000));
            rig.drain(OtlpSettings { compression, ..json(&peer, layout) }).await;
            rig.assert_but(&[&peer], 17..18);
            assert_eq!(rig.dropped(), [(Dropped::TooLarge, 1)]);
            let mut letters = read(&rig.letters_dir(), false).unwrap();
            let letter = letters.next().unwrap();
            assert_eq!((letter.meta.items, letter.meta.protocol), (1, Protocol::Otlp));
            assert_eq!(letter.meta.encoding, Encoding::Identity);
            // It can be sent again: it is OTLP.
            let body = letters.body().unwrap();
            assert_eq!(crate::bodies::numbers(Signal::Logs, &body), [17]);
        }
    }
}

#[tokio::test]
async fn responses_are_judged_by_status_and_retry_after() {
    for (status, again) in [
        (408, true),
        (429, true),
        (500, true),
        (503, true),
        (507, true),
        (400, false),
        (401, true),
        (404, false),
        (301, false),
    ] {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        rig.put_real(Signal::Traces, Encoding::Identity, 10, (3, 10)).await;
        peer.script([Reply::Http(status, vec![], b"\n\x0e\x08\x03 no thanks".to_vec())]);
        rig.drain(json(&peer, Layout::Lines)).await;
        if again {
            rig.assert_exact(&[&peer]);
            assert_eq!((rig.dropped(), rig.health.activity().resent), (vec![], 3), "{status}");
        } else {
            assert_eq!(rig.dropped(), [(Dropped::Rejected, 3)], "{status}");
            let mut letters = read(&rig.letters_dir(), false).unwrap();
            assert!(letters.next().unwrap().reason.contains("no thanks"));
            assert_eq!(crate::bodies::numbers(Signal::Traces, &letters.body().unwrap()), [0, 1, 2]);
        }
    }
}

/// A 2xx body of an arbitrary server is not read as a count; that of an OTLP/JSON receiver is.
#[tokio::test]
async fn partial_success_is_read_from_otlp_receivers_only() {
    let words = br#"{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too \"old\""}}"#;
    for (layout, words, rejected) in [
        (Layout::Request, &words[..], 2),
        (Layout::Request, br#"{"partialSuccess":{"rejectedLogRecords":1}}"#, 1),
        (Layout::Request, b"{\"partialSuccess\":{\"rejec", 0),
        (Layout::Request, b"", 0),
        (Layout::Lines, &words[..], 0),
        (Layout::Lines, &[0x0a, 2, 0x08, 2], 0),
    ] {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        rig.put_real(Signal::Logs, Encoding::Identity, 10, (3, 10)).await;
        peer.script([Reply::Ok(words.to_vec())]);
        rig.drain(json(&peer, layout)).await;
        assert_eq!(rig.page().delivered, 3 - rejected);
        let said = rig.health.trouble().last_error.unwrap_or_default();
        assert_eq!(said.contains("too \"old\""), rejected == 2, "{said}");
    }
}

/// Of a joined request only the bad record is dropped.
#[tokio::test]
async fn of_a_joined_request_only_the_bad_record_is_dropped() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    for _ in 0..10 {
        rig.put_real(Signal::Logs, Encoding::Gzip, 10, (10, 10)).await;
    }
    peer.always(Reply::Dislikes(42));
    rig.drain(json(&peer, Layout::Array)).await;
    rig.assert_but(&[&peer], 40..50);
    assert_eq!(rig.dropped(), [(Dropped::Rejected, 10)]);
}

#[tokio::test]
async fn profiles_have_no_json() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put(Signal::Profiles, Encoding::Identity, 3).await;
    rig.drain(json(&peer, Layout::Lines)).await;
    assert_eq!((rig.dropped(), peer.arrived().len()), (vec![(Dropped::Untranslatable, 3)], 0));
    assert_eq!(Http::need(Protocol::Otlp, Signal::Profiles), None);
}

/// A receiver that stalls costs no more than the part.
#[tokio::test]
async fn a_stalled_receiver_costs_no_more_than_the_part() {
    let part = 512 << 10;
    for (layout, encoding, compression) in [
        (Layout::Lines, Encoding::Identity, Compression::None),
        (Layout::Array, Encoding::Gzip, Compression::Gzip(1)),
        (Layout::Request, Encoding::Zstd, Compression::Zstd(1)),
    ] {
        let mut rig = Rig::new(part);
        let peer = Peer::new();
        peer.script([Reply::Stall, Reply::Stall]);
        for _ in 0..60 {
            for signal in [Signal::Traces, Signal::Logs] {
                rig.put_real(signal, encoding, 200, (10, 500)).await;
            }
        }
        let script = async {
            peer.stalled(2).await;
            let held = rig.held();
            assert!(held > 0 && held <= part as u64, "{held}");
            peer.release();
        };
        tokio::join!(rig.drain(OtlpSettings { compression, ..json(&peer, layout) }), script);
        rig.assert_exact(&[&peer]);
        assert!(rig.peak() <= part as u64, "the peak is {}", rig.peak());
    }
}

/// A record for which there is as much memory as [`Http::need`] says is delivered, item by item, whatever it holds.
#[tokio::test]
async fn accepted_otlp_is_delivered() {
    let times = |part: &[u8], len: usize| part.repeat(len / part.len());
    let log = |item: Vec<u8>| {
        let (mut scope, mut group, mut request) = (vec![], vec![], vec![]);
        put(&mut scope, 2, &item);
        put(&mut group, 2, &scope);
        put(&mut request, 1, &group);
        request
    };
    let size = 200 << 10;
    let mut control = vec![];
    let mut text = vec![];
    put(&mut text, 1, &times(&[1], size));
    put(&mut control, 5, &text);
    // Events and links with a count and nothing else.
    let events = times(&[0x5a, 2, 0x20, 0x7f], size);
    let envelope = request(Signal::Logs, size, (0..20).map(|number| (number, 1)));
    for layout in [Layout::Lines, Layout::Request] {
        for (what, signal, raw, items, item) in [
            ("control characters", Signal::Logs, log(control.clone()), 1, size + 50),
            ("events", Signal::Traces, log(events.clone()), 1, size + 50),
            ("an envelope", Signal::Logs, envelope.clone(), 20, size + 100),
        ] {
            for (encoding, compression) in
                [(Encoding::Identity, Compression::None), (Encoding::Gzip, Compression::Gzip(1))]
            {
                let body = encoded(encoding, &raw);
                let decoded = if encoding == Encoding::Identity { 0 } else { raw.len() };
                let most = Http::need(Protocol::Otlp, signal).unwrap().of(body.len(), decoded, item);
                let rig = Rig::narrow(64 << 10, most as u64);
                let peer = Peer::new();
                rig.append(signal, Protocol::Otlp, encoding, &body, raw.len(), items).await;
                let settings =
                    OtlpSettings { compression, max_request_bytes: 16 << 20, ..json(&peer, layout) };
                rig.drain(settings).await;
                assert_eq!(rig.dropped(), [], "{what} as {layout:?}, with {most} bytes");
                let arrived: usize = peer.arrived().iter().map(|request| request.numbers.len()).sum();
                assert_eq!(arrived as u64, items, "{what}");
            }
        }
    }
}

/// Answered records are not sent again after a restart, and all others are.
#[tokio::test]
async fn a_restart_resends_unanswered_requests_only() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    peer.script([Reply::Stall]);
    for _ in 0..20 {
        rig.put_real(Signal::Traces, Encoding::Identity, 10, (10, 2500)).await;
    }
    // One of them is a request.
    let small = OtlpSettings { max_request_bytes: 64 << 10, ..json(&peer, Layout::Lines) };
    let (sink, stopper) = rig.sink(small.clone());
    let script = async {
        peer.stalled(1).await;
        while rig.page().queued > 10 {
            tokio::task::yield_now().await;
        }
        stopper.stop();
    };
    tokio::time::timeout(60 * SECOND, async { tokio::join!(sink.run(), script) }).await.unwrap();
    assert_eq!((rig.page().queued, rig.page().delivered, rig.held()), (10, 190, 0));
    let rig = rig.restarted();
    rig.drain(small).await;
    assert_eq!(rig.page().delivered, 200);
    assert!(peer.taken().len() == 200 && peer.taken().values().all(|times| *times == 1));
}

/// The same of what is translated first.
#[tokio::test]
async fn translated_records_are_delivered() {
    let names = |count, each: fn(usize) -> String| (0..count).map(each).collect::<Vec<_>>().join(",");
    let fields = names(12_000, |number| format!("\"{number:x}\":1"));
    let document = format!("{{\"create\":{{}}}}\n{{{fields}}}\n");
    let metadata = r#"{"metadata":{"service":{"name":"a","agent":{"name":"b","version":"1"}}}}"#;
    let span =
        r#""id":"0123456789abcdef","trace_id":"0123456789abcdef0123456789abcdef","duration":1,"type":"t""#;
    let transaction = format!(
        "{metadata}\n{{\"transaction\":{{{span},\"span_count\":{{\"started\":1}},\"context\":{{\"tags\":{{{fields}}}}}}}}}\n"
    );
    let samples = names(1000, |number| format!("\"{number:x}\":{{\"value\":1}}"));
    let metricset =
        format!("{metadata}\n{{\"metricset\":{{\"samples\":{{{samples}}},\"tags\":{{\"a\":1}}}}}}\n");
    let label = |name: &str, value: &str| {
        let (mut label, mut out) = (vec![], vec![]);
        put(&mut label, 1, name.as_bytes());
        put(&mut label, 2, value.as_bytes());
        put(&mut out, 1, &label);
        out
    };
    let mut series = label("__name__", "up");
    (0..8000).for_each(|number| series.extend(label(&format!("l{number:x}"), "\u{1}\u{2}\u{3}")));
    // Two samples, each with all labels.
    series.extend([
        0x12, 11, 9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 1, 0x12, 11, 9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10,
        2,
    ]);
    let mut samples_of = vec![];
    put(&mut samples_of, 1, &series);
    for layout in [Layout::Lines, Layout::Request] {
        for (what, protocol, signal, raw, booked) in [
            ("a document", Protocol::Bulk, Signal::Logs, document.as_bytes(), 1),
            ("a transaction", Protocol::Intake, Signal::Traces, transaction.as_bytes(), 1),
            ("a metricset", Protocol::Intake, Signal::Metrics, metricset.as_bytes(), 1),
            ("a series", Protocol::RemoteWrite1, Signal::Metrics, &samples_of, 2),
        ] {
            let most = Http::need(protocol, signal).unwrap().of(raw.len(), 0, raw.len());
            let rig = Rig::narrow(64 << 10, most as u64);
            let peer = Peer::new();
            rig.append(signal, protocol, Encoding::Identity, raw, raw.len(), booked).await;
            rig.drain(OtlpSettings { max_request_bytes: 16 << 20, ..json(&peer, layout) }).await;
            assert_eq!((rig.dropped(), rig.page().delivered), (vec![], booked), "{what}, with {most} bytes");
            let arrived: usize = peer.arrived().iter().map(|request| request.numbers.len()).sum();
            let expected = match what {
                "a metricset" => 1000,
                "a series" if layout == Layout::Lines => 2,
                _ => 1,
            };
            assert_eq!(arrived, expected, "{what} as {layout:?}");
        }
    }
}

/// A redirection on the same host is followed, as for the sink `otlp`.
#[tokio::test]
async fn redirections_are_followed() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put_real(Signal::Logs, Encoding::Identity, 0, (2, 1)).await;
    peer.script([Reply::Http(308, vec![("location", "/elsewhere".into())], vec![])]);
    rig.drain(json(&peer, Layout::Lines)).await;
    rig.assert_exact(&[&peer]);
    let paths: Vec<_> = peer.arrived().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/", "/elsewhere"]);
}

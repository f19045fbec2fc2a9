//! Promise: the sink `splunk_hec` sends every log record once as an event, drops only the event that Splunk refuses, and waits
//! where somebody else can help. Acknowledgement by the indexer is in `tests/splunk_hec.rs`.

use crate::bodies::{encoded, put};
use crate::peer::{Peer, Reply};
use crate::rig::{PART, Rig, settings};
use hyper::Method;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use tidegate_journal::dead_letters::read;
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_sinks::{Compression, OtlpSettings, SplunkHec, Transport};

fn splunk(peer: &Peer) -> OtlpSettings {
    settings(peer, Transport::SplunkHec)
}

#[tokio::test]
async fn every_record_arrives_once_as_an_event() {
    for (compression, arrives_as) in
        [(Compression::None, Encoding::Identity), (Compression::Gzip(1), Encoding::Gzip)]
    {
        for path in ["", "base/services/collector", "base/services/collector/event/"] {
            let mut rig = Rig::new(PART);
            let peer = Peer::new();
            for encoding in [Encoding::Identity, Encoding::Gzip, Encoding::Zstd] {
                for _ in 0..20 {
                    rig.put_real(Signal::Logs, encoding, 50, (5, 40)).await;
                }
            }
            let endpoint = format!("{}{path}", peer.url()).parse().unwrap();
            let mut settings = OtlpSettings { endpoints: vec![endpoint], compression, ..splunk(&peer) };
            settings.headers.insert(AUTHORIZATION, HeaderValue::from_static("Splunk 0-1"));
            rig.drain(settings).await;
            rig.assert_exact(&[&peer]);
            assert_eq!((rig.dropped(), rig.page().delivered), (vec![], 300));
            for request in peer.arrived() {
                assert_eq!((request.encoding, request.method), (arrives_as, Method::POST));
                let base = if path.is_empty() { "" } else { "/base" };
                assert_eq!(request.path, format!("{base}/services/collector/event"));
                assert_eq!(request.headers[CONTENT_TYPE], "application/json");
                assert_eq!(request.headers[AUTHORIZATION], "Splunk 0-1");
                assert!(!request.headers.contains_key("x-splunk-request-channel"));
            }
        }
    }
}

/// The event is found by halves, in the record that is found by sending each alone.
#[tokio::test]
async fn only_the_refused_event_is_dropped() {
    for encoding in [Encoding::Identity, Encoding::Gzip] {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        for _ in 0..4 {
            rig.put_real(Signal::Logs, encoding, 10, (50, 30)).await;
        }
        peer.always(Reply::Dislikes(77));
        rig.drain(splunk(&peer)).await;
        rig.assert_but(&[&peer], 77..78);
        assert_eq!(rig.dropped(), [(Dropped::Rejected, 1)]);
        let mut letters = read(&rig.letters_dir(), false).unwrap();
        assert!(letters.next().unwrap().reason.contains("400 Bad Request: bad item"));
        assert_eq!(crate::bodies::numbers(Signal::Logs, &letters.body().unwrap()), [77]);
        assert!(letters.next().is_none());
    }
}

#[tokio::test]
async fn a_request_that_is_too_long_is_cut() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put_real(Signal::Logs, Encoding::Identity, 10, (300, 100)).await;
    peer.always(Reply::AtMost(20_000));
    rig.drain(splunk(&peer)).await;
    rig.assert_exact(&[&peer]);
    assert_eq!(rig.dropped(), []);
}

/// A wrong token or URL, a busy server and an unknown channel are not the events' fault.
#[tokio::test]
async fn events_wait_for_what_an_operator_can_mend() {
    let text = |code: u64| format!("{{\"text\":\"no thanks\",\"code\":{code}}}").into_bytes();
    for (status, code) in
        [(401, 3), (403, 4), (404, 404), (503, 9), (500, 8), (429, 26), (400, 10), (400, 14)]
    {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        rig.put_real(Signal::Logs, Encoding::Identity, 10, (3, 10)).await;
        peer.script([Reply::Http(status, vec![], text(code))]);
        rig.drain(splunk(&peer)).await;
        rig.assert_exact(&[&peer]);
        assert_eq!((rig.dropped(), rig.health.activity().resent), (vec![], 3), "{status}");
    }
}

#[tokio::test]
async fn other_signals_have_no_events() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.put(Signal::Traces, Encoding::Identity, 2).await;
    rig.put(Signal::Metrics, Encoding::Identity, 3).await;
    rig.drain(splunk(&peer)).await;
    assert_eq!((rig.dropped(), peer.arrived().len()), (vec![(Dropped::Untranslatable, 5)], 0));
    for signal in [Signal::Traces, Signal::Metrics, Signal::Profiles] {
        assert_eq!(SplunkHec::need(Protocol::Otlp, signal), None);
    }
    assert_eq!(SplunkHec::need(Protocol::RemoteWrite2, Signal::Metrics), None);
}

/// A record for which there is as much memory as [`SplunkHec::need`] says is delivered, whatever it holds.
#[tokio::test]
async fn accepted_records_are_delivered() {
    let size = 200 << 10;
    let control = vec![1; size];
    let one = |record: &[u8], resource: &[u8], count: usize| {
        let (mut scope, mut group, mut request) = (vec![], vec![], vec![]);
        (0..count).for_each(|_| put(&mut scope, 2, record));
        put(&mut group, 1, resource);
        put(&mut group, 2, &scope);
        put(&mut request, 1, &group);
        request
    };
    let message = |field: u8, body: &[u8]| {
        let mut out = vec![];
        put(&mut out, field, body);
        out
    };
    let text = message(1, &control);
    let in_map = message(6, &message(1, &message(2, &text)));
    let attribute = |value: &[u8]| [message(1, b"a"), message(2, value)].concat();
    for (what, raw, items, item) in [
        ("a body", one(&message(5, &text), &[], 1), 1, size + 50),
        ("JSON in a field", one(&message(6, &attribute(&in_map)), &[], 1), 1, size + 100),
        (
            "an envelope",
            one(&message(5, &message(1, b"x")), &message(1, &attribute(&text)), 20),
            20,
            size + 100,
        ),
    ] {
        for (encoding, compression) in
            [(Encoding::Identity, Compression::None), (Encoding::Gzip, Compression::Gzip(1))]
        {
            let body = encoded(encoding, &raw);
            let decoded = if encoding == Encoding::Identity { 0 } else { raw.len() };
            let most = SplunkHec::need(Protocol::Otlp, Signal::Logs).unwrap().of(body.len(), decoded, item);
            let rig = Rig::narrow(64 << 10, most as u64);
            let peer = Peer::new();
            rig.append(Signal::Logs, Protocol::Otlp, encoding, &body, raw.len(), items).await;
            rig.drain(OtlpSettings { compression, max_request_bytes: 16 << 20, ..splunk(&peer) }).await;
            assert_eq!(rig.dropped(), [], "{what} with {most} bytes");
            let arrived: usize = peer.arrived().iter().map(|request| request.numbers.len()).sum();
            assert_eq!(arrived as u64, items, "{what}");
        }
    }
}

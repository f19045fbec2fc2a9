//! Promise: what is acknowledged is in the journal as it came, or as the protobuf that it says; and nothing
//! is said about rejected items, since there are none.

use crate::body::{bad_span, deflate, gzip, logs, message, metrics, profiles, traces, zstd};
use crate::client::{JSON, LOGS, METRICS, PROFILES, PROTOBUF, TRACES};
use crate::rig::Rig;
use tidegate_journal::{Encoding, Protocol, Signal};

/// Path, method, signal, body, items.
fn requests() -> [(&'static str, &'static str, Signal, Vec<u8>, u32); 4] {
    [
        ("/v1/traces", TRACES, Signal::Traces, traces(3, 10), 3),
        ("/v1/metrics", METRICS, Signal::Metrics, metrics(5), 5),
        ("/v1/logs", LOGS, Signal::Logs, logs(7), 7),
        ("/v1development/profiles", PROFILES, Signal::Profiles, profiles(), 1),
    ]
}

fn encodings(raw: &[u8]) -> [(&'static str, Encoding, Vec<u8>); 3] {
    [
        ("identity", Encoding::Identity, raw.to_vec()),
        ("gzip", Encoding::Gzip, gzip(raw)),
        ("zstd", Encoding::Zstd, zstd(raw)),
    ]
}

/// That the journal has this one record, and the books with it.
async fn assert_journalled(
    rig: &Rig,
    signal: Signal,
    encoding: Encoding,
    body: &[u8],
    raw: usize,
    items: u32,
) {
    let (meta, journalled) = rig.journalled(&mut rig.follow()).await;
    assert_eq!((meta.signal, meta.protocol, meta.encoding), (signal, Protocol::Otlp, encoding));
    assert_eq!((meta.items, meta.raw_len as usize), (items, raw));
    assert!(journalled == body, "{signal:?}, {encoding:?}: as it came");
    assert!(meta.received_at_ns > 0);
    let books = rig.books();
    assert_eq!((books.received, books.accepted), (1, 1));
    assert_eq!(books.items.iter().map(|(_, items)| items).sum::<u64>(), u64::from(items));
}

#[tokio::test]
async fn every_signal_in_every_encoding_over_http() {
    for (path, _, signal, raw, items) in requests() {
        for (name, encoding, body) in encodings(&raw) {
            for version in [1, 2] {
                let rig = Rig::new();
                let headers = [PROTOBUF, ("content-encoding", name)];
                let answer = match version {
                    1 => rig.post(path, &headers, &body).await,
                    _ => rig.post2(path, &headers, &body).await,
                };
                assert_eq!((answer.status, answer.text().as_str()), (200, ""), "{path} {name}");
                assert_eq!(answer.header("content-type"), Some("application/x-protobuf"));
                assert!(answer.header("date").is_some());
                assert_journalled(&rig, signal, encoding, &body, raw.len(), items).await;
                assert_eq!(rig.books().bytes, body.len() as u64);
            }
        }
    }
}

#[tokio::test]
async fn every_signal_in_every_encoding_over_grpc() {
    for (_, method, signal, raw, items) in requests() {
        for (name, encoding, body) in encodings(&raw) {
            let rig = Rig::new();
            let message = message(encoding != Encoding::Identity, &body);
            let answer = rig.call(method, &[("grpc-encoding", name)], &message).await;
            assert_eq!(
                (answer.code, answer.body.as_slice()),
                (0, &[0; 5][..]),
                "{method} {name}: {answer:?}"
            );
            assert!(!answer.trailers_only && answer.details.is_none());
            assert_journalled(&rig, signal, encoding, &body, raw.len(), items).await;
        }
    }
}

/// A call that names an encoding may still send a message as it is.
#[tokio::test]
async fn an_uncompressed_message_of_a_compressed_call_is_accepted() {
    let (rig, raw) = (Rig::new(), traces(2, 5));
    assert_eq!(rig.call(TRACES, &[("grpc-encoding", "gzip")], &message(false, &raw)).await.code, 0);
    assert_journalled(&rig, Signal::Traces, Encoding::Identity, &raw, raw.len(), 2).await;
}

#[tokio::test]
async fn json_is_journalled_as_the_protobuf_that_it_says() {
    let json = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"07070707070707070707070707070707",
        "spanId":"0909090909090909","name":"ahov","unknown":{"a":[1]}}]}]}]}"#;
    for (name, _, body) in encodings(json) {
        let rig = Rig::new();
        let headers = [("content-type", "application/json; charset=utf-8"), ("content-encoding", name)];
        let answer = rig.post("/v1/traces", &headers, &body).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "{}"), "{name}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let raw = traces(1, 4);
        assert_journalled(&rig, Signal::Traces, Encoding::Identity, &raw, raw.len(), 1).await;
        assert_eq!(rig.books().bytes, body.len() as u64, "as it came");
    }
}

/// An empty request is a success that leaves nothing behind.
#[tokio::test]
async fn requests_without_items_are_accepted_and_not_journalled() {
    let rig = Rig::new();
    assert_eq!(rig.post("/v1/logs", &[PROTOBUF], b"").await.status, 200);
    assert_eq!(rig.post("/v1/logs", &[JSON], b"{}").await.text(), "{}");
    assert_eq!(rig.post2("/v1/logs", &[PROTOBUF], b"").await.status, 200);
    assert_eq!(rig.call(LOGS, &[], &message(false, b"")).await.code, 0);
    assert_eq!(rig.call(LOGS, &[("grpc-encoding", "gzip")], &message(true, &gzip(b""))).await.code, 0);
    let books = rig.books();
    assert_eq!((books.received, books.accepted, books.bytes), (5, 5, 0));
    assert_eq!(rig.journal.stats().head, 0);
}

/// Some HTTP clients compress with `deflate` by themselves.
#[tokio::test]
async fn deflate_is_taken_over_http() {
    let raw = traces(3, 10);
    let body = deflate(&raw);
    for version in [1, 2] {
        let rig = Rig::new();
        let headers = [PROTOBUF, ("content-encoding", "Deflate")];
        let answer = match version {
            1 => rig.post("/v1/traces", &headers, &body).await,
            _ => rig.post2("/v1/traces", &headers, &body).await,
        };
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_journalled(&rig, Signal::Traces, Encoding::Deflate, &body, raw.len(), 3).await;
    }
    let rig = Rig::new();
    let headers = [JSON, ("content-encoding", "deflate")];
    assert_eq!(rig.post("/v1/traces", &headers, &deflate(b"{}")).await.status, 200);
    let answer = rig.call(TRACES, &[("grpc-encoding", "deflate")], &message(true, &body)).await;
    assert_eq!(answer.code, 12, "gRPC has names of its own: {answer:?}");
}

/// Several members and frames are one body.
#[tokio::test]
async fn joined_bodies_are_taken() {
    let (first, second) = (logs(2), logs(3));
    let raw = first.len() + second.len();
    for (name, encoding, body) in [
        ("gzip", Encoding::Gzip, [gzip(&first), gzip(&second)].concat()),
        ("zstd", Encoding::Zstd, [zstd(&first), zstd(&second)].concat()),
    ] {
        let rig = Rig::new();
        assert_eq!(rig.post("/v1/logs", &[PROTOBUF, ("content-encoding", name)], &body).await.status, 200);
        assert_journalled(&rig, Signal::Logs, encoding, &body, raw, 5).await;
    }
}

/// Large bodies are checked on another thread, and come through narrow windows; nothing else is different.
#[tokio::test]
async fn large_bodies_are_taken_as_well() {
    let raw = traces(500, 10_000);
    assert!(raw.len() > 4 << 20);
    for (name, encoding, body) in encodings(&raw) {
        let rig = Rig::new();
        let mut follower = rig.follow();
        let headers = [PROTOBUF, ("content-encoding", name)];
        assert_eq!(rig.post("/v1/traces", &headers, &body).await.status, 200, "{name}");
        assert_eq!(rig.post2("/v1/traces", &headers, &body).await.status, 200, "{name}");
        let message = message(encoding != Encoding::Identity, &body);
        let answer = rig.call(TRACES, &[("grpc-encoding", name)], &message).await;
        assert_eq!(answer.code, 0, "{name}: {answer:?}");
        for _ in 0..3 {
            let (meta, journalled) = rig.journalled(&mut follower).await;
            assert!(journalled == body && meta.encoding == encoding && meta.items == 500, "{name}");
        }
        assert_eq!(rig.books().accepted, 3);
    }
}

/// How a response in protobuf says that so many items were rejected, and the words.
fn partial(response: &[u8]) -> (u8, String) {
    let [0x0a, len, 0x08, rejected, 0x12, words_len, words @ ..] = response else { panic!("{response:?}") };
    assert_eq!((usize::from(*len), usize::from(*words_len)), (words.len() + 4, words.len()));
    (*rejected, String::from_utf8(words.to_vec()).unwrap())
}

/// One bad span costs itself and nobody else: what is journalled is the request without it, and the answer says so.
#[tokio::test]
async fn valid_items_are_accepted_and_the_rest_is_reported() {
    // The third span's trace id has 15 bytes.
    let good = traces(2, 10);
    let raw = [&good[..], &bad_span(), &good].concat();
    let left = [&good[..], &good].concat();
    let words = "span 0 of scope 0 of resource 1: trace_id has 15 bytes instead of 16";
    for (name, encoding, body) in encodings(&raw) {
        for transport in ["http", "http/2", "grpc"] {
            let rig = Rig::new();
            let headers = [PROTOBUF, ("content-encoding", name)];
            let response = match transport {
                "grpc" => {
                    let message = message(encoding != Encoding::Identity, &body);
                    let answer = rig.call(TRACES, &[("grpc-encoding", name)], &message).await;
                    assert_eq!((answer.code, answer.trailers_only), (0, false), "{answer:?}");
                    let len = (answer.body.len() - 5) as u32;
                    assert_eq!(answer.body[..5], [&[0][..], &len.to_be_bytes()].concat());
                    answer.body[5..].to_vec()
                }
                _ => {
                    let answer = match transport {
                        "http" => rig.post("/v1/traces", &headers, &body).await,
                        _ => rig.post2("/v1/traces", &headers, &body).await,
                    };
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    assert_eq!(answer.header("content-type"), Some("application/x-protobuf"));
                    answer.body
                }
            };
            let (rejected, said) = partial(&response);
            assert_eq!(rejected, 1);
            assert!(said.starts_with(words), "{said}");
            assert_journalled(&rig, Signal::Traces, Encoding::Identity, &left, left.len(), 4).await;
            let books = rig.books();
            assert_eq!(books.items_refused, [(tidegate_ledger::Refusal::Malformed, 1)]);
            assert_eq!(books.bytes, body.len() as u64, "as it came");
        }
    }
}

/// The same in JSON, whatever makes a span bad: that it is no JSON for a span, or that it makes no sense as one.
#[tokio::test]
async fn valid_items_of_json_are_accepted_and_the_rest_is_reported() {
    let good = r#"{"traceId":"07070707070707070707070707070707","spanId":"0909090909090909","name":"ahov"}"#;
    let bad = r#"{"traceId":"0707"},{"name":7},{"kind":"SERVER"},{"name":"x","links":[{"spanId":"07"}]}"#;
    let json = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{bad},{good}]}}]}}]}}"#);
    for (name, _, body) in encodings(json.as_bytes()) {
        let rig = Rig::new();
        let answer = rig.post("/v1/traces", &[JSON, ("content-encoding", name)], &body).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        let said: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(said["partialSuccess"]["rejectedSpans"], "4", "{said}");
        let words = said["partialSuccess"]["errorMessage"].as_str().unwrap();
        let first = "resourceSpans[0].scopeSpans[0].spans[0].traceId: 4 hexadecimal digits instead of 32";
        assert!(words.starts_with(first) && words.ends_with("; and so on"), "{words}");
        let raw = traces(1, 4);
        assert_journalled(&rig, Signal::Traces, Encoding::Identity, &raw, raw.len(), 1).await;
        assert_eq!(rig.books().items_refused, [(tidegate_ledger::Refusal::Malformed, 4)]);
    }
    // Nothing of it is good.
    let rig = Rig::new();
    let json = format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{bad}]}}]}}]}}"#);
    assert_eq!(rig.post("/v1/traces", &[JSON], json.as_bytes()).await.status, 400);
    rig.assert_refused(tidegate_ledger::Refusal::Malformed, "nothing of it is good");
}

/// Points are counted, and not metrics; each signal has its own name for what was rejected.
#[tokio::test]
async fn every_signal_counts_its_own_items() {
    let rig = Rig::new();
    let point = |exemplar: &str| format!(r#"{{"asInt":1,"exemplars":[{{"traceId":"{exemplar}"}}]}}"#);
    let metrics = format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"m","gauge":{{"dataPoints":[{},{},{}]}}}}]}}]}}]}}"#,
        point("07"),
        point(""),
        point("08")
    );
    let logs = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"07"},{}]}]}]}"#;
    for (path, body, name, count) in [
        ("/v1/metrics", metrics.as_str(), "rejectedDataPoints", "2"),
        ("/v1/logs", logs, "rejectedLogRecords", "1"),
    ] {
        let answer = rig.post(path, &[JSON], body.as_bytes()).await;
        let said: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &said["partialSuccess"][name]), (200, &count.into()), "{said}");
    }
    assert_eq!(rig.books().items_refused, [(tidegate_ledger::Refusal::Malformed, 3)]);
}

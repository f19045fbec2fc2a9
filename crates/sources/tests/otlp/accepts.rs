//! Promise: what is acknowledged is in the journal as it came, or as the protobuf that it says; and nothing
//! is said about rejected items, since there are none.

use crate::body::{gzip, logs, message, metrics, profiles, traces, zstd};
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
async fn a_message_that_is_not_compressed_is_taken_as_it_is() {
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

//! Promise: each object and each line is a log record in the journal, in OTLP, before it is answered; what is not right is
//! left out and told.

use crate::body::{gzip, zstd};
use crate::client::{Answer, JSON};
use crate::rig::{MAX_BODY, Rig};
use serde_json::{Value, json};
use std::io::Write as _;
use tidegate_journal::{Encoding, Follower, Protocol, Signal};
use tidegate_ledger::Refusal;
use tidegate_wire::otlp::check;

pub(crate) const PATH: &str = "/ingest/logs";
pub(crate) const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
const TEXT: (&str, &str) = ("content-type", "text/plain; charset=utf-8");

fn deflate(raw: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(raw).unwrap();
    encoder.finish().unwrap()
}

fn said(answer: &Answer) -> Value {
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    serde_json::from_slice(&answer.body).unwrap()
}

/// The bytes of the next record, which holds so many items of OTLP logs.
async fn logs(rig: &Rig, follower: &mut Follower, items: u32) -> Vec<u8> {
    let (meta, body) = rig.journalled(follower).await;
    assert_eq!(
        (meta.protocol, meta.signal, meta.encoding),
        (Protocol::Otlp, Signal::Logs, Encoding::Identity)
    );
    assert_eq!((meta.items, meta.raw_len as usize), (items, body.len()));
    assert_eq!(check(tidegate_wire::otlp::Signal::Logs, &body).unwrap().items, u64::from(items));
    body
}

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn every_type_and_encoding_is_taken_over_both_versions() {
    let rig = Rig::new();
    let mut follower = rig.follow();
    let objects = "{\"msg\":\"first of them\",\"level\":\"info\"}\n{\"msg\":\"second of them\"}\n";
    let array = "[{\"msg\":\"first of them\"},\n{\"msg\":\"second of them\"}]";
    let lines = "first of them\r\n\r\nsecond of them";
    let mut items = 0;
    for (content_type, raw) in [
        (Some(NDJSON), objects),
        (Some(JSON), objects),
        (Some(JSON), array),
        (Some(TEXT), lines),
        (None, lines),
    ] {
        let raw = raw.as_bytes();
        for (encoding, body) in
            [("identity", raw.to_vec()), ("gzip", gzip(raw)), ("zstd", zstd(raw)), ("deflate", deflate(raw))]
        {
            let headers: Vec<_> = content_type.into_iter().chain([("content-encoding", encoding)]).collect();
            let path = format!("{PATH}/?x=1");
            for answer in [rig.post(&path, &headers, &body).await, rig.post2(&path, &headers, &body).await] {
                assert_eq!(answer.status, 200, "{encoding} {}", answer.text());
                assert_eq!(said(&answer), json!({"accepted": 2, "refused": 0}));
                let logs = logs(&rig, &mut follower, 2).await;
                assert!(contains(&logs, "first of them") && contains(&logs, "second of them"));
                items += 2;
            }
        }
    }
    let books = rig.books_of("http");
    assert_eq!((books.received, books.accepted, books.refused), (items / 2, items / 2, vec![]));
}

#[tokio::test]
async fn labels_of_query_and_header_are_the_resource() {
    let rig = Rig::new();
    let mut follower = rig.follow();
    let path = format!("{PATH}?label.service.name=my%20shop&x=y&label.zone=eu+west");
    let labels = ("x-tidegate-labels", "zone=ignored, note=a%2Cb");
    for compressed in [false, true] {
        let (encoding, body) =
            if compressed { ("gzip", gzip(b"line")) } else { ("identity", b"line".to_vec()) };
        let headers = [labels, ("content-encoding", encoding)];
        for answer in [rig.post(&path, &headers, &body).await, rig.post2(&path, &headers, &body).await] {
            assert_eq!(answer.status, 200, "{}", answer.text());
            let logs = logs(&rig, &mut follower, 1).await;
            for text in ["service.name", "my shop", "zone", "eu west", "note", "a,b", "line"] {
                assert!(contains(&logs, text), "{text}");
            }
            assert!(!contains(&logs, "ignored"), "the first of a name counts");
        }
    }
    rig.books_of("http");
}

#[tokio::test]
async fn bad_records_are_reported_and_dropped_alone() {
    let rig = Rig::new();
    let mut follower = rig.follow();
    let body = format!("{{\"msg\":\"good\"}}\n{}", "bad\n".repeat(5));
    let answer = rig.post(PATH, &[NDJSON], body.as_bytes()).await;
    assert_eq!(answer.status, 200);
    let said = said(&answer);
    assert_eq!((&said["accepted"], &said["refused"]), (&json!(1), &json!(5)));
    let errors = said["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 3);
    assert_eq!(errors[0], "line 2: there is `b` instead of an object, at byte 15");
    logs(&rig, &mut follower, 1).await;
    let books = rig.books_of("http");
    assert_eq!((books.accepted, books.refused), (1, vec![]));
    assert_eq!(books.items_refused, vec![(Refusal::Malformed, 5)]);
}

/// A body that the pool translates, as it comes and decompressed.
#[tokio::test]
async fn large_bodies_are_taken() {
    let rig = Rig::sized(64 << 20);
    let mut follower = rig.follow();
    let line = format!("{{\"msg\":\"{}\"}}\n", "x".repeat(1000));
    let count = (MAX_BODY - 1000) / line.len();
    let raw = line.repeat(count).into_bytes();
    for (encoding, body) in [("identity", raw.clone()), ("zstd", zstd(&raw))] {
        let answer = rig.post(PATH, &[NDJSON, ("content-encoding", encoding)], &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        logs(&rig, &mut follower, u32::try_from(count).unwrap()).await;
    }
    assert_eq!(rig.books_of("http").accepted, 2);
}

#[tokio::test]
async fn empty_bodies_are_accepted() {
    let rig = Rig::new();
    for (content_type, body) in [(TEXT, ""), (NDJSON, "\n\n"), (JSON, "[]"), (JSON, "")] {
        let answer = rig.post(PATH, &[content_type], body.as_bytes()).await;
        assert_eq!((answer.status, said(&answer)), (200, json!({"accepted": 0, "refused": 0})));
    }
    assert_eq!((rig.books_of("http").accepted, rig.journal.stats().head), (4, 0));
}

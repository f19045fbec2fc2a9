//! Promise: each entry of a push request is a log record in the journal, in OTLP, before it is answered with 204.

use crate::body::{gzip, zstd};
use crate::client::{JSON, PROTOBUF};
use crate::rig::Rig;
use tidegate_journal::{Encoding, Follower, Protocol, Signal};
use tidegate_load::protobuf::{field, varint};
use tidegate_wire::otlp::{LogsRequest, check};

pub(crate) const PATH: &str = "/loki/api/v1/push";

/// A body in Snappy.
pub(crate) fn compress(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    tidegate_load::remote_write::compress(raw, &mut out);
    out
}

/// A stream of lines, as `PushRequest`.
pub(crate) fn push(labels: &str, lines: &[&str]) -> Vec<u8> {
    let mut stream = field(1, labels.as_bytes());
    for (number, line) in lines.iter().enumerate() {
        let mut time = vec![1 << 3];
        varint(&mut time, 1_790_000_000 + number as u64);
        stream.extend(field(2, &[field(1, &time), field(2, line.as_bytes())].concat()));
    }
    field(1, &stream)
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

/// The name of each record's service, and its line.
fn lines(body: &[u8]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for resource in LogsRequest::new(body).resources() {
        let name = match resource.resource.attributes().find(b"service.name") {
            Some(tidegate_wire::otlp::AnyValue::Text(name)) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        };
        for record in resource.scopes().flat_map(|scope| scope.items()) {
            let tidegate_wire::otlp::AnyValue::Text(line) = record.body else { panic!("{:?}", record.body) };
            lines.push((name.clone(), String::from_utf8_lossy(line).into_owned()));
        }
    }
    lines
}

/// Names with their values.
type Headers<'a> = &'a [(&'a str, &'a str)];

#[tokio::test]
async fn both_encodings_are_taken_over_both_versions() {
    let rig = Rig::new();
    let mut follower = rig.follow();
    // As Promtail and Alloy send it, and as Fluent Bit does.
    let protobuf = compress(&push("{service_name=\"shop\"}", &["first", "second"]));
    let json = br#"{"streams":[{"stream":{"service_name":"shop"},"values":[["1790000000000000000","first"],["1790000001000000000","second"]]}]}"#;
    let plain = ("content-type", "application/json; charset=utf-8");
    let cases: [(Headers<'_>, Vec<u8>); 7] = [
        (&[PROTOBUF], protobuf.clone()),
        (&[PROTOBUF, ("content-encoding", "snappy")], protobuf.clone()),
        (&[], protobuf),
        (&[JSON], json.to_vec()),
        (&[plain], json.to_vec()),
        (&[JSON, ("content-encoding", "gzip")], gzip(json)),
        (&[JSON, ("content-encoding", "zstd")], zstd(json)),
    ];
    let mut requests = 0;
    for (headers, body) in cases {
        for path in [PATH, "/api/prom/push", "/loki/api/v1/push/"] {
            for answer in [rig.post(path, headers, &body).await, rig.post2(path, headers, &body).await] {
                assert_eq!((answer.status, answer.body.len()), (204, 0), "{headers:?} {}", answer.text());
                let logs = logs(&rig, &mut follower, 2).await;
                let shop = |line: &str| ("shop".to_owned(), line.to_owned());
                assert_eq!(lines(&logs), [shop("first"), shop("second")]);
                requests += 1;
            }
        }
    }
    let books = rig.books_of("loki");
    assert_eq!((books.received, books.accepted, books.refused), (requests, requests, vec![]));
}

#[tokio::test]
async fn nothing_is_accepted_as_nothing() {
    let rig = Rig::new();
    for (headers, body) in [(PROTOBUF, compress(b"")), (JSON, br#"{"streams":[]}"#.to_vec())] {
        let answer = rig.post(PATH, &[headers], &body).await;
        assert_eq!(answer.status, 204, "{}", answer.text());
    }
    assert_eq!(rig.journal.stats().head, 0);
    assert_eq!(rig.books_of("loki").accepted, 2, "requests");
}

/// A body that the pool translates becomes what a small one does.
#[tokio::test]
async fn large_bodies_are_taken() {
    let rig = Rig::new();
    let mut follower = rig.follow();
    let line = "a line of a large body ".repeat(4);
    let body = push("{service_name=\"shop\"}", &vec![&*line; 9000]);
    let answer = rig.post(PATH, &[PROTOBUF], &compress(&body)).await;
    assert_eq!(answer.status, 204, "{}", answer.text());
    let logs = logs(&rig, &mut follower, 9000).await;
    assert!(lines(&logs).iter().all(|(_, found)| *found == line));
    rig.books_of("loki");
}

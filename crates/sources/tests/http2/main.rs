//! Promise: what is served over HTTP/1.1 is served over HTTP/2, with the same answers.

#![allow(clippy::unwrap_used, clippy::large_futures, reason = "tests")]

#[path = "../otlp/client.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod client;
#[path = "../otlp/rig.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod rig;

use client::{Answer, raw};
use http::HeaderMap;
use rig::Rig;
use tidegate_ledger::Refusal;

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
const EVENTS: &[u8] =
    b"{\"metadata\":{\"service\":{\"name\":\"shop\",\"agent\":{\"name\":\"go\",\"version\":\"2.0\"}}}}\n\
    {\"log\":{\"message\":\"hello\"}}\n";
const DOCUMENTS: &[u8] = b"{\"create\":{}}\n{\"message\":\"hello\"}\n";
/// A `prometheus.WriteRequest` of one sample, as one block of Snappy.
const SAMPLE: &[u8] =
    b"\x1f\x78\x0a\x1d\x0a\x0e\x0a\x08__name__\x12\x02up\x12\x0b\x09\0\0\0\0\0\0\xf0\x3f\x10\x01";

/// Method, target, headers and body of a request; its status.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [u8], u16);

const SNAPPY: (&str, &str) = ("content-encoding", "snappy");
const PROTOBUF: (&str, &str) = ("content-type", "application/x-protobuf");

const REQUESTS: &[Row] = &[
    ("POST", "/api/v1/write", &[PROTOBUF, SNAPPY], SAMPLE, 204),
    ("POST", "/api/v1/receive/", &[PROTOBUF, SNAPPY], SAMPLE, 204),
    ("POST", "/api/v1/write", &[PROTOBUF, SNAPPY], b"\x05nothing", 400),
    ("POST", "/api/v1/write", &[("content-type", "text/html"), SNAPPY], SAMPLE, 415),
    ("GET", "/api/v1/write", &[], b"", 405),
    ("POST", "/intake/v2/events", &[NDJSON], EVENTS, 202),
    ("POST", "/intake/v2/events?verbose", &[NDJSON], b"{\"metadata\":{}}\n", 400),
    ("POST", "/intake/v2/rum/events", &[NDJSON, ("origin", "https://shop.example")], EVENTS, 202),
    ("GET", "/config/v1/agents?service.name=shop", &[], b"", 200),
    (
        "POST",
        "/config/v1/agents",
        &[("content-type", "application/json")],
        b"{\"service\":{\"name\":\"shop\"}}",
        200,
    ),
    ("OPTIONS", "/intake/v2/rum/events", &[("origin", "https://shop.example")], b"", 200),
    ("POST", "/elasticsearch/logs-a-b/_bulk", &[NDJSON], DOCUMENTS, 200),
    ("POST", "/elasticsearch/logs-a-b/_bulk?pipeline=p", &[NDJSON], DOCUMENTS, 403),
    ("POST", "/elasticsearch/_bulk", &[NDJSON], DOCUMENTS, 400),
    ("POST", "/elasticsearch/_bulk", &[NDJSON], b"", 400),
    ("GET", "/elasticsearch/", &[], b"", 200),
    ("GET", "/elasticsearch/_license", &[], b"", 200),
    ("DELETE", "/elasticsearch/logs", &[], b"", 404),
    ("POST", "/nowhere", &[], b"x", 404),
    ("POST", "/v1/traces", &[("content-type", "text/plain")], b"x", 415),
    ("POST", "/a|b", &[], b"x", 400),
];

/// An answer's text, without the parts that depend on the connection and the time.
fn said(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    let other = |headers: &HeaderMap| {
        let mut headers: Vec<_> = headers
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "date" | "connection"))
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned()))
            .collect();
        headers.sort();
        headers
    };
    (answer.status, other(&answer.headers), answer.text())
}

/// A body without the port that it came from, which the records of browsers have.
fn without_port(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match text.split_once("\"port\":") {
        Some((before, after)) => {
            format!("{before}{}", after.trim_start_matches(|digit: char| digit.is_ascii_digit()))
        }
        None => text.into_owned(),
    }
}

/// The request as HTTP/1.1 has it.
fn written(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut request =
        format!("{method} {target} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    [request.as_bytes(), b"\r\n", body].concat()
}

/// Both versions give the same answer, the journal the same records, and the books say the same.
#[tokio::test]
async fn every_source_is_served_over_both_versions() {
    for (method, target, headers, body, status) in REQUESTS {
        let what = format!("{method} {target}");
        let over1 = Rig::new();
        let request = written(method, target, headers, body);
        let first = over1.serve(async |address| raw(address, &request).await).await;
        assert_eq!(first.status, *status, "{what}: {}", first.text());
        let over2 = Rig::new();
        let second = over2.request2(method, target, headers, body).await;
        assert_eq!(said(&first), said(&second), "{what}");
        for source in ["prometheus_remote_write", "elastic_apm", "elasticsearch", "otlp", "http"] {
            let books = [&over1, &over2].map(|rig| format!("{:?}", rig.books_of(source)));
            assert_eq!(books[0], books[1], "{what}");
        }
        let (mut one, mut other) = (over1.follow(), over2.follow());
        for _ in 0..over1.journal.stats().head {
            let (first, second) = (over1.journalled(&mut one).await, over2.journalled(&mut other).await);
            assert_eq!(without_port(&first.1), without_port(&second.1), "{what}");
            assert_eq!((first.0.protocol, first.0.items), (second.0.protocol, second.0.items), "{what}");
        }
        assert_eq!(over1.journal.stats().head, over2.journal.stats().head, "{what}");
    }
}

/// An answer to HEAD says how long it would be, and is empty.
#[tokio::test]
async fn the_answer_to_head_is_empty() {
    let rig = Rig::new();
    let answer = rig.request2("HEAD", "/elasticsearch/", &[], b"").await;
    assert_eq!((answer.status, answer.body.len()), (200, 0), "{}", answer.text());
    assert_eq!(rig.request2("HEAD", "/elasticsearch/nothing", &[], b"").await.body.len(), 0);
}

/// A body that is longer than a source takes is refused as soon as that is known, also where no length is announced.
#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    let long = vec![b' '; rig::MAX_BODY + 1];
    for length in [None, Some(long.len().to_string())] {
        let rig = Rig::new();
        let length = length.as_deref().map(|length| ("content-length", length));
        let headers: Vec<_> = [NDJSON].into_iter().chain(length).collect();
        let answer = rig.request2("POST", "/elasticsearch/_bulk", &headers, &long).await;
        assert_eq!(answer.status, 413, "{}", answer.text());
        assert_eq!(rig.books_of("elasticsearch").refused, [(Refusal::TooLarge, 1)]);
    }
}

/// A client that waits for `100 Continue` is told to go on.
#[tokio::test]
async fn a_client_that_expects_100_continue_gets_it() {
    let rig = Rig::new();
    let request = http::Request::post("http://test/intake/v2/events").header(NDJSON.0, NDJSON.1);
    let request = request.header("expect", "100-continue").body(()).unwrap();
    let status = rig
        .serve(async |address| {
            let mut client = client::connect(address).await.ready().await.unwrap();
            let (mut answer, mut body) = client.send_request(request, false).unwrap();
            let told = std::future::poll_fn(|context| answer.poll_informational(context)).await;
            assert_eq!(told.unwrap().unwrap().status(), 100);
            body.send_data(bytes::Bytes::from_static(EVENTS), true).unwrap();
            answer.await.unwrap().status()
        })
        .await;
    assert_eq!(status, 202);
}

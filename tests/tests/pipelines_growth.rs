//! Promise: an item that a pipeline would make longer than its sink can deliver is delivered as it was, or is dropped as the step
//! says. It is never lost as too large, since it was acknowledged.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test")]

use serde_json::json;
use tidegate_tests::{Gateway, Recorder, SOON, http};

/// A field of protobuf with this content.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut len = content.len();
    while len > 127 {
        out.push((len & 127) as u8 | 128);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(content);
    out
}

/// A request of one long log record and some short ones, of about 1 MiB. Each byte becomes six in JSON.
fn logs() -> Vec<u8> {
    let record = |len: usize| field(2, &field(5, &field(1, &vec![1; len])));
    let lengths = std::iter::once(70 << 10).chain(std::iter::repeat_n(6 << 10, 150));
    let records: Vec<u8> = lengths.flat_map(record).collect();
    field(1, &field(2, &records))
}

#[test]
fn an_item_that_would_grow_too_long_is_delivered_as_it_was() {
    let server = Recorder::start();
    // The long record becomes 1.9 MiB, and JSON of it takes several times as much memory.
    let copies: Vec<String> = (0..28)
        .map(|number| format!("set(log.attributes[\"{number}\"], log.body) where Len(log.body) > 50000"))
        .collect();
    let lines = |pipeline: &str| json!({"type": "http", "endpoints": [server.url()], "linger": "20ms", "pipeline": pipeline});
    let gateway = Gateway::started(json!({
        "memory": "64MiB", "limits": {"connections": 500},
        "pipelines": {
            "grow": {"steps": [{"edit": copies}]},
            "strict": {"steps": [{"edit": copies, "on_error": "drop"}]},
        },
        "sinks": {
            "grow": lines("grow"),
            "strict": lines("strict"),
            "lake": {"type": "lake", "file_age": "1s", "pipeline": "grow"},
        },
    }));
    let head = ["POST /v1/logs HTTP/1.1", "content-type: application/x-protobuf"];
    assert_eq!(http::request(gateway.http(), &head, &logs()).unwrap().status, 200);
    gateway.at_rest(SOON);
    gateway.books_close();
    let status = gateway.status();
    for (sink, delivered, dropped) in
        [("grow", 151, json!({})), ("strict", 150, json!({"filtered": 1})), ("lake", 151, json!({}))]
    {
        let books = status["books"]["sinks"].as_array().unwrap();
        let book = books.iter().find(|book| book["name"] == sink).unwrap();
        assert_eq!((&book["delivered"], &book["dropped"]), (&json!(delivered), &dropped), "{sink}: {book}");
        let failures = format!("tidegate_pipeline_failures_total{{sink=\"{sink}\"");
        let metrics = gateway.metrics();
        let failed: f64 =
            metrics.iter().filter(|(name, _)| name.starts_with(&failures)).map(|(_, value)| *value).sum();
        assert!(failed >= 1.0, "{sink}: {failed}");
    }
}

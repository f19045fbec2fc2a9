//! Promise: what is acknowledged is delivered, also when a reload adds a pipeline, with which sinks can send only smaller
//! requests.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::net::SocketAddr;
use tidegate_tests::{Gateway, Recorder, SOON, free_address, http, until};

/// A sink that sends lines of JSON to `url`, behind the pipeline `mark` or without one; in 64 MiB, of which a sink with a
/// pipeline can send about 4 MiB at a time.
fn settings(url: &str, pipeline: Option<&str>) -> Value {
    let mut app = json!({"type": "http", "endpoints": [url], "linger": "20ms", "backoff": {"max": "200ms"}});
    if let Some(pipeline) = pipeline {
        app["pipeline"] = json!(pipeline);
    }
    json!({
        "memory": "64MiB", "limits": {"connections": 500},
        "pipelines": {"mark": {"steps": [{"edit": ["set(log.attributes[\"mark\"], 1)"]}]}},
        "sinks": {"app": app},
    })
}

/// A request of about 8 MiB: 100 log records.
fn large() -> String {
    let record = |number: u32| json!({"body": {"stringValue": format!("{number} {}", "x".repeat(80 << 10))}});
    let records: Vec<Value> = (0..100).map(record).collect();
    json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).to_string()
}

fn post(gateway: &Gateway, body: &str) -> u16 {
    let head = ["POST /v1/logs HTTP/1.1", "content-type: application/json"];
    http::request(gateway.http(), &head, body.as_bytes()).unwrap().status
}

/// Has the gateway read these settings, and waits until its log says what became of them.
fn reload(gateway: &mut Gateway, settings: Value, outcome: &str) {
    let count = |gateway: &Gateway| gateway.log().matches(outcome).count();
    let before = count(gateway);
    gateway.configure(settings);
    gateway.hangup();
    until(SOON, "the configuration to be read", || count(gateway) > before);
}

const TAKEN: &str = "the configuration was read again";
const REFUSED: &str = "the configuration was not changed";

/// A pipeline behind which the sink could not send what is queued is refused; the sinks go on as they were.
#[test]
fn a_reload_is_refused_while_the_queue_holds_what_could_not_be_sent_with_it() {
    let nowhere: SocketAddr = free_address();
    let (nowhere, server) = (format!("http://{nowhere}/"), Recorder::start());
    let mut gateway = Gateway::started(settings(&nowhere, None));
    assert_eq!(post(&gateway, &large()), 200);

    reload(&mut gateway, settings(&nowhere, Some("mark")), REFUSED);
    let log = gateway.log();
    assert!(log.contains("record 0, 100 items of logs, 7.8 MiB when decompressed"), "{log}");
    assert!(!log.contains("the sink failed"), "{log}");
    assert_eq!(post(&gateway, &large()), 200, "the bound is what it was");

    // To where it can send, with the same bound: everything arrives.
    reload(&mut gateway, settings(&server.url(), None), TAKEN);
    gateway.at_rest(SOON);
    gateway.books_close();
    let items = |server: &Recorder| -> usize {
        server.seen().iter().map(|seen| seen.body.iter().filter(|byte| **byte == b'\n').count()).sum()
    };
    assert_eq!(items(&server), 200);

    // Nothing is queued: the pipeline is taken, and such requests are refused, until it is gone again.
    reload(&mut gateway, settings(&server.url(), Some("mark")), TAKEN);
    assert_eq!(post(&gateway, &large()), 413);
    reload(&mut gateway, settings(&server.url(), None), TAKEN);
    assert_eq!(post(&gateway, &large()), 200);
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_eq!(items(&server), 300);
    let book = gateway.status()["books"]["sinks"][0].clone();
    assert_eq!((&book["delivered"], &book["dropped"]), (&json!(300), &json!({})), "{book}");
}

//! Promise: an item goes to the sinks that were to take it when it was received, once, also when `when` and `otherwise` change while
//! sinks are at different places of the queue.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use tidegate_tests::{Gateway, Recorder, SOON, free_address, http, until};

/// `errors` takes what is at least this severe, and `rest` the rest.
fn settings(errors: &str, rest: &str, severity: u32) -> Value {
    let lines = |url: &str, key: &str, value: Value| json!({"type": "http", "endpoints": [url], "linger": "20ms", "backoff": {"max": "200ms"}, key: value});
    json!({"memory": "96MiB", "sinks": {
        "errors": lines(errors, "when", json!(format!("log.severity_number >= {severity}"))),
        "rest": lines(rest, "otherwise", json!(true)),
    }})
}

/// Sends a log record of each of these severities.
fn post(gateway: &Gateway, severities: &[u32]) {
    let record = |severity: &u32| json!({"severityNumber": severity});
    let records: Vec<Value> = severities.iter().map(record).collect();
    let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).to_string();
    let head = ["POST /v1/logs HTTP/1.1", "content-type: application/json"];
    assert_eq!(http::request(gateway.http(), &head, body.as_bytes()).unwrap().status, 200);
}

/// The severities that a server got, sorted.
fn severities(server: &Recorder) -> Vec<u64> {
    let bodies = server.seen().into_iter().map(|seen| String::from_utf8(seen.body).unwrap());
    let severity =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["severity_number"].as_u64().unwrap();
    let mut all: Vec<u64> = bodies.flat_map(|body| body.lines().map(severity).collect::<Vec<_>>()).collect();
    all.sort_unstable();
    all
}

fn reload(gateway: &mut Gateway, settings: Value) {
    const TAKEN: &str = "the configuration was read again";
    let before = gateway.log().matches(TAKEN).count();
    gateway.configure(settings);
    gateway.hangup();
    until(SOON, "the configuration to be read", || gateway.log().matches(TAKEN).count() > before);
}

#[test]
fn queued_items_are_routed_as_when_they_were_received() {
    let (errors, rest) = (Recorder::start(), Recorder::start());
    let (errors_url, rest_url) = (errors.url(), rest.url());
    let nowhere = format!("http://{}/", free_address());
    let mut gateway = Gateway::started(settings(&nowhere, &rest_url, 13));
    post(&gateway, &[9, 13, 17]);
    until(SOON, "the rest", || severities(&rest) == [9]);

    // `errors` would now leave 13 to `rest`, which is past it.
    reload(&mut gateway, settings(&nowhere, &rest_url, 17));
    post(&gateway, &[9, 13, 17]);
    until(SOON, "the rest", || severities(&rest) == [9, 9, 13]);

    // It would take 9, which `rest` has taken; and the gateway is started again in between.
    gateway.kill9();
    gateway.configure(settings(&nowhere, &rest_url, 5));
    gateway.start();
    post(&gateway, &[1, 9]);
    until(SOON, "the rest", || severities(&rest) == [1, 9, 9, 13]);
    reload(&mut gateway, settings(&errors_url, &rest_url, 5));
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_eq!(severities(&errors), [9, 13, 17, 17], "by the conditions of each time");
    assert_eq!(severities(&rest), [1, 9, 9, 13], "nothing twice");
    let status = gateway.status();
    for (name, delivered) in [("errors", 4), ("rest", 4)] {
        let books = status["books"]["sinks"].as_array().unwrap();
        let book = books.iter().find(|book| book["name"] == name).unwrap();
        assert_eq!((&book["delivered"], &book["dropped"]), (&json!(delivered), &json!({})), "{book}");
    }

    // Nothing is queued, so only the last conditions count.
    reload(&mut gateway, settings(&errors_url, &rest_url, 9));
    post(&gateway, &[8, 9]);
    gateway.at_rest(SOON);
    assert_eq!((severities(&errors), severities(&rest)), (vec![9, 9, 13, 17, 17], vec![1, 8, 9, 9, 13]));
}

//! Promise: an item goes to the sinks that were to take it when it was received, once, also when `when` and `otherwise` change while
//! sinks are at different places of the queue.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use tidegate_tests::{Gateway, Recorder, SOON, free_address, http, until};

/// A sink that sends lines of JSON to `url`, with one more setting.
fn sink(url: &str, key: &str, value: Value) -> Value {
    json!({"type": "http", "endpoints": [url], "linger": "20ms", "backoff": {"max": "200ms"}, key: value})
}

/// One that takes what meets this condition.
fn taking(url: &str, condition: &str) -> Value {
    sink(url, "when", json!(condition))
}

/// These sinks in little memory.
fn gateway_with(sinks: Value) -> Value {
    json!({"memory": "96MiB", "sinks": sinks})
}

/// `errors` takes what is at least this severe, and `rest` the rest.
fn settings(errors: &str, rest: &str, severity: u32) -> Value {
    gateway_with(json!({
        "errors": taking(errors, &format!("log.severity_number >= {severity}")),
        "rest": sink(rest, "otherwise", json!(true)),
    }))
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

/// Waits until the sink's cursor is past all that came: what a gateway that is killed then would not send again.
fn completed(gateway: &Gateway, sink: &str) {
    let queued = |status: Value| {
        let books = status["books"]["sinks"].as_array().unwrap().clone();
        books.into_iter().find(|book| book["name"] == sink).unwrap()["queued"].clone()
    };
    until(SOON, "the sink's cursor", || queued(gateway.status()) == 0);
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
    completed(&gateway, "rest");

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

/// A sink that is new takes nothing of what is queued from a time when another sink was to take it.
#[test]
fn a_new_sink_leaves_what_others_were_to_take() {
    let (warnings, rest) = (Recorder::start(), Recorder::start());
    let nowhere = format!("http://{}/", free_address());
    let before = settings(&nowhere, &rest.url(), 17);
    let mut gateway = Gateway::started(before.clone());
    post(&gateway, &[9, 13, 17]);
    until(SOON, "the rest", || severities(&rest) == [9, 13]);

    let mut after = before;
    after["sinks"]["warnings"] =
        taking(&warnings.url(), "log.severity_number >= 13 and log.severity_number < 17");
    reload(&mut gateway, after);
    post(&gateway, &[10, 14, 18]);
    until(SOON, "the warnings", || !severities(&warnings).is_empty());
    until(SOON, "the rest", || severities(&rest) == [9, 10, 13]);
    assert_eq!(severities(&warnings), [14]);
}

/// A sink that was removed and comes back takes what was left to it before, and nothing of what came while it was away.
#[test]
fn a_sink_that_comes_back_leaves_what_came_while_it_was_away() {
    let (errors, rest) = (Recorder::start(), Recorder::start());
    let nowhere = format!("http://{}/", free_address());
    let mut before = settings(&nowhere, &rest.url(), 17);
    // `otherwise` needs a sink with a `when`.
    before["sinks"]["other"] = taking(&nowhere, "log.severity_number == 1");
    let mut gateway = Gateway::started(before.clone());
    post(&gateway, &[9, 17]);
    until(SOON, "the rest", || severities(&rest) == [9]);

    let mut away = before.clone();
    away["sinks"].as_object_mut().unwrap().remove("errors");
    reload(&mut gateway, away);
    post(&gateway, &[18]);
    until(SOON, "the rest", || severities(&rest) == [9, 18]);

    before["sinks"]["errors"] = taking(&errors.url(), "log.severity_number >= 17");
    reload(&mut gateway, before);
    post(&gateway, &[10, 19]);
    until(SOON, "the errors", || severities(&errors).contains(&19));
    until(SOON, "the rest", || severities(&rest) == [9, 10, 18]);
    assert_eq!(severities(&errors), [17, 19]);
}

/// Changes are refused while too many are under way; but the gateway starts, and each queued item goes to a sink that was to take it.
#[test]
fn a_start_does_not_wait_for_changes_that_are_under_way() {
    const REFUSED: &str = "the configuration was not changed";
    let (errors, rest) = (Recorder::start(), Recorder::start());
    let nowhere = format!("http://{}/", free_address());
    let mut first = settings(&nowhere, &rest.url(), 17);
    first["sinks"]["gone"] = taking(&nowhere, "log.severity_number == 1");
    let mut gateway = Gateway::started(first);
    for severity in [16, 15, 14] {
        post(&gateway, &[9, 17]);
        reload(&mut gateway, settings(&nowhere, &rest.url(), severity));
    }
    post(&gateway, &[9, 17]);
    gateway.configure(settings(&nowhere, &rest.url(), 13));
    gateway.hangup();
    until(SOON, "the change to be refused", || gateway.log().contains(REFUSED));
    completed(&gateway, "rest");
    gateway.kill9();
    gateway.configure(settings(&errors.url(), &rest.url(), 13));
    gateway.start();
    assert!(gateway.log().contains("some may be delivered to several sinks"), "{}", gateway.log());
    post(&gateway, &[12, 13]);
    until(SOON, "the errors", || severities(&errors) == [13, 17, 17, 17, 17]);
    until(SOON, "the rest", || severities(&rest) == [9, 9, 9, 9, 12]);
}

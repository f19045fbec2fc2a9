//! The sink `splunk_hec` before a collector with indexer acknowledgment: with it, events count as delivered only when they are
//! indexed, also where the collector is slow, loses them, or restarts.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "splunk_hec/collector.rs"]
mod collector;

use collector::{Splunk, TOKEN};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use tidegate_load::otlp::{Signal, drive_blocking};
use tidegate_tests::{Gateway, SOON, finish, http, otlp_profile, until};

fn gateway(splunk: &Splunk, more: Value) -> Gateway {
    let mut sink = json!({
        "type": "splunk_hec", "endpoints": [format!("http://{}", splunk.address())], "token": TOKEN,
        "linger": "50ms", "backoff": {"max": "200ms"}, "timeout": "10s", "acknowledgement_interval": "20ms",
        "max_request_bytes": "64KiB",
    });
    sink.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Gateway::started(json!({"memory": "96MiB", "sinks": {"splunk": sink}}))
}

/// Sends logs; how many.
fn send(gateway: &Gateway, requests: u64) -> u64 {
    let report = drive_blocking(&gateway.otlp_target(), &otlp_profile(Signal::Logs, requests)).unwrap();
    assert_eq!(report.failed, 0, "{:?}", report.reasons);
    report.accepted * 50
}

fn send_record(gateway: &Gateway, resource: Value, record: Value) {
    let request = json!({"resourceLogs": [{
        "resource": {"attributes": resource}, "scopeLogs": [{"logRecords": [record]}],
    }]});
    let head = ["POST /v1/logs HTTP/1.1", "content-type: application/json"];
    assert_eq!(http::request(gateway.http(), &head, request.to_string().as_bytes()).unwrap().status, 200);
}

/// How often each event is there.
fn counts(splunk: &Splunk) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in &splunk.state().events {
        *counts.entry(event.to_string()).or_default() += 1;
    }
    counts
}

#[track_caller]
fn assert_each_once(splunk: &Splunk, sent: u64) {
    let counts = counts(splunk);
    assert_eq!(counts.len() as u64, sent);
    let twice = counts.iter().find(|(_, count)| **count != 1);
    assert_eq!(twice, None);
}

#[test]
fn every_log_arrives_once_in_each_compression() {
    for compression in ["none", "gzip"] {
        let splunk = Splunk::start(false);
        let gateway = gateway(&splunk, json!({"compression": compression}));
        let sent = send(&gateway, 20);
        drive_blocking(&gateway.otlp_target(), &otlp_profile(Signal::Traces, 2)).unwrap();
        gateway.at_rest(SOON);
        gateway.books_close();
        assert_each_once(&splunk, sent);
        assert_eq!(gateway.sink("splunk")["delivered"].as_u64(), Some(sent));
    }
}

/// The same message, sent by Splunk's handler for Python's `logging` and as OTLP, is the same event.
#[test]
fn an_event_has_the_shape_of_a_splunk_client() {
    let splunk = Splunk::start(false);
    let python = std::env::var_os("TIDEGATE_TEST_PYTHON").expect("TIDEGATE_TEST_PYTHON: `make test` sets it");
    let script = "
import logging, sys
from splunk_handler import SplunkHandler
host, port = sys.argv[1].split(':')
handler = SplunkHandler(host, port, sys.argv[2], 'main', hostname='web-1', source='app.log', sourcetype='app',
    protocol='http', verify=False, flush_interval=0)
log = logging.getLogger('app')
log.addHandler(handler)
log.warning('disk \"sda\" is full: wörter')
";
    let mut command = Command::new(python);
    command.args(["-c", script, &splunk.address().to_string(), TOKEN]);
    finish(&mut command).succeeded();
    let gateway = gateway(&splunk, json!({"index": "main", "sourcetype": "app"}));
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let resource = json!([text("host.name", "web-1"), text("com.splunk.source", "app.log")]);
    let body = json!({"stringValue": "disk \"sda\" is full: wörter"});
    send_record(&gateway, resource, json!({"timeUnixNano": "1700000000123456000", "body": body}));
    gateway.at_rest(SOON);
    let mut events = splunk.state().events.clone();
    for event in &mut events {
        let time = event.as_object_mut().unwrap().remove("time").unwrap();
        assert!(time.as_f64().unwrap() > 1.6e9, "{time}");
    }
    let [theirs, ours] = events.try_into().unwrap();
    assert_eq!(ours, theirs);
}

#[test]
fn only_the_refused_event_is_dropped() {
    let splunk = Splunk::start(true);
    let gateway = gateway(&splunk, json!({"acknowledgement": true}));
    let records: Vec<_> = (0..20)
        .map(|number| {
            let text = if number == 7 { "refuse me".to_owned() } else { format!("record {number}") };
            json!({"body": {"stringValue": text}})
        })
        .collect();
    let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]});
    let head = ["POST /v1/logs HTTP/1.1", "content-type: application/json"];
    assert_eq!(http::request(gateway.http(), &head, request.to_string().as_bytes()).unwrap().status, 200);
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_each_once(&splunk, 19);
    assert_eq!(gateway.sink("splunk")["dropped"], json!({"rejected": 1}));
}

/// A token that was wrong for a while costs nothing.
#[test]
fn events_wait_for_the_token_to_be_enabled() {
    let splunk = Splunk::start(false);
    splunk.state().refuses = Some(("403 Forbidden", json!({"text": "Token disabled", "code": 1})));
    let gateway = gateway(&splunk, json!({}));
    let sent = send(&gateway, 5);
    until(SOON, "refusals", || splunk.state().requests > 2);
    assert_eq!(gateway.sink("splunk")["delivered"], 0);
    splunk.state().refuses = None;
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_each_once(&splunk, sent);
}

#[test]
fn events_count_when_they_are_indexed() {
    let splunk = Splunk::start(true);
    splunk.state().indexes = false;
    let gateway = gateway(&splunk, json!({"acknowledgement": true, "max_in_flight": 4}));
    let sent = send(&gateway, 40);
    until(SOON, "several requests to be asked for at once", || splunk.state().most_asked >= 2);
    assert_eq!((gateway.sink("splunk")["delivered"].as_u64(), splunk.state().events.len()), (Some(0), 0));
    splunk.state().indexes = true;
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_each_once(&splunk, sent);
    assert_eq!(gateway.sink("splunk")["delivered"].as_u64(), Some(sent));
    assert_eq!(gateway.sink("splunk")["dropped"], json!({}));
}

/// The events that were not indexed are sent again, on another channel.
#[test]
fn a_restart_of_the_collector_loses_nothing() {
    let splunk = Splunk::start(true);
    // Requests on a connection that nobody uses do not notice a restart.
    let settings = json!({"acknowledgement": true, "acknowledgement_timeout": "1s", "max_in_flight": 4});
    let gateway = gateway(&splunk, settings);
    let mut sent = 0;
    for round in 0..3 {
        splunk.state().indexes = false;
        sent += send(&gateway, 20);
        until(SOON, "events to wait for the index", || splunk.state().waiting() > 0);
        let before = splunk.state().requests;
        splunk.restart();
        until(SOON, "events to be sent again", || splunk.state().requests > before);
        splunk.state().indexes = true;
        gateway.at_rest(SOON);
        assert_eq!(counts(&splunk).len() as u64, sent, "round {round}");
    }
    gateway.books_close();
    assert_each_once(&splunk, sent);
    assert_eq!(gateway.sink("splunk")["dropped"], json!({}));
}

#[test]
fn events_that_are_not_indexed_in_time_are_sent_again() {
    let splunk = Splunk::start(true);
    splunk.state().loses = 2;
    let gateway = gateway(&splunk, json!({"acknowledgement": true, "acknowledgement_timeout": "1s"}));
    let sent = send(&gateway, 10);
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_eq!(splunk.state().loses, 0);
    assert_each_once(&splunk, sent);
    assert!(gateway.log().contains("not indexed within 1s"), "{}", gateway.log());
}

/// Events that were sent and not indexed when the gateway is killed are sent again after its start.
#[test]
fn nothing_is_lost_when_the_gateway_is_killed() {
    let splunk = Splunk::start(true);
    splunk.state().indexes = false;
    let mut gateway = gateway(&splunk, json!({"acknowledgement": true}));
    let sent = send(&gateway, 20);
    until(SOON, "events to wait for the index", || splunk.state().waiting() > 0);
    gateway.kill9();
    splunk.restart();
    splunk.state().indexes = true;
    gateway.start();
    gateway.at_rest(SOON);
    gateway.books_close();
    let events: BTreeSet<_> = counts(&splunk).into_keys().collect();
    assert_eq!(events.len() as u64, sent);
}

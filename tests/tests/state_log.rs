//! The log and the pages report state changes: a full journal, a sink that fails and recovers, a removed sink that
//! holds the journal back.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_load::{
    Behaviour, Check, LoadProfile, OnRefused, RunLimit, SeriesModel, Timeline, VerifyingReceiver,
    drive_blocking,
};
use tidegate_tests::http::request;
use tidegate_tests::{Gateway, SOON, tidegate, until, until_some};

const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 };

/// A sink that sends there.
fn to(url: &str) -> Value {
    json!({"type": "prometheus_remote_write", "url": url, "backoff": {"max": "200ms"}})
}

/// Where nobody answers.
const NOWHERE: &str = "http://127.0.0.1:1/api/v1/write";

/// Sends requests; how many were accepted.
fn send(gateway: &Gateway, passes: u64) -> u64 {
    let model = Arc::new(SeriesModel::new(3, 400, TIMELINE));
    let (limit, on_refused) = (RunLimit::Passes(passes), OnRefused::Count);
    let profile =
        LoadProfile { limit, on_refused, series_per_request: 400, connections: 1, ..LoadProfile::default() };
    drive_blocking(&gateway.target(), &model, &profile).unwrap().accepted()
}

/// The lines of the log, each JSON.
fn log(gateway: &Gateway) -> Vec<Value> {
    // The last may be half written.
    let log = gateway.log();
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn find(gateway: &Gateway, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    until_some(SOON, what, || log(gateway).into_iter().find(&is))
}

fn says(message: &'static str, field: &'static str, value: &'static str) -> impl Fn(&Value) -> bool {
    move |line| {
        let matches = line[field].as_str().is_some_and(|found| found.contains(value));
        line["message"] == message && matches
    }
}

/// The journal fills because its sink fails: the log says both, and when both are over. Nothing in it but JSON.
#[test]
fn the_log_has_the_beginning_and_end_of_each_trouble() {
    let up = VerifyingReceiver::start(Behaviour::Refuse, Check::Timed(TIMELINE)).unwrap();
    let gateway = Gateway::started(json!({
        "memory": "64MiB", "limits": {"connections": 100}, "sinks": {"up": to(&up.target().to_string())},
        "journal": {"quota": "4MiB", "segment": "1MiB"},
    }));
    find(&gateway, "the start", |line| line["message"] == "tidegate is running" && line["sinks"].is_string());
    until(SOON, "the journal to be full", || {
        send(&gateway, 50);
        gateway.page("/ready").status == 503
    });
    send(&gateway, 1);
    let failing = find(&gateway, "the sink to be told", says("the sink is failing", "sink", "up"));
    assert!(failing["error"].as_str().unwrap().contains("refused"), "{failing}");
    let full =
        find(&gateway, "the state to be told", says("the gateway's state changed", "state", "pushing back"));
    println!("{failing}\n{full}");
    assert_eq!(full["level"], "WARN");
    let metrics = gateway.metrics();
    assert_eq!(metrics["tidegate_sink_failing{sink=\"up\"}"], 1.0);
    assert!(metrics["tidegate_sink_lag_seconds{sink=\"up\"}"] > 0.0);
    assert!(!metrics.contains_key("tidegate_sink_last_success_timestamp_seconds{sink=\"up\"}"));

    until(SOON, "the state to be a metric", || {
        send(&gateway, 1);
        gateway.metrics()["tidegate_state{state=\"pushing_back\"}"] == 1.0
    });

    up.set(Behaviour::Healthy);
    find(&gateway, "the sink to work again", says("the sink works again", "sink", "up"));
    // Refusals are counted when the state ends, whatever the state is then.
    find(&gateway, "the refusals to be over", |line| {
        let refused = line["refused"].as_str().unwrap_or_default();
        line["level"] == "INFO" && refused.contains("disk: ")
    });
    find(&gateway, "all to be well", says("the gateway's state changed", "state", "flowing"));
    let metrics = gateway.metrics();
    assert_eq!(metrics["tidegate_sink_failing{sink=\"up\"}"], 0.0);
    assert!(metrics["tidegate_sink_last_success_timestamp_seconds{sink=\"up\"}"] > 1.7e9);
    assert!(metrics["process_cpu_seconds_total"] > 0.0 && metrics["process_start_time_seconds"] > 1.7e9);
    let build = metrics.keys().find(|name| name.starts_with("tidegate_build_info{")).unwrap();
    assert!(build.contains("version=\"") && build.contains("commit=\""), "{build}");
}

/// A sink that was taken out is on the page with the command that lets it go, which works while the gateway runs; one
/// that is configured is not let go.
#[test]
fn a_removed_sink_is_named_and_can_be_forgotten_online() {
    let settings = |sinks: Value| json!({"memory": "64MiB", "limits": {"connections": 100}, "sinks": sinks});
    let mut gateway = Gateway::started(settings(
        json!({"nowhere": {"type": "blackhole"}, "old": to(NOWHERE), "kept": to(NOWHERE)}),
    ));
    assert!(send(&gateway, 2) > 0);
    let config = gateway.config();
    let forget = |name: &str| tidegate(&["journal", "forget", name, "--config", config.to_str().unwrap()]);
    let refused = forget("old");
    assert!(refused.code == Some(1) && refused.stderr.contains("is configured"), "{}", refused.stderr);

    gateway.configure(settings(json!({"nowhere": {"type": "blackhole"}, "kept": to(NOWHERE)})));
    gateway.hangup();
    let left = until_some(SOON, "the sink to be left behind", || {
        let status = gateway.status();
        status["left_behind"].as_array()?.first().cloned()
    });
    assert_eq!((&left["name"], &left["command"]), (&json!("old"), &json!("tidegate journal forget old")));
    assert!(left["items"].as_u64().unwrap() > 0 && left["age_seconds"].as_f64().is_some(), "{left}");
    let page = gateway.page("/status?format=text").text();
    assert!(page.contains("LEFT BEHIND") && page.contains("tidegate journal forget old"), "{page}");

    // No page in a browser can do it.
    let admin = gateway.admin();
    let from_a_page =
        request(admin, &["DELETE /journal/cursors/old HTTP/1.1", "Origin: http://x"], b"").unwrap();
    assert_eq!(from_a_page.status, 403);
    let said = forget("old").succeeded();
    assert!(said.contains("forgot `old`, which had"), "{said}");
    assert_eq!(gateway.status()["left_behind"], json!([]));
    let unknown = forget("old");
    assert!(unknown.stderr.contains("no cursor for `old`; it has: kept, nowhere"), "{}", unknown.stderr);
    assert_eq!(forget("kept").code, Some(1));
    gateway.books_close();
}

/// The version has the commit where the build knows one.
#[test]
fn the_version_has_the_commit() {
    let version = tidegate(&["--version"]).succeeded();
    let (name, rest) = version.trim().split_once(' ').unwrap();
    let commit = rest.split_once(" (").map(|(_, commit)| commit.trim_end_matches(')'));
    println!("{name} {rest}");
    assert!(commit.is_none_or(|commit| commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_alphanumeric())));
}

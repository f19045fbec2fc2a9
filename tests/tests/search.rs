//! Searches on the console of a whole gateway: what was acknowledged is found, at once and once.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it measured")]

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tidegate_load::otlp::{OtlpProfile, Signal, drive_blocking};
use tidegate_tests::http::Answer;
use tidegate_tests::{Gateway, SOON, http, otlp_profile, until};

/// Long enough for a search, which waits for memory for up to two seconds.
const PATIENCE: Duration = Duration::from_secs(30);

struct Searcher {
    token: String,
}

impl Searcher {
    fn of(gateway: &Gateway) -> Searcher {
        let session = http::get(gateway.admin(), "/console/session").unwrap();
        let session: Value = serde_json::from_slice(&session.body).unwrap();
        Searcher { token: format!("X-Tidegate-Token: {}", session["token"].as_str().unwrap()) }
    }

    fn ask(&self, gateway: &Gateway, kind: &str, query: &Value) -> Answer {
        let request = format!("POST /console/search/{kind} HTTP/1.1");
        let head = [request.as_str(), "Content-Type: application/json", &self.token];
        http::request(gateway.admin(), &head, query.to_string().as_bytes()).unwrap()
    }

    fn find(&self, gateway: &Gateway, kind: &str, query: &Value) -> Value {
        let answer = self.ask(gateway, kind, query);
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice(&answer.body).unwrap()
    }
}

fn send(gateway: &Gateway, path: &str, body: &Value) {
    let request = format!("POST {path} HTTP/1.1");
    let head = [request.as_str(), "Content-Type: application/json"];
    let answer = http::request(gateway.http(), &head, body.to_string().as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn log(body: &str, trace: Option<&str>) -> Value {
    let mut record = json!({"severityNumber": 9, "body": {"stringValue": body}});
    if let Some(trace) = trace {
        record["traceId"] = json!(trace);
    }
    let service = json!([{"key": "service.name", "value": {"stringValue": "checkout"}}]);
    json!({"resourceLogs": [{"resource": {"attributes": service}, "scopeLogs": [{"logRecords": [record]}]}]})
}

fn span(trace: &str, id: &str, parent: &str) -> Value {
    let span = json!({
        "traceId": trace, "spanId": id, "parentSpanId": parent, "name": "pay", "kind": 2,
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000250000000",
    });
    let service = json!([{"key": "service.name", "value": {"stringValue": "payments"}}]);
    json!({"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [{"spans": [span]}]}]})
}

/// A record is found as soon as it is acknowledged, and exactly once while the lake takes it over from the journal.
#[test]
fn what_was_acknowledged_is_found_at_once_and_once() {
    let gateway = Gateway::started(json!({
        "memory": "64MiB", "journal": {"segment": "1MiB"}, "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
    }));
    let searcher = Searcher::of(&gateway);
    let mut sources = [false, false];
    let mut sent = 0;
    // A lake's file is finished each second: this goes on over some of them.
    until(PATIENCE, "rows of the lake and of the journal", || {
        let text = format!("order {sent} is paid");
        send(&gateway, "/v1/logs", &log(&text, None));
        sent += 1;
        let answer = searcher.find(&gateway, "logs", &json!({"text": text}));
        assert_eq!(answer["logs"].as_array().unwrap().len(), 1, "{answer}");
        let all = searcher.find(&gateway, "logs", &json!({"text": "is paid", "limit": 1000}));
        assert_eq!(all["logs"].as_array().unwrap().len(), sent.min(1000), "{}", all["incomplete"]);
        assert_eq!(all["incomplete"], json!([]));
        sources[0] |= all["from_lake"].as_u64().unwrap() > 20;
        sources[1] |= all["from_journal"].as_u64().unwrap() > 0;
        sources == [true, true] && sent > 60
    });
    gateway.books_close();
}

/// A trace with its log records, a metric, and names: over the protocols by which they came.
#[test]
fn a_trace_and_its_logs_are_found_together() {
    let gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"lake": {"type": "lake"}}}));
    let searcher = Searcher::of(&gateway);
    let trace = "5b8efff798038103d269b633813fc60c";
    send(&gateway, "/v1/traces", &span(trace, "eee19b7ec3c1b174", ""));
    send(&gateway, "/v1/traces", &span(trace, "eee19b7ec3c1b175", "eee19b7ec3c1b174"));
    send(&gateway, "/v1/logs", &log("in the trace", Some(trace)));
    let found = searcher.find(&gateway, "trace", &json!({"trace_id": trace}));
    assert_eq!(found["spans"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(found["logs"][0]["body"], "in the trace");
    let listed = searcher.find(&gateway, "traces", &json!({"service": "payments"}));
    assert_eq!((&listed["traces"][0]["trace_id"], &listed["traces"][0]["spans"]), (&json!(trace), &json!(2)));
    let services = searcher.find(&gateway, "services", &json!({}));
    assert_eq!(services["services"], json!(["checkout", "payments"]));
    let event = "{\"metadata\":{\"service\":{\"name\":\"legacy\",\"agent\":{\"name\":\"a\",\"version\":\"1\"}}}}\n\
        {\"log\":{\"timestamp\":1700000000000000,\"message\":\"from an agent\"}}\n";
    let head = ["POST /intake/v2/events HTTP/1.1", "Content-Type: application/x-ndjson"];
    assert_eq!(http::request(gateway.http(), &head, event.as_bytes()).unwrap().status, 202);
    let found = searcher.find(&gateway, "logs", &json!({"service": "legacy"}));
    assert_eq!(found["logs"][0]["body"], "from an agent", "{found}");
    gateway.books_close();
}

/// Without a lake the journal is searched, as far as it goes back, and that is said.
#[test]
fn without_a_lake_the_journal_is_searched() {
    let gateway = Gateway::started(json!({
        "memory": "64MiB",
        "sinks": {"peer": {"type": "otlp", "endpoints": [format!("http://{}", tidegate_tests::free_address())]}},
    }));
    let searcher = Searcher::of(&gateway);
    send(&gateway, "/v1/logs", &log("waits for its sink", None));
    let found = searcher.find(&gateway, "logs", &json!({}));
    assert_eq!(found["logs"][0]["body"], "waits for its sink");
    assert_eq!(found["lake"], Value::Null);
    assert!(found["journal"]["since"].is_string(), "{found}");
}

#[test]
fn searches_that_cannot_be_are_told_why() {
    let mut gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"lake": {"type": "lake"}}}));
    let searcher = Searcher::of(&gateway);
    for (kind, query, status, words) in [
        ("logs", json!({"servce": "a"}), 400, "servce"),
        ("trace", json!({"trace_id": "1"}), 400, "32 hexadecimal"),
        (
            "plot",
            json!({"metric": "m", "function": "rate", "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}),
            400,
            "behind",
        ),
        ("spans", json!({}), 404, "traces"),
    ] {
        let answer = searcher.ask(&gateway, kind, &query);
        assert_eq!(answer.status, status, "{kind}: {}", answer.text());
        assert!(answer.text().contains(words), "{kind}: {}", answer.text());
    }
    gateway.configure(
        json!({"memory": "64MiB", "console": {"search": false}, "sinks": {"lake": {"type": "lake"}}}),
    );
    gateway.hangup();
    until(SOON, "search to be off", || searcher.ask(&gateway, "logs", &json!({})).status == 403);
}

/// Whoever leaves ends their search, and its memory is back.
#[test]
fn a_search_gives_its_memory_back() {
    let gateway = Gateway::started(json!({"memory": "64MiB", "sinks": {"lake": {"type": "lake"}}}));
    let searcher = Searcher::of(&gateway);
    let used = || -> u64 {
        let status = gateway.status();
        status["memory"]["payload"]["shares"]
            .as_array()
            .unwrap()
            .iter()
            .map(|share| share["used"].as_u64().unwrap())
            .sum()
    };
    let before = used();
    send(&gateway, "/v1/logs", &log("one", None));
    searcher.find(&gateway, "logs", &json!({}));
    until(SOON, "the memory to be back", || used() <= before + (1 << 20));
}

/// What a peer rejected is listed with its words, can be taken out of the gateway, and discarded.
#[test]
fn dead_letters_are_listed_exported_and_discarded() {
    // An admin address takes no data, and says so for good.
    let peer = Gateway::started(json!({"memory": "32MiB", "sinks": {"none": {"type": "blackhole"}}}));
    let gateway = Gateway::started(json!({
        "memory": "64MiB", "sinks": {"up": {"type": "otlp", "protocol": "http", "endpoints": [format!("http://{}", peer.admin())]}},
    }));
    let searcher = Searcher::of(&gateway);
    let letters = |query| searcher.find(&gateway, "dead-letters", &query);
    assert_eq!(letters(json!({}))["total"], 0);
    send(&gateway, "/v1/logs", &log("rejected one", None));
    until(SOON, "a dead letter", || letters(json!({}))["total"] == 1);
    let found = letters(json!({"sink": "up"}));
    let letter = &found["letters"][0];
    assert!(letter["reason"].as_str().unwrap().contains("unknown path"), "{found}");
    assert_eq!(found["sinks"], json!([{"sink": "up", "letters": 1, "items": 1, "through": 1}]));
    assert_eq!(
        (&letter["signal"], &letter["items"], &letter["protocol"]),
        (&json!("logs"), &json!(1), &json!("otlp"))
    );
    let (data, folder) = (gateway.data(), gateway.folder().join("letters"));
    let journal = |arguments: &[&str]| {
        let data = ["--data", data.to_str().unwrap()];
        tidegate_tests::tidegate(&[&["journal"], arguments, &data].concat())
    };
    let listed = journal(&["dead-letters", "--export", folder.to_str().unwrap()]).succeeded();
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    let name = files[0].file_name().unwrap().to_str().unwrap();
    assert!(files.len() == 1 && name.starts_with("00000001-logs-otlp.pb"), "{files:?}");
    assert!(!std::fs::read(&files[0]).unwrap().is_empty());
    let nowhere = journal(&["dead-letters", "--export", "/proc/no-such-folder"]);
    assert!(nowhere.stderr.contains("/proc/no-such-folder"), "{}", nowhere.stderr);
    assert_ne!(journal(&["discard", "--sink", "down"]).code, Some(0));
    let discarded = journal(&["discard", "--sink", "up"]).succeeded();
    assert!(discarded.contains("discarded 1 dead letters with 1 items"), "{discarded}");
    assert_eq!(letters(json!({}))["total"], 0);
}

/// Half spans, half log records of 60 services. `TIDEGATE_TEST_ROWS=10000000` and `--nocapture` say how long searches take in a lake of ten
/// million rows; without that, the lake is small.
#[test]
fn a_large_lake_is_searched() {
    let rows = std::env::var("TIDEGATE_TEST_ROWS").map_or(40_000, |rows| rows.parse::<u64>().unwrap());
    let gateway = Gateway::started(json!({
        "memory": "64MiB", "sinks": {"lake": {"type": "lake", "file_age": "10s"}},
    }));
    let (items, deadline) = (500, Duration::from_secs(1800));
    for signal in [Signal::Traces, Signal::Logs] {
        let requests = rows / 2 / items / 4;
        let profile =
            OtlpProfile { items, requests, connections: 4, deadline, ..otlp_profile(signal, requests) };
        let report = drive_blocking(&gateway.otlp_target(), &profile).unwrap();
        assert_eq!(report.failed, 0, "{report:?}");
    }
    gateway.at_rest(deadline);
    let searcher = Searcher::of(&gateway);
    let newest = searcher.find(&gateway, "traces", &json!({"limit": 100}));
    let trace = &newest["traces"].as_array().unwrap().last().unwrap()["trace_id"];
    let now = jiff::Timestamp::now();
    let (from, to) = (now - Duration::from_secs(3600), now + Duration::from_secs(60));
    let hour = |more: Value| {
        let mut query = json!({"from": from.to_string(), "to": to.to_string()});
        query.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        query
    };
    for (what, kind, list, query) in [
        ("a trace by its id", "trace", "spans", json!({"trace_id": trace})),
        (
            "logs by service and text",
            "logs",
            "logs",
            hour(json!({"service": "service-7", "text": "in 77 ms"})),
        ),
        (
            "the same with a histogram",
            "logs",
            "logs",
            hour(json!({"service": "service-7", "text": "in 77 ms", "histogram": 60})),
        ),
        ("the newest logs", "logs", "logs", json!({})),
        ("traces that failed", "traces", "traces", hour(json!({"error": true}))),
        ("names of services", "services", "services", hour(json!({}))),
    ] {
        let mut times = Vec::new();
        let mut answer = Value::Null;
        for _ in 0..5 {
            let begun = Instant::now();
            answer = searcher.find(&gateway, kind, &query);
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let (found, lake) = (answer[list].as_array().unwrap().len(), &answer["lake"]);
        println!(
            "{what:<28} {:>6} ms, {found} found, {lake}, {}",
            times[2].as_millis(),
            answer["incomplete"]
        );
        assert!(found > 0, "{what}: {answer}");
    }
    gateway.books_close();
}

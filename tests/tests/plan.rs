//! What `tidegate plan` says of a load and an outage is what a gateway does: bytes of items on disk, how long a quota lasts,
//! the smallest budget.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tidegate_load::otlp::{ContentCoding, OtlpProfile, Signal};
use tidegate_load::{LoadProfile, OnRefused, RunLimit, SeriesModel, Timeline, drive_blocking};
use tidegate_tests::{Gateway, SOON, free_address, otlp_profile, tidegate, until};

const TIMELINE: Timeline = Timeline { base_ms: 1_790_000_000_000, interval_ms: 15_000 };
/// Series in a request, as of Prometheus.
const PER_REQUEST: usize = 2_000;
const CONNECTIONS: usize = 2;
const MIB: f64 = 1_048_576.0;

/// A gateway whose only sink has no peer, with these settings of its journal.
fn stalled(journal: Value) -> Gateway {
    let away = format!("http://{}", free_address());
    let sink = json!({"type": "otlp", "endpoints": [away], "backoff": {"max": "1s"}});
    Gateway::started(json!({"memory": "128MiB", "journal": journal, "sinks": {"away": sink}}))
}

/// What `plan` answers with these arguments.
fn planned(args: &[&str]) -> Value {
    let printed = tidegate(&[&["plan", "--format", "json"], args].concat()).succeeded();
    serde_json::from_str(&printed).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number: {value}"))
}

/// Bytes and items that wait for the sink.
fn waiting(gateway: &Gateway) -> (f64, f64) {
    let lag = gateway.sink("away")["lag"].clone();
    (number(&lag["bytes"]), number(&lag["items"]))
}

#[track_caller]
fn assert_close(what: &str, measured: f64, expected: f64, tolerance: f64) {
    let off = (measured - expected).abs() / expected;
    assert!(
        off <= tolerance,
        "{what}: measured {measured:.2}, planned {expected:.2}, {:.1} % off",
        off * 100.0
    );
}

fn samples(limit: RunLimit, rate: Option<f64>) -> (Arc<SeriesModel>, LoadProfile) {
    let model = Arc::new(SeriesModel::new(7, CONNECTIONS * 4 * PER_REQUEST, TIMELINE));
    let profile = LoadProfile {
        connections: CONNECTIONS,
        series_per_request: PER_REQUEST,
        first: 1,
        limit,
        rate,
        on_refused: OnRefused::Count,
        ..LoadProfile::default()
    };
    (model, profile)
}

/// The defaults of `plan` are what this very test measures, with a tenth of tolerance.
#[test]
fn bytes_of_items_are_as_measured() {
    let gateway = stalled(json!({}));
    let mut before = (0.0, 0.0);
    // All of them, so that somebody can enter new ones at once.
    let mut found = Vec::new();
    let mut check = |kind: &str, more: &[&str]| {
        let now = waiting(&gateway);
        let each = (now.0 - before.0) / (now.1 - before.1);
        before = now;
        let plan = planned(&[&["--rate", &format!("1k {kind}/s"), "--outage", "1h"], more].concat());
        let expected = number(&plan["load"]["parts"][0]["bytes_per_item"]);
        found.push((format!("{kind} {more:?}"), each, expected));
    };
    let (model, profile) = samples(RunLimit::Passes(3), None);
    let report = drive_blocking(&gateway.target(), &model, &profile).unwrap();
    assert_eq!(report.refused() + report.failed, 0, "{report:?}");
    check("samples", &[]);
    for (signal, kind) in [(Signal::Metrics, "points"), (Signal::Traces, "spans"), (Signal::Logs, "logs")] {
        for (coding, more) in [(ContentCoding::Gzip, &[][..]), (ContentCoding::Identity, &["--uncompressed"])]
        {
            let profile = OtlpProfile { coding, items: 200, ..otlp_profile(signal, 50) };
            let report = tidegate_load::otlp::drive_blocking(&gateway.otlp_target(), &profile).unwrap();
            assert_eq!(report.accepted, 50, "{report:?}");
            check(kind, more);
        }
    }
    let is_off = |(_, each, expected): &(String, f64, f64)| (each - expected).abs() > 0.1 * expected;
    assert!(!found.iter().any(is_off), "measured and planned: {found:#?}");
}

/// A known load into a gateway whose sink is out: the journal grows as planned, and is full when the plan says.
#[test]
fn a_journal_fills_as_planned() {
    let gateway = stalled(json!({"quota": "32MiB", "segment": "1MiB"}));
    let config = gateway.config();
    let config = config.to_str().unwrap();
    let (model, profile) = samples(RunLimit::Time(Duration::from_secs(12)), Some(20.0));
    let target = gateway.target();
    let driver = std::thread::spawn(move || drive_blocking(&target, &model, &profile).unwrap());
    until(SOON, "the load to come", || waiting(&gateway).1 > 0.0);

    let (before, uptime) = (waiting(&gateway), number(&gateway.status()["uptime_seconds"]));
    let measured = planned(&["--measure", "--outage", "6h", "--config", config]);
    let (after, later) = (waiting(&gateway), number(&gateway.status()["uptime_seconds"]));
    let (bytes, items) = ((after.0 - before.0) / (later - uptime), (after.1 - before.1) / (later - uptime));
    driver.join().unwrap();

    let rate = format!("{} samples/s", items.round());
    let plan = planned(&["--rate", &rate, "--outage", "6h", "--config", config]);
    assert_close("bytes a second", bytes, number(&plan["journal_bytes_per_second"]), 0.15);
    assert_close("measured bytes a second", bytes, number(&measured["journal_bytes_per_second"]), 0.15);
    let basis = "measured by the growth of the running gateway's journal";
    assert_eq!(measured["load"]["parts"][0]["basis"], basis, "its sink stands still");
    assert_eq!((number(&plan["setup"]["quota"]), number(&plan["setup"]["segment"])), (32.0 * MIB, MIB));
    assert!(number(&plan["quota_needed"]) >= number(&plan["backlog_bytes"]), "{plan}");

    // Now as fast as it takes, until it is full: what is in it is what the plan says that its quota holds.
    let (model, profile) = samples(RunLimit::Passes(100), None);
    let report = drive_blocking(&gateway.target(), &model, &profile).unwrap();
    assert!(report.refused() > 0, "{report:?}");
    let holds = number(&plan["quota_lasts_seconds"]) * number(&plan["journal_bytes_per_second"]);
    assert_close("what a quota holds", waiting(&gateway).0, holds, 0.15);
    assert_eq!(gateway.status()["state"], "pushing_back");
}

/// A gateway starts with the smallest budget that is named, and the configuration does not fit the next smaller one.
#[test]
fn the_smallest_budget_is_the_smallest() {
    let mut gateway = Gateway::new(json!({"memory": "512MiB"}));
    let away = format!("http://{}", free_address());
    let sinks = json!({"a": {"type": "otlp", "endpoints": [away.clone()]}, "b": {"type": "lake"}});
    let settings = |memory: f64| json!({"memory": format!("{}MiB", memory / MIB), "limits": {"connections": 2_000}, "sinks": sinks});
    gateway.configure(settings(512.0 * MIB));
    let config = gateway.config();
    let config = config.to_str().unwrap();
    let load = ["--rate", "5k spans/s", "--outage", "6h", "--config", config];
    let plan = planned(&load);
    assert!(plan["setup"]["memory"]["problem"].is_null(), "{plan}");
    assert_eq!(plan["setup"]["memory"]["connections"], 2_000);
    let smallest = number(&plan["setup"]["memory"]["smallest"]);

    gateway.configure(settings(smallest - MIB));
    let less = planned(&load);
    assert!(less["setup"]["memory"]["problem"].is_string(), "{less}");
    assert_eq!(number(&less["setup"]["memory"]["smallest"]), smallest);
    let checked = tidegate(&["check", config]);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    gateway.configure(settings(smallest));
    gateway.start();

    // A body that is larger needs a larger budget, and so do more connections.
    for more in [["--body", "48MiB"], ["--connections", "20000"]] {
        let larger = planned(&[&load[..], &more].concat());
        assert!(number(&larger["setup"]["memory"]["smallest"]) > smallest, "{more:?}: {larger}");
        assert!(larger["setup"]["memory"]["problem"].is_string(), "{more:?}: {larger}");
    }
}

#[test]
fn says_it_in_sentences_and_tells_mistakes() {
    let refused = tidegate(&["plan", "--format", "json"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--outage"), "{}", refused.stderr);
    let plan = ["plan", "--rate", "200k samples/s", "--rate", "30MB/s logs", "--outage", "6h"];
    let text = tidegate(&plan).succeeded();
    for words in [
        "200 k samples a second",
        "The journal grows by",
        "journal.quota: ",
        "free for the journal",
        "refused with 429 or 503",
        "The smallest budget that takes it is `memory: ",
        "Afterwards each sink",
        "cores",
        "Machines differ",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    let away = free_address().to_string();
    for (args, words) in [
        (&["--rate", "200k apples/s", "--outage", "6h"][..], "samples, points, spans or logs"),
        (&["--rate", "5k spans/s", "--rate", "1 span/s", "--outage", "6h"], "two rates of spans"),
        (&["--rate", "5k spans/s", "--outage", "6"], "has no unit"),
        (&["--rate", "5k spans/s", "--outage", "6h", "--body", "4M"], "--body 4M"),
        (&["--rate", "5k spans/s", "--outage", "6h", "--bytes-per-item", "0"], "--bytes-per-item"),
        (&["--outage", "6h"], "--measure"),
        (&["--measure", "--outage", "6h", "--admin", &away], "is it running"),
    ] {
        let failed = tidegate(&[&["plan"], args].concat());
        assert_eq!(failed.code, Some(1), "{args:?}: {failed:?}");
        assert!(failed.stderr.contains(words), "{args:?}: {failed:?}");
    }
    assert_eq!(tidegate(&["plan", "--rate", "5k spans/s"]).code, Some(2), "a rate needs an outage");
    // Without a load, the memory plan as before.
    assert!(tidegate(&["plan"]).succeeded().contains("largest requests, decompressed"));

    let gateway = stalled(json!({}));
    let idle = tidegate(&["plan", "--measure", "--outage", "6h", "--admin", &gateway.admin().to_string()]);
    assert_eq!(idle.code, Some(1), "{idle:?}");
    assert!(idle.stderr.contains("accepted nothing for 5 s"), "{idle:?}");
}

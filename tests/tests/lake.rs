//! The lake has what was acknowledged: what `tidegate lake cat` prints and what DuckDB reads is what a
//! checking sink saw, every row once, also after SIGTERM and kill -9.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tidegate_load::otlp::{self, OtlpProfile, Signal};
use tidegate_load::remote_write::{RequestExtras, Version};
use tidegate_load::{
    AcknowledgedSamples, Behaviour, Check, LoadProfile, OnRefused, RunLimit, SampleKind, Series, SeriesModel,
    Timeline, VerifyingReceiver, compare, drive_blocking,
};
use tidegate_tests::{Gateway, SOON, duckdb, otlp_profile, tidegate, until, until_some};

const TIMELINE: Timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 1000 };

fn gateway(sink: &VerifyingReceiver, file_age: &str) -> Gateway {
    Gateway::new(json!({
        "memory": "128MiB",
        "sinks": {
            "lake": {"type": "lake", "file_age": file_age},
            "check": {"type": "prometheus_remote_write", "url": sink.target().to_string()},
        },
    }))
}

fn checking() -> VerifyingReceiver {
    VerifyingReceiver::start(Behaviour::Healthy, Check::Timed(TIMELINE)).unwrap()
}

/// How often each row is in the lake: by the series' labels and the time in milliseconds.
type Rows = HashMap<(BTreeMap<String, String>, i64), u64>;

fn printed_rows(gateway: &Gateway, table: &str) -> Rows {
    let mut rows = Rows::new();
    for row in gateway.lake_rows(table) {
        let mut labels: BTreeMap<String, String> = serde_json::from_value(row["attributes"].clone()).unwrap();
        for (label, column) in [("__name__", "metric_name"), ("job", "job"), ("instance", "instance")] {
            if let Some(value) = row[column].as_str() {
                labels.insert(label.to_owned(), value.to_owned());
            }
        }
        let time = duration_ms(row["time"].as_str().unwrap());
        if let (Some(value), true) = (row["value"].as_f64(), table == "metric_points") {
            assert_eq!(TIMELINE.at(value as u64), time, "the value is that of its time: {row}");
        }
        *rows.entry((labels, time)).or_default() += 1;
    }
    rows
}

/// Milliseconds since 1970 of `2023-11-14T22:13:20.000000000Z`; the test's samples are all of that day.
fn duration_ms(time: &str) -> i64 {
    let clock = time.strip_prefix("2023-11-14T").or_else(|| time.strip_prefix("2023-11-15T"));
    let (clock, day) = (clock.expect(time), if time.starts_with("2023-11-15") { 86_400_000 } else { 0 });
    let part = |range: std::ops::Range<usize>| clock[range].parse::<i64>().unwrap();
    1_699_920_000_000 + day + part(0..2) * 3_600_000 + part(3..5) * 60_000 + part(6..8) * 1000 + part(9..12)
}

fn labels(series: &Series) -> BTreeMap<String, String> {
    series.labels.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect()
}

/// Every acknowledged sample is a row, and none is there twice but those that `may_double` allows. Rows that
/// were not acknowledged to anybody may be there: their answer was lost.
fn assert_complete(gateway: &Gateway, model: &SeriesModel, acked: &AcknowledgedSamples) {
    let tables = [printed_rows(gateway, "metric_points"), printed_rows(gateway, "metric_histograms")];
    for (index, series) in model.series().iter().enumerate() {
        let rows = &tables[usize::from(series.kind == SampleKind::Histogram)];
        let labels = labels(series);
        for (from, to) in acked.series(index).map_or(&[][..], |numbers| numbers.ranges()) {
            for number in *from..*to {
                let found = rows.get(&(labels.clone(), TIMELINE.at(number)));
                assert_eq!(found, Some(&1), "sample {number} of series {index}: {labels:?}");
            }
        }
    }
}

fn verified(gateway: &Gateway) -> String {
    tidegate(&["lake", "verify", "--data", gateway.data().to_str().unwrap()]).succeeded()
}

/// All rows, by what the checking sink saw at the other end; in NDJSON and in DuckDB. SIGTERM finishes the
/// file that is being filled.
#[test]
fn the_lake_has_the_rows_that_the_other_sink_got() {
    let (sink, model) = (checking(), Arc::new(SeriesModel::with_histograms(2, 300, TIMELINE, 10)));
    let mut gateway = gateway(&sink, "1h");
    gateway.start();
    let mut acked = AcknowledgedSamples::none(model.len());
    for (version, first) in [(Version::V1, 0), (Version::V2, 4)] {
        let extras = RequestExtras { exemplars: true, metadata: true, stale: false };
        let profile =
            LoadProfile { version, extras, first, limit: RunLimit::Passes(4), ..LoadProfile::default() };
        let report = drive_blocking(&gateway.target(), &model, &profile).unwrap();
        assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
        acked.merge(0, &report.acked);
    }
    until(SOON, "the other sink to have everything", || gateway.sink("check")["lag"]["items"] == 0);
    assert_eq!(gateway.term(), 0);
    let arrived = sink.stop();
    assert!(compare(&model, &acked, &arrived).nothing_lost());
    assert_eq!((acked.samples(), arrived.samples()), (2400, 2400));

    assert_complete(&gateway, &model, &acked);
    assert!(verified(&gateway).contains("are sound"));

    let lake = gateway.data().join("lake/v1");
    let read = |table: &str, columns: &str| {
        let files = lake.join(table).join("**/*.parquet");
        duckdb(&format!("SELECT {columns} FROM read_parquet('{}')", files.display()))
    };
    let points = "count(*), count(DISTINCT (series_id, time)), sum(value), epoch_ms(min(time)), epoch_ms(max(time)), \
         count(*) FILTER (len(exemplars) > 0), count(DISTINCT metric_name), \
         count(*) FILTER (epoch_ms(time) - 1700000000000 <> value * 1000)";
    let Some(points) = read("metric_points", points) else { return };
    // Samples 0 to 7 of 270 float series; their values are their numbers.
    let values = f64::from(270 * (0..8).sum::<i32>());
    assert_eq!(points[0][0], 2160);
    assert_eq!(points[0][1], 2160);
    assert_eq!(points[0][2], values);
    assert_eq!((&points[0][3], &points[0][4]), (&json!(TIMELINE.at(0)), &json!(TIMELINE.at(7))));
    assert!(points[0][5].as_u64() > Some(0), "exemplars: {points:?}");
    let names: std::collections::BTreeSet<_> = model
        .series()
        .iter()
        .filter(|s| s.kind == SampleKind::Float)
        .map(|series| &series.labels[0].1)
        .collect();
    assert_eq!(points[0][6], names.len());
    assert_eq!(points[0][7], 0);
    // A histogram's sum is its number.
    let histograms = read("metric_histograms", "count(*), sum(sum)").unwrap();
    assert_eq!((&histograms[0][0], &histograms[0][1]), (&json!(240), &json!(f64::from(30 * 28))));
}

/// Killed again and again in the middle of writing files: no row is missing and none is there twice.
#[test]
fn kill_9_doubles_no_row_and_loses_none() {
    let (sink, model) = (checking(), Arc::new(SeriesModel::new(3, 200, TIMELINE)));
    let mut gateway = gateway(&sink, "1s");
    let mut acked = AcknowledgedSamples::none(model.len());
    for round in 0..6 {
        gateway.start();
        let target = gateway.target();
        let profile = LoadProfile {
            first: round * 1000,
            series_per_request: 50,
            limit: RunLimit::Time(Duration::from_millis(1500 + 170 * round)),
            rate: Some(40.0),
            on_refused: OnRefused::Count,
            answer_within: Duration::from_secs(5),
            ..LoadProfile::default()
        };
        let (driven, model) = (profile.clone(), Arc::clone(&model));
        let driving = std::thread::spawn(move || drive_blocking(&target, &model, &driven).unwrap());
        // Somewhere while files are being finished and samples come in.
        let files = gateway.metrics()["tidegate_sink_requests_total{sink=\"lake\"}"];
        until(SOON, "a file to be finished", || {
            let now = gateway.metrics()["tidegate_sink_requests_total{sink=\"lake\"}"];
            now > files || driving.is_finished()
        });
        gateway.kill9();
        acked.merge(0, &driving.join().unwrap().acked);
    }
    gateway.start();
    gateway.at_rest(SOON);
    gateway.books_close();
    println!("{} samples were acknowledged", acked.samples());
    assert!(acked.samples() > 1000);
    assert_complete(&gateway, &model, &acked);
    assert!(verified(&gateway).contains("are sound"));
    assert_eq!(gateway.term(), 0);
    let verdict = compare(&model, &acked, &sink.stop());
    assert_eq!((verdict.missing, verdict.wrong_time, verdict.unknown_series), (0, 0, 0), "{verdict:?}");
}

/// A journal that is smaller than a file of the lake does not wait until the file is old enough.
#[test]
fn a_small_quota_does_not_wait_for_old_files() {
    let gateway = Gateway::started(json!({
        "memory": "64MiB", "journal": {"quota": "4MiB", "segment": "1MiB"}, "sinks": {"lake": {"type": "lake", "file_age": "1h"}},
    }));
    let profile = OtlpProfile { items: 500, ..otlp_profile(Signal::Logs, 200) };
    let report = otlp::drive_blocking(&gateway.otlp_target(), &profile).unwrap();
    assert!(report.bytes > 16 << 20, "four times the quota: {report:?}");
    assert_eq!((report.items, report.failed), (profile.end(), 0), "{report:?}");
    gateway.books_close();
}

/// A lake for one signal beside a flood of another: what is passed over waits for the record before it, and holds up the quota, too.
#[test]
fn what_a_lake_passes_over_does_not_hold_up_the_journal() {
    let gateway = Gateway::started(json!({
        "memory": "64MiB", "journal": {"quota": "4MiB", "segment": "1MiB"},
        "sinks": {"lake": {"type": "lake", "signals": ["logs"], "file_age": "1h"}},
    }));
    let logs = otlp_profile(Signal::Logs, 1);
    assert_eq!(otlp::drive_blocking(&gateway.otlp_target(), &logs).unwrap().items, logs.end());
    let spans = OtlpProfile { items: 500, ..otlp_profile(Signal::Traces, 200) };
    let report = otlp::drive_blocking(&gateway.otlp_target(), &spans).unwrap();
    assert!(report.bytes > 16 << 20, "four times the quota: {report:?}");
    assert_eq!((report.items, report.failed), (spans.end(), 0), "{report:?}");
    gateway.books_close();
    assert_eq!(gateway.sink("lake")["delivered"], logs.end());
}

/// A file becomes old enough beside a flood of records that the lake passes over.
#[test]
fn a_lake_finishes_its_files_beside_a_flood() {
    let gateway = Gateway::started(json!({
        "memory": "64MiB", "sinks": {"lake": {"type": "lake", "signals": ["logs"], "file_age": "1s"}},
    }));
    let send = |profile| otlp::drive_blocking(&gateway.otlp_target(), &profile).unwrap();
    let logs = otlp_profile(Signal::Logs, 1);
    assert_eq!(send(logs.clone()).items, logs.end());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Longer than the rows are waited for.
            let begun = Instant::now();
            while !is_over.load(Relaxed) && begun.elapsed() < 2 * SOON {
                assert_eq!(send(otlp_profile(Signal::Traces, 100)).failed, 0);
            }
        });
        until(SOON, "the file to be finished", || gateway.sink("lake")["delivered"] == logs.end());
        is_over.store(true, Relaxed);
    });
    gateway.books_close();
}

/// `lake ls`, and what `lake cat` filters by: metric, label, time, columns and number of rows.
#[test]
fn lake_commands_show_its_files_and_rows() {
    let (sink, model) = (checking(), Arc::new(SeriesModel::new(4, 64, TIMELINE)));
    let mut gateway = gateway(&sink, "1h");
    gateway.start();
    let limit = RunLimit::Passes(5);
    let report =
        drive_blocking(&gateway.target(), &model, &LoadProfile { limit, ..LoadProfile::default() }).unwrap();
    assert_eq!(report.samples, 320);
    assert_eq!(gateway.term(), 0);
    let data = gateway.data();
    let cat = |args: &[&str]| {
        let all = [&["lake", "cat", "metric_points", "--data", data.to_str().unwrap()], args].concat();
        tidegate(&all).succeeded()
    };
    let rows = |args: &[&str]| -> Vec<Value> {
        let printed = cat(&[args, &["--format", "ndjson"]].concat());
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    // Data that the lake has not read at shutdown waits in the journal: it is written after the next start.
    let listed = until_some(SOON, "all rows to be in the lake", || {
        let listed = tidegate(&["lake", "ls", "--data", data.to_str().unwrap()]).succeeded();
        let is_complete = listed.contains(" 320 ");
        if !is_complete {
            gateway.start();
            assert_eq!(gateway.term(), 0);
        }
        is_complete.then_some(listed)
    });
    assert!(listed.contains("metric_points"), "{listed}");
    let metric = &*model.series()[0].labels[0].1;
    let same = model.series().iter().filter(|series| &*series.labels[0].1 == metric).count();
    assert_eq!(rows(&["--metric", metric]).len(), 5 * same);
    let first = labels(&model.series()[0]);
    let matchers: Vec<String> = first.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let matchers: Vec<&str> = matchers.iter().flat_map(|matcher| ["--label", matcher]).collect();
    assert_eq!(rows(&matchers).len(), 5);
    assert_eq!(rows(&["--from", "2023-11-14T22:13:21Z", "--to", "2023-11-14T22:13:23Z"]).len(), 2 * 64);
    assert_eq!(rows(&["--last", "1m"]).len(), 0);
    assert_eq!(rows(&["--limit", "7"]).len(), 7);
    let csv = cat(&["--format", "csv", "--columns", "metric_name,value", "--limit", "3"]);
    assert_eq!(csv.lines().count(), 4, "{csv}");
    assert_eq!(csv.lines().next(), Some("metric_name,value"));
    let table = cat(&["--limit", "3"]);
    assert!(table.lines().next().unwrap().contains("metric_name"), "{table}");
    let unknown = tidegate(&["lake", "cat", "nonsense", "--data", data.to_str().unwrap()]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("metric_points"), "{}", unknown.stderr);
}

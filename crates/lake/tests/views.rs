//! Promise: the views have the names and shapes of the ClickHouse exporter's tables, and DuckDB shows in them
//! what was sent as OTLP.
//!
//! Needs a Python with the `duckdb` package in `TIDEGATE_TEST_PYTHON`; `make test` prepares one. Without it
//! the test says so and proves nothing, and fails where `CI` is set.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/body.rs"]
mod body;
#[path = "support/otlp.rs"]
mod otlp;

use body::{bytes, fixed64, varint, zigzag};
use otlp::{Attr, START_NS, attributes, log_record, logs, metrics, span, trace_id, traces};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use tidegate_lake::{BatchPosition, Writer, WriterSettings, duckdb_views};
use tidegate_wire::otlp::{Signal, check};

fn fill(dir: &Path) {
    let (mut writer, _) = Writer::open(WriterSettings::new(dir, Writer::smallest_slice(), "views")).unwrap();
    let resource = [("service.name", Attr::Text("shop")), ("host.name", Attr::Text("h"))];
    let mut push = |sequence, signal, raw: Vec<u8>| {
        check(signal, &raw).unwrap();
        let position = BatchPosition { sequence, received_at_ns: START_NS };
        let pushed = writer.push_otlp(&position, signal, &raw, START_NS).unwrap();
        assert_eq!(pushed.dropped.items(), 0);
    };
    let mut full = span(
        1,
        "GET /é",
        &[
            ("http.route", Attr::Text("/é")),
            ("http.response.status_code", Attr::Int(500)),
            ("n", Attr::Int(7)),
        ],
    );
    let (mut status, mut event, mut link) = (Vec::new(), Vec::new(), Vec::new());
    varint(&mut status, 3, 2);
    bytes(&mut full, 15, &status);
    fixed64(&mut event, 1, START_NS);
    bytes(&mut event, 2, b"exception");
    attributes(&mut event, 3, &[("exception.type", Attr::Text("Io"))]);
    bytes(&mut full, 11, &event);
    bytes(&mut link, 1, &trace_id(2));
    bytes(&mut link, 2, &[2; 8]);
    bytes(&mut full, 13, &link);
    push(1, Signal::Traces, traces(&resource, &[full, span(2, "other", &[])]));
    let record = log_record(
        3,
        Attr::Text("hello"),
        &[("host.name", Attr::Text("mine")), ("log.file.path", Attr::Text("/l"))],
    );
    push(2, Signal::Logs, logs(&resource, &[record]));
    push(3, Signal::Metrics, metrics(&resource, &all_metrics()));
    writer.close_files().unwrap();
}

fn all_metrics() -> [Vec<u8>; 5] {
    let metric = |name: &str, field, data: &[u8]| {
        let mut metric = Vec::new();
        bytes(&mut metric, 1, name.as_bytes());
        bytes(&mut metric, field, data);
        metric
    };
    let point = |write: &dyn Fn(&mut Vec<u8>)| {
        let (mut point, mut data) = (Vec::new(), Vec::new());
        fixed64(&mut point, 3, START_NS);
        write(&mut point);
        bytes(&mut data, 1, &point);
        data
    };
    let gauge = point(&|point| {
        fixed64(point, 6, 41);
        attributes(point, 7, &[("job", Attr::Text("j")), ("a", Attr::Bool(true))]);
    });
    let mut sum = point(&|point| fixed64(point, 4, 2.5_f64.to_bits()));
    varint(&mut sum, 2, 1);
    varint(&mut sum, 3, 1);
    let mut quantile = Vec::new();
    fixed64(&mut quantile, 1, 0.99_f64.to_bits());
    fixed64(&mut quantile, 2, 0.25_f64.to_bits());
    let summary = point(&|point| {
        fixed64(point, 4, 12);
        fixed64(point, 5, 1.5_f64.to_bits());
        bytes(point, 6, &quantile);
    });
    let histogram = point(&|point| {
        fixed64(point, 4, 3);
        fixed64(point, 5, 4.5_f64.to_bits());
        [1_u64, 2].iter().for_each(|&count| fixed64(point, 6, count));
        fixed64(point, 7, 0.5_f64.to_bits());
        fixed64(point, 11, 0.25_f64.to_bits());
    });
    let mut positive = Vec::new();
    varint(&mut positive, 1, zigzag(-7));
    varint(&mut positive, 2, 3);
    let exponential = point(&|point| {
        fixed64(point, 4, 5);
        varint(point, 6, zigzag(-1));
        fixed64(point, 7, 2);
        bytes(point, 8, &positive);
    });
    [
        metric("gauge", 5, &gauge),
        metric("sum", 7, &sum),
        metric("summary", 11, &summary),
        metric("histogram", 9, &histogram),
        metric("exponential", 10, &exponential),
    ]
}

#[test]
fn duckdb_shows_the_views() {
    let Some(python) = std::env::var("TIDEGATE_TEST_PYTHON").ok().filter(|python| !python.is_empty()) else {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1");
        assert!(!ci, "TIDEGATE_TEST_PYTHON must name a Python with duckdb here");
        // Not by a macro: the test harness catches what those print.
        let _closed = writeln!(
            std::io::stderr(),
            "SKIPPED: set TIDEGATE_TEST_PYTHON to a Python that has the `duckdb` package"
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let statements = dir.path().join("views.sql");
    std::fs::write(&statements, duckdb_views(dir.path()).unwrap()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/duckdb/read_views.py");
    let run = Command::new(python).arg(script).arg(&statements).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let found: Value = serde_json::from_slice(&run.stdout).unwrap();
    let expected = json!({
        "span": ["00000070000000000000000000000001", "0000000000000001", "", "Server", "Error", 1_500_000, START_NS + 1,
            {"n": "7", "http.route": "/é", "http.response.status_code": "500"}, "shop", ["exception"],
            ["00000070000000000000000000000002"], "Io"],
        "log": ["00000070000000000000000000000003", "INFO", 9, "hello",
            {"host.name": "mine", "log.file.path": "/l"}, "shop"],
        "gauge": ["gauge", 41.0, {"a": "true", "job": "j"}, START_NS],
        "sums": [1, 2.5, 1, true],
        "histogram": [3, 4.5, [1, 2], [0.5], 0.25],
        "exponential": [5, -1, 2, -7, [3]],
        "summary": [12, 1.5, [0.99], [0.25]],
    });
    for (view, row) in expected.as_object().unwrap() {
        assert_eq!(&found[view], row, "{view}");
    }
}

/// Until there are rows of a signal, nobody is shown a view that cannot be made.
#[test]
fn tables_without_files_have_no_view() {
    let dir = tempfile::tempdir().unwrap();
    drop(Writer::open(WriterSettings::new(dir.path(), Writer::smallest_slice(), "views")).unwrap());
    let text = duckdb_views(dir.path()).unwrap();
    assert!(
        text.contains("-- otel_traces: the table spans has no files yet") && !text.contains("CREATE"),
        "{text}"
    );
}

//! Promise: DuckDB reads the files as they are, with the types, counts and sums that went in.
//!
//! Needs a Python with the `duckdb` package in `TIDEGATE_TEST_PYTHON`; `make test` prepares one. Without it
//! the test says so and proves nothing, and fails where `CI` is set.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/body.rs"]
mod body;

use body::{Body, int_histogram, labels};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use tidegate_lake::{BatchPosition, Writer, WriterSettings};
use tidegate_wire::remote_write::{STALE_NAN, Symbols, Version, view};

const NOW_NS: u64 = 1_700_000_000_000_000_000;
const NOW_MS: i64 = 1_700_000_000_000;
const HOUR_NS: u64 = 3_600_000_000_000;

fn python() -> Option<String> {
    let python = std::env::var("TIDEGATE_TEST_PYTHON").ok().filter(|python| !python.is_empty());
    if python.is_none() {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true" || ci == "1");
        assert!(!ci, "TIDEGATE_TEST_PYTHON must name a Python with duckdb here");
        // Not by a macro: the test harness catches what those print.
        let _closed = writeln!(
            std::io::stderr(),
            "SKIPPED: set TIDEGATE_TEST_PYTHON to a Python that has the `duckdb` package"
        );
    }
    python
}

fn push(writer: &mut Writer, sequence: u64, received_at_ns: u64, body: &Body) {
    let mut symbols = Symbols::new();
    let request = view(Version::V1, &body.0, &mut symbols).unwrap();
    writer.push(&BatchPosition { sequence, received_at_ns }, &request, received_at_ns).unwrap();
}

fn fill(dir: &Path) {
    let (mut writer, _) = Writer::open(WriterSettings::new(dir, Writer::smallest_slice(), "duckdb")).unwrap();
    for sequence in 0..20_u64 {
        let mut body = Body::default().metadata("requests", 1, "", "how many");
        for serial in 0..500 {
            let labels = labels(&[
                ("__name__", "requests_total"),
                ("instance", &format!("host-{serial}")),
                ("job", ["api", "web"][serial % 2]),
                ("zone", if serial == 0 { "zürich \"1\"" } else { "b" }),
            ]);
            body = body.series(&labels, &[(NOW_MS + sequence as i64 * 1000, 0.5_f64.to_bits())]);
        }
        push(&mut writer, sequence, NOW_NS + sequence / 10 * HOUR_NS, &body);
    }
    let gone = labels(&[("__name__", "gone")]);
    let trace = labels(&[("trace_id", "0af7651916cd43dd8448eb211c80319c")]);
    let body = Body::default()
        .series(&gone, &[(NOW_MS, f64::NAN.to_bits()), (NOW_MS, STALE_NAN)])
        .exemplar(&gone, &[], &trace, (NOW_MS, 1.25_f64.to_bits()))
        .histogram(&gone, &int_histogram(NOW_MS, 2, &[2, 1, -3]))
        .histogram(&gone, &int_histogram(NOW_MS, 2, &[1]));
    push(&mut writer, 20, NOW_NS + HOUR_NS, &body);
    writer.close_files().unwrap();
}

#[test]
fn duckdb_reads_the_written_rows() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/duckdb/read_lake.py");
    let run = Command::new(python).arg(script).arg(dir.path()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let found: Value = serde_json::from_slice(&run.stdout).unwrap();
    let (from, to) = (NOW_MS * 1000, (NOW_MS + 19_000) * 1000);
    let expected = json!({
        "points": [10_002, 501, 5000.0, 2, 1, from, to, 2],
        "by_job": [["api", 5000], ["web", 5000]],
        "label": 20,
        "exemplar": ["0AF7651916CD43DD8448EB211C80319C", 1.25],
        "histograms": [2.0, 6.0, 25.0, 6.0],
    });
    assert_eq!(found, expected);
}

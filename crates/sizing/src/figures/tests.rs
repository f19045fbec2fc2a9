//! Promise: processor time and delivery are what the bench wrote down last.

use crate::rate::ItemKind;

const LATEST: &str = include_str!("../../../../bench/results/latest.md");

/// The measured column of the row that begins with `what`.
fn row(what: &str) -> f64 {
    let line = LATEST.lines().find(|line| line.starts_with(&format!("| {what}"))).expect(what);
    line.split('|').nth(3).and_then(|cell| cell.trim().parse().ok()).expect(line)
}

/// A figure of the list below the table: the first or the last line of a row that has it.
fn beside(name: &str, of: &str, nth: usize) -> f64 {
    let lines = LATEST.lines().filter(|line| line.starts_with(&format!("- {name}:")));
    let line = lines.filter(|line| line.contains(of)).nth(nth).expect(name);
    let after = line.split(of).nth(1).expect(line);
    after.split(',').next().and_then(|number| number.trim().parse().ok()).expect(line)
}

#[test]
fn samples_are_as_in_the_bench() {
    let figures = ItemKind::Samples.figures();
    assert_eq!(figures.intake_ns, beside("cpu-ingest", "gateway ns", 0));
    assert_eq!(figures.intake_ns + figures.delivery_ns, beside("cpu-forwarding", "gateway ns", 0));
    assert_eq!(
        figures.delivered_per_second,
        Some(1e6 * beside("cpu-forwarding", "million samples a second", 0))
    );
}

/// Points and records were not measured: they are taken for spans, and the row says so.
#[test]
fn spans_are_as_in_the_bench() {
    for kind in [ItemKind::Spans, ItemKind::Points, ItemKind::Logs] {
        let figures = kind.figures();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * b;
        assert!(close(figures.intake_ns, 1e3 * row("CPU s per million spans, HTTP to the journal")));
        let both = 1e3 * row("CPU s per million spans, gRPC in and out as gzip");
        assert!(close(figures.intake_ns + figures.delivery_ns, both), "{both}");
        let delivered = 1e6 * beside("otlp-forwarding", "million spans a second", 2);
        assert!(close(figures.delivered_per_second.unwrap(), delivered), "{delivered}");
        assert_eq!(figures.rows.contains("measured with spans"), kind != ItemKind::Spans);
    }
}

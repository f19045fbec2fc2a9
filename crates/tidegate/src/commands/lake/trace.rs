//! A trace as a tree: who called whom, when after the beginning, and for how long.

use crate::{Failure, Outcome, output};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use tidegate_lake::{Format, Output, Query};

/// The most spans of a tree; a longer trace is cut, and says so.
const MOST: usize = 10_000;
/// The deepest that a span is set in; deeper ones stand below one another.
const DEEPEST: usize = 40;
const COLUMNS: [&str; 7] =
    ["start_time", "service_name", "span_name", "duration_ns", "status_code", "span_id", "parent_span_id"];
/// OpenTelemetry's number for a status of error.
const ERROR: i64 = 2;

/// A span, as far as the tree shows it.
struct Span {
    id: String,
    parent: Option<String>,
    /// Nanoseconds since 1970.
    start: i128,
    duration: Duration,
    service: String,
    name: String,
    failed: bool,
}

/// Prints the spans of one trace that `query` finds.
pub(super) fn print(folder: &Path, query: &Query) -> Outcome {
    let columns = COLUMNS.map(str::to_owned).to_vec();
    let limit = Some(query.limit.unwrap_or(u64::MAX).min(MOST as u64 + 1));
    let mut scan = tidegate_lake::scan(folder, &Query { columns: columns.clone(), limit, ..query.clone() })?;
    let mut out = Output::new(Format::Ndjson, Vec::new(), columns);
    for batch in scan.by_ref() {
        out.write(&batch?)?;
    }
    let text =
        String::from_utf8(out.finish()?).map_err(|_| Failure::from("the lake's texts are not UTF-8"))?;
    let mut spans: Vec<Span> = text.lines().filter_map(span).collect();
    let cut = spans.len() > MOST;
    spans.truncate(MOST);
    if spans.is_empty() {
        output::error(super::NO_ROWS);
    } else {
        output::print(&tree(spans))?;
    }
    if cut {
        output::error(&format!(
            "the trace has more spans; these are the first {MOST}: --format ndjson has all"
        ));
    }
    super::told_of_missing(&scan)
}

fn span(line: &str) -> Option<Span> {
    let row: Value = serde_json::from_str(line).ok()?;
    let text = |column: &str| row.get(column).and_then(Value::as_str).map(str::to_owned);
    let start: Timestamp = text("start_time")?.parse().ok()?;
    // A span that ends before it begins is shown with nothing.
    let duration = row.get("duration_ns").and_then(Value::as_i64).and_then(|ns| u64::try_from(ns).ok());
    Some(Span {
        id: text("span_id")?,
        parent: text("parent_span_id"),
        start: start.as_nanosecond(),
        duration: Duration::from_nanos(duration.unwrap_or(0)),
        service: text("service_name").unwrap_or_default(),
        name: text("span_name").unwrap_or_default(),
        failed: row.get("status_code").and_then(Value::as_i64) == Some(ERROR),
    })
}

/// The tree in lines: those without a parent first, in the order of their beginnings, each with what it called below
/// it. Whatever the ids say, each span is there once.
fn tree(mut spans: Vec<Span>) -> String {
    spans.sort_by(|a, b| (a.start, &a.id).cmp(&(b.start, &b.id)));
    let begin = spans.first().map_or(0, |first| first.start);
    let ids: HashSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    let mut called: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut roots = Vec::new();
    for (at, span) in spans.iter().enumerate() {
        match span.parent.as_deref().filter(|parent| ids.contains(parent) && *parent != span.id) {
            Some(parent) => called.entry(parent).or_default().push(at),
            None => roots.push(at),
        }
    }
    let mut text = head(&spans, begin);
    let mut shown = vec![false; spans.len()];
    // Spans that call each other in a circle have no root: the first of them stands for one.
    let starts = roots.into_iter().chain(0..spans.len());
    for start in starts {
        let mut open = vec![(start, 0)];
        while let Some((at, depth)) = open.pop() {
            let (Some(span), Some(shown)) = (spans.get(at), shown.get_mut(at)) else { continue };
            if std::mem::replace(shown, true) {
                continue;
            }
            line(&mut text, span, begin, depth);
            let below = called.get(span.id.as_str()).into_iter().flatten().rev();
            open.extend(below.map(|below| (*below, depth + 1)));
        }
    }
    text
}

fn head(spans: &[Span], begin: i128) -> String {
    let end = spans.iter().map(|span| span.start + span.duration.as_nanos().cast_signed()).max();
    let services: HashSet<&str> = spans.iter().map(|span| span.service.as_str()).collect();
    let from = Timestamp::from_nanosecond(begin).map(|time| time.to_string()).unwrap_or_default();
    let took = milliseconds(end.unwrap_or(begin) - begin);
    let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    format!("{} of {}, {took} ms from {from}\n", many(spans.len(), "span"), many(services.len(), "service"))
}

fn line(text: &mut String, span: &Span, begin: i128, depth: usize) {
    let (after, took) =
        (milliseconds(span.start - begin), milliseconds(span.duration.as_nanos().cast_signed()));
    let indent = 2 * depth.min(DEEPEST);
    let failed = if span.failed { "  ERROR" } else { "" };
    let (service, name) = (tidegate_plain::line(&span.service), tidegate_plain::line(&span.name));
    // Writing to a string does not fail.
    let _written = writeln!(
        text,
        "{:>12} ms {took:>12} ms  {:indent$}{service}: {name}{failed}",
        format!("+{after}"),
        ""
    );
}

fn milliseconds(nanoseconds: i128) -> String {
    let microseconds = nanoseconds / 1000;
    format!("{}.{:03}", microseconds / 1000, (microseconds % 1000).abs())
}

#[cfg(test)]
mod tests {
    //! Promise: each span is shown once, below who called it, whatever the ids say.

    use super::*;

    fn span(id: &str, parent: Option<&str>, start_us: i128, failed: bool) -> Span {
        Span {
            id: id.to_owned(),
            parent: parent.map(str::to_owned),
            start: 1_700_000_000_000_000_000 + start_us * 1000,
            duration: Duration::from_micros(1500),
            service: "shop".to_owned(),
            name: format!("call {id}"),
            failed,
        }
    }

    #[test]
    fn calls_are_listed_below_their_callers() {
        let spans = vec![
            span("c", Some("a"), 900, true),
            span("a", None, 0, false),
            span("d", Some("b"), 500, false),
            span("b", Some("a"), 250, false),
            span("x", Some("gone"), 2_000_000, false),
        ];
        let text = tree(spans);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "5 spans of 1 service, 2001.500 ms from 2023-11-14T22:13:20Z");
        assert_eq!(
            lines[1..],
            [
                "      +0.000 ms        1.500 ms  shop: call a",
                "      +0.250 ms        1.500 ms    shop: call b",
                "      +0.500 ms        1.500 ms      shop: call d",
                "      +0.900 ms        1.500 ms    shop: call c  ERROR",
                "   +2000.000 ms        1.500 ms  shop: call x",
            ]
        );
    }

    #[test]
    fn circles_and_doubles_end() {
        let spans = vec![
            span("a", Some("b"), 0, false),
            span("b", Some("a"), 1, false),
            span("c", Some("c"), 2, false),
            span("c", None, 3, false),
        ];
        assert_eq!(tree(spans).lines().count(), 5);
        let deep = (0..5_000).map(|n| span(&format!("{n:05}"), Some(&format!("{:05}", n - 1)), n, false));
        let text = tree(deep.collect());
        assert_eq!(text.lines().count(), 5_001);
        assert!(text.lines().all(|line| line.len() < 200));
        assert!(
            tree(vec![Span { name: "\u{1b}[2J".to_owned(), ..span("a", None, 0, false) }])
                .contains("\\u{1b}[2J")
        );
    }
}

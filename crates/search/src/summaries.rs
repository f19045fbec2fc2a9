//! Traces in a line each: how long, how many spans, how many of them failed, and the name of the first.

use crate::Bounds;
use crate::attributes::{column, text_of};
use crate::newest::times_ns;
use crate::walk::Collector;
use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::error::ArrowError;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::HashMap;
use tidegate_lake::Visitor;

const LOOKED_AT: [&str; 8] = [
    "start_time",
    "start_ns",
    "trace_id",
    "duration_ns",
    "status_code",
    "parent_span_id",
    "service_name",
    "span_name",
];
/// The status of a span that failed.
const FAILED: i32 = 2;
/// The longest name that is kept, in bytes.
const LONGEST_NAME: usize = 256;

/// Sums up the spans of some traces.
pub(crate) struct Summaries<'b> {
    bounds: &'b Bounds,
    traces: HashMap<[u8; 16], Summary>,
    is_in_lake: bool,
}

#[derive(Debug, Clone, Default)]
struct Summary {
    from_ns: i128,
    to_ns: i128,
    spans: u64,
    of_lake: u64,
    errors: u64,
    name: String,
    service: String,
    has_root: bool,
    /// When the span that gave the name began.
    named_ns: i128,
}

#[derive(Serialize)]
struct ShownSummary<'s> {
    trace_id: String,
    time: String,
    duration_ns: i64,
    name: &'s str,
    service: &'s str,
    has_root: bool,
    spans: u64,
    errors: u64,
}

/// A span, as far as it matters.
struct SeenSpan<'r> {
    start_ns: i128,
    duration_ns: i64,
    is_failed: bool,
    is_root: bool,
    name: &'r str,
    service: &'r str,
}

impl<'b> Summaries<'b> {
    pub(crate) fn new(traces: impl Iterator<Item = [u8; 16]>, bounds: &'b Bounds) -> Self {
        let traces = traces.map(|id| (id, Summary::default())).collect();
        Summaries { bounds, traces, is_in_lake: false }
    }

    pub(crate) fn of_lake(&self) -> u64 {
        self.traces.values().filter(|trace| trace.of_lake == trace.spans && trace.spans > 0).count() as u64
    }

    /// Traces of which at least one span is in the journal.
    pub(crate) fn of_journal(&self) -> u64 {
        self.traces.values().filter(|trace| trace.of_lake < trace.spans).count() as u64
    }

    /// A trace as the answer has it; `None` if nothing was found of it.
    pub(crate) fn json(&self, id: &[u8; 16]) -> Option<Vec<u8>> {
        let trace = self.traces.get(id).filter(|trace| trace.spans > 0)?;
        let shown = ShownSummary {
            trace_id: format!("{:032x}", u128::from_be_bytes(*id)),
            time: Timestamp::from_nanosecond(trace.from_ns)
                .map_or_else(|_| String::new(), |time| time.to_string()),
            duration_ns: i64::try_from(trace.to_ns - trace.from_ns).unwrap_or(i64::MAX),
            name: &trace.name,
            service: &trace.service,
            has_root: trace.has_root,
            spans: trace.spans,
            errors: trace.errors,
        };
        serde_json::to_vec(&shown).ok()
    }
}

impl Summary {
    fn add(&mut self, span: &SeenSpan<'_>, is_of_lake: bool) {
        let end_ns = span.start_ns + i128::from(span.duration_ns.max(0));
        let is_first = self.spans == 0;
        self.from_ns = if is_first { span.start_ns } else { self.from_ns.min(span.start_ns) };
        self.to_ns = if is_first { end_ns } else { self.to_ns.max(end_ns) };
        self.spans += 1;
        self.of_lake += u64::from(is_of_lake);
        self.errors += u64::from(span.is_failed);
        // The root gives the name, or else the span that began first.
        let is_earlier = span.start_ns < self.named_ns;
        let is_better = (span.is_root && !self.has_root) || (span.is_root == self.has_root && is_earlier);
        if is_first || is_better {
            (self.has_root, self.named_ns) = (span.is_root, span.start_ns);
            self.name = cut(span.name);
            self.service = cut(span.service);
        }
    }
}

fn cut(text: &str) -> String {
    text.get(..text.floor_char_boundary(LONGEST_NAME)).unwrap_or_default().to_owned()
}

impl Visitor for Summaries<'_> {
    fn looked_at(&self) -> &[&'static str] {
        &LOOKED_AT
    }

    fn taken(&self) -> &[&'static str] {
        &[]
    }

    fn look(&mut self, _: usize, rows: &RecordBatch) -> Result<(), ArrowError> {
        let times = times_ns(rows, &LOOKED_AT)?;
        let ids = column(rows, "trace_id")?.as_fixed_size_binary();
        let parents = column(rows, "parent_span_id")?;
        let durations = column(rows, "duration_ns")?.as_primitive::<Int64Type>();
        let statuses = column(rows, "status_code")?.as_primitive::<Int32Type>();
        for (row, start_ns) in times.into_iter().enumerate() {
            let id = <[u8; 16]>::try_from(ids.value(row)).unwrap_or_default();
            let Some(trace) = self.traces.get_mut(&id) else { continue };
            let span = SeenSpan {
                start_ns,
                duration_ns: durations.value(row),
                is_failed: statuses.value(row) == FAILED,
                is_root: parents.is_null(row),
                name: text_of(rows, "span_name", row).unwrap_or_default(),
                service: text_of(rows, "service_name", row).unwrap_or_default(),
            };
            trace.add(&span, self.is_in_lake);
        }
        Ok(())
    }

    fn wanted(&mut self) -> Vec<usize> {
        Vec::new()
    }

    fn take(&mut self, _: &RecordBatch) -> Result<(), ArrowError> {
        Ok(())
    }

    fn enter_lake(&mut self) {
        self.is_in_lake = true;
    }

    fn is_over(&mut self) -> bool {
        self.bounds.is_over()
    }
}

impl Collector for Summaries<'_> {
    fn reset(&mut self) {
        self.is_in_lake = false;
        self.traces.values_mut().for_each(|trace| *trace = Summary::default());
    }
}

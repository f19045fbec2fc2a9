//! A list of traces: those with a span that fulfils all conditions, the newest first.

use crate::answer::{Answer, Totals};
use crate::attributes::column;
use crate::newest::times_ns;
use crate::query::TraceListQuery;
use crate::summaries::Summaries;
use crate::walk::{Collector, Walk};
use crate::{Bounds, SearchError, sql};
use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::error::ArrowError;
use jiff::{SignedDuration, Timestamp};
use std::collections::HashMap;
use tidegate_lake::{Query, Table, Visitor};

/// How far from the found span the other spans of its trace are looked for.
const AROUND: SignedDuration = SignedDuration::from_mins(15);

/// Answers with a list of traces.
pub(crate) fn list(query: &TraceListQuery, walk: &mut Walk<'_>) -> Result<Vec<u8>, SearchError> {
    let rows = query.rows();
    let mut found = NewestTraces::new(query.limit.0, walk.bounds);
    walk.search(&rows, &mut found)?;
    let has_more = found.has_more;
    let times = found.newest();
    let mut summaries = Summaries::new(times.iter().map(|(id, _)| *id), walk.bounds);
    if let (Some((_, newest)), Some((_, oldest))) = (times.first(), times.last()) {
        let around = Query {
            from: time(*oldest).and_then(|time| time.checked_sub(AROUND).ok()),
            to: time(*newest).and_then(|time| time.checked_add(AROUND).ok()),
            traces: times.iter().map(|(id, _)| *id).collect(),
            ..Query::new(Table::Spans)
        };
        walk.search(&around, &mut summaries)?;
    }
    let totals = Totals {
        has_more,
        from_lake: summaries.of_lake(),
        from_journal: summaries.of_journal(),
        incomplete: Vec::new(),
    };
    let mut answer = Answer::new(walk.bounds.answer);
    let traces: Vec<Vec<u8>> = times.iter().filter_map(|(id, _)| summaries.json(id)).collect();
    answer.list("traces", traces.iter().map(Vec::as_slice));
    let sql = walk.stores.lake.as_ref().map(|lake| sql::rows(&lake.dir, &rows, query.limit.0));
    Ok(answer.end(walk, totals, sql.as_deref()))
}

fn time(ns: i128) -> Option<Timestamp> {
    Timestamp::from_nanosecond(ns).ok()
}

/// Keeps the newest traces.
struct NewestTraces<'b> {
    limit: usize,
    bounds: &'b Bounds,
    /// When the newest matching span of each began, in nanoseconds since the Unix epoch.
    traces: HashMap<[u8; 16], i128>,
    /// Only newer spans are of use.
    oldest: Option<i128>,
    has_more: bool,
}

impl<'b> NewestTraces<'b> {
    fn new(limit: usize, bounds: &'b Bounds) -> Self {
        NewestTraces { limit, bounds, traces: HashMap::new(), oldest: None, has_more: false }
    }

    fn newest(&self) -> Vec<([u8; 16], i128)> {
        let mut all: Vec<([u8; 16], i128)> = self.traces.iter().map(|(id, time)| (*id, *time)).collect();
        all.sort_unstable_by_key(|(id, time)| (std::cmp::Reverse(*time), *id));
        all.truncate(self.limit);
        all
    }

    fn narrow(&mut self) {
        if self.traces.len() > self.limit {
            let newest = self.newest();
            self.oldest = newest.last().map(|(_, time)| *time);
            self.traces = newest.into_iter().collect();
            self.has_more = true;
        }
    }
}

const LOOKED_AT: [&str; 3] = ["start_time", "start_ns", "trace_id"];

impl Visitor for NewestTraces<'_> {
    fn looked_at(&self) -> &[&'static str] {
        &LOOKED_AT
    }

    fn taken(&self) -> &[&'static str] {
        &LOOKED_AT
    }

    fn not_before_us(&self) -> i64 {
        self.oldest.map_or(i64::MIN, |oldest| i64::try_from(oldest.div_euclid(1000)).unwrap_or(i64::MIN))
    }

    fn look(&mut self, _: usize, rows: &RecordBatch) -> Result<(), ArrowError> {
        let ids = column(rows, "trace_id")?.as_fixed_size_binary();
        for (row, time) in times_ns(rows, &LOOKED_AT)?.into_iter().enumerate() {
            let Ok(id) = <[u8; 16]>::try_from(ids.value(row)) else { continue };
            if ids.is_null(row) || self.oldest.is_some_and(|oldest| time < oldest) {
                continue;
            }
            let newest = self.traces.entry(id).or_insert(time);
            *newest = time.max(*newest);
        }
        if self.traces.len() > 4 * self.limit + 64 {
            self.narrow();
        }
        Ok(())
    }

    fn wanted(&mut self) -> Vec<usize> {
        self.narrow();
        Vec::new()
    }

    fn take(&mut self, _: &RecordBatch) -> Result<(), ArrowError> {
        Ok(())
    }

    fn is_over(&mut self) -> bool {
        self.bounds.is_over()
    }
}

impl Collector for NewestTraces<'_> {
    fn reset(&mut self) {
        self.traces.clear();
        (self.oldest, self.has_more) = (None, false);
    }
}

//! The newest rows, whole: log records, spans, and points of metrics.

use crate::answer::{Answer, Totals};
use crate::attributes::{self, LOG, METRIC, Origin, SPAN, column};
use crate::histogram::Histogram;
use crate::query::{LogQuery, TraceQuery};
use crate::walk::{Collector, Walk};
use crate::{Bounds, SearchError, sql};
use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::{Int32Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tidegate_lake::{Table, Visitor};

/// The most spans of a trace that are shown, and the most log records.
const MOST_SPANS: usize = 2000;
const MOST_LOGS_OF_TRACE: usize = 500;

/// Answers with log records.
pub(crate) fn logs(query: &LogQuery, walk: &mut Walk<'_>) -> Result<Vec<u8>, SearchError> {
    let rows = query.rows();
    let mut found = Newest::new(&LOGS, query.limit.0, walk.bounds);
    if let Some(steps) = query.histogram {
        let histogram = query.from.zip(query.to).and_then(|(from, to)| Histogram::new(from.0, to.0, steps.0));
        let wanted = "a histogram takes `from`, and `to` behind it".to_owned();
        found.histogram = Some(histogram.ok_or(SearchError::Query(wanted))?);
    }
    walk.search(&rows, &mut found)?;
    let mut answer = Answer::new(walk.bounds.answer);
    if let Some(histogram) = &found.histogram {
        answer.member("histogram", &histogram.bars());
    }
    let totals = found.totals();
    let sorted = found.into_sorted();
    answer.list("logs", sorted.iter().map(|row| &*row.json));
    let sql = walk.stores.lake.as_ref().map(|lake| sql::rows(&lake.dir, &rows, query.limit.0));
    Ok(answer.end(walk, totals, sql.as_deref()))
}

/// Answers with a trace: its spans and its log records, each in the order of time.
pub(crate) fn trace(query: &TraceQuery, walk: &mut Walk<'_>) -> Result<Vec<u8>, SearchError> {
    let rows = query.rows(Table::Spans);
    let mut spans = Newest::new(&SPANS, MOST_SPANS, walk.bounds);
    walk.search(&rows, &mut spans)?;
    let mut logs = Newest::new(&LOGS, MOST_LOGS_OF_TRACE, walk.bounds);
    walk.search(&query.rows(Table::Logs), &mut logs)?;
    let mut totals = spans.totals();
    let of_logs = logs.totals();
    totals.has_more |= of_logs.has_more;
    totals.from_lake += of_logs.from_lake;
    totals.from_journal += of_logs.from_journal;
    let mut answer = Answer::new(walk.bounds.answer);
    let (spans, logs) = (spans.into_sorted(), logs.into_sorted());
    answer.list("spans", spans.iter().rev().map(|row| &*row.json));
    answer.list("logs", logs.iter().rev().map(|row| &*row.json));
    let sql = walk.stores.lake.as_ref().map(|lake| sql::rows(&lake.dir, &rows, MOST_SPANS));
    Ok(answer.end(walk, totals, sql.as_deref()))
}

/// How rows of a table are looked at and shown.
pub(crate) struct RowShape {
    looked_at: &'static [&'static str],
    shown: &'static [&'static str],
    show: fn(&RecordBatch, usize, Origin) -> Vec<u8>,
}

pub(crate) const LOGS: RowShape =
    RowShape { looked_at: &["time", "time_ns", "severity_number"], shown: &LOG, show: attributes::log };
pub(crate) const SPANS: RowShape =
    RowShape { looked_at: &["start_time", "start_ns"], shown: &SPAN, show: attributes::span };
pub(crate) const POINTS: RowShape =
    RowShape { looked_at: &["time", "time_ns"], shown: &METRIC, show: attributes::point };
pub(crate) const HISTOGRAMS: RowShape =
    RowShape { looked_at: &["time", "time_ns"], shown: &METRIC, show: attributes::histogram };

/// Keeps the newest rows.
pub(crate) struct Newest<'b> {
    shape: &'static RowShape,
    limit: usize,
    bounds: &'b Bounds,
    histogram: Option<Histogram>,
    from: Origin,
    /// Of the group that is looked at: times in nanoseconds, and places.
    candidates: Vec<(i128, usize)>,
    /// The oldest comes out first.
    rows: BinaryHeap<Reverse<FoundRow>>,
    /// Bytes of all rows.
    bytes: usize,
    /// Older rows match, too.
    has_more: bool,
}

/// Ordered by time.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FoundRow {
    time_ns: i128,
    pub(crate) json: Vec<u8>,
    from: Origin,
}

impl<'b> Newest<'b> {
    pub(crate) fn new(shape: &'static RowShape, limit: usize, bounds: &'b Bounds) -> Self {
        Newest {
            shape,
            limit,
            bounds,
            histogram: None,
            from: Origin::Journal,
            candidates: Vec::new(),
            rows: BinaryHeap::new(),
            bytes: 0,
            has_more: false,
        }
    }

    /// For the rows of a dead letter.
    pub(crate) fn of_letter(shape: &'static RowShape, limit: usize, bounds: &'b Bounds) -> Self {
        Newest { from: Origin::DeadLetter, ..Newest::new(shape, limit, bounds) }
    }

    /// The time that a row must be behind to be among the newest; `None` while there is room.
    fn oldest(&self) -> Option<i128> {
        let is_full = self.rows.len() >= self.limit || self.bytes >= self.bounds.answer;
        self.rows.peek().filter(|_| is_full).map(|Reverse(row)| row.time_ns)
    }

    /// Leaves only the newest candidates.
    fn narrow(&mut self) {
        if self.candidates.len() > self.limit {
            self.candidates.sort_unstable_by(|a, b| b.cmp(a));
            self.candidates.truncate(self.limit);
            self.has_more = true;
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        let of = |from| self.rows.iter().filter(|Reverse(row)| row.from == from).count() as u64;
        Totals {
            has_more: self.has_more || (self.histogram.is_none() && self.oldest().is_some()),
            from_lake: of(Origin::Lake),
            from_journal: of(Origin::Journal),
            incomplete: Vec::new(),
        }
    }

    /// The newest first.
    pub(crate) fn into_sorted(self) -> Vec<FoundRow> {
        self.rows.into_sorted_vec().into_iter().map(|Reverse(row)| row).collect()
    }
}

/// The times of rows in the first two of these columns, in nanoseconds since the Unix epoch.
pub(crate) fn times_ns(rows: &RecordBatch, columns: &[&str]) -> Result<Vec<i128>, ArrowError> {
    let name = |place: usize| columns.get(place).copied().unwrap_or_default();
    let micros = column(rows, name(0))?.as_primitive::<TimestampMicrosecondType>();
    let nanos = column(rows, name(1))?.as_primitive::<Int32Type>();
    let all = micros.values().iter().zip(nanos.values());
    Ok(all.map(|(&micros, &nanos)| i128::from(micros) * 1000 + i128::from(nanos)).collect())
}

impl Visitor for Newest<'_> {
    fn looked_at(&self) -> &[&'static str] {
        self.shape.looked_at
    }

    fn taken(&self) -> &[&'static str] {
        self.shape.shown
    }

    fn not_before_us(&self) -> i64 {
        // A histogram counts all.
        match self.oldest().filter(|_| self.histogram.is_none()) {
            Some(oldest) => i64::try_from(oldest.div_euclid(1000)).unwrap_or(i64::MIN),
            None => i64::MIN,
        }
    }

    fn look(&mut self, first: usize, rows: &RecordBatch) -> Result<(), ArrowError> {
        let times = times_ns(rows, self.shape.looked_at)?;
        if let Some(histogram) = &mut self.histogram {
            let severities =
                rows.column_by_name("severity_number").map(|column| column.as_primitive::<Int32Type>());
            let severities = severities.map(|column| column.values());
            for (time, severity) in times.iter().zip(severities.into_iter().flatten()) {
                histogram.add(i64::try_from(time.div_euclid(1000)).unwrap_or(i64::MIN), *severity);
            }
        }
        let oldest = self.oldest();
        let is_wanted = |time: i128| oldest.is_none_or(|oldest| time > oldest);
        let newer = times.iter().enumerate().filter(|(_, time)| is_wanted(**time));
        let before = self.candidates.len();
        self.candidates.extend(newer.map(|(place, &time)| (time, first + place)));
        self.has_more |= self.candidates.len() - before < times.len();
        if self.candidates.len() > 4 * self.limit {
            self.narrow();
        }
        Ok(())
    }

    fn wanted(&mut self) -> Vec<usize> {
        self.narrow();
        let mut places: Vec<usize> = self.candidates.drain(..).map(|(_, place)| place).collect();
        places.sort_unstable();
        places
    }

    fn take(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let times = times_ns(rows, self.shape.looked_at)?;
        for (row, time_ns) in times.into_iter().enumerate() {
            if self.oldest().is_some_and(|oldest| time_ns <= oldest) {
                self.has_more = true;
                continue;
            }
            let json = (self.shape.show)(rows, row, self.from);
            self.bytes += json.len();
            self.rows.push(Reverse(FoundRow { time_ns, json, from: self.from }));
            // At least one stays, however long it is.
            while self.rows.len() > self.limit || (self.bytes > self.bounds.answer && self.rows.len() > 1) {
                let gone = self.rows.pop();
                self.bytes -= gone.map_or(0, |Reverse(row)| row.json.len());
                self.has_more = true;
            }
        }
        Ok(())
    }

    fn enter_lake(&mut self) {
        self.from = Origin::Lake;
    }

    fn is_over(&mut self) -> bool {
        self.bounds.is_over()
    }
}

impl Collector for Newest<'_> {
    fn reset(&mut self) {
        self.from = Origin::Journal;
        self.candidates.clear();
        self.rows.clear();
        (self.bytes, self.has_more) = (0, false);
        if let Some(histogram) = &mut self.histogram {
            histogram.clear();
        }
    }
}

//! Joins the rows of a summary: one for each quantile, one for the sum, one for the count.
//!
//! A row group has the rows of one series number together, but by quantile first and by time second. So all of them are
//! kept, 48 bytes each, until another series comes; then those of one time are joined.
//!
//! The writer may have begun another row group in the middle of a summary. What is incomplete is therefore kept until the
//! next row group has had its chance to complete it, and given back as it is after that.

use super::Protocol;
use super::request::Item;
use super::series::{MetricKind, Series};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Rows of one series number in a row group, at most.
const MOST_PARTS: usize = 1 << 20;
/// Rows that are kept for the next row group, at most.
const MOST_CARRIED: usize = 1 << 12;

/// One series number has more rows in a row group than are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a summary has more than {MOST_PARTS} rows in one row group")]
pub(super) struct TooManyParts;

/// A row of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) time: u64,
    /// 0 when unknown.
    pub(super) start: u64,
    pub(super) is_stale: bool,
    pub(super) value: Value,
}

/// The value of such a row. Doubles are bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Quantile { quantile: u64, value: u64 },
    Sum(u64),
    Count(u64),
}

impl Value {
    /// Quantiles in their order, the sum, the count.
    fn order(self) -> (u8, u64) {
        match self {
            // Doubles, negative ones included, are ordered as these numbers are.
            Value::Quantile { quantile, .. } if quantile >> 63 == 0 => (0, quantile | 1 << 63),
            Value::Quantile { quantile, .. } => (0, !quantile),
            Value::Sum(_) => (1, 0),
            Value::Count(_) => (2, 0),
        }
    }
}

/// Summaries on their way from rows to items.
#[derive(Debug, Default)]
pub(super) struct Summaries {
    /// The rows of the present series number.
    run: Option<Run>,
    /// Incomplete ones of the row group before, and of this one.
    carried: Vec<Run>,
    carried_on: Vec<Run>,
    /// Those whose rows are all there.
    joined: VecDeque<Run>,
    /// Points of one series and one time.
    points: VecDeque<(Arc<Series>, SummaryPoint)>,
}

/// Rows that have name, number and attributes of their series in common. Other things may be different.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Run {
    name: String,
    id: i64,
    attributes: String,
    series: Vec<Arc<Series>>,
    /// With the place of their series.
    parts: VecDeque<(usize, Part)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SummaryPoint {
    time: u64,
    start: u64,
    is_stale: bool,
    quantiles: Vec<(u64, u64)>,
    sum: u64,
    count: u64,
}

impl Summaries {
    /// Whether there are rows of another series number.
    pub(super) fn is_over(&self, name: &str, id: i64, attributes: &str) -> bool {
        self.run.as_ref().is_some_and(|run| !run.is_of(name, id, attributes))
    }

    /// Begins with a series number, unless that was done.
    pub(super) fn begin_run(&mut self, name: &str, id: i64, attributes: &str) {
        if self.run.is_some() {
            return;
        }
        let carried = self.carried.iter().position(|run| run.is_of(name, id, attributes));
        self.run = Some(match carried {
            Some(place) => self.carried.remove(place),
            None => Run { name: name.to_owned(), id, attributes: attributes.to_owned(), ..Run::default() },
        });
    }

    /// Adds a row to what was [begun](Self::begin_run).
    pub(super) fn add(&mut self, series: &Series, part: Part) -> Result<(), TooManyParts> {
        let Some(run) = &mut self.run else { return Ok(()) };
        if run.parts.len() == MOST_PARTS {
            return Err(TooManyParts);
        }
        // The last one is the one, nearly always.
        let known = run.series.iter().rposition(|known| known.is_alike(series));
        let place = known.unwrap_or_else(|| {
            run.series.push(Arc::new(series.clone()));
            run.series.len() - 1
        });
        run.parts.push_back((place, part));
        Ok(())
    }

    /// No more rows of the series number come in this row group.
    pub(super) fn end_run(&mut self) {
        let Some(mut run) = self.run.take() else { return };
        run.sort();
        let mut incomplete = run.clone_empty();
        let mut complete = run.clone_empty();
        while let Some(group) = run.next_group() {
            let to = if is_complete(&group) { &mut complete } else { &mut incomplete };
            to.parts.extend(group);
        }
        let carried: usize = self.carried_on.iter().map(|run| run.parts.len()).sum();
        if carried + incomplete.parts.len() <= MOST_CARRIED {
            self.carried_on.extend(Some(incomplete).filter(|run| !run.parts.is_empty()));
        } else {
            self.joined.push_back(incomplete);
        }
        self.joined.push_back(complete);
    }

    /// No more rows of this row group come.
    pub(super) fn end_group(&mut self) {
        self.end_run();
        // This row group did not have what they lack.
        self.joined.extend(self.carried.drain(..));
        self.carried = std::mem::take(&mut self.carried_on);
    }

    /// No more rows come. Whether there are summaries left to be written.
    pub(super) fn end(&mut self) -> bool {
        self.end_group();
        self.joined.extend(self.carried.drain(..));
        self.joined.iter().any(|run| !run.parts.is_empty())
    }

    /// Writes the next summary whose rows are all there. Whether there was one.
    pub(super) fn write_next(&mut self, item: &mut Item) -> bool {
        loop {
            if let Some((series, point)) = self.points.pop_front() {
                point.write(&series, item);
                return true;
            }
            let Some(run) = self.joined.front_mut() else { return false };
            match run.next_group() {
                Some(group) => {
                    let series = group.first().and_then(|(place, _)| run.series.get(*place)).cloned();
                    let points = points(&group).into_iter();
                    self.points.extend(points.filter_map(|point| Some((series.clone()?, point))));
                }
                None => _ = self.joined.pop_front(),
            }
        }
    }
}

impl Run {
    fn is_of(&self, name: &str, id: i64, attributes: &str) -> bool {
        self.id == id && self.name == name && self.attributes == attributes
    }

    fn clone_empty(&self) -> Run {
        Run {
            name: self.name.clone(),
            id: self.id,
            attributes: self.attributes.clone(),
            series: self.series.clone(),
            parts: VecDeque::new(),
        }
    }

    /// By series and times, then by value. Rows that are alike stay in the order in which they came.
    fn sort(&mut self) {
        self.parts.make_contiguous().sort_by_key(|(series, part)| {
            (*series, part.time, part.start, part.is_stale, part.value.order())
        });
    }

    /// Takes the rows of the first series and times.
    fn next_group(&mut self) -> Option<Vec<(usize, Part)>> {
        let &(series, first) = self.parts.front()?;
        let is_alike = |(other, part): &&(usize, Part)| {
            *other == series
                && (part.time, part.start, part.is_stale) == (first.time, first.start, first.is_stale)
        };
        let len = self.parts.iter().take_while(is_alike).count();
        Some(self.parts.drain(..len).collect())
    }
}

/// The places of rows with one order of value, each after the other.
fn runs_of_value(group: &[(usize, Part)]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    group.chunk_by(|(_, left), (_, right)| left.value.order() == right.value.order()).map(move |alike| {
        let range = start..start + alike.len();
        start = range.end;
        range
    })
}

fn number_of(group: &[(usize, Part)], is_wanted: impl Fn(Value) -> bool) -> usize {
    group.iter().filter(|(_, part)| is_wanted(part.value)).count()
}

/// Whether each summary of these rows has all of its own.
fn is_complete(group: &[(usize, Part)]) -> bool {
    let counts = number_of(group, |value| matches!(value, Value::Count(_)));
    let sums = number_of(group, |value| matches!(value, Value::Sum(_)));
    counts > 0 && counts == sums && runs_of_value(group).all(|alike| alike.len() % counts == 0)
}

/// The summaries of these rows: as many as there are counts. The rows of a value came in the order of the summaries, so they
/// are dealt out in that order.
fn points(group: &[(usize, Part)]) -> Vec<SummaryPoint> {
    let counts = number_of(group, |value| matches!(value, Value::Count(_)));
    let number = counts.max(number_of(group, |value| matches!(value, Value::Sum(_)))).max(1);
    let mut points = vec![SummaryPoint::default(); number];
    for alike in runs_of_value(group) {
        let each = if alike.len() % number == 0 { alike.len() / number } else { 1 };
        for (place, (_, part)) in group.get(alike).unwrap_or_default().iter().enumerate() {
            let Some(point) = points.get_mut((place / each).min(number - 1)) else { continue };
            match part.value {
                Value::Quantile { quantile, value } => point.quantiles.push((quantile, value)),
                Value::Sum(sum) => point.sum = sum,
                Value::Count(count) => point.count = count,
            }
        }
    }
    for point in &mut points {
        if let Some((_, part)) = group.first() {
            (point.time, point.start, point.is_stale) = (part.time, part.start, part.is_stale);
        }
    }
    points
}

impl SummaryPoint {
    fn write(&self, series: &Series, item: &mut Item) {
        let out = item.begin(Protocol::Otlp);
        let point = out.begin(1);
        out.fixed64_unless_0(2, self.start);
        out.fixed64_unless_0(3, self.time);
        out.fixed64_unless_0(4, self.count);
        out.fixed64_unless_0(5, self.sum);
        for &(quantile, value) in &self.quantiles {
            let open = out.begin(6);
            out.fixed64_unless_0(1, quantile);
            out.fixed64_unless_0(2, value);
            out.end(open);
        }
        out.put(series.attributes.as_bytes());
        out.varint_unless_0(8, u64::from(self.is_stale));
        out.end(point);
        series.enclose(MetricKind::Summary, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::request::RequestBuilder;
    use tidegate_wire::otlp::{Data, MetricsRequest};

    fn part(time: u64, value: Value) -> Part {
        Part { time, start: 0, is_stale: false, value }
    }

    /// Time, count, sum and number of quantiles of what is joined.
    fn joined(summaries: &mut Summaries) -> Vec<(u64, u64, u64, usize)> {
        let mut points = Vec::new();
        let mut item = Item::default();
        while summaries.write_next(&mut item) {
            let mut request = RequestBuilder::default();
            assert!(request.add(&item, 0));
            let raw = request.finish();
            let group = MetricsRequest::new(&raw).resources().next().unwrap();
            let metric: tidegate_wire::otlp::Metric<'_> =
                group.scopes().next().unwrap().items().next().unwrap();
            let Data::Summary(summary) = metric.data else { panic!("{metric:?}") };
            points.extend(
                summary.points().map(|point| (point.time, point.count, point.sum, point.quantiles().count())),
            );
        }
        points
    }

    fn quantile(quantile: f64) -> Value {
        Value::Quantile { quantile: quantile.to_bits(), value: 1 }
    }

    #[test]
    fn rows_of_one_time_are_joined_once_the_series_is_over() {
        let mut summaries = Summaries::default();
        summaries.begin_run("a", 1, "{}");
        for value in [quantile(0.5), quantile(0.9), Value::Sum(7), Value::Count(3)] {
            for time in [10, 20] {
                summaries.add(&Series::default(), part(time, value)).unwrap();
            }
        }
        assert!(!summaries.is_over("a", 1, "{}") && summaries.is_over("b", 1, "{}"));
        assert_eq!(joined(&mut summaries), []);
        summaries.end_run();
        assert_eq!(joined(&mut summaries), [(10, 3, 7, 2), (20, 3, 7, 2)]);
    }

    #[test]
    fn summaries_that_were_sent_twice_stay_two() {
        let mut summaries = Summaries::default();
        summaries.begin_run("a", 1, "{}");
        for value in [quantile(0.5), quantile(0.9), Value::Sum(7), Value::Count(3)] {
            summaries.add(&Series::default(), part(10, value)).unwrap();
            summaries.add(&Series::default(), part(10, value)).unwrap();
        }
        summaries.end_run();
        assert_eq!(joined(&mut summaries), [(10, 3, 7, 2), (10, 3, 7, 2)]);
    }

    #[test]
    fn a_summary_is_completed_by_the_next_row_group() {
        let mut summaries = Summaries::default();
        let add = |summaries: &mut Summaries, value| {
            summaries.begin_run("a", 1, "{}");
            summaries.add(&Series::default(), part(10, value)).unwrap();
        };
        add(&mut summaries, quantile(0.5));
        add(&mut summaries, Value::Sum(7));
        summaries.end_group();
        assert_eq!(joined(&mut summaries), []);
        add(&mut summaries, Value::Count(3));
        summaries.end_group();
        assert_eq!(joined(&mut summaries), [(10, 3, 7, 1)]);
        assert!(!summaries.end());
    }

    #[test]
    fn what_stays_incomplete_comes_out_as_it_is() {
        let mut summaries = Summaries::default();
        summaries.begin_run("a", 1, "{}");
        summaries.add(&Series::default(), part(10, quantile(0.5))).unwrap();
        summaries.end_group();
        summaries.end_group();
        assert_eq!(joined(&mut summaries), [(10, 0, 0, 1)]);
        summaries.begin_run("a", 1, "{}");
        summaries.add(&Series::default(), part(20, Value::Sum(7))).unwrap();
        assert!(summaries.end());
        assert_eq!(joined(&mut summaries), [(20, 0, 7, 0)]);
    }
}

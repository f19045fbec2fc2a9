//! Points of a metric over time, as a few series with a value for each step.

mod cells;
mod quantile;

use crate::answer::{Answer, Totals};
use crate::attributes::text_of;
use crate::newest::times_ns;
use crate::query::{Function, PlotQuery};
use crate::walk::{Collector, Walk};
use crate::{Bounds, SearchError, sql};
use arrow::array::{Array as _, AsArray as _, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use arrow::error::ArrowError;
use cells::{Cell, PointKind, Steps};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use tidegate_lake::{Table, Visitor};

/// The most series of the metric that are put together, and the most that are drawn.
const MOST_SERIES: usize = 1000;
const MOST_DRAWN: usize = 20;
/// The longest labels of a series, in bytes: series with longer ones are left out.
const LONGEST_LABELS: usize = 4 << 10;
/// The label of a bucket's upper bound.
const BOUND: &str = "le";

/// Answers with a plot.
pub(crate) fn plot(query: &PlotQuery, walk: &mut Walk<'_>) -> Result<Vec<u8>, SearchError> {
    if query.to <= query.from {
        return Err(SearchError::Query("`to` must be behind `from`".to_owned()));
    }
    let is_quantile = query.function == Function::Quantile;
    let quantile = query.quantile.unwrap_or(0.99);
    if !(0.0..=1.0).contains(&quantile) {
        return Err(SearchError::Query("`quantile` must be from 0 to 1".to_owned()));
    }
    let mut sampled = SampledSeries::new(query, Table::MetricPoints, walk.bounds);
    // A classic histogram is a series for each bucket.
    let points = match is_quantile && !query.metric.ends_with("_bucket") {
        true => format!("{}_bucket", query.metric),
        false => query.metric.clone(),
    };
    let rows = query.rows(Table::MetricPoints, &points);
    walk.search(&rows, &mut sampled)?;
    if is_quantile || matches!(query.function, Function::Rate | Function::Increase) {
        let mut histograms = SampledSeries::new(query, Table::MetricHistograms, walk.bounds);
        walk.search(&query.rows(Table::MetricHistograms, &query.metric), &mut histograms)?;
        sampled.join(histograms);
    }
    let mut drawn = if is_quantile { quantile::drawn(&sampled, quantile) } else { sampled.drawn() };
    let mut totals = Totals { has_more: drawn.len() > MOST_DRAWN, ..Totals::default() };
    totals.incomplete = sampled.incomplete(drawn.len());
    drawn.truncate(MOST_DRAWN);
    let mut answer = Answer::new(walk.bounds.answer);
    answer.member("times", &sampled.steps.ends());
    let series: Vec<Vec<u8>> = drawn.iter().filter_map(|series| serde_json::to_vec(series).ok()).collect();
    answer.list("series", series.iter().map(Vec::as_slice));
    let sql = walk.stores.lake.as_ref().map(|lake| sql::rows(&lake.dir, &rows, 10_000));
    Ok(answer.end(walk, totals, sql.as_deref()))
}

/// A series as it is drawn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct DrawnSeries {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) values: Vec<Option<f64>>,
}

const KEYS: [&str; 9] = [
    "time",
    "time_ns",
    "type",
    "attributes",
    "job",
    "instance",
    "k8s.namespace.name",
    "k8s.pod.name",
    "host.name",
];
const POINT_COLUMNS: [&str; 13] = [
    "time",
    "time_ns",
    "type",
    "attributes",
    "job",
    "instance",
    "k8s.namespace.name",
    "k8s.pod.name",
    "host.name",
    "value",
    "value_int",
    "quantile",
    "service_name",
];
const HISTOGRAM_COLUMNS: [&str; 13] = [
    "time",
    "time_ns",
    "type",
    "attributes",
    "job",
    "instance",
    "k8s.namespace.name",
    "k8s.pod.name",
    "host.name",
    "count",
    "bounds",
    "bucket_counts",
    "temporality",
];
/// Temporality of a histogram whose points count what is new since the point before.
const DELTA: i32 = 1;
/// Types of points that do so.
const DELTAS: [i32; 2] = [3, 10];

/// The series of a metric, each with a cell for every step.
pub(super) struct SampledSeries<'q> {
    query: &'q PlotQuery,
    table: Table,
    bounds: &'q Bounds,
    pub(super) steps: Steps,
    /// By all their labels; of histograms, and of classic ones for quantiles, once for each bucket.
    pub(super) series: HashMap<SeriesKey, Series>,
    /// There are more series than are put together.
    is_crowded: bool,
    /// Points of histograms without explicit bounds.
    unbounded: u64,
}

/// The labels as they stand in a row, and a bucket's bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SeriesKey {
    labels: String,
    bound: Option<u64>,
}

/// A series of the metric.
pub(super) struct Series {
    /// Labels by which it is put together with others.
    pub(super) labels: BTreeMap<String, String>,
    /// The upper bound of its bucket.
    pub(super) bound: Option<f64>,
    pub(super) kind: PointKind,
    pub(super) cells: Vec<Cell>,
}

impl<'q> SampledSeries<'q> {
    fn new(query: &'q PlotQuery, table: Table, bounds: &'q Bounds) -> Self {
        SampledSeries {
            query,
            table,
            bounds,
            steps: Steps::new(query.from.0, query.step_ns(), query.steps.0),
            series: HashMap::new(),
            is_crowded: false,
            unbounded: 0,
        }
    }

    fn join(&mut self, other: SampledSeries<'q>) {
        self.is_crowded |= other.is_crowded;
        self.unbounded += other.unbounded;
        self.series.extend(other.series);
    }

    fn incomplete(&self, drawn: usize) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.is_crowded {
            sentences.push(format!(
                "the metric has more than {MOST_SERIES} series: only so many are put together; name labels"
            ));
        }
        if drawn > MOST_DRAWN {
            sentences.push(format!("{drawn} series were found and the {MOST_DRAWN} largest are drawn: put them together by labels"));
        }
        if self.unbounded > 0 {
            sentences.push(
                "exponential and native histograms have no quantiles here yet: DuckDB or Prometheus has"
                    .to_owned(),
            );
        }
        sentences
    }

    /// The series of a row.
    fn series_of(
        &mut self,
        rows: &RecordBatch,
        row: usize,
        bound: Option<f64>,
        is_delta: bool,
    ) -> Option<&mut Series> {
        let mut labels = text_of(rows, "attributes", row)?.to_owned();
        for name in Table::MetricPoints.promoted() {
            if let Some(value) = text_of(rows, name, row) {
                labels.push('\u{1}');
                labels.push_str(name);
                labels.push('\u{2}');
                labels.push_str(value);
            }
        }
        if labels.len() > LONGEST_LABELS {
            return None;
        }
        let key = SeriesKey { labels, bound: bound.map(f64::to_bits) };
        if !self.series.contains_key(&key) {
            // Of a histogram, each bucket is one.
            if self.series.len() >= MOST_SERIES {
                self.is_crowded = true;
                return None;
            }
            let series = self.new_series(rows, row, bound, is_delta);
            self.series.insert(key.clone(), series);
        }
        self.series.get_mut(&key)
    }

    fn new_series(&self, rows: &RecordBatch, row: usize, bound: Option<f64>, is_delta: bool) -> Series {
        let json = text_of(rows, "attributes", row).unwrap_or_default();
        let attributes: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let mut labels: BTreeMap<String, String> =
            attributes.into_iter().map(|(name, value)| (name, text(value))).collect();
        for name in Table::MetricPoints.promoted() {
            if let Some(value) = text_of(rows, name, row) {
                labels.insert((*name).to_owned(), value.to_owned());
            }
        }
        let is_quantile = self.query.function == Function::Quantile;
        let of_label = labels.get(BOUND).filter(|_| is_quantile).and_then(|bound| match bound.as_str() {
            "+Inf" => Some(f64::INFINITY),
            bound => bound.parse().ok(),
        });
        if is_quantile {
            labels.remove(BOUND);
        }
        if !self.query.by.is_empty() {
            labels.retain(|name, _| self.query.by.contains(name));
        }
        let kind = if is_delta { PointKind::Delta } else { PointKind::Cumulative };
        Series { labels, bound: bound.or(of_label), kind, cells: vec![Cell::NONE; self.steps.count() + 1] }
    }

    fn points(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let column = |name: &str| {
            let missing = || ArrowError::SchemaError(format!("the column `{name}` is missing"));
            rows.column_by_name(name).ok_or_else(missing)
        };
        let types = column("type")?.as_primitive::<Int32Type>();
        let (doubles, integers) = (
            column("value")?.as_primitive::<Float64Type>(),
            column("value_int")?.as_primitive::<Int64Type>(),
        );
        let quantiles = column("quantile")?;
        let function = self.query.function;
        for (row, time) in times_ns(rows, &KEYS)?.into_iter().enumerate() {
            // Those of a summary cannot be put together.
            if quantiles.is_valid(row) && function != Function::Last {
                continue;
            }
            let Some(value) = number(doubles, integers, row).filter(|value| !value.is_nan()) else {
                continue;
            };
            let Some(step) = self.steps.of(time) else { continue };
            let is_delta = DELTAS.contains(&types.value(row));
            if let Some(series) = self.series_of(rows, row, None, is_delta)
                && let Some(cell) = series.cells.get_mut(step)
            {
                cell.add(function, series.kind, time, value);
            }
        }
        Ok(())
    }

    fn histograms(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let column = |name: &str| {
            let missing = || ArrowError::SchemaError(format!("the column `{name}` is missing"));
            rows.column_by_name(name).ok_or_else(missing)
        };
        let temporalities = column("temporality")?.as_primitive::<Int32Type>();
        let totals = column("count")?.as_primitive::<Int64Type>();
        let (bounds, counts) =
            (column("bounds")?.as_list::<i32>(), column("bucket_counts")?.as_list::<i32>());
        let function = self.query.function;
        for (row, time) in times_ns(rows, &KEYS)?.into_iter().enumerate() {
            let Some(step) = self.steps.of(time) else { continue };
            let is_delta = temporalities.value(row) == DELTA;
            let add = |all: &mut Self, bound: Option<f64>, value: f64| {
                if let Some(series) = all.series_of(rows, row, bound, is_delta)
                    && let Some(cell) = series.cells.get_mut(step)
                {
                    cell.add(function, series.kind, time, value);
                }
            };
            if function != Function::Quantile {
                if totals.is_valid(row) {
                    add(self, None, as_double(totals.value(row)));
                }
                continue;
            }
            if bounds.is_null(row) || counts.is_null(row) {
                self.unbounded += 1;
                continue;
            }
            let (bounds, counts) = (bounds.value(row), counts.value(row));
            let (bounds, counts) = (bounds.as_primitive::<Float64Type>(), counts.as_primitive::<Int64Type>());
            let mut below = 0;
            for (place, count) in counts.values().iter().enumerate() {
                below += count;
                let bound = bounds.values().get(place).copied().unwrap_or(f64::INFINITY);
                add(self, Some(bound), as_double(below));
            }
        }
        Ok(())
    }

    /// Series with the same labels put together, the largest first.
    fn drawn(&self) -> Vec<DrawnSeries> {
        let function = self.query.function;
        let mut groups: BTreeMap<&BTreeMap<String, String>, Vec<&Series>> = BTreeMap::new();
        for series in self.series.values() {
            groups.entry(&series.labels).or_default().push(series);
        }
        let drawn = groups.into_iter().map(|(labels, series)| {
            let each: Vec<Vec<Option<f64>>> =
                series.iter().map(|series| self.steps.values(function, series.kind, &series.cells)).collect();
            let values = (0..self.steps.count()).map(|step| {
                let at_step = each.iter().filter_map(|values| values.get(step).copied().flatten());
                cells::together(function, at_step)
            });
            DrawnSeries { labels: labels.clone(), values: values.collect() }
        });
        largest_first(drawn.collect())
    }
}

/// Those without any value are left out.
pub(super) fn largest_first(mut drawn: Vec<DrawnSeries>) -> Vec<DrawnSeries> {
    let sum = |series: &DrawnSeries| series.values.iter().flatten().map(|value| value.abs()).sum::<f64>();
    drawn.retain(|series| series.values.iter().any(Option::is_some));
    drawn.sort_by(|a, b| sum(b).total_cmp(&sum(a)).then_with(|| a.labels.cmp(&b.labels)));
    drawn
}

fn number(doubles: &Float64Array, integers: &Int64Array, row: usize) -> Option<f64> {
    if doubles.is_valid(row) {
        Some(doubles.value(row))
    } else {
        integers.is_valid(row).then(|| as_double(integers.value(row)))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a plot has fewer digits")]
fn as_double(number: i64) -> f64 {
    number as f64
}

impl Visitor for SampledSeries<'_> {
    fn looked_at(&self) -> &[&'static str] {
        if self.table == Table::MetricPoints { &POINT_COLUMNS } else { &HISTOGRAM_COLUMNS }
    }

    fn taken(&self) -> &[&'static str] {
        &[]
    }

    fn look(&mut self, _: usize, rows: &RecordBatch) -> Result<(), ArrowError> {
        if self.table == Table::MetricPoints { self.points(rows) } else { self.histograms(rows) }
    }

    fn wanted(&mut self) -> Vec<usize> {
        Vec::new()
    }

    fn take(&mut self, _: &RecordBatch) -> Result<(), ArrowError> {
        Ok(())
    }

    fn is_over(&mut self) -> bool {
        self.bounds.is_over()
    }
}

impl Collector for SampledSeries<'_> {
    fn reset(&mut self) {
        self.series.clear();
        (self.is_crowded, self.unbounded) = (false, 0);
    }
}

impl Steps {
    /// When each step ends.
    fn ends(&self) -> Vec<String> {
        let text =
            |ns: i128| Timestamp::from_nanosecond(ns).map_or_else(|_| String::new(), |time| time.to_string());
        (1..=self.count()).map(|step| text(self.end_ns(step))).collect()
    }
}

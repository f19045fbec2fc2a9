//! Points of a metric over time, as a few series with a value for each step.

mod cells;
mod native;
mod quantile;

use crate::answer::{Answer, Totals};
use crate::attributes::{column, text_of};
use crate::newest::times_ns;
use crate::query::{Function, PlotQuery};
use crate::walk::{Collector, Walk};
use crate::{Bounds, SearchError, sql};
use arrow::array::{Array as _, AsArray as _, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use arrow::error::ArrowError;
use cells::{Cell, PointKind, Steps, as_double};
use jiff::Timestamp;
use native::{Counts, NativeColumns, Part};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use tidegate_lake::{Table, Visitor};

/// The most series of the metric that are put together, and the most that are drawn.
const MOST_SERIES: usize = 1000;
/// The most memory for them, in bytes.
const SERIES_BYTES: usize = 3 << 20;
const MOST_DRAWN: usize = 20;
/// The longest labels of a series, in bytes.
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

const POINT_COLUMNS: [&str; 14] = [
    "time",
    "time_ns",
    "type",
    "series_id",
    "service_name",
    "attributes",
    "job",
    "instance",
    "k8s.namespace.name",
    "k8s.pod.name",
    "host.name",
    "value",
    "value_int",
    "quantile",
];
const HISTOGRAM_COLUMNS: [&str; 17] = [
    "time",
    "time_ns",
    "type",
    "series_id",
    "service_name",
    "attributes",
    "job",
    "instance",
    "k8s.namespace.name",
    "k8s.pod.name",
    "host.name",
    "count",
    "count_float",
    "bounds",
    "bucket_counts",
    "bucket_counts_float",
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
    /// Memory of the series, in bytes.
    bytes: usize,
    /// Series are left out: there are too many, or their labels are too long.
    is_crowded: bool,
    /// Points of histograms without buckets.
    unbounded: u64,
    /// The columns that are read.
    columns: Vec<&'static str>,
}

/// The bucket of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bucket {
    /// All values up to this; or the quantile of a summary.
    UpTo(f64),
    /// The values between these.
    Between(f64, f64),
    /// The values of all buckets.
    All,
}

/// A series of the lake, and a bucket's bounds or a summary's quantile. The lake's number is made of all that a series is, its resource and
/// scope too; numbers can be made to collide, so the labels are compared as well.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SeriesKey {
    pub(super) id: i64,
    pub(super) labels: String,
    bucket: Option<[u64; 2]>,
}

/// A series of the metric.
pub(super) struct Series {
    /// Labels by which it is put together with others.
    pub(super) labels: BTreeMap<String, String>,
    pub(super) bucket: Option<Bucket>,
    pub(super) kind: PointKind,
    pub(super) cells: Vec<Cell>,
}

impl Bucket {
    fn bits(self) -> [u64; 2] {
        match self {
            Bucket::UpTo(bound) => [f64::NEG_INFINITY.to_bits(), bound.to_bits()],
            Bucket::Between(lower, upper) => [lower.to_bits(), upper.to_bits()],
            Bucket::All => [f64::NAN.to_bits(); 2],
        }
    }
}

impl<'q> SampledSeries<'q> {
    fn new(query: &'q PlotQuery, table: Table, bounds: &'q Bounds) -> Self {
        SampledSeries {
            query,
            table,
            bounds,
            steps: Steps::new(query.from.0, query.step_ns(), query.steps.0),
            series: HashMap::new(),
            bytes: 0,
            is_crowded: false,
            unbounded: 0,
            columns: match table {
                Table::MetricPoints => POINT_COLUMNS.to_vec(),
                _ if query.function == Function::Quantile => {
                    HISTOGRAM_COLUMNS.iter().chain(&native::COLUMNS).copied().collect()
                }
                _ => HISTOGRAM_COLUMNS.to_vec(),
            },
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
                "series are left out: at most {MOST_SERIES} are read, fewer if their labels are long; name labels to have fewer"
            ));
        }
        if drawn > MOST_DRAWN {
            sentences.push(format!("{drawn} series were found and the {MOST_DRAWN} largest are drawn: put them together by labels"));
        }
        if self.unbounded > 0 {
            sentences
                .push("points of histograms without buckets are left out: they have no quantiles".to_owned());
        }
        sentences
    }

    /// The series of a row.
    fn series_of(
        &mut self,
        rows: &RecordBatch,
        row: usize,
        bucket: Option<Bucket>,
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
        let id = rows.column_by_name("series_id")?.as_primitive::<Int64Type>().value(row);
        let key = SeriesKey { id, labels, bucket: bucket.map(Bucket::bits) };
        if !self.series.contains_key(&key) {
            // The labels are kept twice, the second time one by one.
            let bytes =
                size_of::<Series>() + 4 * key.labels.len() + (self.steps.count() + 1) * size_of::<Cell>();
            // Of a histogram, each bucket is one.
            let has_room = self.series.len() < MOST_SERIES && self.bytes + bytes <= SERIES_BYTES;
            if !has_room || key.labels.len() > LONGEST_LABELS {
                self.is_crowded = true;
                return None;
            }
            self.bytes += bytes;
            let series = self.new_series(rows, row, bucket, is_delta);
            self.series.insert(key.clone(), series);
        }
        self.series.get_mut(&key)
    }

    fn new_series(&self, rows: &RecordBatch, row: usize, bucket: Option<Bucket>, is_delta: bool) -> Series {
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
        // That of Prometheus is the label `job`.
        if let Some(service) = text_of(rows, "service_name", row).filter(|name| !name.is_empty())
            && !labels.contains_key("job")
        {
            labels.insert("service.name".to_owned(), service.to_owned());
        }
        if let (Some(Bucket::UpTo(quantile)), Table::MetricPoints) = (bucket, self.table) {
            labels.insert("quantile".to_owned(), quantile.to_string());
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
        let bucket = bucket.or(of_label.map(Bucket::UpTo));
        Series { labels, bucket, kind, cells: vec![Cell::NONE; self.steps.count() + 1] }
    }

    fn points(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let types = column(rows, "type")?.as_primitive::<Int32Type>();
        let (doubles, integers) = (
            column(rows, "value")?.as_primitive::<Float64Type>(),
            column(rows, "value_int")?.as_primitive::<Int64Type>(),
        );
        let quantiles = column(rows, "quantile")?.as_primitive::<Float64Type>();
        let function = self.query.function;
        for (row, time) in times_ns(rows, &POINT_COLUMNS)?.into_iter().enumerate() {
            // Those of a summary cannot be put together.
            if quantiles.is_valid(row) && function != Function::Last {
                continue;
            }
            let Some(value) = number(doubles, integers, row).filter(|value| !value.is_nan()) else {
                continue;
            };
            let Some(step) = self.steps.of(time) else { continue };
            let is_delta = DELTAS.contains(&types.value(row));
            let quantile = quantiles.is_valid(row).then(|| quantiles.value(row));
            if let Some(series) = self.series_of(rows, row, quantile.map(Bucket::UpTo), is_delta)
                && let Some(cell) = series.cells.get_mut(step)
            {
                cell.add(function, series.kind, time, value);
            }
        }
        Ok(())
    }

    fn histograms(&mut self, rows: &RecordBatch) -> Result<(), ArrowError> {
        let temporalities = column(rows, "temporality")?.as_primitive::<Int32Type>();
        let totals = Counts { whole: column(rows, "count")?, float: column(rows, "count_float")? };
        let bounds = column(rows, "bounds")?.as_list::<i32>();
        let counts =
            Counts { whole: column(rows, "bucket_counts")?, float: column(rows, "bucket_counts_float")? };
        let is_quantile = self.query.function == Function::Quantile;
        let native = is_quantile.then(|| NativeColumns::of(rows)).transpose()?;
        let function = self.query.function;
        for (row, time) in times_ns(rows, &POINT_COLUMNS)?.into_iter().enumerate() {
            let Some(step) = self.steps.of(time) else { continue };
            let is_delta = temporalities.value(row) == DELTA;
            let add = |all: &mut Self, bucket: Option<Bucket>, value: f64| {
                if let Some(series) = all.series_of(rows, row, bucket, is_delta)
                    && let Some(cell) = series.cells.get_mut(step)
                {
                    cell.add(function, series.kind, time, value);
                }
            };
            let Some(native) = &native else {
                if let Some(total) = totals.number(row) {
                    add(self, None, total);
                }
                continue;
            };
            if let Some(parts) = native.parts(row) {
                add(self, Some(Bucket::All), parts.iter().map(|part| part.count).sum());
                for Part { lower, upper, count } in parts {
                    add(self, Some(Bucket::Between(lower, upper)), count);
                }
                continue;
            }
            let counts = counts.list(row);
            if bounds.is_null(row) || counts.is_empty() {
                self.unbounded += 1;
                continue;
            }
            let bounds = bounds.value(row);
            let bounds = bounds.as_primitive::<Float64Type>().values();
            let mut below = 0.0;
            for (place, count) in counts.into_iter().enumerate() {
                below += count;
                let bound = bounds.get(place).copied().unwrap_or(f64::INFINITY);
                add(self, Some(Bucket::UpTo(bound)), below);
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

impl Visitor for SampledSeries<'_> {
    fn looked_at(&self) -> &[&'static str] {
        &self.columns
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
        (self.bytes, self.is_crowded, self.unbounded) = (0, false, 0);
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

//! Rows of `metric_histograms`.

use super::buckets::{Kept, Unfit, absolute, fill, look};
use super::keys::stale_flag;
use super::{Head, Keys, NO_START, NotTaken, Run, STRETCH};
use crate::shape::Shape;
use crate::table::{Column, HistogramColumn, Side};
use crate::time::micros_of_millis;
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;
use tidegate_wire::remote_write::{Count, Histogram, STALE_NAN, Span};

/// Numbers of one row among all numbers of their kind: start and length, or none.
type Numbers = Option<(u32, u32)>;

/// The buckets of one side.
#[derive(Debug, Clone, Copy, Default)]
struct Buckets {
    offset: Option<i32>,
    spans: Numbers,
    ints: Numbers,
    doubles: Numbers,
}

#[derive(Debug, Clone, Copy)]
struct HistogramRow {
    head: Head,
    count: Option<Count>,
    zero_count: Option<Count>,
    sum_bits: u64,
    zero_threshold_bits: u64,
    scale: Option<i32>,
    reset_hint: i32,
    bounds: Numbers,
    /// With custom bounds the buckets are here, otherwise on the two sides.
    custom: Buckets,
    positive: Buckets,
    negative: Buckets,
}

/// Native histograms on their way into one row group.
pub(crate) struct HistogramRun {
    pub(crate) keys: Keys,
    rows: Vec<HistogramRow>,
    order: Vec<u32>,
    ints: Vec<i64>,
    doubles: Vec<f64>,
}

/// The schema number that stands for custom bounds.
const CUSTOM: i32 = -53;
/// Values of the column `temporality`, as OTLP numbers them; a gauge has none.
const CUMULATIVE: i32 = 2;
/// The reset hint of a gauge.
const GAUGE: i32 = 3;

impl HistogramRun {
    pub(crate) fn new(shape: &Shape) -> Self {
        HistogramRun {
            keys: Keys::new(shape.histogram_keys),
            rows: Vec::with_capacity(shape.histogram_rows),
            order: Vec::with_capacity(shape.histogram_rows),
            ints: Vec::with_capacity(shape.histogram_numbers),
            doubles: Vec::with_capacity(shape.histogram_numbers),
        }
    }

    /// Adds a histogram of a series.
    pub(crate) fn add(&mut self, series: u32, histogram: &Histogram<'_>) -> Result<(), NotTaken> {
        if self.rows.len() == self.rows.capacity() {
            return Err(NotTaken::Full);
        }
        let time_us = micros_of_millis(histogram.timestamp).ok_or(NotTaken::Malformed)?;
        let start_us = match histogram.start_timestamp {
            0 => NO_START,
            start => micros_of_millis(start).ok_or(NotTaken::Malformed)?,
        };
        let flags = stale_flag(histogram.sum_bits == STALE_NAN);
        let mut row = HistogramRow {
            head: Head { time_us, start_us, series, time_ns: 0, flags },
            count: histogram.count,
            zero_count: histogram.zero_count,
            sum_bits: histogram.sum_bits,
            zero_threshold_bits: histogram.zero_threshold_bits,
            scale: (histogram.schema != CUSTOM).then_some(histogram.schema),
            reset_hint: i32::try_from(histogram.reset_hint).unwrap_or(0),
            bounds: None,
            custom: Buckets::default(),
            positive: Buckets::default(),
            negative: Buckets::default(),
        };
        let (ints, doubles) = (self.ints.len(), self.doubles.len());
        let taken = self.add_buckets(histogram, &mut row);
        match taken {
            Ok(()) => self.rows.push(row),
            Err(_) => {
                self.ints.truncate(ints);
                self.doubles.truncate(doubles);
            }
        }
        taken
    }

    fn add_buckets(&mut self, histogram: &Histogram<'_>, row: &mut HistogramRow) -> Result<(), NotTaken> {
        let positive = self.add_side(
            || histogram.positive_spans(),
            || histogram.positive_deltas(),
            || histogram.positive_counts(),
        )?;
        row.negative = self.add_side(
            || histogram.negative_spans(),
            || histogram.negative_deltas(),
            || histogram.negative_counts(),
        )?;
        if row.scale.is_some() {
            row.positive = positive;
            return Ok(());
        }
        row.custom = positive;
        let most = most_of(&self.doubles);
        let bounds = histogram.custom_values().take(most + 1).count();
        room(&self.doubles, bounds)?;
        row.bounds = numbers(self.doubles.len(), bounds);
        self.doubles.extend(histogram.custom_values().map(f64::from_bits));
        Ok(())
    }

    /// Adds the buckets of one side, in whichever of the two forms they were sent.
    fn add_side<S: Iterator<Item = Span>, D: Iterator<Item = i64>, F: Iterator<Item = u64>>(
        &mut self,
        spans: impl Fn() -> S,
        deltas: impl Fn() -> D,
        floats: impl Fn() -> F,
    ) -> Result<Buckets, NotTaken> {
        let most = most_of(&self.ints);
        let (integers, doubles) = (deltas().take(most + 1).count(), floats().take(most + 1).count());
        if integers > 0 && doubles > 0 {
            return Err(NotTaken::Malformed);
        }
        let kept = look(spans(), integers.max(doubles), most).map_err(|unfit| match unfit {
            Unfit::TooMany => NotTaken::TooLarge,
            Unfit::Malformed => NotTaken::Malformed,
        })?;
        let mut buckets = Buckets { offset: kept.offset, ..Buckets::default() };
        if kept.spans > 0 {
            room(&self.ints, kept.spans)?;
            buckets.spans = numbers(self.ints.len(), kept.spans);
            self.ints.extend(spans().flat_map(|span| [i64::from(span.offset), i64::from(span.length)]));
        }
        if doubles > 0 {
            room(&self.doubles, kept.counts)?;
            buckets.doubles = numbers(self.doubles.len(), kept.counts);
            let values = floats().map(f64::from_bits);
            append(&kept, spans(), values, &mut self.doubles);
        } else if integers > 0 {
            room(&self.ints, kept.counts)?;
            buckets.ints = numbers(self.ints.len(), kept.counts);
            append(&kept, spans(), absolute(deltas()), &mut self.ints);
        } else {
            buckets.offset = None;
        }
        Ok(buckets)
    }

    fn sorted(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = &HistogramRow> {
        let order = self.order.get(rows).unwrap_or(&[]);
        order.iter().map(|&at| self.rows.get(at as usize).unwrap_or(&NO_ROW))
    }

    fn numbers_column(&self, column: HistogramColumn, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        use HistogramColumn::{Bounds, BucketCounts, BucketCountsFloat, Counts, CountsFloat, Spans};
        let ints = |of: &dyn Fn(&HistogramRow) -> Numbers| {
            let (offsets, nulls, all) = gather(self.sorted(rows.clone()).map(of), &self.ints);
            list(column, offsets, nulls, Arc::new(Int64Array::from(all)))
        };
        let doubles = |of: &dyn Fn(&HistogramRow) -> Numbers| {
            let (offsets, nulls, all) = gather(self.sorted(rows.clone()).map(of), &self.doubles);
            list(column, offsets, nulls, Arc::new(Float64Array::from(all)))
        };
        match column {
            BucketCounts => ints(&|row| row.custom.ints),
            Spans(side) => ints(&|row| row.side(side).spans),
            Counts(side) => ints(&|row| row.side(side).ints),
            BucketCountsFloat => doubles(&|row| row.custom.doubles),
            CountsFloat(side) => doubles(&|row| row.side(side).doubles),
            Bounds => doubles(&|row| row.bounds),
            _ => Err(ArrowError::SchemaError("this column has one number a row".to_owned())),
        }
    }

    fn own_column(&self, column: HistogramColumn, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        use HistogramColumn as C;
        let sorted = self.sorted(rows.clone());
        Ok(match column {
            C::Count => Arc::new(Int64Array::from_iter(sorted.map(|row| integer(row.count)))),
            C::CountFloat => Arc::new(Float64Array::from_iter(sorted.map(|row| float(row.count)))),
            C::ZeroCount => Arc::new(Int64Array::from_iter(sorted.map(|row| integer(row.zero_count)))),
            C::ZeroCountFloat => Arc::new(Float64Array::from_iter(sorted.map(|row| float(row.zero_count)))),
            C::Sum => {
                Arc::new(Float64Array::from_iter_values(sorted.map(|row| f64::from_bits(row.sum_bits))))
            }
            // Prometheus sends neither.
            C::Min | C::Max => Arc::new(Float64Array::new_null(rows.len())),
            C::Scale => Arc::new(Int32Array::from_iter(sorted.map(|row| row.scale))),
            C::ZeroThreshold => Arc::new(Float64Array::from_iter_values(
                sorted.map(|row| f64::from_bits(row.zero_threshold_bits)),
            )),
            C::Offset(side) => Arc::new(Int32Array::from_iter(sorted.map(|row| row.side(side).offset))),
            C::Temporality => Arc::new(Int32Array::from_iter_values(
                sorted.map(|row| if row.reset_hint == GAUGE { 0 } else { CUMULATIVE }),
            )),
            C::ResetHint => Arc::new(Int32Array::from_iter_values(sorted.map(|row| row.reset_hint))),
            lists => self.numbers_column(lists, rows)?,
        })
    }
}

impl HistogramRow {
    fn side(&self, side: Side) -> &Buckets {
        match side {
            Side::Positive => &self.positive,
            Side::Negative => &self.negative,
        }
    }

    fn numbers(&self) -> usize {
        let sides = [self.custom, self.positive, self.negative];
        let all = sides.into_iter().flat_map(|side| [side.spans, side.ints, side.doubles]);
        all.chain([self.bounds]).flatten().map(|(_, len)| len as usize).sum()
    }
}

const NO_ROW: HistogramRow = HistogramRow {
    head: Head { time_us: 0, start_us: NO_START, series: u32::MAX, time_ns: 0, flags: 0 },
    count: None,
    zero_count: None,
    sum_bits: 0,
    zero_threshold_bits: 0,
    scale: None,
    reset_hint: 0,
    bounds: None,
    custom: NO_BUCKETS,
    positive: NO_BUCKETS,
    negative: NO_BUCKETS,
};
const NO_BUCKETS: Buckets = Buckets { offset: None, spans: None, ints: None, doubles: None };

impl Run for HistogramRun {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn times(&self) -> Option<(i64, i64)> {
        let times = || self.rows.iter().map(|row| row.head.time_us);
        times().min().zip(times().max())
    }

    fn sort(&mut self) {
        self.keys.sort();
        let HistogramRun { keys, rows, order, .. } = self;
        order.clear();
        order.extend(0..u32::try_from(rows.len()).unwrap_or(u32::MAX));
        order.sort_unstable_by_key(|&at| (keys.order_of(&rows.get(at as usize).unwrap_or(&NO_ROW).head), at));
    }

    fn stretches(&self) -> Vec<Range<usize>> {
        let mut stretches = Vec::new();
        let (mut start, mut held) = (0, 0);
        for (at, row) in self.sorted(0..self.rows.len()).enumerate() {
            if at > start && (at - start == STRETCH || held + row.numbers() > STRETCH_NUMBERS) {
                stretches.push(start..at);
                (start, held) = (at, 0);
            }
            held += row.numbers();
        }
        stretches.push(start..self.rows.len());
        stretches
    }

    fn column(&self, column: Column, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        match column {
            Column::Histogram(column) => self.own_column(column, rows),
            key => self.keys.column(key, self.sorted(rows).map(|row| &row.head)),
        }
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.rows.clear();
        self.order.clear();
        self.ints.clear();
        self.doubles.clear();
    }
}

/// Numbers of the rows of one stretch, unless one row alone has more.
const STRETCH_NUMBERS: usize = 16 << 10;
/// Counts, spans or bounds of one histogram.
const MOST: usize = 8192;

fn most_of<T>(numbers: &Vec<T>) -> usize {
    numbers.capacity().min(MOST)
}

fn room<T>(numbers: &Vec<T>, more: usize) -> Result<(), NotTaken> {
    if more > most_of(numbers).saturating_mul(2) {
        return Err(NotTaken::TooLarge);
    }
    if numbers.len() + more > numbers.capacity() { Err(NotTaken::Full) } else { Ok(()) }
}

fn numbers(start: usize, len: usize) -> Numbers {
    Some((u32::try_from(start).ok()?, u32::try_from(len).ok()?))
}

fn append<T: Copy + Default>(
    kept: &Kept,
    spans: impl Iterator<Item = Span>,
    values: impl Iterator<Item = T>,
    out: &mut Vec<T>,
) {
    if kept.offset.is_some() { fill(spans, values, out) } else { out.extend(values) }
}

/// The counts of integer histograms have 63 bits here: what is beyond is the greatest.
fn integer(count: Option<Count>) -> Option<i64> {
    match count {
        Some(Count::Int(count)) => Some(i64::try_from(count).unwrap_or(i64::MAX)),
        _ => None,
    }
}

fn float(count: Option<Count>) -> Option<f64> {
    match count {
        Some(Count::Float(bits)) => Some(f64::from_bits(bits)),
        _ => None,
    }
}

fn gather<T: Copy>(
    rows: impl ExactSizeIterator<Item = Numbers>,
    all: &[T],
) -> (OffsetBuffer<i32>, NullBuffer, Vec<T>) {
    let rows: Vec<Numbers> = rows.collect();
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(|row| row.map_or(0, |(_, len)| len as usize)));
    let nulls = NullBuffer::from_iter(rows.iter().map(Option::is_some));
    let of_row = |(start, len): (u32, u32)| {
        let start = start as usize;
        all.get(start..start + len as usize).unwrap_or(&[])
    };
    (offsets, nulls, rows.into_iter().flatten().flat_map(of_row).copied().collect())
}

fn list(
    column: HistogramColumn,
    offsets: OffsetBuffer<i32>,
    nulls: NullBuffer,
    values: ArrayRef,
) -> Result<ArrayRef, ArrowError> {
    let DataType::List(element) = Column::Histogram(column).field().data_type().clone() else {
        return Err(ArrowError::SchemaError("this column is a list".to_owned()));
    };
    Ok(Arc::new(ListArray::try_new(element, offsets, values, Some(nulls))?))
}

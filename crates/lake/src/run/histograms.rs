//! Rows of `metric_histograms`.

mod columns;
mod row;

pub(crate) use row::OtlpHistogram;

use super::buckets::{BucketError, BucketLayout, DENSE, absolute, fill, look};
use super::exemplars::Exemplars;
use super::keys::stale_flag;
use super::{ExemplarRow, Keys, RowBuffer, RowKey, RowRejection, STRETCH};
use crate::buffer_sizes::BufferSizes;
use crate::pool::{Chunks, ListArena, ListRef, Pool};
use crate::table::Column;
use crate::time::micros_of_millis;
use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use row::{Buckets, HistogramRow, NO_BUCKETS, NO_ROW};
use std::ops::Range;
use tidegate_wire::remote_write::{Count, Histogram, STALE_NAN, Span};

/// Native histograms on their way into one row group.
pub(crate) struct HistogramBuffer {
    pub(crate) keys: Keys,
    rows: Chunks<HistogramRow>,
    order: Vec<u32>,
    ints: ListArena<i64>,
    doubles: ListArena<f64>,
    exemplars: Exemplars,
}

/// The schema number that stands for custom bounds.
const CUSTOM: i32 = -53;
/// Values of the column `temporality`, as OTLP numbers them; a gauge has none.
const CUMULATIVE: i32 = 2;
/// The reset hint of a gauge.
const GAUGE: i32 = 3;

impl HistogramBuffer {
    pub(crate) fn new(shape: &BufferSizes, pool: &Pool) -> Self {
        HistogramBuffer {
            keys: Keys::new(pool, shape.histogram_series),
            rows: Chunks::new(pool, size_of::<u32>()),
            order: Vec::new(),
            ints: ListArena::new(pool),
            doubles: ListArena::new(pool),
            exemplars: Exemplars::new(pool),
        }
    }

    /// Adds a histogram of a series.
    pub(crate) fn add(&mut self, series: u32, histogram: &Histogram<'_>) -> Result<(), RowRejection> {
        let time_us = micros_of_millis(histogram.timestamp).ok_or(RowRejection::Malformed)?;
        let start = match histogram.start_timestamp {
            0 => None,
            start => Some((micros_of_millis(start).ok_or(RowRejection::Malformed)?, 0)),
        };
        let flags = stale_flag(histogram.sum_bits == STALE_NAN);
        let reset_hint = i32::try_from(histogram.reset_hint).unwrap_or(0);
        let row = HistogramRow {
            head: RowKey::new((time_us, 0), start, series, flags),
            count: histogram.count,
            zero_count: histogram.zero_count,
            sum: Some(histogram.sum_bits),
            zero_threshold: Some(histogram.zero_threshold_bits),
            scale: (histogram.schema != CUSTOM).then_some(histogram.schema),
            reset_hint: Some(reset_hint),
            temporality: if reset_hint == GAUGE { 0 } else { CUMULATIVE },
            ..NO_ROW
        };
        self.add_row(row, |run, row| run.add_buckets(histogram, row)).map(drop)
    }

    /// Adds a histogram with bounds given, and returns its row.
    pub(crate) fn add_explicit(
        &mut self,
        histogram: &OtlpHistogram<&tidegate_wire::otlp::HistogramPoint<'_>>,
    ) -> Result<u32, RowRejection> {
        self.add_row(HistogramRow::of(histogram), |run, row| {
            let point = histogram.buckets;
            let bounds = point.explicit_bounds().take(MOST + 1).count();
            row.bounds = run.add_doubles(bounds, point.explicit_bounds().map(f64::from_bits))?;
            let counts = point.bucket_counts().take(MOST + 1).count();
            row.custom.ints = run.add_ints(counts, point.bucket_counts().map(saturated))?;
            Ok(())
        })
    }

    /// Adds a histogram with exponential bounds, and returns its row.
    pub(crate) fn add_exponential(
        &mut self,
        histogram: &OtlpHistogram<&tidegate_wire::otlp::ExponentialPoint<'_>>,
    ) -> Result<u32, RowRejection> {
        let point = histogram.buckets;
        let row = HistogramRow {
            scale: Some(point.scale),
            zero_count: Some(Count::Int(point.zero_count)),
            zero_threshold: Some(point.zero_threshold),
            ..HistogramRow::of(histogram)
        };
        self.add_row(row, |run, row| {
            for (from, to) in [(point.positive, &mut row.positive), (point.negative, &mut row.negative)] {
                to.offset = Some(from.offset);
                let counts = from.counts().take(MOST + 1).count();
                to.ints = run.add_ints(counts, from.counts().map(saturated))?;
            }
            Ok(())
        })
    }

    /// Adds an exemplar to a row.
    pub(crate) fn add_exemplar_to(&mut self, row: u32, exemplar: ExemplarRow) -> Result<(), RowRejection> {
        self.exemplars.push(ExemplarRow { row, ..exemplar })
    }

    /// Exemplars so far.
    pub(crate) fn exemplars(&self) -> usize {
        self.exemplars.len()
    }

    /// Takes the last row back, and what was added after there were so many exemplars.
    pub(crate) fn take_back(&mut self, row: u32, exemplars: usize) {
        self.rows.truncate(row as usize);
        self.exemplars.truncate(exemplars);
    }

    fn add_row(
        &mut self,
        mut row: HistogramRow,
        add_buckets: impl FnOnce(&mut Self, &mut HistogramRow) -> Result<(), RowRejection>,
    ) -> Result<u32, RowRejection> {
        let place = u32::try_from(self.rows.len()).map_err(|_| RowRejection::Full)?;
        let (ints, doubles) = (self.ints.mark(), self.doubles.mark());
        let added = add_buckets(self, &mut row).and_then(|()| self.rows.push(row));
        if added.is_err() {
            self.ints.truncate(ints);
            self.doubles.truncate(doubles);
        }
        added.map(|()| place)
    }

    fn add_ints(&mut self, count: usize, values: impl Iterator<Item = i64>) -> Result<ListRef, RowRejection> {
        if count > MOST {
            return Err(RowRejection::TooMany);
        }
        self.ints.write(count, |out| out.extend(values.take(count)))
    }

    fn add_doubles(
        &mut self,
        count: usize,
        values: impl Iterator<Item = f64>,
    ) -> Result<ListRef, RowRejection> {
        if count > MOST {
            return Err(RowRejection::TooMany);
        }
        self.doubles.write(count, |out| out.extend(values.take(count)))
    }

    fn add_buckets(&mut self, histogram: &Histogram<'_>, row: &mut HistogramRow) -> Result<(), RowRejection> {
        // With custom bounds there is no column for where the buckets begin: the first is that of the first bound.
        let is_custom = row.scale.is_none();
        let positive = self.add_side(
            is_custom,
            || histogram.positive_spans(),
            || histogram.positive_deltas(),
            || histogram.positive_counts(),
        )?;
        row.negative = self.add_side(
            false,
            || histogram.negative_spans(),
            || histogram.negative_deltas(),
            || histogram.negative_counts(),
        )?;
        if row.scale.is_some() {
            row.positive = positive;
            return Ok(());
        }
        row.custom = positive;
        let bounds = histogram.custom_values().take(MOST + 1).count();
        row.bounds = self.add_doubles(bounds, histogram.custom_values().map(f64::from_bits))?;
        Ok(())
    }

    /// Adds the buckets of one side, in whichever of the two forms they were sent; `from_zero` with those before the
    /// first, down to index 0.
    fn add_side<S: Iterator<Item = Span>, D: Iterator<Item = i64>, F: Iterator<Item = u64>>(
        &mut self,
        from_zero: bool,
        spans: impl Fn() -> S,
        deltas: impl Fn() -> D,
        floats: impl Fn() -> F,
    ) -> Result<Buckets, RowRejection> {
        let (integers, doubles) = (deltas().take(MOST + 1).count(), floats().take(MOST + 1).count());
        if integers > 0 && doubles > 0 {
            return Err(RowRejection::Malformed);
        }
        let dense = if from_zero { MOST + 1 } else { DENSE };
        let kept = look(spans(), integers.max(doubles), MOST, dense).map_err(|unfit| match unfit {
            BucketError::TooMany => RowRejection::TooMany,
            BucketError::Malformed => RowRejection::Malformed,
        })?;
        let mut buckets = Buckets { offset: kept.offset, ..NO_BUCKETS };
        let mut before = 0;
        if from_zero && integers.max(doubles) > 0 {
            let first = kept.offset.and_then(|offset| usize::try_from(i64::from(offset) + 1).ok());
            before = first.filter(|first| first + kept.counts <= dense).ok_or(RowRejection::Malformed)?;
        }
        if kept.spans > 0 {
            let numbers = spans().flat_map(|span| [i64::from(span.offset), i64::from(span.length)]);
            buckets.spans = self.ints.write(kept.spans, |out| out.extend(numbers))?;
        }
        if doubles > 0 {
            let values = floats().map(f64::from_bits);
            buckets.doubles = self.doubles.write(before + kept.counts, |out| {
                out.resize(out.len() + before, 0.0);
                append(&kept, spans(), values, out);
            })?;
        } else if integers > 0 {
            let values = absolute(deltas());
            buckets.ints = self.ints.write(before + kept.counts, |out| {
                out.resize(out.len() + before, 0);
                append(&kept, spans(), values, out);
            })?;
        } else {
            buckets.offset = None;
        }
        Ok(buckets)
    }

    fn places(&self, rows: Range<usize>) -> &[u32] {
        self.order.get(rows).unwrap_or(&[])
    }

    fn sorted(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = &HistogramRow> {
        self.places(rows).iter().map(|&at| self.rows.get(at as usize).unwrap_or(&NO_ROW))
    }
}

impl RowBuffer for HistogramBuffer {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn held(&self) -> usize {
        let numbers = self.ints.held() + self.doubles.held();
        self.keys.held() + self.rows.held() + numbers + self.exemplars.held()
    }

    fn times(&self) -> Option<(i64, i64)> {
        let times = || self.rows.iter().map(|row| row.head.time_us);
        times().min().zip(times().max())
    }

    fn sort(&mut self) {
        self.keys.sort();
        let HistogramBuffer { keys, rows, order, exemplars, .. } = self;
        let head = |at: u32| rows.get(at as usize).map_or(&NO_ROW.head, |row| &row.head);
        *order = keys.order(rows.iter().map(|row| &row.head), head);
        exemplars.sort();
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
            Column::Exemplars => self.exemplars.column(&self.keys.texts, self.places(rows).iter().copied()),
            key => self.keys.column(key, self.sorted(rows).map(|row| &row.head)),
        }
    }

    fn recycle(&self, column: ArrayRef) {
        self.keys.texts.recycle(column);
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.rows.clear();
        self.order = Vec::new();
        self.ints.clear();
        self.doubles.clear();
        self.exemplars.clear();
    }
}

/// Numbers of the rows of one stretch, unless one row alone has more.
const STRETCH_NUMBERS: usize = 16 << 10;
/// Counts, spans or bounds of one histogram.
const MOST: usize = 8192;

fn append<T: Copy + Default>(
    kept: &BucketLayout,
    spans: impl Iterator<Item = Span>,
    values: impl Iterator<Item = T>,
    out: &mut Vec<T>,
) {
    if kept.offset.is_some() { fill(spans, values, out) } else { out.extend(values.take(kept.counts)) }
}

/// Counts have 63 bits here: what is beyond is the greatest.
fn saturated(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

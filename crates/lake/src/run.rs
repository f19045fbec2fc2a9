//! Rows on their way into one row group: gathered, sorted where that makes them smaller, shown as columns.

mod buckets;
mod columns;
mod exemplars;
mod histograms;
mod keys;
mod logs;
mod origins;
mod points;
mod spans;
pub(crate) mod texts;

pub(crate) use exemplars::ExemplarRow;
pub(crate) use histograms::{HistogramBuffer, OtlpHistogram};
pub(crate) use keys::{Keys, LabelIterator, MetricKey, stale_flag};
pub(crate) use logs::LogBuffer;
pub(crate) use origins::{Origins, write_attributes};
pub(crate) use points::{PointBuffer, PointValue};
pub(crate) use spans::{SpanBuffer, id};

use crate::table::Column;
use arrow::array::ArrayRef;
use std::ops::Range;

/// Why something was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowRejection {
    /// The run is full: write it out and try again.
    Full,
    /// It does not fit in an empty run either.
    TooLarge,
    /// It has more buckets, events or links than a row of the tables takes, whatever the slice.
    TooMany,
    /// It is not UTF-8, or its parts do not belong together.
    Malformed,
}

/// The key of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowKey {
    pub(crate) time_us: i64,
    /// `i64::MIN` when not known.
    pub(crate) start_us: i64,
    pub(crate) series: u32,
    /// Flags, and the nanoseconds of both times beyond the microseconds: 8, 10 and 10 bits.
    rest: u32,
}

impl RowKey {
    pub(crate) fn new(
        (time_us, time_ns): (i64, u16),
        start: Option<(i64, u16)>,
        series: u32,
        flags: u8,
    ) -> RowKey {
        let (start_us, start_ns) = start.unwrap_or((NO_START, 0));
        let rest = u32::from(flags) | u32::from(time_ns) << 8 | u32::from(start_ns) << 18;
        RowKey { time_us, start_us, series, rest }
    }

    /// Of no row.
    const NONE: RowKey = RowKey { time_us: 0, start_us: NO_START, series: u32::MAX, rest: 0 };

    pub(crate) fn set(&mut self, flag: u8) {
        self.rest |= u32::from(flag);
    }

    pub(crate) fn flags(&self) -> u8 {
        self.rest.to_le_bytes()[0]
    }

    pub(crate) fn time_ns(&self) -> i32 {
        ((self.rest >> 8) & 1023).cast_signed()
    }

    pub(crate) fn start_us(&self) -> Option<i64> {
        (self.start_us != NO_START).then_some(self.start_us)
    }

    pub(crate) fn start_ns(&self) -> Option<i32> {
        (self.start_us != NO_START).then_some(((self.rest >> 18) & 1023).cast_signed())
    }
}

/// Stands for "not known" in [`RowKey::start_us`].
const NO_START: i64 = i64::MIN;

/// Rows that can be sorted and then shown column by column.
pub(crate) trait RowBuffer {
    /// How many rows there are.
    fn len(&self) -> usize;

    /// Bytes of the pool that it holds, about.
    fn held(&self) -> usize;

    /// Least and greatest time, in microseconds.
    fn times(&self) -> Option<(i64, i64)>;

    /// Puts the rows in the order of the file; only `clear` may follow, after any number of `column`.
    fn sort(&mut self);

    /// Stretches of rows whose columns are short enough to be built at once.
    fn stretches(&self) -> Vec<Range<usize>>;

    /// One column of a stretch of the rows.
    fn column(&self, column: Column, rows: Range<usize>) -> Result<ArrayRef, arrow::error::ArrowError>;

    /// Takes a column that is encoded: the next one uses its memory again.
    fn recycle(&self, column: ArrayRef);

    /// Forgets all rows.
    fn clear(&mut self);
}

/// Rows of one stretch: few enough that a column of it is small, enough to make calls rare.
pub(crate) const STRETCH: usize = 2048;

/// Stretches of so many rows.
pub(crate) fn stretches_of(rows: usize) -> Vec<Range<usize>> {
    (0..rows).step_by(STRETCH).map(|start| start..rows.min(start + STRETCH)).collect()
}

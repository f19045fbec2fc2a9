//! Rows on their way into one row group: gathered, sorted by metric, series and time, shown as columns.

mod buckets;
mod histograms;
mod keys;
mod points;

pub(crate) use histograms::HistogramRun;
pub(crate) use keys::{Exact, Keys, stale_flag};
pub(crate) use points::{ExemplarRow, PointRun};

use crate::table::Column;
use arrow::array::ArrayRef;
use std::ops::Range;

/// Why something was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// The run is full: write it out and try again.
    Full,
    /// It does not fit in an empty run either.
    TooLarge,
    /// It is not UTF-8, or its parts do not belong together.
    Malformed,
}

/// The key of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) time_us: i64,
    /// `i64::MIN` when not known.
    pub(crate) start_us: i64,
    pub(crate) series: u32,
    pub(crate) time_ns: u16,
    pub(crate) flags: u8,
}

/// Stands for "not known" in [`Head::start_us`].
pub(crate) const NO_START: i64 = i64::MIN;

/// Rows that can be sorted and then shown column by column.
pub(crate) trait Run {
    /// How many rows there are.
    fn len(&self) -> usize;

    /// Least and greatest time, in microseconds.
    fn times(&self) -> Option<(i64, i64)>;

    /// Puts the rows in their order; only `clear` may follow, after any number of `column`.
    fn sort(&mut self);

    /// Stretches of sorted rows whose columns are short enough to be built at once.
    fn stretches(&self) -> Vec<Range<usize>>;

    /// One column of a stretch of the sorted rows.
    fn column(&self, column: Column, rows: Range<usize>) -> Result<ArrayRef, arrow::error::ArrowError>;

    /// Forgets all rows and keeps the memory.
    fn clear(&mut self);
}

/// Rows of one stretch: few enough that a column of it is small, enough to make calls rare.
pub(crate) const STRETCH: usize = 2048;

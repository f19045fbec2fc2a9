//! Rows of `metric_points`.

use super::exemplars::Exemplars;
use super::{ExemplarRow, Keys, RowBuffer, RowKey, RowRejection, stretches_of};
use crate::buffer_sizes::BufferSizes;
use crate::pool::{Chunks, Pool};
use crate::table::{Column, flag};
use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;

/// The value of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointValue {
    /// The bits of a double.
    Double(u64),
    Int(i64),
    None,
}

#[derive(Debug, Clone, Copy)]
struct PointRow {
    head: RowKey,
    /// The value's bits.
    bits: u64,
}

/// Metric points on their way into one row group.
pub(crate) struct PointBuffer {
    pub(crate) keys: Keys,
    rows: Chunks<PointRow>,
    order: Vec<u32>,
    exemplars: Exemplars,
}

impl PointBuffer {
    pub(crate) fn new(shape: &BufferSizes, pool: &Pool) -> Self {
        PointBuffer {
            keys: Keys::new(pool, shape.point_series),
            rows: Chunks::new(pool, size_of::<u32>()),
            order: Vec::new(),
            exemplars: Exemplars::new(pool),
        }
    }

    /// Adds a point, and returns its row.
    pub(crate) fn add(&mut self, mut head: RowKey, value: PointValue) -> Result<u32, RowRejection> {
        let row = u32::try_from(self.rows.len()).map_err(|_| RowRejection::Full)?;
        let bits = match value {
            PointValue::Double(bits) => bits,
            PointValue::Int(value) => {
                head.set(flag::INT);
                value.cast_unsigned()
            }
            PointValue::None => {
                head.set(flag::NO_VALUE);
                0
            }
        };
        self.rows.push(PointRow { head, bits })?;
        if let Some(series) = self.keys.series_mut(head.series) {
            series.last_row = row;
        }
        Ok(row)
    }

    /// Adds an exemplar to the last point of its series, or to a row of its own when there is none. Returns
    /// how many rows that took.
    pub(crate) fn add_exemplar(&mut self, series: u32, exemplar: ExemplarRow) -> Result<u64, RowRejection> {
        let last = self.keys.series_mut(series).map_or(u32::MAX, |series| series.last_row);
        let (row, added) = if last == u32::MAX {
            let time = (exemplar.time_us, 0);
            (self.add(RowKey::new(time, None, series, flag::EXEMPLARS_ONLY), PointValue::None)?, 1)
        } else {
            (last, 0)
        };
        let before = self.exemplars.len();
        let pushed = self.exemplars.push(ExemplarRow { row, ..exemplar });
        if pushed.is_err() && added > 0 {
            self.take_back(row, before);
            if let Some(series) = self.keys.series_mut(series) {
                series.last_row = u32::MAX;
            }
        }
        pushed.map(|()| added)
    }

    /// Adds an exemplar to a row.
    pub(crate) fn add_exemplar_to(&mut self, row: u32, exemplar: ExemplarRow) -> Result<(), RowRejection> {
        self.exemplars.push(ExemplarRow { row, ..exemplar })
    }

    /// Takes the last row back, and what was added after there were so many exemplars.
    pub(crate) fn take_back(&mut self, row: u32, exemplars: usize) {
        self.rows.truncate(row as usize);
        self.exemplars.truncate(exemplars);
    }

    /// Exemplars so far.
    pub(crate) fn exemplars(&self) -> usize {
        self.exemplars.len()
    }

    fn sorted(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = &PointRow> {
        self.places(rows).iter().map(|&at| self.rows.get(at as usize).unwrap_or(&NO_ROW))
    }

    fn places(&self, rows: Range<usize>) -> &[u32] {
        self.order.get(rows).unwrap_or(&[])
    }
}

const NO_ROW: PointRow = PointRow { head: RowKey::NONE, bits: 0 };

impl RowBuffer for PointBuffer {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn held(&self) -> usize {
        self.keys.held() + self.rows.held() + self.exemplars.held()
    }

    fn times(&self) -> Option<(i64, i64)> {
        let times = || self.rows.iter().map(|row| row.head.time_us);
        times().min().zip(times().max())
    }

    fn sort(&mut self) {
        self.keys.sort();
        let PointBuffer { keys, rows, order, exemplars } = self;
        let head = |at: u32| rows.get(at as usize).map_or(&NO_ROW.head, |row| &row.head);
        *order = keys.order(rows.iter().map(|row| &row.head), head);
        exemplars.sort();
    }

    fn stretches(&self) -> Vec<Range<usize>> {
        stretches_of(self.rows.len())
    }

    fn column(&self, column: Column, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        const NOT_DOUBLE: u8 = flag::EXEMPLARS_ONLY | flag::INT | flag::NO_VALUE;
        Ok(match column {
            Column::Value => Arc::new(Float64Array::from_iter(
                self.sorted(rows)
                    .map(|row| (row.head.flags() & NOT_DOUBLE == 0).then_some(f64::from_bits(row.bits))),
            )),
            Column::ValueInt => Arc::new(Int64Array::from_iter(
                self.sorted(rows)
                    .map(|row| (row.head.flags() & flag::INT != 0).then_some(row.bits.cast_signed())),
            )),
            Column::Quantile => Arc::new(Float64Array::from_iter(
                self.sorted(rows).map(|row| self.keys.quantile_of(&row.head).map(f64::from_bits)),
            )),
            Column::Exemplars => {
                self.exemplars.column(&self.keys.texts, self.places(rows).iter().copied())?
            }
            key => self.keys.column(key, self.sorted(rows).map(|row| &row.head))?,
        })
    }

    fn recycle(&self, column: ArrayRef) {
        self.keys.texts.recycle(column);
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.rows.clear();
        self.order = Vec::new();
        self.exemplars.clear();
    }
}

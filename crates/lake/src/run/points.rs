//! Rows of `metric_points`.

use super::keys::Text;
use super::{Head, Keys, NO_START, NotTaken, Run, STRETCH};
use crate::shape::Shape;
use crate::table::{Column, exemplar_fields, flag, timestamp};
use arrow::array::{
    ArrayRef, FixedSizeBinaryBuilder, Float64Array, Int64Array, ListArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;

#[derive(Debug, Clone, Copy)]
struct PointRow {
    head: Head,
    /// The value's bits.
    bits: u64,
}

/// An exemplar and the row it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExemplarRow {
    pub(crate) row: u32,
    pub(crate) attributes: Text,
    pub(crate) time_us: i64,
    pub(crate) bits: u64,
    pub(crate) trace_id: Option<[u8; 16]>,
    pub(crate) span_id: Option<[u8; 8]>,
}

/// Metric points on their way into one row group.
pub(crate) struct PointRun {
    pub(crate) keys: Keys,
    rows: Vec<PointRow>,
    order: Vec<u32>,
    exemplars: Vec<ExemplarRow>,
}

impl PointRun {
    pub(crate) fn new(shape: &Shape) -> Self {
        PointRun {
            keys: Keys::new(shape.point_keys),
            rows: Vec::with_capacity(shape.point_rows),
            order: Vec::with_capacity(shape.point_rows),
            exemplars: Vec::with_capacity(shape.exemplars),
        }
    }

    /// Adds a point.
    pub(crate) fn add(&mut self, head: Head, bits: u64) -> Result<(), NotTaken> {
        if self.rows.len() == self.rows.capacity() {
            return Err(NotTaken::Full);
        }
        if let Some(series) = self.keys.series_mut(head.series) {
            series.last_row = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        }
        self.rows.push(PointRow { head, bits });
        Ok(())
    }

    /// Adds an exemplar to the last point of its series, or to a row of its own when there is none. Returns
    /// how many rows that took.
    pub(crate) fn add_exemplar(&mut self, series: u32, exemplar: ExemplarRow) -> Result<u64, NotTaken> {
        if self.exemplars.len() == self.exemplars.capacity() {
            return Err(NotTaken::Full);
        }
        let last = self.keys.series_mut(series).map_or(u32::MAX, |series| series.last_row);
        let mut added = 0;
        if last == u32::MAX {
            let flags = flag::EXEMPLARS_ONLY;
            let time_us = exemplar.time_us;
            self.add(Head { time_us, start_us: NO_START, series, time_ns: 0, flags }, 0)?;
            added = 1;
        }
        let row = self.keys.series_mut(series).map_or(u32::MAX, |series| series.last_row);
        self.exemplars.push(ExemplarRow { row, ..exemplar });
        Ok(added)
    }

    fn sorted(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = (u32, &PointRow)> {
        let order = self.order.get(rows).unwrap_or(&[]);
        order.iter().map(|&at| (at, self.rows.get(at as usize).unwrap_or(&NO_ROW)))
    }

    fn exemplars_of(&self, row: u32) -> &[ExemplarRow] {
        let from = self.exemplars.partition_point(|exemplar| exemplar.row < row);
        let rest = self.exemplars.get(from..).unwrap_or(&[]);
        let len = rest.iter().take_while(|exemplar| exemplar.row == row).count();
        rest.get(..len).unwrap_or(&[])
    }

    fn exemplars(&self, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        let DataType::List(element) = Column::Exemplars.field().data_type().clone() else {
            return Err(ArrowError::SchemaError("exemplars are a list".to_owned()));
        };
        let of_row: Vec<&[ExemplarRow]> = if self.exemplars.is_empty() {
            vec![&[]; rows.len()]
        } else {
            self.sorted(rows).map(|(at, _)| self.exemplars_of(at)).collect()
        };
        let offsets = OffsetBuffer::from_lengths(of_row.iter().map(|exemplars| exemplars.len()));
        let nulls = NullBuffer::from_iter(of_row.iter().map(|exemplars| !exemplars.is_empty()));
        let all: Vec<&ExemplarRow> = of_row.into_iter().flatten().collect();
        let mut trace_ids = FixedSizeBinaryBuilder::with_capacity(all.len(), 16);
        let mut span_ids = FixedSizeBinaryBuilder::with_capacity(all.len(), 8);
        for exemplar in &all {
            match exemplar.trace_id {
                Some(id) => trace_ids.append_value(id)?,
                None => trace_ids.append_null(),
            }
            match exemplar.span_id {
                Some(id) => span_ids.append_value(id)?,
                None => span_ids.append_null(),
            }
        }
        let times = TimestampMicrosecondArray::from_iter_values(all.iter().map(|exemplar| exemplar.time_us));
        let values = all.iter().map(|exemplar| f64::from_bits(exemplar.bits));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(times.with_data_type(timestamp())),
            Arc::new(Float64Array::from_iter_values(values)),
            Arc::new(trace_ids.finish()),
            Arc::new(span_ids.finish()),
            self.keys.view(all.iter().map(|exemplar| exemplar.attributes))?,
        ];
        let structs = StructArray::try_new(exemplar_fields(), columns, None)?;
        Ok(Arc::new(ListArray::try_new(element, offsets, Arc::new(structs), Some(nulls))?))
    }
}

const NO_ROW: PointRow = PointRow {
    head: Head { time_us: 0, start_us: NO_START, series: u32::MAX, time_ns: 0, flags: 0 },
    bits: 0,
};

impl Run for PointRun {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn times(&self) -> Option<(i64, i64)> {
        let times = || self.rows.iter().map(|row| row.head.time_us);
        times().min().zip(times().max())
    }

    fn sort(&mut self) {
        self.keys.sort();
        let PointRun { keys, rows, order, exemplars } = self;
        order.clear();
        order.extend(0..u32::try_from(rows.len()).unwrap_or(u32::MAX));
        // By arrival last, so that what has the same time stays in the order in which it came.
        order.sort_unstable_by_key(|&at| (keys.order_of(&rows.get(at as usize).unwrap_or(&NO_ROW).head), at));
        exemplars.sort_by_key(|exemplar| exemplar.row);
    }

    fn stretches(&self) -> Vec<Range<usize>> {
        let rows = self.rows.len();
        (0..rows).step_by(STRETCH).map(|start| start..rows.min(start + STRETCH)).collect()
    }

    fn column(&self, column: Column, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        Ok(match column {
            Column::Value => Arc::new(Float64Array::from_iter(self.sorted(rows).map(|(_, row)| {
                (row.head.flags & flag::EXEMPLARS_ONLY == 0).then_some(f64::from_bits(row.bits))
            }))),
            // Prometheus' values are doubles, all of them.
            Column::ValueInt => Arc::new(Int64Array::new_null(rows.len())),
            Column::Exemplars => self.exemplars(rows)?,
            key => self.keys.column(key, self.sorted(rows).map(|(_, row)| &row.head))?,
        })
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.rows.clear();
        self.order.clear();
        self.exemplars.clear();
    }
}

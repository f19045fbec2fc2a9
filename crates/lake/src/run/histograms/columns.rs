//! Columns of `metric_histograms` that are its own.

use super::row::HistogramRow;
use super::{HistogramBuffer, saturated};
use crate::pool::{ListArena, ListElement, ListRef};
use crate::table::{Column, HistogramColumn};
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, ListArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;
use tidegate_wire::remote_write::Count;

impl HistogramBuffer {
    fn numbers_column(&self, column: HistogramColumn, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        use HistogramColumn::{Bounds, BucketCounts, BucketCountsFloat, Counts, CountsFloat, Spans};
        let ints = |of: &dyn Fn(&HistogramRow) -> ListRef| {
            let (offsets, nulls, all) = gather(self.sorted(rows.clone()).map(of), &self.ints);
            list(column, offsets, nulls, Arc::new(Int64Array::from(all)))
        };
        let doubles = |of: &dyn Fn(&HistogramRow) -> ListRef| {
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

    pub(super) fn own_column(
        &self,
        column: HistogramColumn,
        rows: Range<usize>,
    ) -> Result<ArrayRef, ArrowError> {
        use HistogramColumn as C;
        let sorted = self.sorted(rows.clone());
        Ok(match column {
            C::Count => Arc::new(Int64Array::from_iter(sorted.map(|row| integer(row.count)))),
            C::CountFloat => Arc::new(Float64Array::from_iter(sorted.map(|row| float(row.count)))),
            C::ZeroCount => Arc::new(Int64Array::from_iter(sorted.map(|row| integer(row.zero_count)))),
            C::ZeroCountFloat => Arc::new(Float64Array::from_iter(sorted.map(|row| float(row.zero_count)))),
            C::Sum => Arc::new(Float64Array::from_iter(sorted.map(|row| row.sum.map(f64::from_bits)))),
            // Prometheus sends neither.
            C::Min => Arc::new(Float64Array::from_iter(sorted.map(|row| row.min.map(f64::from_bits)))),
            C::Max => Arc::new(Float64Array::from_iter(sorted.map(|row| row.max.map(f64::from_bits)))),
            C::Scale => Arc::new(Int32Array::from_iter(sorted.map(|row| row.scale))),
            C::ZeroThreshold => {
                Arc::new(Float64Array::from_iter(sorted.map(|row| row.zero_threshold.map(f64::from_bits))))
            }
            C::Offset(side) => Arc::new(Int32Array::from_iter(sorted.map(|row| row.side(side).offset))),
            C::Temporality => Arc::new(Int32Array::from_iter_values(sorted.map(|row| row.temporality))),
            C::ResetHint => Arc::new(Int32Array::from_iter(sorted.map(|row| row.reset_hint))),
            lists => self.numbers_column(lists, rows)?,
        })
    }
}

fn integer(count: Option<Count>) -> Option<i64> {
    match count {
        Some(Count::Int(count)) => Some(saturated(count)),
        _ => None,
    }
}

fn float(count: Option<Count>) -> Option<f64> {
    match count {
        Some(Count::Float(bits)) => Some(f64::from_bits(bits)),
        _ => None,
    }
}

fn gather<T: ListElement>(
    rows: impl ExactSizeIterator<Item = ListRef>,
    all: &ListArena<T>,
) -> (OffsetBuffer<i32>, NullBuffer, Vec<T>) {
    let rows: Vec<ListRef> = rows.collect();
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(|row| row.len()));
    let nulls = NullBuffer::from_iter(rows.iter().map(|row| row.is_some()));
    (offsets, nulls, rows.into_iter().flat_map(|row| all.get(row)).copied().collect())
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

//! Exemplars, and the column of them that both metric tables have.

use super::RowRejection;
use super::texts::{Text, Texts};
use crate::pool::{Chunks, Pool};
use crate::table::{Column, exemplar_fields, flag, timestamp};
use arrow::array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, ListArray, StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use std::sync::Arc;

/// An exemplar and the row it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExemplarRow {
    pub(crate) row: u32,
    pub(crate) attributes: Text,
    pub(crate) time_us: i64,
    pub(crate) time_ns: u16,
    /// [`flag::INT`], or nothing.
    pub(crate) flags: u8,
    pub(crate) bits: u64,
    pub(crate) trace_id: Option<[u8; 16]>,
    pub(crate) span_id: Option<[u8; 8]>,
}

/// The exemplars of one run.
#[derive(Debug)]
pub(crate) struct Exemplars {
    rows: Chunks<ExemplarRow>,
    /// Their places, by row.
    order: Vec<u32>,
}

impl Exemplars {
    pub(crate) fn new(pool: &Pool) -> Self {
        Exemplars { rows: Chunks::new(pool, size_of::<u32>()), order: Vec::new() }
    }

    pub(crate) fn held(&self) -> usize {
        self.rows.held()
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn push(&mut self, exemplar: ExemplarRow) -> Result<(), RowRejection> {
        self.rows.push(exemplar)
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.rows.truncate(len);
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.order = Vec::new();
    }

    pub(crate) fn sort(&mut self) {
        self.order = (0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).collect();
        let rows = &self.rows;
        self.order.sort_by_key(|&at| rows.get(at as usize).map(|exemplar| exemplar.row));
    }

    /// Places in `order` of the exemplars of a row.
    fn of(&self, row: u32) -> &[u32] {
        let row_of = |at: &u32| self.rows.get(*at as usize).map_or(u32::MAX, |exemplar| exemplar.row);
        let from = self.order.partition_point(|at| row_of(at) < row);
        let rest = self.order.get(from..).unwrap_or(&[]);
        let len = rest.iter().take_while(|at| row_of(at) == row).count();
        rest.get(..len).unwrap_or(&[])
    }

    /// The column for these rows.
    pub(crate) fn column(
        &self,
        texts: &Texts,
        rows: impl ExactSizeIterator<Item = u32>,
    ) -> Result<ArrayRef, ArrowError> {
        let DataType::List(element) = Column::Exemplars.field().data_type().clone() else {
            return Err(ArrowError::SchemaError("exemplars are a list".to_owned()));
        };
        let of_row: Vec<&[u32]> =
            rows.map(|row| if self.order.is_empty() { &[] } else { self.of(row) }).collect();
        let offsets = OffsetBuffer::from_lengths(of_row.iter().map(|exemplars| exemplars.len()));
        let nulls = NullBuffer::from_iter(of_row.iter().map(|exemplars| !exemplars.is_empty()));
        let all = of_row.into_iter().flatten().filter_map(|&at| self.rows.get(at as usize));
        let all: Vec<&ExemplarRow> = all.collect();
        let times = TimestampMicrosecondArray::from_iter_values(all.iter().map(|exemplar| exemplar.time_us));
        let integer = |exemplar: &&ExemplarRow| exemplar.flags & flag::INT != 0;
        let values = all.iter().map(|exemplar| match integer(exemplar) {
            true => exemplar.bits.cast_signed() as f64,
            false => f64::from_bits(exemplar.bits),
        });
        let integers = all.iter().map(|exemplar| integer(exemplar).then_some(exemplar.bits.cast_signed()));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(times.with_data_type(timestamp())),
            Arc::new(Float64Array::from_iter_values(values)),
            super::columns::optional_ids(all.iter().map(|exemplar| exemplar.trace_id))?,
            super::columns::optional_ids(all.iter().map(|exemplar| exemplar.span_id))?,
            texts.view(all.iter().map(|exemplar| exemplar.attributes))?,
            Arc::new(Int32Array::from_iter_values(all.iter().map(|exemplar| i32::from(exemplar.time_ns)))),
            Arc::new(Int64Array::from_iter(integers)),
        ];
        let structs = StructArray::try_new(exemplar_fields(), columns, None)?;
        Ok(Arc::new(ListArray::try_new(element, offsets, Arc::new(structs), Some(nulls))?))
    }
}

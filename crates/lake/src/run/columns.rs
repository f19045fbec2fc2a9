//! Columns that several tables build in the same way.

use super::RowRejection;
use super::texts::{Text, Texts};
use crate::pool::{Chunks, Pool};
use arrow::array::{ArrayRef, FixedSizeBinaryArray, Int64Array};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;

/// A column of ids.
pub(crate) fn ids<const N: usize>(
    ids: impl ExactSizeIterator<Item = [u8; N]>,
) -> Result<ArrayRef, ArrowError> {
    let mut bytes = Vec::with_capacity(ids.len() * N);
    ids.for_each(|id| bytes.extend_from_slice(&id));
    fixed::<N>(bytes, None)
}

/// A column of ids that rows may not have.
pub(crate) fn optional_ids<const N: usize>(
    ids: impl ExactSizeIterator<Item = Option<[u8; N]>>,
) -> Result<ArrayRef, ArrowError> {
    let mut bytes = Vec::with_capacity(ids.len() * N);
    let mut valid = Vec::with_capacity(ids.len());
    for id in ids {
        bytes.extend_from_slice(&id.unwrap_or([0; N]));
        valid.push(id.is_some());
    }
    fixed::<N>(bytes, Some(NullBuffer::from(valid)))
}

fn fixed<const N: usize>(bytes: Vec<u8>, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
    let length = i32::try_from(N).unwrap_or(0);
    Ok(Arc::new(FixedSizeBinaryArray::try_new(length, Buffer::from_vec(bytes), nulls)?))
}

/// Sparse values, with the rows that have them.
#[derive(Debug)]
pub(crate) struct SparseColumn<T> {
    values: Chunks<(u32, T)>,
}

impl<T: Copy> SparseColumn<T> {
    pub(crate) fn new(pool: &Pool) -> Self {
        SparseColumn { values: Chunks::sparse(pool) }
    }

    pub(crate) fn held(&self) -> usize {
        self.values.held()
    }

    /// Adds the value of a row that does not come before the last one.
    #[inline]
    pub(crate) fn push(&mut self, row: u32, value: T) -> Result<(), RowRejection> {
        self.values.push((row, value))
    }

    /// Takes back what rows from this one on have.
    pub(crate) fn truncate(&mut self, row: u32) {
        while self
            .values
            .len()
            .checked_sub(1)
            .and_then(|last| self.values.get(last))
            .is_some_and(|&(of, _)| of >= row)
        {
            self.values.truncate(self.values.len() - 1);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
    }

    /// The value of each of these rows.
    pub(crate) fn of(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = Option<T>> {
        let mut next = self.values.partition_point(|&(row, _)| (row as usize) < rows.start);
        rows.map(move |row| {
            let value = self.values.get(next).filter(|(of, _)| *of as usize == row).map(|&(_, value)| value);
            next += usize::from(value.is_some());
            value
        })
    }

    /// All that these rows have, in order.
    pub(crate) fn all_of(&self, rows: Range<usize>) -> impl Iterator<Item = &(u32, T)> {
        let from = self.values.partition_point(|&(row, _)| (row as usize) < rows.start);
        self.values.range(from..self.values.len()).take_while(move |&&(row, _)| (row as usize) < rows.end)
    }

    /// The row that has the `nth` value from `row` on.
    pub(crate) fn row_of_nth(&self, row: usize, nth: usize) -> Option<u32> {
        let from = self.values.partition_point(|&(of, _)| (of as usize) < row);
        self.values.get(from + nth).map(|&(of, _)| of)
    }

    /// How many each of these rows has.
    pub(crate) fn lengths(&self, rows: Range<usize>) -> Vec<usize> {
        let mut lengths = vec![0; rows.len()];
        for &(row, _) in self.all_of(rows.clone()) {
            if let Some(length) = lengths.get_mut((row as usize).saturating_sub(rows.start)) {
                *length += 1;
            }
        }
        lengths
    }
}

impl SparseColumn<Text> {
    pub(crate) fn texts(&self, texts: &Texts, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        texts.view(self.of(rows).map(|text| text.unwrap_or(Text::NONE)))
    }
}

impl SparseColumn<i64> {
    pub(crate) fn numbers(&self, rows: Range<usize>) -> ArrayRef {
        Arc::new(Int64Array::from_iter(self.of(rows)))
    }
}

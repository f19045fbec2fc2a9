//! Reads the items of a file, whatever its table is.

use super::request::Item;
use super::rows::{FileRows, Next};
use super::{columns, histograms, logs, points, spans, summaries, values};
use crate::manifest::FileEntry;
use crate::{Error, Table};
use arrow::array::RecordBatch;
use std::path::Path;

/// The items of a file, in an order that does not change.
pub(super) struct FileItems {
    rows: FileRows,
    reader: Box<dyn ItemReader + Send>,
    /// Items that were read.
    count: u64,
}

impl FileItems {
    /// Opens a file behind its first `done` items, which are read into `scratch` where they cannot be passed over.
    pub(super) fn open(
        table: Table,
        path: &Path,
        entry: &FileEntry,
        done: u64,
        scratch: &mut Item,
    ) -> Result<FileItems, Error> {
        let mut rows = FileRows::open(path, entry)?;
        let mut reader: Box<dyn ItemReader + Send> = match table {
            Table::Logs => Box::new(RowItems { reader: logs::LogReader::default(), batch: 0 }),
            Table::Spans => Box::new(RowItems { reader: spans::SpanReader::default(), batch: 0 }),
            Table::MetricHistograms => {
                Box::new(RowItems { reader: histograms::HistogramReader::default(), batch: 0 })
            }
            Table::MetricPoints => Box::new(points::PointReader::default()),
        };
        if reader.rows_are_items() {
            rows.skip(done)?;
        } else {
            // How many rows an item has is known when they are read.
            for _ in 0..done {
                if !reader.next(&mut rows, scratch)? {
                    break;
                }
            }
        }
        Ok(FileItems { rows, reader, count: done })
    }

    /// Reads the next one. Whether there was one.
    pub(super) fn next(&mut self, item: &mut Item) -> Result<bool, Error> {
        let is_item = self.reader.next(&mut self.rows, item)?;
        self.count += u64::from(is_item);
        Ok(is_item)
    }

    /// How many were read, those that were passed over at the beginning included.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// Reads items out of the rows of a file, in an order that does not change.
pub(super) trait ItemReader {
    /// Reads the next one. Whether there was one.
    fn next(&mut self, rows: &mut FileRows, item: &mut Item) -> Result<bool, Error>;

    /// Whether each row is an item.
    fn rows_are_items(&self) -> bool;
}

/// Reads an item out of a row.
pub(super) trait RowReader {
    /// The rows that come next are of this batch.
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), RowError>;

    /// Reads a row of it.
    fn read(&mut self, row: usize, item: &mut Item) -> Result<(), RowError>;
}

/// Why a row cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowError {
    #[error(transparent)]
    Column(#[from] columns::ColumnTypeError),
    #[error("a value is not as the lake writes it: {0}")]
    Value(#[from] values::ValueError),
    #[error(transparent)]
    Summary(#[from] summaries::TooManyParts),
}

/// Reads an item out of each row.
struct RowItems<R> {
    reader: R,
    batch: u64,
}

impl<R: RowReader> ItemReader for RowItems<R> {
    fn next(&mut self, rows: &mut FileRows, item: &mut Item) -> Result<bool, Error> {
        loop {
            match rows.next()? {
                Next::Row => break,
                Next::EndOfGroup => {}
                Next::End => return Ok(false),
            }
        }
        let Some((batch, number, row)) = rows.row() else { return Ok(false) };
        let mut read = Ok(());
        if self.batch != number {
            read = self.reader.batch(batch);
            self.batch = number;
        }
        read.and_then(|()| self.reader.read(row, item)).map_err(|error| rows.damaged(error))?;
        rows.pass();
        Ok(true)
    }

    fn rows_are_items(&self) -> bool {
        true
    }
}

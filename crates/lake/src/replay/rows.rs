//! The rows of one file, a row group at a time.

use super::BATCH;
use crate::Error;
use crate::checksum::checksum_of;
use crate::manifest::FileEntry;
use crate::scan::views;
use arrow::array::RecordBatch;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use std::fs::File;
use std::io::Seek;
use std::path::{Path, PathBuf};

/// A file that is read row by row. The row that comes next stays until it is [passed](Self::pass).
pub(super) struct FileRows {
    path: PathBuf,
    file: File,
    metadata: ArrowReaderMetadata,
    /// Row groups that were begun.
    groups_begun: usize,
    group: Option<ParquetRecordBatchReader>,
    batch: Option<RecordBatch>,
    /// How many batches there were: columns of one are of no use for the next.
    batches: u64,
    /// The row in the batch, and in the file.
    row: usize,
    row_of_file: u64,
}

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A row.
    Row,
    /// The rows of a row group are over; those of another one may follow.
    EndOfGroup,
    /// There are no more rows.
    End,
}

impl FileRows {
    /// Opens a file that is as its manifest says, length and checksum included, so that its decoders see nothing but what
    /// the lake wrote.
    pub(super) fn open(path: &Path, entry: &FileEntry) -> Result<FileRows, Error> {
        let mut file = tidegate_files::read(path).map_err(Error::io("opening", path))?;
        let (bytes, checksum) = checksum_of(&file).map_err(Error::io("reading", path))?;
        let damaged = |what: String| Error::Damaged { path: path.to_path_buf(), what };
        if bytes != entry.bytes {
            return Err(damaged(format!("it has {bytes} bytes, the manifest says {}", entry.bytes)));
        }
        if checksum != entry.xxh64 {
            return Err(damaged(format!("its checksum is {checksum}, the manifest says {}", entry.xxh64)));
        }
        file.rewind().map_err(Error::io("reading", path))?;
        let metadata = views(&file).map_err(Error::parquet("reading", path))?;
        Ok(FileRows {
            path: path.to_path_buf(),
            file,
            metadata,
            groups_begun: 0,
            group: None,
            batch: None,
            batches: 0,
            row: 0,
            row_of_file: 0,
        })
    }

    /// Passes so many rows at the beginning of the file without reading the row groups that are passed whole.
    pub(super) fn skip(&mut self, rows: u64) -> Result<(), Error> {
        let mut left = usize::try_from(rows).unwrap_or(usize::MAX);
        while let Some(in_group) = self.rows_of_group(self.groups_begun) {
            if left < in_group {
                self.row_of_file += left as u64;
                return self.begin_group(left);
            }
            left -= in_group;
            self.row_of_file += in_group as u64;
            self.groups_begun += 1;
        }
        Ok(())
    }

    /// The next row, or the end of a group, which comes once.
    pub(super) fn next(&mut self) -> Result<Next, Error> {
        loop {
            if self.batch.as_ref().is_some_and(|batch| self.row < batch.num_rows()) {
                return Ok(Next::Row);
            }
            if let Some(group) = &mut self.group {
                (self.batch, self.row) = (None, 0);
                match group.next() {
                    Some(Ok(batch)) => {
                        self.batch = Some(batch);
                        self.batches += 1;
                    }
                    Some(Err(error)) => return Err(Error::parquet("reading", &self.path)(error.into())),
                    None => {
                        self.group = None;
                        return Ok(Next::EndOfGroup);
                    }
                }
            } else if self.rows_of_group(self.groups_begun).is_some() {
                self.begin_group(0)?;
            } else {
                return Ok(Next::End);
            }
        }
    }

    /// Goes on to the row behind the next one.
    pub(super) fn pass(&mut self) {
        self.row += 1;
        self.row_of_file += 1;
    }

    /// The batch that the next row is in, its number among the batches, and the row in it.
    pub(super) fn row(&self) -> Option<(&RecordBatch, u64, usize)> {
        self.batch.as_ref().map(|batch| (batch, self.batches, self.row))
    }

    /// An error of the next row.
    pub(super) fn damaged(&self, what: impl std::fmt::Display) -> Error {
        Error::Damaged { path: self.path.clone(), what: format!("row {}: {what}", self.row_of_file) }
    }

    fn rows_of_group(&self, group: usize) -> Option<usize> {
        let group = self.metadata.metadata().row_groups().get(group)?;
        Some(usize::try_from(group.num_rows()).unwrap_or(0))
    }

    fn begin_group(&mut self, skipped: usize) -> Result<(), Error> {
        let read = |file: File| {
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                .with_row_groups(vec![self.groups_begun])
                .with_batch_size(BATCH)
                .with_offset(skipped)
                .build()
        };
        let file = self.file.try_clone().map_err(Error::io("reading", &self.path))?;
        self.group = Some(read(file).map_err(Error::parquet("reading", &self.path))?);
        self.groups_begun += 1;
        Ok(())
    }
}

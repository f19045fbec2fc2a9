//! The writer: rows into row groups, row groups into files, files into the lake.

mod commit;
mod recover;
mod settings;
#[cfg(test)]
mod tests;

pub use commit::{Commit, CommittedFile};
pub use settings::WriterSettings;

use crate::buffer_sizes::SMALLEST;
use crate::file::{FinishedFile, TableFile, TableSchema};
use crate::gatherer::{Gatherer, Overflow};
use crate::layout::{Hour, Layout};
use crate::retention::RetainedBytes;
use crate::run::RowBuffer;
use crate::{Error, Table};
use std::fs::File;
use std::path::PathBuf;

/// Writes one lake, alone.
///
/// After an error it has forgotten what it had not committed, and takes nothing until
/// [`recover`](Self::recover) has said after which sequence to push again.
pub struct Writer {
    pub(crate) settings: WriterSettings,
    layout: Layout,
    /// The rows that wait for their row group, and the files behind them.
    pub(crate) rows: Gatherer<OpenFiles>,
    /// The last sequence that is in the lake for good.
    durable: Option<u64>,
    pub(crate) kept: RetainedBytes,
    failed: bool,
    /// Where a manifest ended before the line that may be torn.
    cut: Option<(Hour, u64)>,
    #[cfg(test)]
    fail_at: Option<commit::CommitStep>,
    _lock: File,
}

/// Files that were closed for the length of their footers and wait for the commit.
const MOST_FINISHED: usize = 8;

/// The files that row groups go to.
pub(crate) struct OpenFiles {
    /// In the order of [`Table::ALL`].
    kinds: Vec<TableSchema>,
    /// Where files are while they are written.
    temporary: PathBuf,
    /// A file whose footer is as long is finished.
    footer_bytes: usize,
    open: Option<OpenCommit>,
}

/// The batches pushed since the last commit.
struct OpenCommit {
    hour: Hour,
    first: u64,
    last: u64,
    since_ns: u64,
    /// At most one of each table, in the order of [`Table::ALL`].
    files: [Option<TableFile>; Table::ALL.len()],
    /// Files that were closed because their footers had become long.
    finished: Vec<FinishedFile>,
    created: u32,
}

impl Writer {
    /// The least slice that a writer works in, in bytes.
    pub fn smallest_slice() -> u64 {
        SMALLEST
    }

    /// The last sequence that is in the lake, of those of this node. Everything up to it is skipped when it
    /// is pushed again.
    pub fn durable(&self) -> Option<u64> {
        self.durable
    }

    /// Bytes of all files that the manifests name.
    pub fn bytes(&self) -> u64 {
        self.kept.bytes()
    }

    /// Closes the files when they have become old enough, and lets old hours go. To be called about once a
    /// second, and whenever nothing was pushed for a while; `now_ns` is the time in nanoseconds since the
    /// Unix epoch.
    pub fn tick(&mut self, now_ns: u64) -> Result<Option<Commit>, Error> {
        let age_ns = u64::try_from(self.settings.file_age.as_nanos()).unwrap_or(u64::MAX);
        let due = self.open_commit().is_some_and(|open| {
            // The clock may have been set back.
            open.since_ns = open.since_ns.min(now_ns);
            now_ns - open.since_ns >= age_ns
        });
        let commit = if due { self.close_files()? } else { None };
        self.retain(now_ns);
        Ok(commit)
    }

    /// Opens a batch: its rows go into the hour in which it was received. Returns the commit of the hour
    /// before, when that one is over.
    pub(crate) fn begin(&mut self, sequence: u64, hour: Hour, now_ns: u64) -> Result<Option<Commit>, Error> {
        let other_hour = self.open_hour().is_some_and(|open| open != hour);
        let commit = if other_hour { self.close_files()? } else { None };
        let open = self.rows.overflow.open.get_or_insert_with(|| OpenCommit {
            hour,
            first: sequence,
            last: sequence,
            since_ns: now_ns,
            files: [const { None }; Table::ALL.len()],
            finished: Vec::new(),
            created: 0,
        });
        open.last = sequence;
        Ok(commit)
    }

    /// Ends a batch. Returns a commit when the files have become large enough.
    pub(crate) fn end(&mut self) -> Result<Option<Commit>, Error> {
        let most = self.settings.file_bytes;
        let large = self.open_commit().is_some_and(|open| {
            let large = open.files.iter().flatten().any(|file| file.bytes() >= most);
            open.finished.len() >= MOST_FINISHED || large
        });
        if large { self.close_files() } else { Ok(None) }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn open_hour(&self) -> Option<Hour> {
        self.rows.overflow.open.as_ref().map(|open| open.hour)
    }

    fn open_commit(&mut self) -> Option<&mut OpenCommit> {
        self.rows.overflow.open.as_mut()
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.failed
    }

    pub(crate) fn fail<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.failed |= result.is_err();
        result
    }
}

impl Overflow for OpenFiles {
    /// Writes them as a row group.
    fn write(&mut self, table: Table, run: &mut dyn RowBuffer) -> Result<(), Error> {
        let kind = self.kinds.iter().find(|kind| kind.table() == table);
        if let (Some(open), Some(kind)) = (&mut self.open, kind) {
            let path = self.temporary.join(format!("{}.parquet", open.created));
            open.write(kind, run, path, self.footer_bytes)?;
        }
        Ok(())
    }
}

impl OpenCommit {
    /// Writes a row group to the table's file, which is created at `path` when there is none. Then finishes
    /// files as long as one's footer is longer than `most`, or all of them than twice that.
    fn write(
        &mut self,
        kind: &TableSchema,
        run: &mut dyn RowBuffer,
        path: PathBuf,
        most: usize,
    ) -> Result<(), Error> {
        let Some(file) = Table::ALL.iter().zip(&mut self.files).find(|(table, _)| **table == kind.table())
        else {
            return Ok(());
        };
        let file = file.1;
        let mut open = match file.take() {
            Some(open) => open,
            None => {
                self.created += 1;
                kind.create(path)?
            }
        };
        open.write(kind, run)?;
        *file = Some(open);
        loop {
            let footer = |file: &Option<TableFile>| file.as_ref().map_or(0, TableFile::footer_bytes);
            let all: usize = self.files.iter().map(footer).sum();
            let Some(longest) = self.files.iter_mut().max_by_key(|file| footer(file)) else { return Ok(()) };
            if footer(longest) < most && all < 2 * most {
                return Ok(());
            }
            if let Some(file) = longest.take() {
                self.finished.push(file.finish()?);
            }
        }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("layout", &self.layout).field("durable", &self.durable).finish()
    }
}

//! The writer: rows into row groups, row groups into files, files into the lake.

mod commit;
mod recover;
mod settings;
#[cfg(test)]
mod tests;

pub use commit::{Commit, CommittedFile};
pub use settings::Settings;

use crate::Error;
#[cfg(test)]
use crate::Table;
use crate::file::{Finished, Kind, TableFile};
use crate::layout::{Hour, Layout};
use crate::metadata::Families;
use crate::retention::Kept;
use crate::run::{HistogramRun, PointRun, Run};
use crate::shape::{SMALLEST, Shape};
use std::fs::File;

/// Writes one lake, alone.
///
/// After an error it has forgotten what it had not committed, and takes nothing until
/// [`recover`](Self::recover) has said after which sequence to push again.
pub struct Writer {
    pub(crate) settings: Settings,
    pub(crate) shape: Shape,
    layout: Layout,
    points_kind: Kind,
    histograms_kind: Kind,
    pub(crate) points: PointRun,
    pub(crate) histograms: HistogramRun,
    pub(crate) families: Families,
    open: Option<Open>,
    /// The last sequence that is in the lake for good.
    durable: Option<u64>,
    pub(crate) kept: Kept,
    failed: bool,
    /// Where a manifest ended before the line that may be torn.
    cut: Option<(Hour, u64)>,
    #[cfg(test)]
    fail_at: Option<commit::Step>,
    _lock: File,
}

/// Files that were closed for the length of their footers and wait for the commit.
const MOST_FINISHED: usize = 8;

/// What was pushed since the last commit.
struct Open {
    hour: Hour,
    first: u64,
    last: u64,
    since_ns: u64,
    points: Option<TableFile>,
    histograms: Option<TableFile>,
    /// Files that were closed because their footers had become long.
    finished: Vec<Finished>,
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
        let due = self.open.as_mut().is_some_and(|open| {
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
        let other_hour = self.open.as_ref().is_some_and(|open| open.hour != hour);
        let commit = if other_hour { self.close_files()? } else { None };
        let open = self.open.get_or_insert_with(|| Open {
            hour,
            first: sequence,
            last: sequence,
            since_ns: now_ns,
            points: None,
            histograms: None,
            finished: Vec::new(),
            created: 0,
        });
        open.last = sequence;
        Ok(commit)
    }

    /// Ends a batch. Returns a commit when the files have become large enough.
    pub(crate) fn end(&mut self) -> Result<Option<Commit>, Error> {
        let most = self.settings.file_bytes;
        let large = self.open.as_ref().is_some_and(|open| {
            let files = [&open.points, &open.histograms];
            open.finished.len() >= MOST_FINISHED
                || files.into_iter().flatten().any(|file| file.bytes() >= most)
        });
        if large { self.close_files() } else { Ok(None) }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn open_hour(&self) -> Option<Hour> {
        self.open.as_ref().map(|open| open.hour)
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.failed
    }

    pub(crate) fn fail<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        self.failed |= result.is_err();
        result
    }

    /// Writes the gathered points as a row group.
    pub(crate) fn write_points(&mut self) -> Result<(), Error> {
        let most = self.shape.footer_bytes;
        if let (Some(open), 1..) = (&mut self.open, self.points.len()) {
            let path = || self.layout.temporary().join(format!("{}.parquet", open.created));
            write(&self.points_kind, &mut self.points, &mut open.points, path, &mut open.finished, most)?;
            open.created += 1;
        }
        self.points.clear();
        Ok(())
    }

    /// Writes the gathered histograms as a row group.
    pub(crate) fn write_histograms(&mut self) -> Result<(), Error> {
        let most = self.shape.footer_bytes;
        if let (Some(open), 1..) = (&mut self.open, self.histograms.len()) {
            let path = || self.layout.temporary().join(format!("{}.parquet", open.created));
            let (kind, run) = (&self.histograms_kind, &mut self.histograms);
            write(kind, run, &mut open.histograms, path, &mut open.finished, most)?;
            open.created += 1;
        }
        self.histograms.clear();
        Ok(())
    }
}

/// Writes a row group to `file`, which is created when there is none and finished when its footer has
/// become as long as `most`.
fn write(
    kind: &Kind,
    run: &mut impl Run,
    file: &mut Option<TableFile>,
    path: impl FnOnce() -> std::path::PathBuf,
    finished: &mut Vec<Finished>,
    most: usize,
) -> Result<(), Error> {
    let mut open = match file.take() {
        Some(open) => open,
        None => kind.create(path())?,
    };
    open.write(kind, run)?;
    if open.footer_bytes() >= most {
        finished.push(open.finish()?);
    } else {
        *file = Some(open);
    }
    Ok(())
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("layout", &self.layout).field("durable", &self.durable).finish()
    }
}

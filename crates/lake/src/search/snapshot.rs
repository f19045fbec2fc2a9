//! The files of the lake at a moment.

use crate::layout::{Hour, Layout};
use crate::{Error, Table, manifest};
use std::path::{Path, PathBuf};

/// How much later than its own time a row may have been received, and be found by its time: older hours of the lake are not looked
/// into for newer rows. In nanoseconds.
const AHEAD_NS: u64 = 24 * 3_600_000_000_000;

/// The lake as it is at a moment: what is committed later is not in it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    layout: Layout,
    node: String,
    /// Oldest first.
    hours: Vec<Hour>,
    through: Option<u64>,
}

/// A file of a table.
pub(super) struct StoredFile {
    pub(super) path: PathBuf,
    pub(super) min_time_us: i64,
    pub(super) max_time_us: i64,
}

impl Snapshot {
    /// The lake at `dir`, of which `node` is the journal that is written to it now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(dir: &Path, node: &str) -> Result<Snapshot, Error> {
        let layout = Layout::new(dir);
        let hours = layout.manifest_hours().map_err(Error::io("looking into", layout.root()))?;
        let mut through = None;
        for &hour in hours.iter().rev() {
            let manifest = manifest::read(&layout, hour)?;
            let own = manifest.lines.iter().filter(|line| line.node == node);
            through = own.map(|line| line.last).max();
            // Records are committed in the order of their sequences, and of the hours in which they were received.
            if through.is_some() {
                break;
            }
        }
        Ok(Snapshot { layout, node: node.to_owned(), hours, through })
    }

    /// The last sequence of the node whose rows are in it.
    pub fn through(&self) -> Option<u64> {
        self.through
    }

    /// The hours that it has files of, oldest first.
    pub(super) fn hours(&self) -> &[Hour] {
        &self.hours
    }

    /// Whether rows received in `hour` may be as late as `from_us`.
    pub(super) fn may_have(&self, hour: Hour, from_us: i64) -> bool {
        let latest_us = hour.start_ns().saturating_add(3_600_000_000_000 + AHEAD_NS) / 1000;
        i64::try_from(latest_us).is_ok_and(|latest| latest >= from_us)
    }

    /// The files of a table in an hour, newest first.
    pub(super) fn files(&self, table: Table, hour: Hour) -> Result<Vec<StoredFile>, Error> {
        let folder = self.layout.partition(table, hour);
        let manifest = manifest::read(&self.layout, hour)?;
        let is_later = |line: &manifest::CommitLine| line.node == self.node && Some(line.last) > self.through;
        let lines = manifest.lines.iter().filter(|line| !is_later(line));
        let files = lines.flat_map(|line| &line.files).filter(|file| file.table() == Some(table));
        let mut files: Vec<StoredFile> = files
            .map(|file| StoredFile {
                path: folder.join(&file.file),
                min_time_us: file.min_time_us,
                max_time_us: file.max_time_us,
            })
            .collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.max_time_us));
        Ok(files)
    }
}

//! Lists the lake's contents by hour.

use crate::layout::{Hour, Layout};
use crate::{Error, Table, manifest};
use std::path::Path;

/// One hour of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// The table.
    pub table: Table,
    /// The hour in which its rows were received.
    pub hour: Hour,
    /// Files.
    pub files: u64,
    /// Rows of all files.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Least and greatest sample time, in microseconds since the Unix epoch.
    pub times_us: (i64, i64),
}

/// All partitions of the lake at `dir`, oldest first, as the manifests say.
pub fn list(dir: &Path) -> Result<Vec<Partition>, Error> {
    let layout = Layout::new(dir);
    let mut partitions = Vec::new();
    for hour in layout.manifest_hours().map_err(Error::io("looking into", layout.root()))? {
        let manifest = manifest::read(&layout, hour)?;
        for table in Table::ALL {
            let files = manifest.lines.iter().flat_map(|line| &line.files);
            let mut files = files.filter(|file| file.table() == Some(table)).peekable();
            let Some(first) = files.peek() else { continue };
            let times_us = (first.min_time_us, first.max_time_us);
            let empty = Partition { table, hour, files: 0, rows: 0, bytes: 0, times_us };
            partitions.push(files.fold(empty, |sum, file| Partition {
                files: sum.files + 1,
                rows: sum.rows + file.rows,
                bytes: sum.bytes + file.bytes,
                times_us: (sum.times_us.0.min(file.min_time_us), sum.times_us.1.max(file.max_time_us)),
                ..sum
            }));
        }
    }
    Ok(partitions)
}

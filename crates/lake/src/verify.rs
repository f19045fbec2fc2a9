//! Whether all that the manifests name is there and can be read.

use crate::checksum::checksum_of;
use crate::layout::{Layout, names};
use crate::manifest::{self, FileEntry};
use crate::scan::reader_of;
use crate::{Error, Table};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The result of [`verify`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Files that are named and as they were written.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The errors: file or manifest, and a description. At most a thousand are kept.
    pub problems: Vec<(PathBuf, String)>,
    /// Problems, those that were not kept included.
    pub problem_count: u64,
    /// Files that no manifest names: a commit under way, or what a crash left for the next start to remove.
    /// At most a thousand are kept.
    pub orphans: Vec<PathBuf>,
}

impl VerifyReport {
    /// Whether nothing is wrong. Orphans are not.
    pub fn is_sound(&self) -> bool {
        self.problem_count == 0
    }

    fn problem(&mut self, path: PathBuf, what: impl Into<String>) {
        self.problem_count += 1;
        if self.problems.len() < KEPT {
            self.problems.push((path, what.into()));
        }
    }
}

const KEPT: usize = 1000;

/// Reads everything that the manifests of the lake at `dir` name: that it is there, its length and checksum,
/// its footer, its number of rows, and every column of every row.
pub fn verify(dir: &Path) -> Result<VerifyReport, Error> {
    verify_with(dir, check)
}

/// Looks whether everything is there that the manifests of the lake at `dir` name, with its length. Reads no file but the
/// manifests.
pub fn verify_presence(dir: &Path) -> Result<VerifyReport, Error> {
    verify_with(dir, check_length)
}

fn verify_with(
    dir: &Path,
    check: fn(&Path, &FileEntry) -> Result<(), String>,
) -> Result<VerifyReport, Error> {
    let layout = Layout::new(dir);
    let mut report = VerifyReport::default();
    let looking = |error| Error::io("looking into", layout.root())(error);
    let mut hours = layout.manifest_hours().map_err(looking)?;
    for table in Table::ALL {
        hours.extend(layout.table_hours(table).map_err(looking)?);
    }
    hours.sort_unstable();
    hours.dedup();
    for hour in hours {
        let manifest = manifest::read(&layout, hour)?;
        if manifest.damaged > 0 {
            let what = format!("{} lines cannot be read", manifest.damaged);
            report.problem(layout.manifest(hour), what);
        }
        if manifest.torn {
            report.problem(layout.manifest(hour), "its last line is torn; the next start cuts it");
        }
        let files = || manifest.lines.iter().flat_map(|line| &line.files);
        for file in files() {
            let Some(table) = file.table() else {
                report.problem(layout.manifest(hour), format!("it names an unknown table `{}`", file.table));
                continue;
            };
            let path = layout.partition(table, hour).join(&file.file);
            match check(&path, file) {
                Ok(()) => {
                    report.files += 1;
                    report.rows += file.rows;
                    report.bytes += file.bytes;
                }
                Err(what) => report.problem(path, what),
            }
        }
        for table in Table::ALL {
            let named: HashSet<&str> =
                files().filter(|file| file.table() == Some(table)).map(|file| &*file.file).collect();
            let folder = layout.partition(table, hour);
            for name in names(&folder).map_err(Error::io("looking into", &folder))? {
                if !named.contains(&*name) && report.orphans.len() < KEPT {
                    report.orphans.push(folder.join(name));
                }
            }
        }
    }
    Ok(report)
}

fn check_length(path: &Path, entry: &FileEntry) -> Result<(), String> {
    let bytes = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    match bytes == entry.bytes {
        true => Ok(()),
        false => Err(format!("it has {bytes} bytes, the manifest says {}", entry.bytes)),
    }
}

fn check(path: &Path, entry: &FileEntry) -> Result<(), String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let file = tidegate_files::read(path).map_err(|error| words(&error))?;
    let (bytes, checksum) = checksum_of(&file).map_err(|error| words(&error))?;
    if bytes != entry.bytes {
        return Err(format!("it has {bytes} bytes, the manifest says {}", entry.bytes));
    }
    if checksum != entry.xxh64 {
        return Err(format!("its checksum is {checksum}, the manifest says {}", entry.xxh64));
    }
    let reader = reader_of(file).and_then(|builder| builder.with_batch_size(1024).build());
    let mut rows = 0;
    for batch in reader.map_err(|error| words(&error))? {
        rows += batch.map_err(|error| words(&error))?.num_rows() as u64;
    }
    if rows != entry.rows {
        return Err(format!("it has {rows} rows, the manifest says {}", entry.rows));
    }
    Ok(())
}

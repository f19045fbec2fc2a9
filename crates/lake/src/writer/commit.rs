//! A commit: from open files to one line in the manifest. `design/lake.md` argues what a crash between any
//! two of the steps leaves behind.

use super::{OpenCommit, Writer};
use crate::file::FinishedFile;
use crate::layout::file_name;
use crate::manifest::{self, CommitLine, FileEntry, ManifestAppend};
use crate::{Error, Table};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The committed part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Everything up to this sequence will not be needed again.
    pub through: u64,
    /// The files, none when what was pushed had no rows.
    pub files: Vec<CommittedFile>,
}

/// One file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedFile {
    /// Its table.
    pub table: Table,
    /// Where it is.
    pub path: PathBuf,
    /// How many rows it has.
    pub rows: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

impl Commit {
    /// One commit for two that followed each other.
    pub(crate) fn join(earlier: Option<Commit>, later: Option<Commit>) -> Option<Commit> {
        match (earlier, later) {
            (Some(mut earlier), Some(later)) => {
                earlier.through = later.through;
                earlier.files.extend(later.files);
                Some(earlier)
            }
            (earlier, later) => later.or(earlier),
        }
    }
}

/// Where a commit can be interrupted: right after this has been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitStep {
    RowGroups,
    Footers,
    Synced,
    ReadBack,
    FirstRenamed,
    Renamed,
    FoldersSynced,
    HalfLine,
    Line,
    LineSynced,
}

#[cfg(test)]
impl CommitStep {
    pub(crate) const ALL: [CommitStep; 10] = [
        CommitStep::RowGroups,
        CommitStep::Footers,
        CommitStep::Synced,
        CommitStep::ReadBack,
        CommitStep::FirstRenamed,
        CommitStep::Renamed,
        CommitStep::FoldersSynced,
        CommitStep::HalfLine,
        CommitStep::Line,
        CommitStep::LineSynced,
    ];
}

impl Writer {
    /// Makes everything pushed so far part of the lake: the files of all tables in one commit. `None` when nothing
    /// was pushed since the last one.
    ///
    /// Takes as long as the disk needs for a handful of fsyncs.
    pub fn close_files(&mut self) -> Result<Option<Commit>, Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        let commit = self.commit();
        self.fail(commit)
    }

    fn commit(&mut self) -> Result<Option<Commit>, Error> {
        self.rows.write_all()?;
        let Some(open) = self.rows.overflow.open.take() else { return Ok(None) };
        self.reached(CommitStep::RowGroups)?;
        let OpenCommit { hour, first, last, mut finished, .. } = open;
        for file in open.files.into_iter().flatten() {
            finished.push(file.finish()?);
        }
        self.reached(CommitStep::Footers)?;
        let commit = if finished.is_empty() {
            Commit { through: last, files: Vec::new() }
        } else {
            self.check(&finished)?;
            let line = self.rename(&finished, hour, first, last)?;
            self.append(hour, &line)?;
            self.kept.add(hour, finished.iter().map(|file| file.bytes).sum());
            let file = |(file, entry): (&FinishedFile, &FileEntry)| CommittedFile {
                table: file.table,
                path: self.layout.partition(file.table, hour).join(&entry.file),
                rows: file.rows,
                bytes: file.bytes,
            };
            Commit { through: last, files: finished.iter().zip(&line.files).map(file).collect() }
        };
        self.durable = Some(last);
        Ok(Some(commit))
    }

    fn check(&mut self, finished: &[FinishedFile]) -> Result<(), Error> {
        for file in finished {
            file.sync()?;
        }
        self.reached(CommitStep::Synced)?;
        for file in finished {
            file.read_back()?;
        }
        self.reached(CommitStep::ReadBack)
    }

    fn rename(
        &mut self,
        finished: &[FinishedFile],
        hour: crate::Hour,
        first: u64,
        last: u64,
    ) -> Result<CommitLine, Error> {
        let mut line = CommitLine { node: self.settings.node.clone(), first, last, files: Vec::new() };
        let mut folders = BTreeSet::new();
        for file in finished {
            let folder = self.layout.partition(file.table, hour);
            tidegate_files::create_folder(&folder, self.settings.access)
                .map_err(Error::io("creating", &folder))?;
            let part = line.files.iter().filter(|entry| entry.table == file.table.name()).count();
            let name = file_name(first, last, &self.settings.node, part);
            let path = folder.join(&name);
            std::fs::rename(&file.path, &path).map_err(Error::io("renaming to", &path))?;
            line.files.push(FileEntry {
                table: file.table.name().to_owned(),
                file: name,
                rows: file.rows,
                bytes: file.bytes,
                min_time_us: file.times.0,
                max_time_us: file.times.1,
                xxh64: file.checksum.clone(),
            });
            folders.insert(folder);
            if line.files.len() == 1 {
                self.reached(CommitStep::FirstRenamed)?;
            }
        }
        self.reached(CommitStep::Renamed)?;
        for folder in folders {
            sync_up_to(&folder, self.layout.root())?;
        }
        self.reached(CommitStep::FoldersSynced)?;
        Ok(line)
    }

    fn append(&mut self, hour: crate::Hour, line: &CommitLine) -> Result<(), Error> {
        let path = self.layout.manifest(hour);
        let folder = path.parent().unwrap_or(self.layout.root()).to_path_buf();
        tidegate_files::create_folder(&folder, self.settings.access)
            .map_err(Error::io("creating", &folder))?;
        let mut appending = ManifestAppend::open(&path, self.settings.access)?;
        // Until the line is on the disk, whatever comes of it is cut before going on.
        self.cut = Some((hour, appending.from));
        let bytes = manifest::encode(line);
        let (half, rest) = bytes.split_at(bytes.len() / 2);
        appending.write(half, &path)?;
        self.reached(CommitStep::HalfLine)?;
        appending.write(rest, &path)?;
        self.reached(CommitStep::Line)?;
        appending.sync(&path)?;
        sync_up_to(&folder, self.layout.root())?;
        self.cut = None;
        self.reached(CommitStep::LineSynced)
    }

    /// Where tests let the writer fail.
    #[cfg(test)]
    fn reached(&mut self, step: CommitStep) -> Result<(), Error> {
        if self.fail_at.take_if(|at| *at == step).is_some() {
            let source = std::io::Error::other(format!("failed on purpose after {step:?}"));
            return Err(Error::Io { doing: "testing", path: self.layout.root().into(), source });
        }
        Ok(())
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "tests fail here")]
    fn reached(&mut self, _: CommitStep) -> Result<(), Error> {
        Ok(())
    }
}

/// Syncs a folder and those above it up to `root`: each may be new.
fn sync_up_to(folder: &Path, root: &Path) -> Result<(), Error> {
    for folder in folder.ancestors() {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io("syncing", folder))?;
        if folder == root {
            break;
        }
    }
    Ok(())
}

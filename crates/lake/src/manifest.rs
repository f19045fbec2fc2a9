//! The manifest of an hour: one line of JSON for each commit. A file is part of the lake when a line names
//! it, and not before.

use crate::layout::{Hour, Layout};
use crate::{Error, Table};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use tidegate_files::Access;

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitLine {
    pub(crate) node: String,
    /// First and last sequence whose rows are in the files.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) files: Vec<FileEntry>,
}

/// One file of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    pub(crate) table: String,
    pub(crate) file: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Least and greatest time of the rows, in microseconds since the Unix epoch.
    pub(crate) min_time_us: i64,
    pub(crate) max_time_us: i64,
    pub(crate) xxh64: String,
}

impl FileEntry {
    pub(crate) fn table(&self) -> Option<Table> {
        Table::of_name(&self.table)
    }
}

/// The contents of an hour's manifest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) lines: Vec<CommitLine>,
    /// Bytes up to the end of the last whole line.
    pub(crate) whole: u64,
    /// Whether there are bytes after that: the end of a write that did not come through.
    pub(crate) torn: bool,
    /// Whole lines that cannot be read. They were committed once, so nothing may be concluded from what the
    /// others do not name.
    pub(crate) damaged: u64,
}

/// A line of four tables with some files each is far below that; more is damage.
const LONGEST: u64 = 1 << 20;

/// Reads the manifest of `hour`, an empty one when there is none.
pub(crate) fn read(layout: &Layout, hour: Hour) -> Result<Manifest, Error> {
    let path = layout.manifest(hour);
    let file = match tidegate_files::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Manifest::default()),
        file => file.map_err(Error::io("opening", &path))?,
    };
    let mut reader = BufReader::with_capacity(16 << 10, file);
    let mut manifest = Manifest::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        let read = read.map_err(Error::io("reading", &path))? as u64;
        if read == 0 {
            return Ok(manifest);
        }
        if line.last() != Some(&b'\n') && read < LONGEST {
            manifest.torn = true;
            return Ok(manifest);
        }
        manifest.whole += read;
        match serde_json::from_slice(&line) {
            Ok(line) => manifest.lines.push(line),
            Err(_) => manifest.damaged += 1,
        }
    }
}

/// Cuts what is behind the last whole line.
pub(crate) fn cut(path: &Path, whole: u64) -> Result<(), Error> {
    let open = tidegate_files::open(path, Access::Owner, |options| options.write(true));
    let file = open.map_err(Error::io("opening", path))?;
    file.set_len(whole).map_err(Error::io("cutting", path))?;
    file.sync_all().map_err(Error::io("syncing", path))
}

/// The end of a manifest, where a line is being added.
pub(crate) struct ManifestAppend {
    file: File,
    /// Where the line begins.
    pub(crate) from: u64,
}

impl ManifestAppend {
    pub(crate) fn open(path: &Path, access: Access) -> Result<ManifestAppend, Error> {
        let open =
            tidegate_files::open(path, access, |options| options.create(true).truncate(false).write(true));
        let mut file = open.map_err(Error::io("opening", path))?;
        let from = file.seek(SeekFrom::End(0)).map_err(Error::io("looking at", path))?;
        Ok(ManifestAppend { file, from })
    }

    /// Writes bytes of the line.
    pub(crate) fn write(&mut self, bytes: &[u8], path: &Path) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(Error::io("writing", path))
    }

    pub(crate) fn sync(&self, path: &Path) -> Result<(), Error> {
        self.file.sync_all().map_err(Error::io("syncing", path))
    }
}

/// The line as it is written, with its end.
pub(crate) fn encode(line: &CommitLine) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(line).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

//! Which files are read, and how.

use crate::checkpoint::Checkpoint;
use crate::compressed::Decompressor;
use crate::glob::Glob;
use crate::identity::FileId;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate_lines::{Settings as LineSettings, Workspace};

/// The most memory of a known file in bytes, with its names, paths of the usual length, and its place in every index.
pub const FILE_BYTES: usize = 1 << 10;
/// The same for what is remembered of a file that is gone.
const FORMER_BYTES: usize = 384;
/// The same for a directory, beside its path.
const DIRECTORY_BYTES: usize = 256;
/// The longest key and value of a checkpoint, in bytes.
pub const CHECKPOINT_BYTES: usize = FileId::KEY + size_of::<u64>() + Checkpoint::MOST_BYTES;
/// Bytes of paths and names for each file that may be known.
const TEXT_BYTES: usize = 320;
/// Directories that may be watched even if only a few files may be known.
const LEAST_DIRECTORIES: usize = 256;
/// Heap bytes that unfinished records of all files may take beside those of one.
pub(crate) const SHARED_HOLD: usize = 512 << 10;
/// Changes, resources, and other small things.
const FIXED_BYTES: usize = 512 << 10;

/// How a [`Tailer`](crate::Tailer) works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The first byte of the keys of its checkpoints: another for each source.
    pub key: u8,
    /// The sets of files, in the order of precedence: a file belongs to the first that includes it.
    pub inputs: Vec<Input>,
    /// Most files that are known at a time. Others are not read, and counted.
    pub max_files: usize,
    /// Time between two listings of the directories.
    pub rescan: Duration,
    /// How long a file that was deleted, or that no pattern includes any more, is held after the last of its bytes was read.
    pub rotate_wait: Duration,
    /// How long the checkpoint of a file that is gone is kept.
    pub remember: Duration,
    /// Bytes that a file may give before it is the next one's turn.
    pub turn: usize,
    /// Largest batch in bytes, if the destination takes as much.
    pub batch: usize,
    /// How long changes of files are collected before files are read.
    pub linger: Duration,
    /// Where reading begins in files that are there when their input is new, if that is known.
    pub start_offsets: Option<StartOffset>,
}

/// The offset at which reading of a file begins.
#[derive(Clone)]
pub struct StartOffset(pub Arc<FindOffset>);

/// Finds an offset by a file's path, its identity, and its first bytes: a KiB, or all that it has.
pub type FindOffset = dyn Fn(&Path, FileId, &[u8]) -> Option<u64> + Send + Sync;

impl fmt::Debug for StartOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StartOffset")
    }
}

/// A set of files.
#[derive(Debug, Clone)]
pub struct Input {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// The files.
    pub include: Vec<Glob>,
    /// Files that are not read although `include` has them.
    pub exclude: Vec<Glob>,
    /// Where reading begins in files that are there when the input is new.
    pub start_at: StartAt,
    /// Whether compressed files that were not read before their compression are read.
    pub compressed: bool,
    /// How bytes become records.
    pub lines: LineSettings,
    /// Further attributes of the resource of its files.
    pub attributes: Vec<(Box<str>, Box<str>)>,
}

/// Where reading begins in a file without a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartAt {
    /// At its beginning.
    #[default]
    Beginning,
    /// At its end, if it was there when the input was configured; files that appear later are read from their beginning.
    End,
}

impl Settings {
    /// Settings with the usual times and sizes.
    pub fn new(key: u8, inputs: Vec<Input>) -> Settings {
        Settings {
            key,
            inputs,
            max_files: 1024,
            rescan: Duration::from_secs(10),
            rotate_wait: Duration::from_mins(5),
            remember: Duration::from_hours(7 * 24),
            turn: 256 << 10,
            batch: 1 << 20,
            linger: Duration::from_millis(25),
            start_offsets: None,
        }
    }

    /// Most directories that are watched and listed. Others are left out, and counted.
    pub(crate) fn max_directories(&self) -> usize {
        self.max_files.max(LEAST_DIRECTORIES)
    }

    /// Most bytes of paths and names. What does not fit is left out, and counted.
    pub(crate) fn most_text(&self) -> usize {
        self.max_files.max(LEAST_DIRECTORIES) * TEXT_BYTES
    }

    /// Whether any input reads compressed files.
    pub(crate) fn reads_compressed(&self) -> bool {
        self.inputs.iter().any(|input| input.compressed)
    }

    /// The most memory of a tailer in bytes, beside the destination's buffers: two of them at a time.
    pub fn most_bytes(&self) -> usize {
        let read =
            self.inputs.iter().map(|input| input.lines.longest_read()).max().unwrap_or(0).max(self.turn);
        let workspace =
            self.inputs.iter().map(|input| Workspace::most_bytes(&input.lines)).max().unwrap_or(0);
        let held = self.inputs.iter().map(|input| input.lines.most_held()).max().unwrap_or(0) + SHARED_HOLD;
        // As much is kept decompressed as is read, in a vector that grows.
        let decompressor = Decompressor::most_bytes(self.reads_compressed()) + 2 * read;
        let files = self.max_files * (FILE_BYTES + FORMER_BYTES) + self.max_directories() * DIRECTORY_BYTES;
        files + read + workspace + held + decompressor + FIXED_BYTES
    }
}

impl Input {
    /// Whether `path` is excluded.
    pub(crate) fn excludes(&self, path: &Path) -> bool {
        self.exclude.iter().any(|glob| glob.matches(path))
    }
}

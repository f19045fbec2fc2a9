//! Checkpoints as other programs have them.

use std::path::PathBuf;
use std::time::SystemTime;

/// How far another program has read a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The path under which the program last saw the file.
    pub path: Option<PathBuf>,
    /// The inode, where the program keeps it.
    pub inode: Option<u64>,
    /// The device, where the program keeps it.
    pub device: Option<u64>,
    /// The first bytes of the file, where the program identifies files by them.
    pub first_bytes: Option<Vec<u8>>,
    /// When it was stored, where only the path identifies the file: a file that was made later is another one.
    pub stored_at: Option<SystemTime>,
    /// Bytes that are read.
    pub offset: u64,
}

/// All checkpoints of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoints {
    /// Those of files.
    pub files: Vec<Checkpoint>,
    /// Checkpoints that cannot be used: a sentence for each kind.
    pub notes: Vec<String>,
}

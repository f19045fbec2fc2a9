//! What a tailer says of its files.

use tokio::sync::oneshot;

/// What a file is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// It has bytes that are not durable yet.
    Reading,
    /// It is read to its end.
    Idle,
    /// No pattern has it any more; it is held until its writer has surely ended.
    Rotated,
    /// It was deleted, and held as such: its disk space is not free.
    Deleted,
    /// It is a copy of a file that is read.
    Copy,
    /// It is compressed, and being read or read.
    Compressed,
    /// It is not read.
    Skipped,
}

impl FileState {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            FileState::Reading => "reading",
            FileState::Idle => "idle",
            FileState::Rotated => "rotated",
            FileState::Deleted => "deleted",
            FileState::Copy => "copy",
            FileState::Compressed => "compressed",
            FileState::Skipped => "skipped",
        }
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileStatus {
    /// Its path.
    pub path: String,
    /// Its input.
    pub input: String,
    /// How far it is durable, in bytes; decompressed ones for a compressed file.
    pub offset: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Bytes that are not durable yet; 0 for a compressed file.
    pub lag: u64,
    /// Records since it was found.
    pub records: u64,
    /// Records a second, averaged over ten seconds.
    pub rate: f32,
    /// What it is doing.
    pub state: FileState,
    /// Why it could not be read the last time.
    pub error: Option<String>,
}

/// Asks a tailer for its files: those with the most lag first.
#[derive(Debug)]
pub struct StatusRequest {
    /// Most files in the answer.
    pub most: usize,
    /// Only paths with this in them.
    pub containing: String,
    /// Takes the answer: the files, and how many match in all.
    pub answer: oneshot::Sender<(Vec<FileStatus>, usize)>,
}

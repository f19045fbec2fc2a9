//! Errors, as sentences for operators.

use std::io;
use std::time::Duration;

/// Why a record was not appended. It is not in the log, unless a crash follows at once; the caller has its body still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The member's files have the size that they may have. [`MemberLog::space`](crate::MemberLog::space) waits for room.
    #[error("the member's handoff quota is used up by records it has not taken yet")]
    Quota,
    /// The files of all members together have the size that they may have.
    #[error("the handoff quota of all members together is used up")]
    TotalQuota,
    /// The disk does not take it now.
    #[error("the handoff log cannot write now: {trouble}")]
    Disk {
        /// The error.
        trouble: DiskError,
        /// When it is worth another try. Until then appends are refused: all where the disk is full, else this member's.
        retry_after: Duration,
    },
    /// It can never be appended: it is larger than the quota, or than 4 GiB.
    #[error("the record is larger than the handoff quota")]
    Unfit,
    /// The logs were closed.
    #[error("the handoff log is closed")]
    Closed,
}

/// The disk's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// The file system is full.
    #[error("the disk is full")]
    Full,
    /// The device or the file system failed.
    #[error("the disk failed ({0})")]
    Failed(io::ErrorKind),
}

impl DiskError {
    pub(crate) fn of(error: &io::Error) -> DiskError {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                DiskError::Full
            }
            kind => DiskError::Failed(kind),
        }
    }
}

/// Why a record was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It was completed, dropped for the quota, or forgotten meanwhile. Ask for the next.
    #[error("the record is not in the log any more")]
    Gone,
    /// Its body is not as it was written. When it is the oldest, it was counted as damaged and the cursor is behind it.
    /// Otherwise it is, when it is read again as the oldest. Ask for the next when those before it are completed.
    #[error("the record is damaged on disk")]
    Damaged,
    /// The window has less charged space than the body needs.
    #[error("the window is too small for the record")]
    WindowTooSmall,
    /// A file cannot be opened. Another try may help.
    #[error("the handoff log cannot be read now ({0})")]
    Disk(io::ErrorKind),
    /// The logs were closed.
    #[error("the handoff log is closed")]
    Closed,
}

/// Why a member has no log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// The address is empty or too long.
    #[error("`{0}` cannot be a member's address: it has from 1 to 256 bytes")]
    Address(String),
    /// As many members as are planned for have a backlog or are in use.
    #[error(
        "{0} members have handoff logs, which is all that are planned for: those that left are not empty yet, or `max_members` is too small"
    )]
    Crowded(usize),
}

/// Why the folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error(
        "the handoff folder {dir} is in use by process {pid}: stop that one first, or set another folder"
    )]
    InUse {
        /// The folder.
        dir: String,
        /// The process that has it, or `unknown`.
        pid: String,
    },
    /// Another version of tidegate wrote a file.
    #[error(
        "{dir}/{file} has version {found} of the handoff log, and this tidegate reads version {known}: start the one \
         that wrote it and let it deliver, or move the folder away"
    )]
    Version {
        /// The folder.
        dir: String,
        /// The file.
        file: String,
        /// Its version.
        found: u32,
        /// The version that this program writes and reads.
        known: u32,
    },
    /// The system refused something that is needed to start.
    #[error(
        "opening the handoff folder {dir}: cannot {doing} ({source}): check its permissions and the disk"
    )]
    Io {
        /// The folder.
        dir: String,
        /// The failed operation.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

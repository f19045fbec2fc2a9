//! The owner's settings, and the errors reported to it.

use crate::append::{AppendResult, PendingAppend};
use crate::checkpoints::table::entry_bytes;
use crate::checkpoints::{CHECKPOINT_KEY_MAX, CHECKPOINT_VALUE_MAX};
use crate::cursor::Cursor;
use crate::meta::TENANT_MAX;
use crate::queue;
use crate::receive_times::{MAX_MARKS, Mark};
use crate::record::HEADER;
use crate::record_scanner::READ_AHEAD;
use crate::segment::Segment;
use crate::writer::STACK_BYTES;
use std::path::{Path, PathBuf};
use std::task::Waker;
use std::time::Duration;
use tidegate_arena::Reservation;
use tidegate_files::FolderLockError;

/// How a journal is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The folder. Made if it is not there. One process at a time may have it open.
    pub dir: PathBuf,
    /// The length of a segment, in bytes. A quarter of the quota is taken where that is less.
    pub segment_bytes: u64,
    /// The most that segments may take on disk together, in bytes.
    pub quota: u64,
    /// The most memory, in bytes, that the windows of batches may take which are kept in memory until every
    /// sink has them ([`Durability::Memory`]); what comes beyond is refused. Less than the share that they are
    /// charged to can hold, so that requests can still be received and refused.
    pub held_bytes: u64,
    /// When an append is acknowledged.
    pub durability: Durability,
    /// How long segments stay that every sink is past, so that they can be read and sent again, while the quota and the disk have
    /// room for them.
    pub keep: Duration,
    /// How many appends may wait for the disk at a time.
    pub queue: usize,
    /// How many sinks may have a cursor.
    pub followers: usize,
    /// How many checkpoints may be kept. When there are as many, those of new keys are forgotten and counted, and their
    /// batches are appended: a source reads twice after a restart what it could not have noted, and loses nothing.
    pub checkpoints: usize,
    /// How many bytes of keys and values sources make of that many at most. Only the memory plan relies on it.
    pub checkpoint_bytes: usize,
}

/// A name, a lock, a file handle, and what the allocator rounds up to.
const SUNDRIES: usize = 1024;

impl Settings {
    /// Everything as it is without a configuration.
    pub fn new(dir: impl Into<PathBuf>) -> Settings {
        Settings {
            dir: dir.into(),
            segment_bytes: 64 << 20,
            quota: 20 << 30,
            held_bytes: 8 << 20,
            durability: Durability::Fsync,
            keep: Duration::ZERO,
            queue: 1024,
            followers: 64,
            checkpoints: 256,
            checkpoint_bytes: 256 * (CHECKPOINT_KEY_MAX + CHECKPOINT_VALUE_MAX),
        }
    }

    /// The journal's entries in the memory plan: its memory beyond the windows of bodies.
    pub fn overhead(&self) -> Vec<Reservation> {
        let hands = self.durability.writer_threads();
        // In its slot, in the group that was taken, its outcome and its waker with the writer or in one of the
        // groups on their way, its header.
        let batch = queue::slot_len::<PendingAppend, AppendResult>()
            + size_of::<(u32, PendingAppend)>()
            + (hands + 1) * (size_of::<(u32, AppendResult)>() + size_of::<Waker>())
            + HEADER
            + TENANT_MAX
            + 3 * size_of::<usize>();
        // The next records and the re-read ones, each through a buffer.
        let sink = Cursor::most_bytes() + 2 * READ_AHEAD + SUNDRIES;
        let segments = self.quota / self.segment_bytes.max(1) + 2;
        let declared = |what, count: u64, each: usize, setting| Reservation {
            owner: "journal",
            what,
            count,
            each: each as u64,
            setting,
        };
        let mut all = vec![
            declared("batches being written", self.queue as u64, batch, None),
            declared("threads that write, beside the first", hands as u64 - 1, STACK_BYTES, None),
            declared("sinks' cursors", self.followers as u64, sink, Some("sinks")),
            declared("marks of when records were received", MAX_MARKS as u64, size_of::<Mark>(), None),
            // A deque keeps up to twice what it holds.
            declared(
                "segments, as known in memory",
                segments,
                2 * size_of::<Segment>(),
                Some("journal.quota"),
            ),
        ];
        if self.checkpoints > 0 {
            let count = self.checkpoints as u64;
            let each = entry_bytes(self.checkpoint_bytes.div_ceil(self.checkpoints));
            all.push(declared("checkpoints of sources", count, each, Some("sources")));
        }
        all
    }
}

/// When an append is acknowledged, and so what it survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After `fdatasync`: it survives a power cut.
    Fsync,
    /// After `write`: it survives the end of the process, not a power cut.
    PageCache,
    /// When every sink has completed it. Nothing is written; what is not acknowledged lives in the windows
    /// it came in, at most `queue` of them, and at most `held_bytes`.
    Memory,
}

/// The treatment of a sink that is too far behind when the quota is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Appends are refused until it has moved on.
    Block,
    /// It is moved past the oldest segment, and told how many items it lost.
    DropOldest,
}

/// Where a sink that has no cursor yet begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    /// At the oldest record that is still there.
    Oldest,
    /// At the next record to be appended.
    Head,
}

/// Why a batch was not appended. It is not in the journal, and its window is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The disk does not take it now; waiting may help.
    #[error("the journal cannot write now: {trouble}")]
    Disk {
        /// The error.
        trouble: DiskError,
        /// When it is worth another try, from how fast sinks have been freeing space.
        retry_after: Duration,
    },
    /// As many appends as are allowed are waiting already.
    #[error("as many batches as are allowed are waiting for the journal already")]
    Busy,
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
    /// It can never be appended: it does not lie inside its window, or is larger than the quota.
    #[error("the batch does not fit the journal")]
    Unfit,
}

/// The disk's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// The quota is used up by what sinks have not completed yet.
    #[error("its quota is used up by records that sinks have not completed yet")]
    Quota,
    /// The file system is full.
    #[error("the disk is full")]
    Full,
    /// The device or the file system failed.
    #[error("the disk failed ({0})")]
    Failed(std::io::ErrorKind),
}

/// Why a journal could not be opened, or a cursor.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error(
        "the journal in {dir} is in use by process {pid}: stop that one first, or set `data` to another folder"
    )]
    InUse {
        /// The folder.
        dir: String,
        /// The process that has it, or `unknown`.
        pid: String,
    },
    /// The file system refused something that is needed to start.
    #[error("opening the journal in {dir}: cannot {doing} ({source}): check its permissions and the disk")]
    Io {
        /// The folder.
        dir: String,
        /// The failed operation.
        doing: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A sink's name cannot be the name of a file.
    #[error("`{0}` cannot name a sink: use up to 64 letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// The sink is followed already.
    #[error("the sink `{0}` follows the journal already")]
    Followed(String),
    /// More sinks than are allowed.
    #[error("the journal has cursors for {0} sinks, which is all that are allowed: forget one that is gone")]
    Crowded(usize),
}

impl OpenError {
    /// The folder `dir` cannot be locked.
    pub(crate) fn of_lock(dir: &Path, error: FolderLockError) -> OpenError {
        let dir = dir.display().to_string();
        match error {
            FolderLockError::InUse { pid } => OpenError::InUse { dir, pid },
            FolderLockError::Io { doing, source } => OpenError::Io { dir, doing: doing.into(), source },
        }
    }
}

/// How long appends are refused after a disk error; also the interval of syncing cursors.
pub(crate) const RETRY_INTERVAL_NS: u64 = 1_000_000_000;

/// The most groups being synced at a time, and so the number of writer threads.
const WRITER_THREADS: usize = 2;

impl Durability {
    /// The number of writer threads: one, unless syncs can overlap.
    pub(crate) fn writer_threads(self) -> usize {
        if self == Durability::Fsync { WRITER_THREADS } else { 1 }
    }
}

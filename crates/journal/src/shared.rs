//! The state shared by the writer, the sinks and the owner.

use crate::append::{AppendResult, PendingAppend};
use crate::clock::Clock;
use crate::commit_order::CommitOrder;
use crate::queue::Queue;
use crate::receive_clock::ReceiveClock;
use crate::segment_index::SegmentIndex;
use crate::settings::{AppendError, DiskError, RETRY_INTERVAL_NS, Settings};
use crate::sync::{Mutex, lock};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegate_files::folder::Files;

pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) salt: u64,
    pub(crate) files: Arc<dyn Files>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) queue: Queue<PendingAppend, AppendResult>,
    pub(crate) index: Mutex<SegmentIndex>,
    pub(crate) order: CommitOrder,
    /// Gives records their times.
    pub(crate) receive_clock: ReceiveClock,
    /// The journal is closing: sinks that have read everything are told so.
    pub(crate) closed: AtomicBool,
    /// Appends are refused for the quota: completing records should free space at once.
    pub(crate) starved: AtomicBool,
    /// The bytes of the windows that wait, or are kept in memory, where the journal is kept there.
    pub(crate) held_bytes: AtomicU64,
    /// The advice to whoever is refused, in milliseconds.
    pub(crate) retry_after_ms: AtomicU64,
}

impl Shared {
    /// The answer to appends that the disk does not accept, and to all others for a moment.
    pub(crate) fn refusal(&self, trouble: DiskError) -> AppendError {
        let retry_after = Duration::from_millis(self.retry_after_ms.load(Ordering::Relaxed));
        let refused = AppendError::Disk { trouble, retry_after };
        self.starved.store(trouble == DiskError::Quota, Ordering::Relaxed);
        self.queue.suspend(Err(refused), self.clock.monotonic_ns() + RETRY_INTERVAL_NS);
        refused
    }

    /// Counts and tells that writing failed.
    pub(crate) fn failed(&self, error: &io::Error) -> DiskError {
        lock(&self.index).counters.write_errors += 1;
        tracing::warn!(%error, "the journal cannot write: it refuses appends, and retries in a second");
        disk_error(error)
    }
}

/// The error that a failed call becomes for appenders.
pub(crate) fn disk_error(error: &io::Error) -> DiskError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            DiskError::Full
        }
        kind => DiskError::Failed(kind),
    }
}

//! The state of members that tasks and the I/O thread share.

use crate::queue::Queue;
use crate::settings::Settings;
use crate::totals::{Position, Totals};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A member's counts. `appended + found = completed + dropped + damaged + forgotten + backlog`, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Records that wait for the member.
    pub backlog: Totals,
    /// When its oldest record was received, or a little before, in nanoseconds since 1970; `None` without a backlog.
    pub oldest_received_at_ns: Option<u64>,
    /// Bytes of the member's files on disk. Completed records count until their segment is deleted.
    pub disk_bytes: u64,
    /// The backlog when the folder was opened.
    pub found: Totals,
    /// Acknowledged since then.
    pub appended: Totals,
    /// Completed since then.
    pub completed: Totals,
    /// Dropped for the quota since then.
    pub dropped: Totals,
    /// Skipped because they cannot be read, since then.
    pub damaged: Totals,
    /// Forgotten with the member, since then.
    pub forgotten: Totals,
}

/// One member, as everybody sees it.
pub(crate) struct MemberState {
    pub(crate) index: usize,
    pub(crate) address: Box<str>,
    view: Mutex<View>,
    /// The I/O thread has a log for it. Changed under the lock of the table.
    adopted: AtomicBool,
    /// A record was appended to an empty log, or the logs were closed.
    pub(crate) readable: Notify,
    /// Something was deleted after an append was refused for the quota, or the logs were closed.
    pub(crate) space: Notify,
}

/// Where a log begins and ends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct View {
    /// The first undelivered record. Tasks move it by completing, the I/O thread by dropping and by crossing damage.
    pub(crate) cursor: Position,
    /// Behind the last durable record.
    pub(crate) head: Position,
    /// Where the log ended, and what was in it, when it was opened.
    pub(crate) opened: Totals,
    pub(crate) found: Totals,
    pub(crate) completed: Totals,
    pub(crate) dropped: Totals,
    pub(crate) damaged: Totals,
    pub(crate) forgotten: Totals,
    pub(crate) oldest_ns: u64,
    pub(crate) disk_bytes: u64,
    /// An append was refused for the quota since something was deleted.
    pub(crate) starved: bool,
    /// Quotas do not hold for it: it left, and takes no more than what was accepted before.
    pub(crate) unlimited: bool,
    /// Damage was found in these segments, from the first to the last.
    pub(crate) damaged_segments: Option<(u64, u64)>,
}

impl MemberState {
    pub(crate) fn new(index: usize, address: &str, view: View) -> MemberState {
        MemberState {
            index,
            address: address.into(),
            view: Mutex::new(view),
            adopted: AtomicBool::new(false),
            readable: Notify::new(),
            space: Notify::new(),
        }
    }

    /// Held briefly: nothing is called under it.
    pub(crate) fn view(&self) -> MutexGuard<'_, View> {
        lock(&self.view)
    }

    /// The I/O thread has a log for it from now on, and one more reference. To be called under the lock of the table.
    pub(crate) fn adopt(&self) {
        self.adopted.store(true, Ordering::Relaxed);
    }

    /// Whether nobody would miss it: only the table and the I/O thread refer to it, no request does, and it has no files.
    /// To be called under the lock of the table.
    pub(crate) fn is_unused(self: &Arc<Self>) -> bool {
        let known = 1 + usize::from(self.adopted.load(Ordering::Relaxed));
        let view = self.view();
        Arc::strong_count(self) <= known && view.is_empty() && view.disk_bytes == 0
    }

    /// Wakes the tasks that wait for something of this member.
    pub(crate) fn wake(&self) {
        self.readable.notify_waiters();
        self.space.notify_waiters();
    }
}

impl View {
    pub(crate) fn backlog(&self) -> Totals {
        self.head.before.since(self.cursor.before)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cursor.before.records >= self.head.before.records
    }

    /// Moves the cursor forward to `to`, and gives the records passed; nothing where it is there already.
    pub(crate) fn advance(&mut self, to: Position) -> Totals {
        if to.before.records <= self.cursor.before.records {
            return Totals::ZERO;
        }
        self.place(to)
    }

    /// Puts the cursor at `to`, and gives the records passed.
    pub(crate) fn place(&mut self, to: Position) -> Totals {
        let from = std::mem::replace(&mut self.cursor, to).before;
        // A record in the place of one that a power cut took, unacknowledged both, can be of another size: then there is more
        // behind it than was counted.
        self.found = self.found.plus(from.since(to.before));
        to.before.since(from)
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            backlog: self.backlog(),
            oldest_received_at_ns: (!self.is_empty()).then_some(self.oldest_ns),
            disk_bytes: self.disk_bytes,
            found: self.found,
            appended: self.head.before.since(self.opened),
            completed: self.completed,
            dropped: self.dropped,
            damaged: self.damaged,
            forgotten: self.forgotten,
        }
    }
}

/// Everything shared.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) queue: Queue,
    pub(crate) members: Mutex<Vec<Arc<MemberState>>>,
}

impl Shared {
    pub(crate) fn members(&self) -> MutexGuard<'_, Vec<Arc<MemberState>>> {
        lock(&self.members)
    }
}

/// Locks, also when another thread panicked while holding the lock: every update leaves the state whole before anything
/// that could panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! One member's log, as a sink's tasks use it.

use crate::error::{AppendError, ReadError};
use crate::queue::{Append, Closed, Work};
use crate::record::{Meta, Record};
use crate::state::{MemberState, Shared, Stats};
use crate::totals::Totals;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use tidegate_arena::Window;
use tokio::sync::oneshot;

/// A record's body. The caller keeps a clone if it needs the body after a refusal; the log lets go of its own when the
/// record is durable or refused.
pub type Body = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// The log of one member. A handle; clones are the same log. Usable from any task, on any runtime.
#[derive(Clone)]
pub struct MemberLog {
    shared: Arc<Shared>,
    member: Arc<MemberState>,
}

impl MemberLog {
    pub(crate) fn new(shared: Arc<Shared>, member: Arc<MemberState>) -> MemberLog {
        MemberLog { shared, member }
    }

    /// The member's address.
    pub fn address(&self) -> &str {
        &self.member.address
    }

    /// Appends a record, and returns when it is durable as [`Durability`](crate::Durability) says. Appends of one task are
    /// in order; those of several are in the order in which they get a place in the queue. When the future is dropped, the
    /// record is appended or not, unheard.
    ///
    /// # Errors
    /// When the quota or the disk does not allow it, or the logs are closed.
    pub async fn append(&self, meta: Meta, body: Body) -> Result<(), AppendError> {
        let bytes = body.as_ref().as_ref();
        let body_len = u32::try_from(bytes.len()).map_err(|_| AppendError::Unfit)?;
        // Here and not on the I/O thread, which all members wait for.
        let crc = crc32c::crc32c_append(crc32c::crc32c(meta.note.as_bytes()), bytes);
        let (reply, answer) = oneshot::channel();
        let append = Append { meta, body, body_len, crc };
        self.submit(Work::Append(append, reply)).await.map_err(|Closed| AppendError::Closed)?;
        answer.await.unwrap_or(Err(AppendError::Closed))
    }

    /// The oldest record that is not completed; `None` without a backlog. The same one until it is completed or dropped.
    ///
    /// # Errors
    /// When a file cannot be opened, or the logs are closed.
    pub async fn next(&self) -> Result<Option<Record>, ReadError> {
        self.next_or_after(None).await
    }

    /// The record behind `record`, so that several can be on their way to the member. `None` where there is none *or*
    /// where it cannot be read: then complete those on their way, and ask for the [`next`](Self::next), which
    /// skips and counts what is damaged.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn after(&self, record: &Record) -> Result<Option<Record>, ReadError> {
        self.next_or_after(Some(*record)).await
    }

    async fn next_or_after(&self, record: Option<Record>) -> Result<Option<Record>, ReadError> {
        let (reply, answer) = oneshot::channel();
        self.submit(Work::Next(record, reply)).await.map_err(|Closed| ReadError::Closed)?;
        answer.await.unwrap_or(Err(ReadError::Closed))
    }

    /// Reads a record's body behind what `window` holds, which must have [`body_len`](Record::body_len) charged bytes
    /// [to spare](Window::spare). On an error the window is given back to its arena.
    ///
    /// # Errors
    /// When the record is gone or damaged, the window is too small, or the logs are closed.
    pub async fn read(&self, record: &Record, window: Window) -> Result<Window, ReadError> {
        if window.spare() < record.body_len as usize {
            return Err(ReadError::WindowTooSmall);
        }
        let (reply, answer) = oneshot::channel();
        let work = Work::Read(*record, window, reply);
        self.submit(work).await.map_err(|Closed| ReadError::Closed)?;
        answer.await.unwrap_or(Err(ReadError::Closed))
    }

    /// The member has taken `record` and all before it. Gives what that completed: nothing where it was completed, dropped or
    /// forgotten before. Durable within about a second; a crash before that delivers again.
    pub fn complete(&self, record: &Record) -> Totals {
        let mut view = self.member.view();
        let segment = view.cursor.segment;
        let passed = view.advance(record.end());
        view.completed = view.completed.plus(passed);
        let frees = view.is_empty() || view.cursor.segment > segment;
        let urgent = view.starved && frees;
        drop(view);
        if passed.records > 0 {
            self.shared.queue.moved(urgent);
        }
        passed
    }

    /// The member's counts.
    pub fn stats(&self) -> Stats {
        self.member.view().stats()
    }

    /// Records that wait for the member.
    pub fn backlog(&self) -> Totals {
        self.member.view().backlog()
    }

    /// Waits until there is a backlog.
    ///
    /// # Errors
    /// When the logs are closed.
    pub async fn readable(&self) -> Result<(), ReadError> {
        loop {
            let mut changed = pin!(self.member.readable.notified());
            changed.as_mut().enable();
            if !self.member.view().is_empty() {
                return Ok(());
            }
            if self.shared.queue.is_closed() {
                return Err(ReadError::Closed);
            }
            changed.await;
        }
    }

    /// Waits until something was deleted since an append was refused for a quota; returns at once where none was. Another
    /// append may still be refused.
    ///
    /// # Errors
    /// When the logs are closed.
    pub async fn space(&self) -> Result<(), AppendError> {
        loop {
            let mut changed = pin!(self.member.space.notified());
            changed.as_mut().enable();
            if !self.member.view().starved {
                return Ok(());
            }
            if self.shared.queue.is_closed() {
                return Err(AppendError::Closed);
            }
            changed.await;
        }
    }

    /// Frees the log from quotas until it is [asked for](crate::Handoffs::member) again. For a member that left: what its sender
    /// still has in memory for it needs a place on disk, so that others can take it from there.
    pub fn lift_quotas(&self) {
        let mut view = self.member.view();
        view.unlimited = true;
        view.starved = false;
        drop(view);
        self.member.space.notify_waiters();
    }

    /// Deletes the member's backlog, whose content was moved elsewhere or is not wanted any more, and gives what it was.
    /// The log can be appended to again.
    ///
    /// # Errors
    /// When the disk refuses to note it. The backlog is gone then, unless a crash follows.
    pub async fn forget(&self) -> Result<Totals, AppendError> {
        let (reply, answer) = oneshot::channel();
        self.submit(Work::Forget(reply)).await.map_err(|Closed| AppendError::Closed)?;
        answer.await.unwrap_or(Err(AppendError::Closed))
    }

    async fn submit(&self, work: Work) -> Result<(), Closed> {
        self.shared.queue.submit(&self.member, work).await
    }
}

impl fmt::Debug for MemberLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberLog({})", self.member.address)
    }
}

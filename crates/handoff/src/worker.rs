//! The I/O thread: answers requests, syncs appends in groups, saves cursors, deletes segments.

mod append;
mod space;

use crate::disk::{Disk, RETRY_INTERVAL};
use crate::error::{AppendError, DiskError};
use crate::log::Log;
use crate::queue::{Append, AppendReply, Request, Work};
use crate::recover::first_segment;
use crate::state::{MemberState, Shared};
use crate::totals::Totals;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// The thread's stack, in bytes.
pub(crate) const STACK_BYTES: usize = 256 << 10;
/// A member's log in memory, in bytes.
pub(crate) const LOG_BYTES: usize = size_of::<Log>() + size_of::<usize>();
/// An append that waits for its sync, in bytes.
pub(crate) const OUTCOME_BYTES: usize = size_of::<QueuedAppend>() + size_of::<Written>();

pub(crate) struct Worker {
    shared: Arc<Shared>,
    disk: Disk,
    /// By the member's index.
    logs: Vec<Log>,
    requests: Vec<Request>,
    appends: Vec<QueuedAppend>,
    /// The appends that were written and are not answered.
    written: Vec<Written>,
    /// Cursors moved since they were saved.
    unsaved: bool,
    saved_ns: u64,
}

struct QueuedAppend {
    index: usize,
    append: Append,
    reply: AppendReply,
    place: OwnedSemaphorePermit,
}

struct Written {
    index: usize,
    reply: AppendReply,
    /// Given back when it is answered.
    _place: OwnedSemaphorePermit,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, disk: Disk, logs: Vec<Log>) -> Worker {
        let (places, saved_ns) = (shared.settings.queue, disk.clock.monotonic_ns());
        Worker {
            shared,
            disk,
            logs,
            requests: Vec::with_capacity(places),
            appends: Vec::with_capacity(places),
            written: Vec::with_capacity(places),
            unsaved: false,
            saved_ns,
        }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let _closer = CloseOnDrop(self.shared.clone());
        while self.turn(self.patience()) {}
    }

    /// How long it may wait for a request.
    fn patience(&self) -> Option<Duration> {
        self.unsaved.then(|| RETRY_INTERVAL.saturating_sub(self.since_save()))
    }

    fn since_save(&self) -> Duration {
        Duration::from_nanos(self.disk.clock.monotonic_ns().saturating_sub(self.saved_ns))
    }

    /// Does what is asked for, or waits for it. False when the queue is closed and everything was done.
    pub(crate) fn turn(&mut self, patience: Option<Duration>) -> bool {
        let mut requests = std::mem::take(&mut self.requests);
        let signals = self.shared.queue.take(&mut requests, patience);
        self.unsaved |= signals.moved;
        let idle = requests.is_empty();
        for request in requests.drain(..) {
            self.accept(request);
        }
        self.requests = requests;
        self.append_queued();
        let closing = signals.closed && idle;
        if self.unsaved && (signals.urgent || closing || self.since_save() >= RETRY_INTERVAL) {
            self.save_and_delete();
        }
        !closing
    }

    /// Answers what only reads, so that it does not wait for a sync; collects the appends.
    fn accept(&mut self, request: Request) {
        let Request { member, work, place } = request;
        let index = member.index;
        self.adopt(&member);
        let log = self.logs.get_mut(index).filter(|log| Arc::ptr_eq(&log.member, &member));
        let Some(log) = log else { return };
        match work {
            Work::Append(append, reply) => {
                self.appends.push(QueuedAppend { index, append, reply, place });
            }
            Work::Next(None, reply) => {
                let before = log.member.view().cursor;
                let next = log.next_record(&mut self.disk);
                self.unsaved |= log.member.view().cursor != before;
                let frees = log.member.view().starved && log.could_be_consumed();
                answer(reply, next);
                if frees {
                    self.save_and_delete();
                }
            }
            Work::Next(Some(record), reply) => answer(reply, log.record_after(&mut self.disk, &record)),
            Work::Read(record, window, reply) => {
                let read = log.read(&mut self.disk, &record, window);
                self.unsaved |= read.is_err();
                answer(reply, read);
            }
            Work::Forget(reply) => answer(reply, self.forget(index)),
        }
    }

    /// Has a log for every member that was made since.
    fn adopt(&mut self, member: &Arc<MemberState>) {
        let known = self.logs.get(member.index);
        if known.is_some_and(|log| Arc::ptr_eq(&log.member, member)) {
            return;
        }
        let first = first_segment(self.disk.cursors.generation());
        for (index, member) in self.shared.members().iter().enumerate() {
            let fresh = || {
                member.adopt();
                Log::begin(member.clone(), first)
            };
            match self.logs.get_mut(index) {
                None => self.logs.push(fresh()),
                // Its log is blank: the place was given to another member.
                Some(log) if !Arc::ptr_eq(&log.member, member) => *log = fresh(),
                Some(_) => {}
            }
        }
    }

    /// Deletes a member's log.
    fn forget(&mut self, index: usize) -> Result<Totals, AppendError> {
        self.settle(Some(index));
        let Some(log) = self.logs.get_mut(index) else { return Ok(Totals::ZERO) };
        let mut view = log.member.view();
        let head = view.head;
        let forgotten = view.advance(head);
        view.forgotten = view.forgotten.plus(forgotten);
        drop(view);
        self.unsaved = true;
        if let Err(error) = self.save() {
            let trouble = DiskError::of(&error);
            return Err(AppendError::Disk { trouble, retry_after: RETRY_INTERVAL });
        }
        self.delete_consumed();
        Ok(forgotten)
    }
}

/// Answers a request. A task that has gone does not hear it.
fn answer<T>(reply: oneshot::Sender<T>, outcome: T) {
    let _ = reply.send(outcome);
}

/// Closes the queue when the thread ends, also when it panics: nobody waits for it then.
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.queue.close();
        self.0.queue.abandon();
        self.0.members().iter().for_each(|member| member.wake());
    }
}

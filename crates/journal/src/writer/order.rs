//! Groups on their way to the disk: written one behind the other, synced at the same time, settled in the
//! order in which they were written.
//!
//! A group is acknowledged when its own sync and those of all groups before it have returned without an error.
//! After one that failed, all that were written behind it are refused with it, until the writer has gone back
//! to the end of the last good one.

use crate::files::File;
use crate::log::{Head, Outcome, Shared};
use crate::segment::SegmentHead;
use crate::settings::{Durability, Trouble};
use crate::sync::{Condvar, Mutex, lock};
use std::io;
use std::sync::{Arc, PoisonError};
use std::task::Waker;

/// How many groups may be on their way at a time, and so how many threads write.
pub(crate) const HANDS: usize = 2;

impl Durability {
    /// How many groups may be on their way at a time: where nothing is synced there is nothing to overlap.
    pub(crate) fn hands(self) -> usize {
        if self == Durability::Fsync { HANDS } else { 1 }
    }
}

/// In which order groups are settled.
#[derive(Default)]
pub(crate) struct Order {
    state: Mutex<Turns>,
    settled: Condvar,
}

#[derive(Default)]
struct Turns {
    /// Groups written, and groups settled, ever.
    written: u64,
    settled: u64,
    /// The error, until the writer has recovered.
    broken: Option<Trouble>,
    /// A thread that wrote is gone: nothing is settled any more.
    ended: bool,
}

impl Order {
    fn enter(&self) -> u64 {
        let mut state = lock(&self.state);
        state.written += 1;
        state.written - 1
    }

    /// Waits until every group before the one with this number is settled, and says what has failed.
    fn await_turn(&self, number: u64) -> Option<Trouble> {
        let mut state = lock(&self.state);
        while state.settled != number && !state.ended {
            state = self.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.ended { Some(Trouble::Failed(io::ErrorKind::Other)) } else { state.broken }
    }

    fn leave(&self, broken: Option<Trouble>) {
        let mut state = lock(&self.state);
        state.settled += 1;
        state.broken = broken;
        self.settled.notify_all();
    }

    /// Whether groups are on their way.
    pub(crate) fn is_busy(&self) -> bool {
        let state = lock(&self.state);
        state.settled != state.written
    }

    /// Waits until none is.
    pub(crate) fn drain(&self) {
        let mut state = lock(&self.state);
        while state.settled != state.written && !state.ended {
            state = self.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether a group has failed since the writer went back the last time.
    pub(crate) fn is_broken(&self) -> bool {
        lock(&self.state).broken.is_some()
    }

    /// The writer has gone back to the end of the last good group.
    pub(crate) fn mended(&self) {
        lock(&self.state).broken = None;
    }

    /// A thread that wrote is gone, and with it the turns of its groups.
    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.settled.notify_all();
    }
}

/// A group that was written, until it is settled. Kept by one thread and used again and again.
pub(crate) struct Flight {
    shared: Arc<Shared>,
    /// Which of the threads keeps it.
    pub(super) hand: usize,
    /// Where in the order it is, while it is on its way.
    number: Option<u64>,
    /// The open file description that it syncs, used by no other thread. The kernel reports a writeback error once
    /// per description; with a shared one, a thread could receive the error of another's group, and the other none.
    file: Option<Arc<dyn File>>,
    /// Where it ends in its segment, and what the head is behind it.
    end: u64,
    head: Head,
    first: SegmentHead,
    synced: io::Result<()>,
    took_ns: Option<u64>,
    /// Its slots, and what they are answered when all went well.
    pub(super) outcomes: Vec<(u32, Outcome)>,
    wakers: Vec<Waker>,
}

impl Flight {
    pub(crate) fn new(shared: Arc<Shared>, hand: usize) -> Flight {
        let slots = shared.settings.queue;
        Flight {
            shared,
            hand,
            number: None,
            file: None,
            end: 0,
            head: Head::default(),
            first: SegmentHead { items_before: 0, received_at_ns: 0 },
            synced: Ok(()),
            took_ns: None,
            outcomes: Vec::with_capacity(slots),
            wakers: Vec::with_capacity(slots),
        }
    }

    /// The group was written. Nothing may be written behind it before this was called.
    pub(super) fn depart(&mut self, file: Arc<dyn File>, end: u64, head: Head, first: SegmentHead) {
        self.number = Some(self.shared.order.enter());
        (self.end, self.head, self.first) = (end, head, first);
        (self.file, self.synced, self.took_ns) = (Some(file), Ok(()), None);
    }

    /// Makes the group durable, where that is asked for.
    pub(crate) fn sync(&mut self) {
        let Some(file) = &self.file else { return };
        if self.shared.settings.durability == Durability::Fsync {
            let before = self.shared.clock.monotonic_ns();
            self.synced = file.sync();
            self.took_ns = Some(self.shared.clock.monotonic_ns().saturating_sub(before));
        }
    }

    /// Waits for the groups before it, then acknowledges it or refuses it.
    pub(crate) fn settle(&mut self) {
        let Some(number) = self.number.take() else { return };
        self.file = None;
        let mut broken = self.shared.order.await_turn(number);
        let synced = std::mem::replace(&mut self.synced, Ok(()));
        if let (None, Err(error)) = (broken, &synced) {
            broken = Some(self.shared.failed(error));
        }
        // It is nobody else's turn until this one leaves, so nothing is locked meanwhile.
        match broken {
            None => self.publish(),
            Some(trouble) => {
                let refused = Err(self.shared.refusal(trouble));
                self.outcomes.iter_mut().for_each(|(_, outcome)| *outcome = refused);
                self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
            }
        }
        self.shared.order.leave(broken);
    }

    /// Lets sinks read the group and acknowledges it.
    fn publish(&mut self) {
        let mut log = lock(&self.shared.log);
        if let Some(took) = self.took_ns {
            let counters = &mut log.counters;
            counters.syncs += 1;
            counters.sync_ns += took;
            counters.last_sync_ns = took;
        }
        log.grow(self.end, self.head, self.first);
        log.wakers(&mut self.wakers);
        drop(log);
        self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
    }
}

//! The hand-off between those who append and those who write, one at a time: a fixed table of slots.
//!
//! A slot is *free*, *queued* (an item waits for the writer), *taken* (the writer has the item) or *done*
//! (the outcome waits for its ticket). It belongs to its ticket until the ticket has read the outcome; a
//! ticket that is dropped earlier leaves it to the writer, which frees it when it is done. So an index never
//! names two things at a time and needs no generation. Nothing here allocates after creation.

use crate::sync::{Condvar, Mutex, lock};
use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::time::Duration;

pub(crate) struct Queue<T, R> {
    state: Mutex<State<T, R>>,
    arrived: Condvar,
    /// Whether it may be barred: who only wants to know that it is not need not take the lock.
    may_be_barred: AtomicBool,
}

struct State<T, R> {
    slots: Vec<Slot<T, R>>,
    free: Vec<u32>,
    /// Queued slots in the order of arrival.
    waiting: VecDeque<u32>,
    /// How many items were submitted, modulo 2^32.
    submitted: u32,
    /// The answer to every submission until the given time.
    barred: Option<(R, u64)>,
    closed: bool,
    /// Something other than an item wants the writer's attention.
    called: bool,
    /// One of those who write has the turn.
    writing: bool,
    in_flight: InFlightGroup,
}

/// The group that was written last, while it is on its way to the disk.
#[derive(Default)]
struct InFlightGroup {
    /// How many items it has; zero when it is done.
    items: usize,
    /// Which one it is.
    number: u64,
}

impl<T, R> State<T, R> {
    /// Whether what is queued is worth a turn: while a group is on its way, as much as that has. Two groups of
    /// the same size cost half the syncs of a large one and many small ones, and nobody waits for longer than
    /// one sync.
    fn is_worth_a_turn(&self) -> bool {
        let waiting = self.waiting.len();
        waiting > 0 && (self.closed || waiting >= self.in_flight.items)
    }
}

struct Slot<T, R> {
    phase: Phase<T, R>,
    waker: Option<Waker>,
    /// The number of its item, in the order of submission. Of 32 bits, for which a slot has room anyway.
    number: u32,
    /// Its ticket was dropped.
    abandoned: bool,
}

enum Phase<T, R> {
    Free,
    Queued(T),
    Taken,
    Done(R),
}

/// Memory of one slot with its entries in the two lists, in bytes.
pub(crate) const fn slot_len<T, R>() -> usize {
    size_of::<Slot<T, R>>() + 2 * size_of::<u32>()
}

/// Why a submission was not taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubmitError<R> {
    /// Every slot is in use.
    Full,
    /// The queue was closed.
    Closed,
    /// The writer has said no to everybody for a while.
    Barred(R),
}

/// The result of [`Queue::turn`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterTurn {
    /// The turn: for items, or a call, or because the wait is over.
    Open,
    /// The queue is closed, and nothing is left in it.
    Closed,
}

impl<T, R: Copy> Queue<T, R> {
    pub(crate) fn new(slots: usize) -> Queue<T, R> {
        let count = u32::try_from(slots).unwrap_or(u32::MAX);
        let slot = || Slot { phase: Phase::Free, number: 0, waker: None, abandoned: false };
        let state = State {
            slots: (0..count).map(|_| slot()).collect(),
            free: (0..count).rev().collect(),
            waiting: VecDeque::with_capacity(slots),
            submitted: 0,
            barred: None,
            closed: false,
            called: false,
            writing: false,
            in_flight: InFlightGroup::default(),
        };
        Queue { state: Mutex::new(state), arrived: Condvar::new(), may_be_barred: AtomicBool::new(false) }
    }

    /// Queues `item` and gives the slot in which its outcome will appear.
    pub(crate) fn submit(&self, item: T, now: u64) -> Result<u32, SubmitError<R>> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(SubmitError::Closed);
        }
        match state.barred {
            Some((answer, until)) if now < until => return Err(SubmitError::Barred(answer)),
            Some(_) => {
                state.barred = None;
                self.may_be_barred.store(false, Relaxed);
            }
            None => {}
        }
        let Some(index) = state.free.pop() else { return Err(SubmitError::Full) };
        let number = state.submitted;
        state.submitted = number.wrapping_add(1);
        if let Some(slot) = state.slots.get_mut(index as usize) {
            *slot = Slot { phase: Phase::Queued(item), number, waker: None, abandoned: false };
        }
        state.waiting.push_back(index);
        // Only one of several needs to wake the writer: it takes all that are there.
        if state.waiting.len() == state.in_flight.items.max(1) {
            self.arrived.notify_one();
        }
        Ok(index)
    }

    /// The outcome in `index`, if it is there; else leaves `waker` to be woken. To be called by the owner
    /// of the slot only, and not again after it was ready.
    pub(crate) fn poll(&self, index: u32, waker: &Waker) -> Poll<R> {
        let mut state = lock(&self.state);
        let Some(slot) = state.slots.get_mut(index as usize) else { return Poll::Pending };
        if let Phase::Done(outcome) = slot.phase {
            slot.phase = Phase::Free;
            slot.waker = None;
            state.free.push(index);
            return Poll::Ready(outcome);
        }
        if slot.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            slot.waker = Some(waker.clone());
        }
        Poll::Pending
    }

    /// The owner of the slot does not want its outcome any more. The item is still written.
    pub(crate) fn abandon(&self, index: u32) {
        let mut state = lock(&self.state);
        let Some(slot) = state.slots.get_mut(index as usize) else { return };
        let waker = slot.waker.take();
        if matches!(slot.phase, Phase::Done(_)) {
            slot.phase = Phase::Free;
            state.free.push(index);
        } else {
            slot.abandoned = true;
        }
        drop(state);
        drop(waker);
    }

    /// Waits for the turn to write: until no other thread has it and enough is queued or the writer was woken, or
    /// until `patience` is over. The holder [`take`](Self::take)s the queued items, writes them,
    /// [`release`](Self::release)s the turn, and reports when the [group is done](Self::group_done).
    pub(crate) fn turn(&self, patience: Option<Duration>) -> WriterTurn {
        let mut state = lock(&self.state);
        let mut patient = true;
        while state.writing || (patient && !state.is_worth_a_turn() && !state.called) {
            if state.closed && !state.writing && state.waiting.is_empty() {
                return WriterTurn::Closed;
            }
            state = match patience.filter(|_| patient) {
                Some(patience) => {
                    let waited = self.arrived.wait_timeout(state, patience);
                    let (relocked, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
                    patient = !outcome.timed_out();
                    relocked
                }
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state.called = false;
        state.writing = true;
        WriterTurn::Open
    }

    /// Takes all queued items. Only the holder of the turn calls it.
    pub(crate) fn take(&self, into: &mut Vec<(u32, T)>) {
        let mut state = lock(&self.state);
        while let Some(index) = state.waiting.pop_front() {
            let Some(slot) = state.slots.get_mut(index as usize) else { continue };
            if let Phase::Queued(item) = std::mem::replace(&mut slot.phase, Phase::Taken) {
                into.push((index, item));
            }
        }
    }

    /// Releases the turn with a group of `under_way` items being written; returns the group's number.
    pub(crate) fn release(&self, under_way: usize) -> u64 {
        let mut state = lock(&self.state);
        state.writing = false;
        if under_way > 0 {
            state.in_flight = InFlightGroup { items: under_way, number: state.in_flight.number + 1 };
        }
        let number = state.in_flight.number;
        // Whoever arrived during the turn has signalled in vain.
        if state.closed {
            self.arrived.notify_all();
        } else if state.is_worth_a_turn() || state.called {
            self.arrived.notify_one();
        }
        number
    }

    /// The group of this number is on its way no more. Who says so asks for the [`turn`](Self::turn) next, and so
    /// needs not be woken for what was too little before.
    pub(crate) fn group_done(&self, number: u64) {
        let mut state = lock(&self.state);
        if state.in_flight.number == number {
            state.in_flight.items = 0;
        }
    }

    /// Stores the outcomes of taken slots for their tickets, and empties `outcomes`. `wakers` is
    /// room to work in: wakers run outside the lock.
    pub(crate) fn complete(&self, outcomes: &mut Vec<(u32, R)>, wakers: &mut Vec<Waker>) {
        let mut state = lock(&self.state);
        for (index, outcome) in outcomes.drain(..) {
            let Some(slot) = state.slots.get_mut(index as usize) else { continue };
            wakers.extend(slot.waker.take());
            if slot.abandoned {
                slot.phase = Phase::Free;
                state.free.push(index);
            } else {
                slot.phase = Phase::Done(outcome);
            }
        }
        drop(state);
        wakers.drain(..).for_each(Waker::wake);
    }

    /// Answers every submission with `answer` until the time is `until`.
    pub(crate) fn suspend(&self, answer: R, until: u64) {
        let mut state = lock(&self.state);
        state.barred = Some((answer, until));
        self.may_be_barred.store(true, Relaxed);
    }

    /// The answer to submissions, while one is set.
    #[inline]
    pub(crate) fn suspended(&self, now: impl FnOnce() -> u64) -> Option<R> {
        if !self.may_be_barred.load(Relaxed) {
            return None;
        }
        let now = now();
        lock(&self.state).barred.filter(|(_, until)| now < *until).map(|(answer, _)| answer)
    }

    /// Accepts submissions again.
    pub(crate) fn resume(&self) {
        let mut state = lock(&self.state);
        state.barred = None;
        self.may_be_barred.store(false, Relaxed);
    }

    /// Wakes the writer although nothing is queued.
    pub(crate) fn wake_writer(&self) {
        lock(&self.state).called = true;
        self.arrived.notify_one();
    }

    /// Refuses submissions from now on; what is queued is still taken.
    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.arrived.notify_all();
    }

    /// How many items were submitted, modulo 2^32: far more than there are slots.
    pub(crate) fn submitted(&self) -> u32 {
        lock(&self.state).submitted
    }

    /// Whether an item is on its way before which fewer than `number` were submitted.
    pub(crate) fn has_pending_before(&self, number: u32) -> bool {
        let state = lock(&self.state);
        let is_pending = |slot: &Slot<T, R>| matches!(slot.phase, Phase::Queued(_) | Phase::Taken);
        let is_before = |slot: &Slot<T, R>| number.wrapping_sub(slot.number).wrapping_sub(1) < u32::MAX / 2;
        state.slots.iter().any(|slot| is_pending(slot) && is_before(slot))
    }

    /// How many slots are in use.
    pub(crate) fn in_use(&self) -> usize {
        let state = lock(&self.state);
        state.slots.len() - state.free.len()
    }
}

#[cfg(test)]
mod tests;

//! The arithmetic of charges: who may take how much now, who waits, who is next. No memory, no threads.

use crate::share::{Floors, Share};
use std::collections::VecDeque;
use std::task::Waker;

/// Invariants, checked by the property test below:
/// 1. sum over shares of max(used, floor) ≤ total, so whatever is below a floor can be granted at once;
/// 2. `waiting[s]` holds in arrival order the waiters of `s` that are not granted;
/// 3. a waiter that could be granted is granted: it never sleeps while its bytes are free.
pub(crate) struct Budget {
    total: u64,
    floors: Floors,
    used: [u64; Share::COUNT],
    peak: [u64; Share::COUNT],
    waiting: [VecDeque<u32>; Share::COUNT],
    waiters: Waiters,
}

impl Budget {
    /// Holds `total` bytes with these floors; at most `waiters` charges can wait at a time.
    pub(crate) fn new(total: u64, floors: Floors, waiters: usize) -> Self {
        assert!(floors.sum() <= total, "the floors of the shares exceed the budget");
        Budget {
            total,
            floors,
            used: [0; Share::COUNT],
            peak: [0; Share::COUNT],
            waiting: std::array::from_fn(|_| VecDeque::with_capacity(waiters)),
            waiters: Waiters::new(waiters),
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn used(&self, share: Share) -> u64 {
        self.used[share.index()]
    }

    pub(crate) fn peak(&self, share: Share) -> u64 {
        self.peak[share.index()]
    }

    pub(crate) fn floor(&self, share: Share) -> u64 {
        self.floors.of(share)
    }

    pub(crate) fn used_by_all(&self) -> u64 {
        self.used.iter().sum()
    }

    /// The most that `share` can ever hold: everything but the floors of the others.
    pub(crate) fn ceiling(&self, share: Share) -> u64 {
        self.total - (self.floors.sum() - self.floors.of(share))
    }

    /// Whether all of `held` could be charged at the same time if nobody else held anything.
    pub(crate) fn could_hold(&self, held: &[(Share, u64)]) -> bool {
        let committed = Share::ALL.into_iter().map(|share| {
            let of_share = held.iter().filter(|(of, _)| *of == share);
            let held = of_share.fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
            held.max(self.floors.of(share))
        });
        committed.fold(0u64, u64::saturating_add) <= self.total
    }

    /// The bytes that `share` could be charged now, within its floor or beyond.
    pub(crate) fn free(&self, share: Share) -> u64 {
        let others = Share::ALL.iter().filter(|other| **other != share);
        let committed: u64 = others.map(|other| self.used(*other).max(self.floors.of(*other))).sum();
        let used = self.used(share);
        let borrowed = self.total.saturating_sub(committed).saturating_sub(used);
        borrowed.max(self.floors.of(share).saturating_sub(used))
    }

    /// Has another total and other floors from now on, if what is used fits them; says whether it did.
    pub(crate) fn replan(&mut self, total: u64, floors: Floors) -> bool {
        let committed: u64 = Share::ALL.iter().map(|share| self.used(*share).max(floors.of(*share))).sum();
        if committed > total {
            return false;
        }
        (self.total, self.floors) = (total, floors);
        self.grant();
        true
    }

    /// Takes `bytes` for `share` now, if neither the floors nor those who wait forbid it.
    pub(crate) fn try_take(&mut self, share: Share, bytes: u64) -> bool {
        let granted = self.within_floor(share, bytes) || (!self.must_queue(share) && self.fits(share, bytes));
        if granted {
            self.take(share, bytes);
        }
        granted
    }

    /// Takes `bytes` that cannot be had back, whether or not they fit: nothing more is granted until they do.
    pub(crate) fn take_anyway(&mut self, share: Share, bytes: u64) {
        self.take(share, bytes);
    }

    /// Gives `bytes` back and grants whoever can go on now.
    pub(crate) fn release(&mut self, share: Share, bytes: u64) {
        let used = &mut self.used[share.index()];
        debug_assert!(*used >= bytes, "more released than taken");
        *used = used.saturating_sub(bytes);
        self.grant();
    }

    /// Registers a waiter; `None` when too many wait already.
    pub(crate) fn wait(&mut self, share: Share, bytes: u64, waker: Waker) -> Option<u32> {
        let key = self.waiters.insert(Waiter { share, bytes, waker, granted: false })?;
        self.waiting[share.index()].push_back(key);
        Some(key)
    }

    /// Whether the waiter has been granted; if so it is gone and its bytes are the caller's.
    pub(crate) fn claim(&mut self, key: u32, waker: &Waker) -> bool {
        let Some(waiter) = self.waiters.get_mut(key) else { return false };
        if waiter.granted {
            self.waiters.remove(key);
            return true;
        }
        waiter.waker.clone_from(waker);
        false
    }

    /// A waiter leaves before it was answered, or with a grant that nobody took.
    pub(crate) fn forget(&mut self, key: u32) {
        let Some(waiter) = self.waiters.remove(key) else { return };
        if waiter.granted {
            self.release(waiter.share, waiter.bytes);
        } else {
            self.waiting[waiter.share.index()].retain(|waiting| *waiting != key);
            // It may have been the one that the others had to queue behind.
            self.grant();
        }
    }

    pub(crate) fn waiting(&self, share: Share) -> usize {
        self.waiting[share.index()].len()
    }

    fn within_floor(&self, share: Share, bytes: u64) -> bool {
        self.used(share).checked_add(bytes).is_some_and(|used| used <= self.floors.of(share))
    }

    /// Whether `bytes` more for `share` leave every other share its floor.
    fn fits(&self, share: Share, bytes: u64) -> bool {
        let others: u64 = Share::ALL
            .iter()
            .filter(|other| **other != share)
            .map(|other| self.used(*other).max(self.floors.of(*other)))
            .sum();
        let wanted = self.used(share).checked_add(bytes);
        wanted.and_then(|wanted| wanted.checked_add(others)).is_some_and(|sum| sum <= self.total)
    }

    /// Borrowing goes downstream first: nobody borrows past a waiter of the same share or one below it.
    fn must_queue(&self, share: Share) -> bool {
        Share::ALL[share.index()..].iter().any(|s| !self.waiting[s.index()].is_empty())
    }

    fn take(&mut self, share: Share, bytes: u64) {
        let index = share.index();
        self.used[index] += bytes;
        self.peak[index] = self.peak[index].max(self.used[index]);
    }

    /// Grants waiters, downstream shares first, each share in arrival order. Behind a waiter that has to
    /// borrow and cannot, only what fits within a floor passes, so that the large are not starved by the
    /// small and the small are not locked up by the large.
    fn grant(&mut self) {
        let mut may_borrow = true;
        for share in Share::ALL.into_iter().rev() {
            let mut position = 0;
            while let Some(key) = self.waiting[share.index()].get(position).copied() {
                let Some(bytes) = self.waiters.get_mut(key).map(|w| w.bytes) else { break };
                if self.within_floor(share, bytes) || (may_borrow && self.fits(share, bytes)) {
                    self.waiting[share.index()].remove(position);
                    self.take(share, bytes);
                    if let Some(waiter) = self.waiters.get_mut(key) {
                        waiter.granted = true;
                        waiter.waker.wake_by_ref();
                    }
                } else {
                    may_borrow = false;
                    position += 1;
                }
            }
        }
    }
}

struct Waiter {
    share: Share,
    bytes: u64,
    waker: Waker,
    granted: bool,
}

/// A table of waiters that is allocated once.
struct Waiters {
    slots: Vec<Option<Waiter>>,
    free: Vec<u32>,
}

impl Waiters {
    fn new(most: usize) -> Self {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        Waiters { slots: (0..most).map(|_| None).collect(), free: (0..most).rev().collect() }
    }

    fn insert(&mut self, waiter: Waiter) -> Option<u32> {
        let key = self.free.pop()?;
        *self.slots.get_mut(key as usize)? = Some(waiter);
        Some(key)
    }

    fn get_mut(&mut self, key: u32) -> Option<&mut Waiter> {
        self.slots.get_mut(key as usize)?.as_mut()
    }

    fn remove(&mut self, key: u32) -> Option<Waiter> {
        let waiter = self.slots.get_mut(key as usize)?.take()?;
        self.free.push(key);
        Some(waiter)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

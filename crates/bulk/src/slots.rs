//! The slots: one for each pending item, in one allocation of bounded size.

use crate::outcome::Outcome;
use std::task::Waker;

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;
/// The memory of a slot, in bytes.
pub(crate) const SLOT_BYTES: usize = size_of::<Slot>();
const _: () = assert!(SLOT_BYTES <= 112, "a slot has grown");

/// Names a slot as long as it is used for the same item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotKey {
    pub(crate) slot: u32,
    generation: u32,
}

/// The state of an item. The batch knows whether its request is in flight, so sending touches no slot.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Unused.
    Free,
    /// In its batch's list: waiting, in flight or to be retried.
    Queued,
    /// In its batch's list and in flight, without a caller.
    Abandoned,
    /// In no list; the caller has not taken the answer yet.
    Answered(Outcome),
}

/// One item.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) phase: Phase,
    pub(crate) waker: Option<Waker>,
    /// Its bytes in its batch's window.
    pub(crate) start: u32,
    pub(crate) len: u32,
    /// Its neighbours in its batch's list; `next` also links free slots.
    pub(crate) previous: u32,
    pub(crate) next: u32,
    /// The position in the order of its document.
    pub(crate) document: u32,
    generation: u32,
    pub(crate) batch: u16,
    /// The server chooses its id, and the answer is to name it.
    pub(crate) has_auto_id: bool,
}

/// All slots. Those never used yet are not initialised, so their pages are not resident.
pub(crate) struct Slots {
    all: Vec<Slot>,
    most: usize,
    free: u32,
    used: u32,
}

impl Slots {
    /// No slots yet, and at most `most` ever.
    pub(crate) fn new(most: u32) -> Slots {
        Slots { all: Vec::with_capacity(most as usize), most: most as usize, free: NONE, used: 0 }
    }

    /// Whether all are in use.
    pub(crate) fn is_full(&self) -> bool {
        self.free == NONE && self.all.len() == self.most
    }

    /// How many are in use.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Takes a slot for an item of `batch`. `None` when all are in use.
    pub(crate) fn take(&mut self, batch: u16) -> Option<SlotKey> {
        let slot = if self.free != NONE {
            self.free
        } else if self.all.len() < self.most {
            let (phase, previous, next, document) = (Phase::Free, NONE, NONE, NONE);
            let (start, len, generation, batch, has_auto_id) = (0, 0, 0, 0, false);
            let waker = None;
            self.all.push(Slot {
                phase,
                waker,
                start,
                len,
                previous,
                next,
                document,
                generation,
                batch,
                has_auto_id,
            });
            // `most` is at most 2^24.
            u32::try_from(self.all.len() - 1).unwrap_or(NONE)
        } else {
            return None;
        };
        let taken = self.all.get_mut(slot as usize)?;
        self.free = taken.next;
        taken.next = NONE;
        taken.previous = NONE;
        taken.phase = Phase::Queued;
        taken.batch = batch;
        self.used += 1;
        Some(SlotKey { slot, generation: taken.generation })
    }

    /// Gives a slot back. What it held is returned, to be dropped without the lock.
    pub(crate) fn free(&mut self, slot: u32) -> (Phase, Option<Waker>) {
        let free = self.free;
        let Some(given) = self.all.get_mut(slot as usize) else { return (Phase::Free, None) };
        given.generation = given.generation.wrapping_add(1);
        given.next = free;
        let held = (std::mem::replace(&mut given.phase, Phase::Free), given.waker.take());
        self.free = slot;
        self.used -= 1;
        held
    }

    /// The slot of `key`, unless it was given back since.
    pub(crate) fn get_mut(&mut self, key: SlotKey) -> Option<&mut Slot> {
        self.all.get_mut(key.slot as usize).filter(|slot| slot.generation == key.generation)
    }

    pub(crate) fn at(&self, slot: u32) -> Option<&Slot> {
        self.all.get(slot as usize)
    }

    pub(crate) fn at_mut(&mut self, slot: u32) -> Option<&mut Slot> {
        self.all.get_mut(slot as usize)
    }
}

/// A doubly linked list of slots, with removal in O(1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotList {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) len: u32,
}

impl SlotList {
    pub(crate) const EMPTY: SlotList = SlotList { head: NONE, tail: NONE, len: 0 };

    /// Adds `slot` at the end.
    pub(crate) fn push(&mut self, slots: &mut Slots, slot: u32) {
        let last = self.tail;
        match slots.at_mut(last) {
            Some(last) => last.next = slot,
            None => self.head = slot,
        }
        if let Some(slot) = slots.at_mut(slot) {
            slot.previous = last;
            slot.next = NONE;
        }
        self.tail = slot;
        self.len += 1;
    }

    /// Takes `slot` out.
    pub(crate) fn remove(&mut self, slots: &mut Slots, slot: u32) {
        let Some(Slot { previous, next, .. }) = slots.at(slot) else { return };
        let (previous, next) = (*previous, *next);
        match slots.at_mut(previous) {
            Some(slot) => slot.next = next,
            None => self.head = next,
        }
        match slots.at_mut(next) {
            Some(slot) => slot.previous = previous,
            None => self.tail = previous,
        }
        self.len -= 1;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A stale key finds nothing, and removing a slot from a list leaves the others.
    #[test]
    fn keys_and_lists_outlive_their_items() {
        let mut slots = Slots::new(3);
        let mut queue = SlotList::EMPTY;
        let keys: Vec<SlotKey> = (0..3).map(|_| slots.take(7).unwrap()).collect();
        assert!(slots.is_full() && slots.take(7).is_none());
        keys.iter().for_each(|key| queue.push(&mut slots, key.slot));
        queue.remove(&mut slots, keys[1].slot);
        slots.free(keys[1].slot);
        assert!(slots.get_mut(keys[1]).is_none());
        let next = slots.take(7).unwrap();
        assert_eq!((next.slot, slots.used()), (keys[1].slot, 3));
        assert!(slots.get_mut(keys[1]).is_none() && slots.get_mut(next).is_some());
        queue.push(&mut slots, next.slot);
        for slot in [keys[0].slot, keys[2].slot, next.slot] {
            assert_eq!(queue.head, slot);
            queue.remove(&mut slots, slot);
        }
        assert_eq!(queue, SlotList::EMPTY);
    }
}

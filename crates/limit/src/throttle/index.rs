//! Where a key's place is: a table of fixed size that is half empty, probed in steps of one.

/// A hash index. Removing an entry closes the gap, so nothing accumulates, and the longest search depends on the
/// current entries, not on earlier ones.
#[derive(Debug)]
pub(super) struct HashIndex {
    slots: Box<[IndexSlot]>,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct IndexSlot {
    /// The upper half of the hash, so that most others need not be looked at.
    tag: u32,
    /// The place, or [`EMPTY`].
    place: u32,
    /// Where the search for it begins.
    home: u32,
}

const EMPTY: u32 = u32::MAX;

impl HashIndex {
    pub(super) fn new(most: usize) -> HashIndex {
        let slots = vec![IndexSlot { tag: 0, place: EMPTY, home: 0 }; slots(most)];
        HashIndex { slots: slots.into_boxed_slice(), len: 0 }
    }

    pub(super) const fn bytes(most: usize) -> usize {
        slots(most) * size_of::<IndexSlot>()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The place of the key with this hash that `same` knows.
    #[inline]
    pub(super) fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        let (tag, mut at) = (tag(hash), self.home(hash));
        loop {
            let slot = self.slots.get(at)?;
            if slot.place == EMPTY {
                return None;
            }
            if slot.tag == tag && same(slot.place) {
                return Some(slot.place);
            }
            at = self.next(at);
        }
    }

    /// Enters a place. There is always a slot for it, since at most half of them are taken.
    pub(super) fn insert(&mut self, hash: u64, place: u32) {
        let home = self.home(hash);
        let mut at = home;
        while let Some(slot) = self.slots.get_mut(at) {
            if slot.place == EMPTY {
                // There are fewer than 2³² slots.
                *slot = IndexSlot { tag: tag(hash), place, home: home as u32 };
                self.len += 1;
                return;
            }
            at = self.next(at);
        }
    }

    /// Removes a place, and moves those behind it that were pushed away from where their search begins.
    pub(super) fn remove(&mut self, hash: u64, place: u32) {
        let mut at = self.home(hash);
        while self.slots.get(at).is_some_and(|slot| slot.place != place) {
            if self.slots.get(at).is_some_and(|slot| slot.place == EMPTY) {
                return;
            }
            at = self.next(at);
        }
        let mut gap = at;
        let mut next = self.next(gap);
        while let Some(slot) = self.slots.get(next).copied() {
            if slot.place == EMPTY {
                break;
            }
            // It may move to the gap unless its search begins behind that.
            if self.steps(slot.home as usize, next) >= self.steps(gap, next) {
                if let Some(to) = self.slots.get_mut(gap) {
                    *to = slot;
                }
                gap = next;
            }
            next = self.next(next);
        }
        if let Some(slot) = self.slots.get_mut(gap) {
            slot.place = EMPTY;
        }
        self.len -= 1;
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    fn steps(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.slots.len() - 1)
    }
}

const fn slots(most: usize) -> usize {
    (2 * most).next_power_of_two()
}

const fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

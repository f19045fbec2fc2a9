//! Decisions that were made, remembered in a ring of fixed size: the oldest goes first.
//!
//! Of a trace 63 bits of its id's hash are kept, and whether it is kept itself. The hash is keyed anew in every process, so nobody can
//! choose ids that clash: of a million remembered traces, one new trace in 10¹³ has the hash of another one.

use crate::index::{Fullness, Index};

/// The bit that says whether a trace is kept.
const KEPT: u64 = 1;

/// The decisions that are remembered.
#[derive(Debug)]
pub(crate) struct Decisions {
    /// The hashes, with [`KEPT`] for traces that are kept.
    hashes: Box<[u64]>,
    /// For each the record before which it was made: its sequence modulo 2³².
    made_before: Box<[u32]>,
    /// Places in the ring, by the hashes without [`KEPT`].
    index: Index,
    /// Decisions made, ever; the first of them that is remembered; and the first that a reader behind may still ask for.
    made: u64,
    first: u64,
    awaited: u64,
}

impl Decisions {
    /// The bytes of a ring of so many decisions.
    pub(crate) fn bytes(count: u32) -> usize {
        count as usize * (size_of::<u64>() + size_of::<u32>()) + Index::bytes(count, Fullness::Half)
    }

    pub(crate) fn new(count: u32) -> Decisions {
        Decisions {
            hashes: vec![0; count as usize].into(),
            made_before: vec![0; count as usize].into(),
            index: Index::new(count, Fullness::Half),
            made: 0,
            first: 0,
            awaited: 0,
        }
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> u64 {
        self.made - self.first
    }

    /// How many more there may be before one is forgotten that a reader behind may still ask for.
    pub(crate) fn room(&self) -> u64 {
        (self.hashes.len() as u64).saturating_sub(self.made - self.awaited)
    }

    /// Whether the trace whose id has this hash is kept; `None` where that is not remembered.
    pub(crate) fn find(&self, hash: u64) -> Option<bool> {
        Some(self.hashes[self.place_of(hash)?] & KEPT != 0)
    }

    /// Whether a decision that is remembered has come half the way to where it is forgotten, and no later copy of it is there.
    pub(crate) fn is_old(&self, hash: u64) -> bool {
        let (hash, len) = (hash & !KEPT, self.hashes.len() as u64);
        let is_young = |place: u32| {
            // So many decisions were made since the one in that place.
            let since = (self.made + len - 1 - u64::from(place)) % len;
            self.hashes[place as usize] & !KEPT == hash && since < len / 2
        };
        self.index.find(hash, is_young).is_none()
    }

    /// How many copies of a decision there are.
    #[cfg(test)]
    pub(crate) fn copies(&self, hash: u64) -> usize {
        let live =
            (self.first..self.made).map(|number| self.hashes[(number % self.hashes.len() as u64) as usize]);
        live.filter(|known| known & !KEPT == hash & !KEPT).count()
    }

    fn place_of(&self, hash: u64) -> Option<usize> {
        let hash = hash & !KEPT;
        let place = self.index.find(hash, |place| self.hashes[place as usize] & !KEPT == hash)?;
        Some(place as usize)
    }

    /// Remembers a decision, made before the record `sequence`. Returns whether one was
    /// forgotten for it that a reader behind may still ask for. Of a trace there may be copies, one in each half of the ring: all say the same, and the oldest goes first.
    pub(crate) fn push(&mut self, hash: u64, is_kept: bool, sequence: u64) -> bool {
        let len = self.hashes.len() as u64;
        let is_lost = self.len() == len && self.forget();
        if len == 0 {
            return true;
        }
        let hash = hash & !KEPT;
        let place = self.made % len;
        self.hashes[place as usize] = if is_kept { hash | KEPT } else { hash };
        self.made_before[place as usize] = sequence as u32;
        self.index.insert(hash, place as u32);
        self.made += 1;
        is_lost
    }

    /// The reader behind has passed all records before `sequence` for good.
    pub(crate) fn pass(&mut self, sequence: u64) {
        while self.awaited < self.made {
            let made_before = self.made_before[(self.awaited % self.hashes.len() as u64) as usize];
            // The two are far less than 2³¹ apart.
            if (sequence as u32).wrapping_sub(made_before).cast_signed() < 0 {
                break;
            }
            self.awaited += 1;
        }
    }

    /// Forgets the oldest. Returns whether a reader behind may still ask for it.
    fn forget(&mut self) -> bool {
        if self.first == self.made {
            return false;
        }
        let place = (self.first % self.hashes.len() as u64) as u32;
        self.index.remove(place, |place| self.hashes[place as usize] & !KEPT);
        let is_lost = self.awaited == self.first;
        self.first += 1;
        self.awaited = self.awaited.max(self.first);
        is_lost
    }
}

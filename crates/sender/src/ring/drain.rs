//! The sending thread's way: take sealed blocks, oldest first, and hold them until the peer has answered.

use super::block::events;
use super::word::{BlockOwner, BlockWord};
use super::{Filled, Ring};
use crate::class::{Class, Kind, Signal};
use crate::sync::Ordering;

/// The blocks of one request, in the hands of the sending thread. One is made at the start and used again.
pub(crate) struct Batch {
    /// Age, index and word of each.
    blocks: Vec<(u64, usize, BlockWord)>,
    /// Blocks at most; halved when the peer says that a request was too large.
    blocks_at_most: usize,
}

impl Batch {
    /// A batch that takes half of the ring's blocks at most.
    pub(crate) fn new(ring: &Ring, bytes: usize) -> Batch {
        Batch {
            blocks: Vec::with_capacity(ring.blocks.len()),
            blocks_at_most: (bytes / ring.block_bytes).clamp(1, (ring.blocks.len() / 2).max(1)),
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.blocks.capacity() * size_of::<(u64, usize, BlockWord)>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Asks for smaller requests from now on; false when they cannot be smaller.
    pub(crate) fn shrink(&mut self) -> bool {
        let smaller = self.blocks.len() > 1;
        self.blocks_at_most = (self.blocks.len() / 2).max(1);
        smaller
    }
}

impl Ring {
    /// The signal of the oldest sealed block.
    pub(crate) fn oldest_sealed(&self) -> Option<Signal> {
        self.sealed().min_by_key(|(_, word)| word.age).map(|(_, word)| word.kind.signal())
    }

    /// When there is a block of before `mark`, were it in the hands of a producer.
    pub(crate) fn has_before(&self, mark: u64) -> bool {
        (0..self.blocks.len()).map(|index| self.word(index)).any(|word| word.is_in_use() && word.age < mark)
    }

    /// Seals all blocks that are parked open.
    pub(crate) fn seal_open(&self) {
        for slot in self.slots.all() {
            for kind in Kind::ALL {
                if let Some(index) = self.slots.take(slot, kind) {
                    self.seal(index, kind, self.word(index).age);
                }
            }
        }
    }

    /// Fills an empty batch with the oldest sealed blocks, of one signal or of all.
    pub(crate) fn gather(&self, signal: Option<Signal>, batch: &mut Batch) {
        debug_assert!(batch.is_empty());
        batch.blocks.clear();
        let wanted = |word: BlockWord| signal.is_none_or(|signal| signal == word.kind.signal());
        for (index, word) in self.sealed().filter(|(_, word)| wanted(*word)) {
            batch.blocks.push((word.age, index, word));
        }
        batch.blocks.sort_unstable_by_key(|(age, ..)| *age);
        let mut left = batch.blocks_at_most * self.block_bytes;
        batch.blocks.retain(|&(_, index, word)| {
            // At least one, however large its event.
            let ours = left > 0 && self.claim(index, word, BlockWord::taken(word.kind, word.age));
            if ours {
                self.sealed.fetch_sub(1, Ordering::Relaxed);
                let bytes = self.blocks[index].filled.load(Ordering::Relaxed) & u64::from(u32::MAX);
                left = left.saturating_sub((bytes as usize).max(self.block_bytes));
            }
            ours
        });
    }

    /// Walks the events of a batch: for each, its scope and its length; then its bytes, piece by piece, unless
    /// `event` returns false.
    pub(crate) fn walk<E>(
        &self,
        batch: &Batch,
        mut event: impl FnMut(u16, usize) -> bool,
        mut piece: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for &(_, index, _) in &batch.blocks {
            let block = self.own(index);
            for (scope, len, part) in events(block.written()) {
                if !event(scope, len) {
                    continue;
                }
                piece(part)?;
                let (mut next, mut left) = (block.next, len - part.len());
                while let (Some(index), 1..) = (next, left) {
                    let block = self.own(index);
                    let part = block.written();
                    let part = part.get(..left.min(part.len())).unwrap_or_default();
                    piece(part)?;
                    left -= part.len();
                    next = block.next;
                }
            }
        }
        Ok(())
    }

    /// The events in a batch, by class.
    pub(crate) fn classes(&self, batch: &Batch) -> [Filled; Class::ALL.len()] {
        let mut sums = [Filled::default(); Class::ALL.len()];
        for &(_, index, word) in &batch.blocks {
            let filled = self.blocks[index].filled.load(Ordering::Relaxed);
            if let Some(sum) = sums.get_mut(word.kind.class() as usize) {
                sum.events += filled >> 32;
                sum.bytes += filled & u64::from(u32::MAX);
            }
        }
        sums
    }

    /// Gives the blocks of an answered request back to the producers.
    pub(crate) fn release_all(&self, batch: &mut Batch) {
        for (_, index, _) in batch.blocks.drain(..) {
            self.release(index);
        }
    }

    /// Puts the blocks of a failed request back where they were: as old as before, and to be evicted again.
    pub(crate) fn put_back(&self, batch: &mut Batch) {
        for (age, index, word) in batch.blocks.drain(..) {
            self.seal(index, word.kind, age);
        }
    }

    fn sealed(&self) -> impl Iterator<Item = (usize, BlockWord)> {
        (0..self.blocks.len())
            .map(|index| (index, self.word(index)))
            .filter(|(_, word)| word.held == BlockOwner::Sealed)
    }
}

//! A producer's way: take the open block of this thread's stripe, write the event behind the others, park it.

use super::block::{Block, HEAD, head};
use super::bytes::{EventOutput, Payload, Slice};
use super::slots;
use super::word::{BlockOwner, BlockWord};
use super::{Filled, Ring};
use crate::class::{Class, Kind, Reason};
use crate::sync::{MutexGuard, Ordering};

/// How often a producer looks for a block to evict before it gives up. Each time it loses a block, another
/// thread has got one, so this is reached only when dozens of threads fight over a full ring at once.
const ATTEMPTS: usize = 64;

/// A block in the hands of a producer. Dropped without further ado (a panic in somebody's `Debug`), it is
/// handed on as it was before.
struct Holding<'a> {
    ring: &'a Ring,
    index: usize,
    word: BlockWord,
    /// The stripe of the thread.
    stripe: usize,
    /// The slot that it was taken out of, which its word goes on naming meanwhile: an evictor that believes
    /// it finds the slot without this block.
    from: Option<u8>,
}

/// Counts an event whose own code panics while it is written.
struct Unwinding<'a> {
    ring: &'a Ring,
    class: Class,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        self.ring.counters.dropped(self.class, Reason::Unstable, 1);
    }
}

impl Ring {
    /// Writes one event. Never waits; evicts what is less valuable, or older and as valuable, when full.
    pub(crate) fn push<P: Payload + ?Sized>(&self, kind: Kind, scope: u16, event: &P) -> Result<(), Reason> {
        let stripe = slots::home(self.slots.stripes());
        self.counters.enqueued(stripe, kind.class());
        let unwinding = Unwinding { ring: self, class: kind.class() };
        let pushed = self.write(stripe, kind, scope, event);
        std::mem::forget(unwinding);
        if let Err(reason) = pushed {
            self.counters.dropped(kind.class(), reason, 1);
        }
        pushed
    }

    fn write<P: Payload + ?Sized>(
        &self,
        stripe: usize,
        kind: Kind,
        scope: u16,
        event: &P,
    ) -> Result<(), Reason> {
        let len = event.len();
        if len > self.largest {
            return Err(Reason::TooLarge);
        }
        if HEAD + len > self.block_bytes {
            return self.write_chain(stripe, kind, scope, event, len);
        }
        let held = match self.take_open(stripe, kind) {
            Some(held) if self.own(held.index).room_len() >= HEAD + len => held,
            // Dropping what is too full seals it.
            Some(mut full) => {
                full.word.held = BlockOwner::Sealed;
                drop(full);
                self.fresh(stripe, kind)?
            }
            None => self.fresh(stripe, kind)?,
        };
        let mut block = self.own(held.index);
        let room = block.room();
        let (front, rest) = room.split_at_mut(HEAD.min(room.len()));
        front.copy_from_slice(head(len, scope).get(..front.len()).unwrap_or_default());
        let mut out = Slice::new(rest.get_mut(..len).unwrap_or_default());
        event.write(&mut out);
        if out.wanted != len {
            return Err(Reason::Unstable);
        }
        block.keep(HEAD + len);
        drop(block);
        let filled = &self.blocks[held.index].filled;
        filled.store(filled.load(Ordering::Relaxed) + (1 << 32) + len as u64, Ordering::Relaxed);
        Ok(())
    }

    /// An event larger than a block goes over several, which are sealed, evicted and sent as one.
    fn write_chain<P: Payload + ?Sized>(
        &self,
        stripe: usize,
        kind: Kind,
        scope: u16,
        event: &P,
        len: usize,
    ) -> Result<(), Reason> {
        let blocks = (HEAD + len).div_ceil(self.block_bytes);
        let mut first = self.fresh(stripe, kind)?;
        for _ in 1..blocks {
            let Ok(more) = self.fresh(stripe, kind) else {
                first.word.held = BlockOwner::Free;
                return Err(Reason::Full);
            };
            // Chained in front of the others, so that giving back the first gives back all.
            let index = more.into_index();
            let mut block = self.own(first.index);
            let rest = block.next.replace(index);
            drop(block);
            self.own(index).next = rest;
        }
        let mut out = Chain { ring: self, block: Some(self.own(first.index)), wanted: 0 };
        // If writing panics, half an event must not stay.
        first.word.held = BlockOwner::Free;
        out.put(&head(len, scope));
        event.write(&mut out);
        if out.wanted != HEAD + len {
            return Err(Reason::Unstable);
        }
        drop(out);
        self.blocks[first.index].filled.store((1 << 32) + len as u64, Ordering::Relaxed);
        first.word.held = BlockOwner::Sealed;
        Ok(())
    }

    fn take_open(&self, stripe: usize, kind: Kind) -> Option<Holding<'_>> {
        let index = self.slots.of(stripe).into_iter().find_map(|slot| self.slots.take(slot, kind))?;
        let word = self.word(index);
        Some(Holding { ring: self, index, word, stripe, from: Some(word.slot) })
    }

    /// An empty block: a free one, or else the oldest of the least valuable.
    fn fresh(&self, stripe: usize, kind: Kind) -> Result<Holding<'_>, Reason> {
        let index = match self.take_free(stripe) {
            Some(index) => index,
            None => self.evict(stripe, kind)?,
        };
        let age = self.next.fetch_add(1, Ordering::Relaxed);
        self.set_word(index, BlockWord::taken(kind, age));
        Ok(Holding {
            ring: self,
            index,
            word: BlockWord::open(u8::try_from(stripe).unwrap_or_default(), kind, age),
            stripe,
            from: None,
        })
    }

    fn evict(&self, stripe: usize, kind: Kind) -> Result<usize, Reason> {
        let mut after = None;
        for _ in 0..ATTEMPTS {
            let Some((index, seen)) = self.least_valuable(kind, after) else { break };
            let ours = match seen.held {
                BlockOwner::Sealed if self.claim(index, seen, BlockWord::taken(seen.kind, seen.age)) => {
                    self.sealed.fetch_sub(1, Ordering::Relaxed);
                    true
                }
                BlockOwner::Open => self.slots.take_exactly(index, seen),
                _ => false,
            };
            if ours {
                // It may have been filled and opened anew since it was seen, but only for the same kind.
                let Filled { events, .. } = self.release(index);
                self.counters.dropped(seen.kind.class(), Reason::Evicted, events);
            }
            if let Some(index) = self.take_free(stripe) {
                return Ok(index);
            }
            // Somebody is just writing into it, or has evicted it: the next one will do.
            after = Some((seen.kind.class(), seen.age));
        }
        Err(Reason::Full)
    }

    /// The oldest block of the lowest class, among those that rank behind `after`.
    fn least_valuable(&self, kind: Kind, after: Option<(Class, u64)>) -> Option<(usize, BlockWord)> {
        (0..self.blocks.len())
            .map(|index| (index, self.word(index)))
            .filter(|(_, word)| word.kind.class() <= kind.class())
            .filter(|(index, word)| match word.held {
                BlockOwner::Sealed => true,
                BlockOwner::Open => self.slots.holds(*index, *word),
                _ => false,
            })
            .filter(|(_, word)| after.is_none_or(|after| (word.kind.class(), word.age) > after))
            .min_by_key(|(_, word)| (word.kind.class(), word.age))
    }
}

impl Holding<'_> {
    fn into_index(self) -> usize {
        let index = self.index;
        std::mem::forget(self);
        index
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        let BlockWord { held, kind, age, .. } = self.word;
        match held {
            BlockOwner::Open => {
                for slot in self.ring.slots.of(self.stripe) {
                    let name = u8::try_from(slot).unwrap_or_default();
                    if self.from != Some(name) {
                        self.ring.set_word(self.index, BlockWord::open(name, kind, age));
                        self.from = None;
                    }
                    if self.ring.slots.park(slot, kind, self.index) {
                        return;
                    }
                }
                self.ring.seal(self.index, kind, age);
            }
            BlockOwner::Sealed => self.ring.seal(self.index, kind, age),
            _ => {
                self.ring.release(self.index);
            }
        }
    }
}

/// Writes on in the next block of the chain when one is full.
struct Chain<'a> {
    ring: &'a Ring,
    block: Option<MutexGuard<'a, Block>>,
    wanted: usize,
}

impl EventOutput for Chain<'_> {
    fn put(&mut self, mut bytes: &[u8]) {
        self.wanted += bytes.len();
        while let Some(block) = &mut self.block {
            let room = block.room();
            let (now, later) = bytes.split_at(bytes.len().min(room.len()));
            if let Some(room) = room.get_mut(..now.len()) {
                room.copy_from_slice(now);
            }
            block.keep(now.len());
            bytes = later;
            if bytes.is_empty() {
                return;
            }
            let next = block.next;
            self.block = next.map(|index| self.ring.own(index));
        }
    }
}

//! The ring: fixed blocks of memory that go round between producers and the sending thread.
//!
//! Every block is at any moment in one of these hands, and its *word* (an atomic) says whose:
//!
//! ```text
//!            fresh                 seal                 gather
//!    free ─────────► a producer ─────────► sealed ─────────────► the sending thread
//!     ▲                │    ▲                │  ▲                     │      │
//!     │           park │    │ take     evict │  └──── put back ───────┘      │
//!     │                ▼    │                ▼        (request failed)       │
//!     │               open in a slot    a producer                           │
//!     └──────────────────────────────────────────────── release (2xx) ───────┘
//! ```
//!
//! Nobody waits: a hand-over is one compare-and-swap, and whoever loses it looks for another block. The
//! mutex around a block's bytes is there for the compiler, not for waiting: only the owner by the word ever
//! takes it (a test under loom breaks if that is not so). A producer that finds its slot empty, because a
//! neighbour, a signal handler or its own `Debug` implementation is just writing there, opens another block.
//!
//! `design/sender.md` has the argument.

mod block;
mod bytes;
mod drain;
mod produce;
mod slots;
#[cfg(test)]
mod tests;
mod word;

pub(crate) use bytes::{Counted, EventOutput, Payload};
pub(crate) use drain::Batch;

use crate::class::Kind;
use crate::counters::Counters;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};
use block::Block;
use slots::Slots;
use std::sync::{PoisonError, TryLockError};
use word::BlockWord;

/// Number of blocks of every ring: what is evicted at once is a 256th of the memory.
#[cfg(not(loom))]
const BLOCKS: usize = 256;
#[cfg(loom)]
const BLOCKS: usize = 2;

/// The smallest ring: blocks of 512 bytes.
pub(crate) const MIN_BYTES: usize = 128 << 10;

pub(crate) struct Ring {
    /// The owner of each block. Stored together, because they are scanned; written when a block changes its owner for
    /// good, and not for each event.
    words: Box<[AtomicU64]>,
    blocks: Box<[Shared]>,
    /// One bit per block: set when it is free. Clearing the bit is taking the block.
    free: Box<[AtomicU64]>,
    slots: Slots,
    /// Age of blocks: the next number to give to one that is opened.
    next: AtomicU64,
    /// How many blocks are sealed, to know when a request is worth sending.
    sealed: AtomicUsize,
    block_bytes: usize,
    largest: usize,
    pub(crate) counters: Counters,
}

/// Alone on its lines of cache, because it is written for each event.
#[repr(align(128))]
struct Shared {
    /// Events and bytes in it (high and low half), written by its owner, read by anyone who wants to know.
    filled: AtomicU64,
    block: Mutex<Block>,
}

/// The contents of a part of the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

impl Ring {
    /// A ring of `bytes` (rounded down to whole blocks) for events of at most `largest` bytes, with `stripes`
    /// places for threads to write at without meeting each other.
    pub(crate) fn new(bytes: usize, largest: usize, stripes: usize) -> Ring {
        let block_bytes = (bytes / BLOCKS).max(64);
        let words = BLOCKS.div_ceil(64);
        Ring {
            words: (0..BLOCKS).map(|_| AtomicU64::new(BlockWord::FREE.pack())).collect(),
            blocks: (0..BLOCKS).map(|_| Shared::new(block_bytes)).collect(),
            free: (0..words).map(|word| AtomicU64::new(all_of(word))).collect(),
            slots: Slots::new(stripes),
            next: AtomicU64::new(1),
            sealed: AtomicUsize::new(0),
            block_bytes,
            // Half of the ring at most, or one event would push out everything.
            largest: largest.min(BLOCKS / 2 * block_bytes),
            counters: Counters::new(stripes),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.block_bytes * self.blocks.len()
    }

    /// The heap memory of the ring and its tables.
    pub(crate) fn memory(&self) -> usize {
        self.bytes()
            + self.blocks.len() * (size_of::<Shared>() + 8)
            + self.slots.memory()
            + self.counters.memory()
    }

    /// Bytes in sealed blocks, as if they were full.
    pub(crate) fn sealed_bytes(&self) -> usize {
        self.sealed.load(Ordering::Relaxed) * self.block_bytes
    }

    /// A number that all blocks opened from now on are not below.
    pub(crate) fn mark(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The contents of blocks opened before `mark`, whoever owns them. Exact while nobody writes.
    pub(crate) fn filled_before(&self, mark: u64) -> Filled {
        let mut sum = Filled::default();
        for (index, shared) in self.blocks.iter().enumerate() {
            let word = self.word(index);
            if word.is_in_use() && word.age < mark {
                let filled = shared.filled.load(Ordering::Relaxed);
                sum.events += filled >> 32;
                sum.bytes += filled & u64::from(u32::MAX);
            }
        }
        sum
    }

    fn word(&self, index: usize) -> BlockWord {
        BlockWord::unpack(self.words[index].load(Ordering::Acquire))
    }

    fn set_word(&self, index: usize, word: BlockWord) {
        self.words[index].store(word.pack(), Ordering::Release);
    }

    /// Takes a block from `seen` over to this thread, if it still is as seen.
    fn claim(&self, index: usize, seen: BlockWord, held: BlockWord) -> bool {
        self.words[index]
            .compare_exchange(seen.pack(), held.pack(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The bytes of a block that this thread owns by its word, which is why this never waits.
    fn own(&self, index: usize) -> MutexGuard<'_, Block> {
        match self.blocks[index].block.try_lock() {
            Ok(block) => block,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                debug_assert!(false, "somebody else holds a block that is ours by its word");
                // Not reachable; and if it were, waiting for one copy is better than ending the program.
                self.blocks[index].block.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    /// Takes a free block out, if there is one.
    fn take_free(&self, start: usize) -> Option<usize> {
        let words = self.free.len();
        for offset in 0..words {
            let at = (start + offset) % words;
            let mut bits = self.free[at].load(Ordering::Relaxed);
            while bits != 0 {
                let bit = bits.trailing_zeros();
                let before = self.free[at].fetch_and(!(1 << bit), Ordering::Acquire);
                if before & (1 << bit) != 0 {
                    return Some(at * 64 + bit as usize);
                }
                bits = before & !(1 << bit);
            }
        }
        None
    }

    /// Gives a block that this thread owns back, with what is chained to it. Returns what was in it.
    fn release(&self, index: usize) -> Filled {
        let filled = self.blocks[index].filled.load(Ordering::Relaxed);
        let mut next = Some(index);
        while let Some(index) = next {
            let shared = &self.blocks[index];
            next = self.own(index).clear();
            shared.filled.store(0, Ordering::Relaxed);
            self.set_word(index, BlockWord::FREE);
            self.free[index / 64].fetch_or(1 << (index % 64), Ordering::Release);
        }
        Filled { events: filled >> 32, bytes: filled & u64::from(u32::MAX) }
    }

    /// Hands a block that this thread owns to the sending thread.
    fn seal(&self, index: usize, kind: Kind, age: u64) {
        self.sealed.fetch_add(1, Ordering::Relaxed);
        self.set_word(index, BlockWord::sealed(kind, age));
    }

    /// Forgets everything: for a process that was forked off, whose parent will send what is in here.
    /// Each thread that was writing at the fork costs the ring one block. Only one thread may call
    /// it, and nobody may be writing.
    pub(crate) fn reset(&self) {
        self.slots.clear();
        for index in 0..self.blocks.len() {
            let shared = &self.blocks[index];
            shared.filled.store(0, Ordering::Relaxed);
            match shared.block.try_lock() {
                Ok(mut block) => drop(block.clear()),
                Err(TryLockError::Poisoned(poisoned)) => drop(poisoned.into_inner().clear()),
                // Held by a thread that was not forked with us, and so for ever.
                Err(TryLockError::WouldBlock) => {
                    self.set_word(index, BlockWord::LOST);
                    self.free[index / 64].fetch_and(!(1 << (index % 64)), Ordering::Relaxed);
                    continue;
                }
            }
            self.set_word(index, BlockWord::FREE);
            self.free[index / 64].fetch_or(1 << (index % 64), Ordering::Release);
        }
        self.sealed.store(0, Ordering::Relaxed);
        self.counters.reset();
    }
}

impl Shared {
    fn new(bytes: usize) -> Shared {
        Shared { filled: AtomicU64::new(0), block: Mutex::new(Block::new(bytes)) }
    }
}

/// The bits of a word of the free map that stand for blocks.
const fn all_of(word: usize) -> u64 {
    let blocks = BLOCKS - word * 64;
    if blocks >= 64 { u64::MAX } else { (1 << blocks) - 1 }
}

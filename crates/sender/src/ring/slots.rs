//! Where open blocks are parked between two events: per stripe and kind one, and a spare one for when threads
//! share a stripe, or an event logs another while it is written. Threads keep to their own stripe, so that blocks
//! do not wander from core to core.

use super::word::BlockWord;
use crate::class::Kind;
use crate::sync::{AtomicU32, Ordering};

/// Stripes at most. Threads beyond share.
pub(super) const MAX_STRIPES: usize = 32;

pub(super) struct Slots {
    stripes: Box<[Stripe]>,
}

/// Two lines of cache, so that a thread on one stripe does not slow the next (and the pair fetched with it).
#[repr(align(128))]
struct Stripe {
    /// Index of the block plus one, by kind; 0 is empty.
    open: [AtomicU32; Kind::ALL.len()],
}

impl Slots {
    pub(super) fn new(stripes: usize) -> Slots {
        let stripe = |_| Stripe { open: std::array::from_fn(|_| AtomicU32::new(0)) };
        Slots { stripes: (0..2 * stripes.clamp(1, MAX_STRIPES)).map(stripe).collect() }
    }

    pub(super) fn memory(&self) -> usize {
        self.stripes.len() * size_of::<Stripe>()
    }

    /// How many stripes there are.
    pub(super) fn stripes(&self) -> usize {
        self.stripes.len() / 2
    }

    /// Where a thread of that stripe looks: its own place, then the spare one.
    pub(super) fn of(&self, stripe: usize) -> [usize; 2] {
        [stripe, self.stripes() + stripe]
    }

    /// All places.
    pub(super) fn all(&self) -> std::ops::Range<usize> {
        0..self.stripes.len()
    }

    /// Takes the block out that is parked there. Whoever gets it owns it.
    pub(super) fn take(&self, stripe: usize, kind: Kind) -> Option<usize> {
        let slot = &self.stripes[stripe].open[kind as usize];
        if slot.load(Ordering::Relaxed) == 0 {
            return None;
        }
        (slot.swap(0, Ordering::AcqRel) as usize).checked_sub(1)
    }

    /// When this block is where its word says, and not in the hands of a producer.
    pub(super) fn holds(&self, index: usize, word: BlockWord) -> bool {
        let stripe = self.stripes.get(word.slot as usize);
        stripe.is_some_and(|stripe| stripe.open[word.kind as usize].load(Ordering::Relaxed) == parked(index))
    }

    /// Takes exactly this block out, if it still is where its word says.
    pub(super) fn take_exactly(&self, index: usize, word: BlockWord) -> bool {
        let Some(stripe) = self.stripes.get(word.slot as usize) else { return false };
        stripe.open[word.kind as usize]
            .compare_exchange(parked(index), 0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Parks a block, if the place is empty. Its word must say so already.
    pub(super) fn park(&self, stripe: usize, kind: Kind, index: usize) -> bool {
        self.stripes[stripe].open[kind as usize]
            .compare_exchange(0, parked(index), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    pub(super) fn clear(&self) {
        for slot in self.stripes.iter().flat_map(|stripe| &stripe.open) {
            slot.store(0, Ordering::Relaxed);
        }
    }
}

fn parked(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(0)
}

/// The stripe of the calling thread: threads are dealt out in the order of their first event.
#[cfg(not(loom))]
pub(super) fn home(stripes: usize) -> usize {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HOME: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let mut home = HOME.get();
    if home == usize::MAX {
        home = NEXT.fetch_add(1, Ordering::Relaxed) & 0xffff;
        HOME.set(home);
    }
    home % stripes
}

/// Under loom all threads meet at one stripe.
#[cfg(loom)]
pub(super) fn home(_stripes: usize) -> usize {
    0
}

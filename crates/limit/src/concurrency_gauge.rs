//! A limit on concurrent requests or bytes.

use crate::sync::{AtomicU64, Relaxed};

/// Counts concurrent requests, or their bytes, up to a limit. Everything taken is given back exactly once, by the
/// permits that hold it ([`RequestPermit`](crate::RequestPermit), [`DecodeShare`](crate::DecodeShare)), when they are dropped.
#[derive(Debug)]
pub struct ConcurrencyGauge {
    taken: AtomicU64,
    most: AtomicU64,
}

impl ConcurrencyGauge {
    /// Room for `most`; for any number with nothing.
    pub fn new(most: Option<u64>) -> ConcurrencyGauge {
        ConcurrencyGauge { taken: AtomicU64::new(0), most: AtomicU64::new(most.unwrap_or(u64::MAX)) }
    }

    /// Has room for `most` from now on. What is taken stays so, also where it is more.
    pub fn set_limit(&self, most: Option<u64>) {
        self.most.store(most.unwrap_or(u64::MAX), Relaxed);
    }

    /// How many are taken.
    #[inline]
    pub fn in_use(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Whether `count` could be taken now: they fit, or nothing is taken. So what is larger than all the room
    /// passes alone.
    #[inline]
    pub fn has_capacity(&self, count: u64) -> bool {
        self.fits(self.taken.load(Relaxed), 0, count)
    }

    /// Takes `count`; says whether it did.
    #[must_use = "what was taken has to be given back"]
    #[inline]
    pub fn try_acquire(&self, count: u64) -> bool {
        self.try_acquire_more(0, count)
    }

    /// Takes `count` for who has `own` of what is taken already; says whether it did.
    #[inline]
    #[must_use = "what was taken has to be given back"]
    pub fn try_acquire_more(&self, own: u64, count: u64) -> bool {
        let mut taken = self.taken.load(Relaxed);
        while self.fits(taken, own, count) {
            match self.taken.compare_exchange_weak(taken, taken.saturating_add(count), Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(changed) => taken = changed,
            }
        }
        false
    }

    /// Gives back `count` that were taken.
    #[inline]
    pub fn release(&self, count: u64) {
        let before = self.taken.fetch_sub(count, Relaxed);
        debug_assert!(before >= count, "more is given back than was taken");
    }

    #[inline]
    fn fits(&self, taken: u64, own: u64, count: u64) -> bool {
        taken <= own || taken.saturating_add(count) <= self.most.load(Relaxed)
    }
}

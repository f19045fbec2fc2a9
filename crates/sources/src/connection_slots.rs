//! How many connections may be open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Places for connections. One that speaks HTTP/1.1 takes one; one that speaks HTTP/2 takes
/// [`Http2::PLACES`](crate::Http2::PLACES), since its codec keeps so much more: the memory plan pays for places.
/// Clones are the same places.
#[derive(Debug, Clone)]
pub struct ConnectionSlots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    taken: AtomicUsize,
}

/// Places that a connection has; dropping it frees them.
#[derive(Debug)]
pub struct HeldSlots {
    places: ConnectionSlots,
    count: usize,
}

impl ConnectionSlots {
    /// `most` places, all of them free.
    #[must_use]
    pub fn new(most: usize) -> ConnectionSlots {
        ConnectionSlots(Arc::new(Inner { most, taken: AtomicUsize::new(0) }))
    }

    /// Takes `count` of them; nothing when there are not so many.
    #[must_use]
    pub fn take(&self, count: usize) -> Option<HeldSlots> {
        self.claim(count).then(|| HeldSlots { places: self.clone(), count })
    }

    /// Takes `count` of them, for who remembers to [free](Self::free) them; says whether there were so many.
    #[must_use]
    pub fn claim(&self, count: usize) -> bool {
        if self.0.taken.fetch_add(count, Relaxed).saturating_add(count) > self.0.most {
            self.free(count);
            return false;
        }
        true
    }

    /// Frees `count` that were claimed.
    pub fn free(&self, count: usize) {
        self.0.taken.fetch_sub(count, Relaxed);
    }

    /// How many are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.0.taken.load(Relaxed)
    }

    /// How many there are.
    #[must_use]
    pub fn most(&self) -> usize {
        self.0.most
    }
}

impl Drop for HeldSlots {
    fn drop(&mut self) {
        self.places.free(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_more_than_there_are() {
        let places = ConnectionSlots::new(10);
        let few = places.take(4).unwrap();
        assert!(places.take(7).is_none());
        let many = places.take(6).unwrap();
        assert!(places.take(1).is_none());
        drop(few);
        assert_eq!(places.taken(), 6);
        assert!(places.take(4).is_some());
        drop(many);
        assert_eq!(places.taken(), 0);
    }
}

//! Places in the journal's queue, of which each body that waits for the disk has one.
//!
//! Promise: who finds none free waits for one, in the order of arrival, for as long as a request may wait for memory;
//! the wait is paid for from what is there for bodies, so no number of requests makes it take more than that.

use super::Gate;
use tidegate_arena::{Charge, Share};
use tidegate_journal::Journal;
use tokio::sync::Semaphore;

/// What a request that waits for a place takes on the heap, in bytes: its batch above all.
pub(super) const WAITING_BYTES: u64 = 1 << 10;

/// The places that are free.
pub(super) struct Places(Semaphore);

/// A place, given back when it is dropped.
pub(super) struct Place<'a>(pub(super) &'a Gate);

impl Places {
    pub(super) fn of(journal: &Journal) -> Places {
        Places(Semaphore::new(journal.places().min(Semaphore::MAX_PERMITS)))
    }
}

impl Gate {
    /// A place, if one is free.
    pub(super) fn place(&self) -> Option<Place<'_>> {
        self.0.places.0.try_acquire().ok()?.forget();
        Some(Place(self))
    }

    /// Pays for a wait, if that can be paid for.
    pub(super) fn paid_wait(&self) -> Option<Charge> {
        self.0.arena.try_charge(Share::Ingest, WAITING_BYTES).ok()
    }

    /// A place when one is free; nothing when it has taken too long.
    pub(super) async fn next_place(&self) -> Option<Place<'_>> {
        let place = tokio::time::timeout(self.0.memory_wait, self.0.places.0.acquire()).await;
        place.ok()?.ok()?.forget();
        Some(Place(self))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.0.places.0.add_permits(1);
    }
}

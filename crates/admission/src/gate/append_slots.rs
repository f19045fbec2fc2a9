//! Slots in the journal's queue: each body that waits for the disk holds one.
//!
//! Promise: a request that finds none free waits for one, in order of arrival, for as long as a request may wait for
//! memory. The wait is charged to the `ingest` share, so any number of waiting requests stays within it.

use super::Gate;
use tidegate_arena::{Charge, Share};
use tidegate_journal::Journal;
use tokio::sync::Semaphore;

/// Heap of a request that waits for a slot, in bytes: mostly its batch.
pub(super) const WAITING_BYTES: u64 = 1 << 10;

/// The free slots.
pub(super) struct AppendSlots(Semaphore);

/// A slot, released on drop.
pub(super) struct AppendSlot<'a>(pub(super) &'a Gate);

impl AppendSlots {
    pub(super) fn new(journal: &Journal) -> AppendSlots {
        AppendSlots(Semaphore::new(journal.queue_len().min(Semaphore::MAX_PERMITS)))
    }
}

impl Gate {
    /// A slot, if one is free.
    pub(super) fn try_append_slot(&self) -> Option<AppendSlot<'_>> {
        self.0.append_slots.0.try_acquire().ok()?.forget();
        Some(AppendSlot(self))
    }

    /// Charges a wait, if there is memory for it.
    pub(super) fn charge_wait(&self) -> Option<Charge> {
        self.0.arena.try_charge(Share::Ingest, WAITING_BYTES).ok()
    }

    /// The next free slot; `None` when the wait took too long.
    pub(super) async fn append_slot(&self) -> Option<AppendSlot<'_>> {
        let place = tokio::time::timeout(self.0.memory_wait, self.0.append_slots.0.acquire()).await;
        place.ok()?.ok()?.forget();
        Some(AppendSlot(self))
    }
}

impl Drop for AppendSlot<'_> {
    fn drop(&mut self) {
        self.0.0.append_slots.0.add_permits(1);
    }
}

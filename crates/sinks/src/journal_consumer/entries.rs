//! Enters what became of records in the sink's book, together with the cursor.

use crate::losses::Losses;
use tidegate_journal::{CURSOR_METADATA_LEN, CursorMetadata};
use tidegate_ledger::{Dropped, Settlement, SinkAccount, SinkLedger};

/// Items that the cursor was moved past without the sink: it counts them itself, when it passes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CursorLosses {
    pub(super) quota: u64,
    pub(super) damaged: u64,
}

impl CursorLosses {
    /// The records skipped since the last time.
    pub(super) fn catch_up(&mut self, now: CursorLosses) -> Losses {
        let before = std::mem::replace(self, now);
        let quota = Losses::of(Dropped::Quota, now.quota.saturating_sub(before.quota));
        quota.and(Losses::of(Dropped::Damaged, now.damaged.saturating_sub(before.damaged)))
    }
}

/// Enters a movement of the cursor in the books: of what it passed so much was `delivered` and so much passed over;
/// `replayed` was sent again to this sink alone; before it are `position` items, and `ahead` behind it are done. Gives the page as the journal keeps it.
pub(super) fn enter(
    page: &SinkAccount,
    (delivered, passed, replayed): (u64, u64, u64),
    losses: Losses,
    (position, ahead): (u64, u64),
) -> CursorMetadata {
    let dropped: Vec<_> = losses.entries().collect();
    let handed_off = losses.handed_off();
    page.settle(Settlement { delivered, passed, handed_off, replayed, dropped: &dropped, position, ahead });
    let mut book = [0; CURSOR_METADATA_LEN];
    if let Some(room) = book.first_chunk_mut::<{ SinkLedger::LEN }>() {
        *room = page.book().to_bytes();
    }
    book
}

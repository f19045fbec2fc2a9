//! Enters what became of records in the sink's book, together with the cursor.

use crate::losses::Losses;
use tidegate_journal::{CURSOR_METADATA_LEN, CompletedRecords, CursorMetadata};
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

/// Enters a movement of the cursor in the books, with the losses among what it passed. Gives the page as the journal keeps it.
pub(super) fn enter(page: &SinkAccount, settled: Settlement<'_>, losses: Losses) -> CursorMetadata {
    let dropped: Vec<_> = losses.entries().collect();
    page.settle(Settlement { handed_off: losses.handed_off(), dropped: &dropped, ..settled });
    let mut book = [0; CURSOR_METADATA_LEN];
    if let Some(room) = book.first_chunk_mut::<{ SinkLedger::LEN }>() {
        *room = page.book().to_bytes();
    }
    book
}

/// The numbers of a completion for the books, without what became of the items.
pub(super) fn completion(completed: &CompletedRecords) -> Settlement<'static> {
    let CompletedRecords { addressed: replayed, position, ahead, .. } = *completed;
    Settlement { replayed, position, ahead, ..Settlement::default() }
}

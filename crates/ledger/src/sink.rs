use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::reason::Dropped;
use crate::sink_ledger::SinkLedger;

/// One sink's page in the books. Clones write on the same page.
#[derive(Clone)]
pub struct SinkAccount(Arc<SinkState>);

struct SinkState {
    name: Box<str>,
    columns: Mutex<SinkColumns>,
}

#[derive(Clone, Debug)]
pub(crate) struct SinkColumns {
    pub(crate) book: SinkLedger,
    /// Items before the cursor: all settled.
    pub(crate) position: u64,
    /// Items behind the cursor that are settled already, because they were completed out of order.
    pub(crate) ahead: u64,
}

/// The outcomes of some items, with the cursor's position: one entry, so that the cursor and the columns always
/// agree. Both are the journal's counts of the completed records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settlement<'a> {
    /// Items that the peer took.
    pub delivered: u64,
    /// Items that are not for the sink: it is not configured to take them, or they were sent again to another one.
    pub passed: u64,
    /// Items that are kept on disk for a member of the sink's ring, beside the journal.
    pub handed_off: u64,
    /// Items among all of these whose records were for this sink alone, since they were sent again.
    pub replayed: u64,
    /// Items dropped, with the reason.
    pub dropped: &'a [(Dropped, u64)],
    /// Items before the cursor, ever: the number in the header of the record that it points at.
    pub position: u64,
    /// Items of records behind the cursor that are done.
    pub ahead: u64,
}

impl SinkAccount {
    pub(crate) fn new(name: &str, book: SinkLedger, position: u64, ahead: u64) -> Self {
        let columns = Mutex::new(SinkColumns { book, position, ahead });
        Self(Arc::new(SinkState { name: name.into(), columns }))
    }

    /// The sink's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Enters that items left the queue.
    pub fn settle(&self, settled: Settlement<'_>) {
        let mut columns = self.columns();
        columns.book.delivered += settled.delivered;
        columns.book.passed += settled.passed;
        columns.book.handed_off += settled.handed_off;
        columns.book.replayed += settled.replayed;
        for (reason, items) in settled.dropped {
            columns.book.add_dropped(*reason, *items);
        }
        columns.position = settled.position;
        columns.ahead = settled.ahead;
    }

    /// Enters what became of items that were handed off.
    pub fn settle_handed_off(&self, delivered: u64, dropped: &[(Dropped, u64)]) {
        self.columns().book.settle_handed_off(delivered, dropped);
    }

    /// Enters that `waiting` items are handed off, by what is on disk. What was more in the book was delivered before a crash that
    /// came before the book was saved.
    pub fn restore_handed_off(&self, waiting: u64) {
        let mut columns = self.columns();
        let delivered = columns.book.handed_off.saturating_sub(waiting);
        columns.book.settle_handed_off(delivered, &[]);
    }

    /// The columns to be kept beside the cursor. To be taken by whoever moves the cursor, after the
    /// [`settle`](Self::settle) that belongs to it.
    pub fn book(&self) -> SinkLedger {
        self.columns().book.clone()
    }

    pub(crate) fn columns(&self) -> MutexGuard<'_, SinkColumns> {
        self.0.columns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SinkAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sink {}", self.name())
    }
}

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many items the journal has taken, ever: the number that the next record's header will carry.
/// Clones share it.
#[derive(Clone)]
pub struct JournalItems(Arc<Mutex<HeadColumns>>);

#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadColumns {
    /// Items when the process started.
    pub(crate) at_start: u64,
    /// Items now.
    pub(crate) now: u64,
}

impl JournalItems {
    pub(crate) fn new(items: u64) -> Self {
        Self(Arc::new(Mutex::new(HeadColumns { at_start: items, now: items })))
    }

    /// Enters that the journal now holds `items` in all. To be called by the journal's writer once records
    /// are written, before it tells anybody that they are: an accepted item is always an appended one.
    pub fn advance_to(&self, items: u64) {
        let mut columns = self.columns();
        columns.now = items;
    }

    /// Items now.
    pub fn items(&self) -> u64 {
        self.columns().now
    }

    pub(crate) fn columns(&self) -> MutexGuard<'_, HeadColumns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for JournalItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Head at {} items", self.items())
    }
}

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that only grows. Clones count into the same cell.
///
/// The cell is shared by all threads: meant for what happens once per request or batch. For what
/// happens more often, observe into a [`Histogram`](crate::Histogram), whose cells are per thread.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<Cell>);

/// Alone on its cache lines, so that two counters never slow each other down.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell(AtomicU64);

impl Counter {
    /// Counts one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts `n`.
    pub fn add(&self, n: u64) {
        self.0.0.fetch_add(n, Relaxed);
    }

    /// The count so far, unscaled.
    pub fn value(&self) -> u64 {
        self.0.0.load(Relaxed)
    }

    /// Heap bytes held by one counter.
    pub(crate) const SIZE_BYTES: usize = size_of::<Cell>() + 2 * size_of::<usize>();
}

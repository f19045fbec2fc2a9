use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A number that goes up and down. Clones share the same cell.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<Cell>);

/// Alone on its cache lines, so that two gauges never slow each other down.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Cell(AtomicI64);

impl Gauge {
    /// Replaces the value.
    pub fn set(&self, value: i64) {
        self.0.0.store(value, Relaxed);
    }

    /// Adds `n`, which may be negative.
    pub fn add(&self, n: i64) {
        self.0.0.fetch_add(n, Relaxed);
    }

    /// The value now, unscaled.
    pub fn value(&self) -> i64 {
        self.0.0.load(Relaxed)
    }

    /// Heap bytes held by one gauge.
    pub(crate) const SIZE_BYTES: usize = size_of::<Cell>() + 2 * size_of::<usize>();
}

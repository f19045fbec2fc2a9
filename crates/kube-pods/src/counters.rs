//! Counts what the watch does, for the gateway's own metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Lists begun.
    pub lists: AtomicU64,
    /// Watches begun.
    pub watches: AtomicU64,
    /// Versions that the API server had forgotten, so that all pods were listed again.
    pub expired: AtomicU64,
    /// Requests that failed.
    pub failures: AtomicU64,
    /// Events of pods.
    pub events: AtomicU64,
    /// Labels, containers and annotations that were left out of a pod that is too large.
    pub left_out: AtomicU64,
    /// Pods for which the table had no memory.
    pub not_kept: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, number: u64) {
        counter.fetch_add(number, Relaxed);
    }
}

//! Counts what a reader does, for the gateway's own metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Entries that are durable.
    pub entries: AtomicU64,
    /// The bytes of the export format that they came in.
    pub bytes: AtomicU64,
    /// How often `journalctl` was started.
    pub starts: AtomicU64,
    /// How often it ended, could not be started, or wrote what cannot be read.
    pub failures: AtomicU64,
    /// How often the entry that was read last was not there any more: entries were deleted unread.
    pub gaps: AtomicU64,
    /// The most entries, of all units and priorities, that may be missing by that.
    pub missing: AtomicU64,
    /// Messages that were cut.
    pub cut: AtomicU64,
    /// Messages with bytes that are not UTF-8.
    pub invalid_text: AtomicU64,
    /// Fields that were left out, since an entry had too many or too much.
    pub left_out: AtomicU64,
    /// Entries without a cursor, which were left out.
    pub malformed: AtomicU64,
}

impl Counters {
    pub(crate) fn appended(&self, entries: u64, bytes: u64) {
        self.entries.fetch_add(entries, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn started(&self) {
        self.starts.fetch_add(1, Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    pub(crate) fn gap(&self, missing: Option<u64>) {
        self.gaps.fetch_add(1, Relaxed);
        self.missing.fetch_add(missing.unwrap_or_default(), Relaxed);
    }

    pub(crate) fn malformed(&self) {
        self.malformed.fetch_add(1, Relaxed);
    }

    pub(crate) fn irregular(&self, is_cut: bool, left_out: u64, is_invalid: bool) {
        self.cut.fetch_add(u64::from(is_cut), Relaxed);
        self.left_out.fetch_add(left_out, Relaxed);
        self.invalid_text.fetch_add(u64::from(is_invalid), Relaxed);
    }
}

//! Records that a sink is not configured for: when they are settled.

use super::Record;

/// Records skipped because the sink is not configured for them. Such a record is settled with the accepted one before
/// it, or at once when no accepted one is open.
#[derive(Debug, Default)]
pub(super) struct SkippedRecords {
    /// Items passed over, since the sink was attached.
    pub(super) items: u64,
    /// How many of them are settled.
    settled: u64,
    /// The last record that was taken and is not settled.
    pub(super) taken: Option<u64>,
    /// The last record that was passed over after it.
    pub(super) behind: Option<Record>,
    /// Records are settled in any order, so what is passed over need not wait.
    pub(super) any_order: bool,
}

impl SkippedRecords {
    /// The record that can be settled with `last`: itself, or the last one skipped after it.
    pub(super) fn through(&self, last: Record) -> Record {
        let behind = self.behind.filter(|_| self.taken == Some(last.sequence));
        behind.unwrap_or(last)
    }

    /// Notes that everything up to `last` is settled, and how many items of that were passed over.
    pub(super) fn settle(&mut self, last: &Record) -> u64 {
        if self.taken.is_some_and(|taken| taken <= last.sequence) {
            (self.taken, self.behind) = (None, None);
        }
        let before = std::mem::replace(&mut self.settled, last.passed);
        last.passed.wrapping_sub(before)
    }

    pub(super) fn rewind(&mut self) {
        let any_order = self.any_order;
        *self = SkippedRecords {
            items: self.settled,
            settled: self.settled,
            any_order,
            ..SkippedRecords::default()
        };
    }
}

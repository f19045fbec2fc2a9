//! Records that wait for something that is written for many of them at once.

use super::Record;
use crate::losses::Losses;

/// Records that were read, and are settled together.
#[derive(Clone, Copy, Default)]
pub(crate) struct PendingRecords {
    /// Where the body of the first of them begins in the journal, in bytes.
    begin: Option<u64>,
    /// The last of them.
    pub(crate) last: Option<Record>,
    /// Their items that the sink does not deliver.
    pub(crate) losses: Losses,
}

impl PendingRecords {
    /// Adds the record that was read last.
    pub(crate) fn add(&mut self, record: Record, losses: Losses) {
        let body_len = u64::from(record.as_journalled().body_len);
        self.begin.get_or_insert(record.bytes_after.saturating_sub(body_len));
        self.last = Some(record);
        self.losses = self.losses.and(losses);
    }

    /// The bytes of the journal that wait with them, with the records passed over up to `passed_end`.
    pub(crate) fn bytes(&self, passed_end: Option<u64>) -> u64 {
        let end = self.last.map(|last| last.bytes_after).max(passed_end);
        self.begin.zip(end).map_or(0, |(begin, end)| end.saturating_sub(begin))
    }
}

//! When the table of checkpoints is saved.

use super::Writer;
use crate::checkpoints::file::{EncodedTable, TableHead};
use crate::settings::{DiskError, RETRY_INTERVAL_NS};
use crate::sync::lock;
use std::io;

impl Writer {
    /// Saves an empty table before the first record that has checkpoints is written: where there is no table, no record
    /// has any, and opening the journal need not look for them. And a table behind records whose notes do not hold: they would be
    /// believed again beside those of later records.
    pub(super) fn create_table(&mut self) -> Result<(), DiskError> {
        let waits = || self.group.iter().any(|(_, entry)| !entry.checkpoints.is_empty());
        if (self.tables.is_durable() && !self.has_doubtful_notes) || !waits() {
            return Ok(());
        }
        self.save().map_err(|error| self.shared.failed(&error))
    }

    /// Saves the table if it was changed without a record, or does not cover all records before `sequence`. When that
    /// fails the earlier one stays, and with it the segments that it does not cover; it is tried again after
    /// [`RETRY_INTERVAL_NS`], since every commit asks for it while the quota is full.
    pub(crate) fn save_checkpoints(&mut self, sequence: u64) {
        if self.shared.clock.monotonic_ns() >= self.next_save {
            self.save_checkpoints_now(sequence);
        }
    }

    /// The same, without regard to when it failed last.
    pub(super) fn save_checkpoints_now(&mut self, sequence: u64) {
        let index = lock(&self.shared.index);
        let due = index.checkpoints.unsaved || index.checkpoints.saved_to < sequence;
        drop(index);
        if due && let Err(error) = self.save() {
            self.next_save = self.shared.clock.monotonic_ns() + RETRY_INTERVAL_NS;
            lock(&self.shared.index).counters.write_errors += 1;
            tracing::warn!(%error, "the journal's checkpoints cannot be saved: no segment is deleted until they are");
        }
    }

    fn save(&mut self) -> io::Result<()> {
        let mut index = lock(&self.shared.index);
        let head = index.head;
        let table = TableHead { salt: self.shared.salt, sequence: head.sequence, items: head.items };
        let checkpoints = &index.checkpoints;
        let encoded = EncodedTable::new(table, checkpoints.encoded_len(), |out| checkpoints.encode(out));
        let unsaved = std::mem::replace(&mut index.checkpoints.unsaved, false);
        drop(index);
        let saved = self.tables.save(&*self.shared.files, encoded);
        let mut index = lock(&self.shared.index);
        match saved {
            Ok(()) => {
                index.checkpoints.saved_to = head.sequence;
                self.has_doubtful_notes = false;
            }
            Err(_) => index.checkpoints.unsaved |= unsaved,
        }
        saved
    }
}

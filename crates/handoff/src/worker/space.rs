//! Quotas, saving cursors, and deleting what is consumed or dropped.

use super::Worker;
use crate::error::AppendError;
use crate::log::FIRST;
use crate::settings::WhenFull;
use std::io;

impl Worker {
    /// Makes room for a record of `size` bytes in the quotas, or refuses it.
    pub(super) fn admit(&mut self, index: usize, size: u64) -> Result<(), AppendError> {
        if size.saturating_add(FIRST) > self.disk.settings.quota {
            return Err(AppendError::Unfit);
        }
        while let Some(refused) = self.over_quota(index, size) {
            let consumed = match refused {
                AppendError::Quota => self.logs.get(index).is_some_and(|log| log.could_be_consumed()),
                _ => self.logs.iter().any(|log| log.could_be_consumed()),
            };
            if consumed && self.save_and_delete() {
                continue;
            }
            if self.disk.settings.when_full == WhenFull::DropOldest && self.drop_oldest(index)? {
                continue;
            }
            if let Some(log) = self.logs.get(index) {
                log.member.view().starved = true;
            }
            return Err(refused);
        }
        Ok(())
    }

    /// The refusal of a record of `size` bytes, where it does not fit the quotas.
    fn over_quota(&self, index: usize, size: u64) -> Option<AppendError> {
        let log = self.logs.get(index)?;
        let size = size + if log.needs_segment(size, &self.disk) { FIRST } else { 0 };
        let settings = &self.disk.settings;
        if log.member.view().unlimited {
            return None;
        }
        if log.disk_bytes.saturating_add(size) > settings.quota {
            return Some(AppendError::Quota);
        }
        (self.disk.used.saturating_add(size) > settings.total_quota).then_some(AppendError::TotalQuota)
    }

    /// Drops a member's oldest segment, counting what was not delivered. True when that made room.
    fn drop_oldest(&mut self, index: usize) -> Result<bool, AppendError> {
        let last = self.logs.get(index).is_some_and(|log| log.first + 1 >= log.next);
        if last {
            self.settle(Some(index));
        }
        let Some(log) = self.logs.get_mut(index).filter(|log| log.disk_bytes > 0) else { return Ok(false) };
        if last {
            log.end_segment();
        }
        let to = match log.second_start(&mut self.disk) {
            Ok(to) => to,
            Err(error) => return Err(self.disk.failed(&mut log.suspension, &error)),
        };
        let mut view = log.member.view();
        let dropped = view.advance(to);
        // The same place, without the file that goes.
        if view.cursor.before == to.before && view.cursor.segment < to.segment {
            view.cursor = to;
        }
        view.dropped = view.dropped.plus(dropped);
        drop(view);
        if dropped.records > 0 {
            tracing::warn!(
                member = &*log.member.address,
                records = dropped.records,
                items = dropped.items,
                "the handoff quota is used up: the oldest records are dropped"
            );
        }
        let before = self.disk.used;
        self.save_and_delete();
        Ok(self.disk.used < before)
    }

    /// Saves the cursors and deletes what they are past. True when something was deleted.
    pub(crate) fn save_and_delete(&mut self) -> bool {
        match self.save() {
            Ok(()) => self.delete_consumed(),
            Err(error) => {
                tracing::warn!(%error, "the cursors of the handoff log cannot be saved: retrying in a second");
                false
            }
        }
    }

    /// Makes all cursors durable.
    pub(super) fn save(&mut self) -> io::Result<()> {
        self.saved_ns = self.disk.clock.monotonic_ns();
        // A cursor may move while it is encoded: what is deleted is decided by what was encoded.
        for log in &mut self.logs {
            log.saving = log.member.view().cursor;
        }
        if self.disk.removed {
            // A member that is not named any more must not come back with its segments.
            self.disk.sync_names()?;
            self.disk.removed = false;
        }
        let durable = self.disk.is_synced();
        let members = self.logs.iter().filter(|log| !log.is_blank()).map(|log| {
            let view = log.member.view();
            (&*log.member.address, log.saving, view.head, view.damaged_segments)
        });
        self.disk.cursors.save(&*self.disk.files, (self.disk.key, durable), members)?;
        for log in &mut self.logs {
            log.saved = log.saving;
        }
        self.unsaved = false;
        Ok(())
    }

    /// Deletes what the durable cursors are past, and tells those who wait for space.
    pub(super) fn delete_consumed(&mut self) -> bool {
        let mut deleted = false;
        for log in &mut self.logs {
            match log.delete_consumed(&mut self.disk) {
                Ok(some) => deleted |= some,
                Err(error) => {
                    tracing::warn!(%error, "a consumed segment of the handoff log cannot be deleted");
                    // Tried again at the next save.
                    self.unsaved = true;
                }
            }
        }
        if deleted {
            for log in &self.logs {
                let starved = std::mem::take(&mut log.member.view().starved);
                if starved {
                    log.member.space.notify_waiters();
                }
            }
        }
        deleted
    }
}

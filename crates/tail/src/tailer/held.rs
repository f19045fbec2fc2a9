//! Files without a name, files without a watch, and other things to look at every second.

use super::Tailer;
use crate::destination::Destination;
use crate::file::{Index, Stage, Tracked};
use crate::meters::LossReason;
use crate::resource::FileResource;
use std::time::Duration;

/// How long the last line of a file may take to become durable, at least.
const LEAST_TO_END: Duration = Duration::from_secs(30);

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Whether anything needs to be looked at every second.
    pub(super) fn needs_poll(&self) -> bool {
        !self.held.is_empty() || !self.waiting.is_empty() || self.directories.has_unwatched()
    }

    /// Looks at held files, files that wait, and files in directories without a watch.
    pub(super) fn poll(&mut self, now: Duration) {
        self.wake_waiting();
        let held: Vec<Index> = self.held.iter().copied().collect();
        for index in held {
            if !self.poll_held(index, now) {
                self.held.remove(&index);
            }
        }
        if self.directories.has_unwatched() {
            for index in self.directories.unwatched_files() {
                self.look_at(index);
            }
        }
        self.count_held_files();
    }

    /// Gives the files that waited their turn.
    pub(super) fn wake_waiting(&mut self) {
        for index in std::mem::take(&mut self.waiting) {
            self.enqueue(index);
        }
    }

    /// Looks at a file without a name; says whether it is still held.
    fn poll_held(&mut self, index: Index, now: Duration) -> bool {
        let is_held = |file: &&mut Tracked| {
            matches!(file.stage, Stage::Held | Stage::Ending)
                || (matches!(file.stage, Stage::New | Stage::Copy { .. } | Stage::Skipped) && file.names == 0)
        };
        let Some(file) = self.table.get_mut(index).filter(is_held) else { return false };
        if file.stage == Stage::Skipped {
            if file.in_batches > 0 {
                return true;
            }
            self.forget_unread(index);
            return false;
        }
        let Ok(metadata) = file.handle.metadata() else { return true };
        let unread = metadata.len().saturating_sub(file.next());
        let waited = now.saturating_sub(file.progressed);
        if file.stage == Stage::Held && file.coding.is_none() && metadata.len() != file.length {
            self.enqueue(index);
            return true;
        }
        if waited < self.settings.rotate_wait || file.in_batches > 0 {
            return true;
        }
        if matches!(file.stage, Stage::Copy { .. }) {
            self.forget_unread(index);
            return false;
        }
        if file.stage == Stage::New {
            if unread > 0 {
                self.lose(index, LossReason::RotateWait, unread);
            }
            self.forget(index);
            return false;
        }
        // A line without its end is what is left of most files: it becomes a record now.
        let longest = self.line_settings.get(usize::from(file.input)).map_or(0, |lines| lines.longest_read());
        if unread <= longest as u64 && file.stage == Stage::Held {
            file.stage = Stage::Ending;
            file.progressed = now;
            self.enqueue(index);
            return true;
        }
        if file.stage == Stage::Ending && waited < LEAST_TO_END {
            return true;
        }
        if unread > 0 {
            self.lose(index, LossReason::RotateWait, unread);
        }
        self.forget(index);
        false
    }

    /// Sets the meters of held files.
    fn count_held_files(&mut self) {
        self.meters.set_held_bytes(self.held_length());
        self.meters.set_held(self.held.len() as u64);
    }

    /// The length of all held files, in bytes.
    pub(super) fn held_length(&self) -> u64 {
        self.held.iter().filter_map(|index| self.table.get(*index)).map(|file| file.length).sum()
    }

    /// Counts the heap bytes of unfinished records anew.
    pub(super) fn count_held(&mut self) {
        self.held_bytes = self
            .table
            .iter()
            .filter_map(|(_, file)| file.lines.as_ref())
            .map(|lines| lines.held_bytes())
            .sum();
    }

    /// Wakes the files whose unfinished records are due.
    pub(super) fn flush_due(&mut self, now: Duration) {
        if !self.flushes.iter().any(|(due, _)| *due <= now) {
            return;
        }
        let (due, later) = std::mem::take(&mut self.flushes).into_iter().partition(|(due, _)| *due <= now);
        self.flushes = later;
        let due: Vec<(Duration, Index)> = due;
        for (_, index) in due {
            if let Some(file) = self.table.get_mut(index) {
                file.flush = true;
            }
            self.enqueue(index);
        }
    }
}

//! Files that are truncated, end, or are forgotten.

use super::Tailer;
use crate::checkpoint::Checkpoint;
use crate::destination::{CheckpointChange, Destination};
use crate::file::{FirstBytes, Former, Index, Stage, Tracked};
use crate::identity::Head;
use crate::meters::LossReason;
use crate::resource::FileResource;

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// A file is shorter than what was read of it, or begins differently.
    pub(super) fn truncated(&mut self, index: Index) {
        let Some(file) = self.table.get_mut(index) else { return };
        // Where it was read to is known when its batches are durable.
        if file.in_batches > 0 {
            file.look_again = true;
            return;
        }
        let held = file.lines.as_ref().map_or(0, |lines| lines.held_bytes());
        self.held_bytes = self.held_bytes.saturating_sub(held);
        file.roll_back();
        // The copy was made before the truncation: it is there, and may not be known yet.
        let directory = file.path.parent().map(ToOwned::to_owned);
        if let Some(directory) = directory.and_then(|path| self.directories.at(&path)) {
            self.list_now(directory);
        }
        let Some(file) = self.table.get_mut(index) else { return };
        let former = Former { id: file.id, checkpoint: file.checkpoint(), is_displaced: true };
        let (head, known_length) = (file.head, file.length);
        let path = file.path.clone();
        file.committed = Checkpoint::start(file.committed.born);
        file.head = Head::default();
        file.length = file.handle.metadata().map_or(0, |metadata| metadata.len());
        // Its present content may have been read from a copy that was found first.
        file.stage = Stage::New;
        self.heads.remove(head, index);
        self.meters.add_truncations(1);
        let offset = former.checkpoint.offset();
        let copied = self.copied_length(index, head, offset);
        let lost = known_length.saturating_sub(copied);
        if lost > 0 {
            self.lose(index, LossReason::Truncated, lost);
        }
        if offset > 0 {
            self.add_former(former);
        }
        self.enqueue(index);
        self.release_copies(index, &path, offset);
    }

    /// A file of `known_length` bytes was truncated before anything of it was read.
    pub(super) fn truncated_unread(&mut self, index: Index, file: &mut Tracked, known_length: u64) {
        let length = |other: Index| Some(self.table.get(other)?.handle.metadata().ok()?.len());
        let copied = self.heads.with(file.head).filter_map(length).max().unwrap_or(0);
        let lost = known_length.saturating_sub(copied);
        self.meters.add_truncations(1);
        if lost > 0 {
            self.meters.add_lost(LossReason::Truncated, lost);
            tracing::warn!(path = %file.path.display(), lost, "a log file was truncated before it was read");
        }
        self.set_head(index, file, Head::default());
        // The files that were compressed from it wait for it.
        let path = file.path.clone();
        self.release_copies(index, &path, 0);
    }

    /// How far the original's content is there: in the longest of its copies, or else as far as it was read.
    fn copied_length(&self, original: Index, head: Head, read: u64) -> u64 {
        let is_copy = |index: &Index| match self.table.get(*index) {
            Some(file) if file.stage == Stage::New && head.len > 0 => {
                FirstBytes::of(&file.handle).is_ok_and(|first| head.fits(first.as_slice()))
            }
            Some(file) => file.stage == Stage::Copy { original },
            None => false,
        };
        let copies = self.copies.of(original);
        let copies = copies.iter().chain(&self.ready).filter(|index| **index != original && is_copy(index));
        let length = |index: &Index| Some(self.table.get(*index)?.handle.metadata().ok()?.len());
        copies.filter_map(length).fold(read, u64::max)
    }

    /// Counts bytes of a file that were never read.
    pub(super) fn lose(&mut self, index: Index, reason: LossReason, bytes: u64) {
        self.meters.add_lost(reason, bytes);
        if let Some(file) = self.table.get(index) {
            let (path, reason) = (file.path.display(), reason.as_str());
            tracing::warn!(%path, bytes, reason, "bytes of a log file were never read");
        }
    }

    /// Forgets a file that is read to its end. What is known of it recognises its copies.
    pub(super) fn forget(&mut self, index: Index) {
        let Some(file) = self.remove(index) else { return };
        let checkpoint = Checkpoint { seen: super::discover::unix_seconds(), ..file.checkpoint() };
        if checkpoint.offset() > 0 || checkpoint.finished {
            self.others.push(self.change(file.id, &checkpoint));
            self.add_former(Former { id: file.id, checkpoint, is_displaced: false });
        } else {
            self.remove_own_checkpoint(&file);
        }
        self.release_copies(index, &file.path, checkpoint.offset());
    }

    /// Forgets a file of which nothing was read.
    pub(super) fn forget_unread(&mut self, index: Index) {
        let Some(file) = self.remove(index) else { return };
        if file.committed.head.len > 0 {
            let checkpoint = Checkpoint { seen: super::discover::unix_seconds(), ..file.committed };
            self.add_former(Former { id: file.id, checkpoint, is_displaced: false });
        } else {
            self.remove_own_checkpoint(&file);
        }
        self.release_copies(index, &file.path, 0);
    }

    /// Removes the checkpoint of what a file had before it was truncated: that has a key of its own.
    fn remove_own_checkpoint(&mut self, file: &Tracked) {
        let key = file.id.key(self.settings.key).to_vec();
        self.others.push(CheckpointChange { key, value: None });
    }

    fn remove(&mut self, index: Index) -> Option<Box<Tracked>> {
        let file = self.table.remove(index)?;
        self.heads.remove(file.head, index);
        self.resource.forget(&file.info(index));
        self.held.remove(&index);
        self.waiting.remove(&index);
        if let Stage::Copy { original } = file.stage {
            self.copies.remove(original, index);
        }
        // Nothing below is searched for a file that is not there: many files may go at a time.
        if !self.replaced.is_empty() {
            self.replaced.retain(|replaced| *replaced != index);
        }
        if file.is_queued {
            self.ready.retain(|ready| *ready != index);
        }
        if let Some(lines) = file.lines.as_ref() {
            self.flushes.retain(|(_, flushed)| *flushed != index);
            self.held_bytes = self.held_bytes.saturating_sub(lines.held_bytes());
        }
        if self.decompressor.as_ref().is_some_and(|open| open.owner == index) {
            self.decompressor = None;
        }
        if let Some(path) = file.resolved.as_deref()
            && let Some((directory, name)) = path.parent().zip(path.file_name())
            && let Some(directory) =
                self.directories.at(directory).and_then(|at| self.directories.get_mut(at))
            && directory.name(name).is_some_and(|name| !name.is_included && name.file == Some(index))
        {
            directory.names.remove(name);
        }
        Some(file)
    }
}

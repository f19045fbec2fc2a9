//! Names that lead to files, and files that lose them.

use super::Tailer;
use crate::destination::Destination;
use crate::directories::{DirectoryIndex, Name};
use crate::file::{Index, Stage};
use crate::identity::FileId;
use crate::resource::FileResource;
use std::ffi::OsStr;
use std::path::Path;

/// How many names there may be for each file that may be known: others are looked at in each listing.
pub(crate) const NAMES_A_FILE: usize = 2;

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Notes that `name` leads to `file`, or to a file that is not to be read.
    pub(super) fn attach(&mut self, at: DirectoryIndex, name: &OsStr, inode: u64, file: Option<Index>) {
        self.put_name(at, name, Name { file, inode, round: self.scan.round, is_included: true });
    }

    /// Notes that a link leads to `file` by the name `name`.
    pub(super) fn attach_target(&mut self, at: DirectoryIndex, name: &OsStr, file: Index) {
        self.put_name(
            at,
            name,
            Name { file: Some(file), inode: 0, round: self.scan.round, is_included: false },
        );
    }

    fn put_name(&mut self, at: DirectoryIndex, name: &OsStr, entry: Name) {
        let round = self.scan.round;
        let most = self.settings.max_files.saturating_mul(NAMES_A_FILE);
        let is_full = self.known_names >= most || !self.has_room_for_text(name.len());
        let Some(directory) = self.directories.get_mut(at) else { return };
        if let Some(known) = directory.names.get_mut(name)
            && known.file == entry.file
            && (known.is_included || !entry.is_included)
        {
            known.round = round;
            known.inode = if entry.inode == 0 { known.inode } else { entry.inode };
            return;
        }
        // A file that would have no name is not left out for the want of one: its first name is planned.
        let has_name = entry.file.and_then(|file| self.table.get(file)).is_some_and(|file| file.names > 0);
        let is_known = directory.names.contains_key(name);
        if is_full && has_name && !is_known {
            return;
        }
        if !is_known {
            self.known_names += 1;
            self.text_bytes += name.len();
        }
        let path = directory.path.join(name);
        let before = directory.names.insert(name.into(), entry);
        if entry.is_included
            && let Some(file) = entry.file.and_then(|index| self.table.get_mut(index))
        {
            file.names = file.names.saturating_add(1);
            if file.names == 1 {
                file.path = path.into();
                if matches!(file.stage, Stage::Held | Stage::Ending) {
                    file.stage = Stage::Reading;
                }
            }
        }
        if let Some(Name { file: Some(file), is_included: true, .. }) = before {
            self.lose_name(file);
        }
    }

    /// Notes that a name is gone.
    pub(super) fn detach(&mut self, at: DirectoryIndex, name: &OsStr) {
        let removed = self.directories.get_mut(at).and_then(|directory| directory.names.remove(name));
        if let Some(Name { file: Some(file), is_included: true, .. }) = removed {
            self.lose_name(file);
        }
    }

    fn lose_name(&mut self, index: Index) {
        let now = self.now();
        let Some(file) = self.table.get_mut(index) else { return };
        file.names = file.names.saturating_sub(1);
        if file.names > 0 {
            return;
        }
        match file.stage {
            Stage::New | Stage::Reading => {
                // Where reading of a new one begins is still to be decided.
                if file.stage == Stage::Reading {
                    file.stage = Stage::Held;
                }
                file.progressed = now;
                self.held.insert(index);
                self.meters.add_rotations(1);
                self.enqueue(index);
            }
            // It may have what its original loses by a truncation of which nobody told yet.
            Stage::Copy { .. } if file.coding.is_none() => {
                file.progressed = now;
                self.held.insert(index);
            }
            Stage::Copy { .. } | Stage::Skipped if file.in_batches == 0 => self.forget_unread(index),
            // Its last batch may be refused: then it is read again.
            Stage::Skipped => {
                self.held.insert(index);
            }
            Stage::Copy { .. } | Stage::Held | Stage::Ending => {}
        }
    }

    /// Begins to watch a directory, or gives the one that is watched. `None` when there are too many.
    pub(super) fn enter_directory(&mut self, path: &Path) -> Option<DirectoryIndex> {
        if let Some(index) = self.directories.at(path) {
            return Some(index);
        }
        let len = path.as_os_str().len();
        if self.directories.len() >= self.settings.max_directories() || !self.has_room_for_text(len) {
            self.leave_out(path);
            return None;
        }
        self.text_bytes += len;
        let watch = self.watch(path);
        Some(self.directories.insert(path, watch))
    }

    /// Whether `len` bytes of paths and names are still within those that are planned.
    pub(super) fn has_room_for_text(&self, len: usize) -> bool {
        self.text_bytes.saturating_add(len) <= self.settings.most_text()
    }

    /// Counts what is known: until the next time it only grows.
    pub(super) fn count_names(&mut self) {
        self.known_names = self.directories.names();
        let of_files = self.table.iter().map(|(_, file)| file.text_bytes());
        self.text_bytes = self.directories.text_bytes() + of_files.sum::<usize>();
    }

    fn watch(&mut self, path: &Path) -> Option<i32> {
        let watcher = self.watcher.as_ref()?;
        match watcher.add(path) {
            Ok(watch) => Some(watch),
            Err(error) => {
                if error.kind() != std::io::ErrorKind::NotFound {
                    tracing::warn!(path = %path.display(), %error, "not watched: its files are looked at every second");
                }
                None
            }
        }
    }

    /// Watches what is at the path of a directory now: another directory may have been moved there.
    pub(super) fn watch_again(&mut self, index: DirectoryIndex) {
        let Some(directory) = self.directories.get(index) else { return };
        let (path, before) = (directory.path.clone(), directory.watch);
        let watch = self.watch(&path);
        if watch.is_none() && before.is_some() {
            // It is gone, which its listing finds.
            return;
        }
        self.use_watch(index, watch);
    }

    fn use_watch(&mut self, index: DirectoryIndex, watch: Option<i32>) {
        if let Some(unused) = self.directories.set_watch(index, watch)
            && let Some(watcher) = &self.watcher
        {
            watcher.remove(unused);
        }
    }

    /// Leaves a directory that is gone, or that no pattern needs: its names are gone with it.
    pub(super) fn leave_directory(&mut self, index: DirectoryIndex) {
        let Some((directory, unused)) = self.directories.remove(index) else { return };
        if let (Some(watcher), Some(watch)) = (&self.watcher, unused) {
            watcher.remove(watch);
        }
        for name in directory.names.into_values() {
            if let Name { file: Some(file), is_included: true, .. } = name {
                self.lose_name(file);
            }
        }
    }

    /// The file with an identity, if it is known.
    pub(super) fn known(&self, id: FileId) -> Option<Index> {
        self.table.find(id)
    }
}

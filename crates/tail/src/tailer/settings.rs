//! Takes new settings over while files are read.

use super::Tailer;
use crate::destination::Destination;
use crate::directories::DirectoryIndex;
use crate::file::{Index, Stage};
use crate::resource::FileResource;
use crate::settings::{Input, Settings};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::sync::Arc;

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Goes on with other inputs. No batch is under way, so every file is read as far as its checkpoint says.
    ///
    /// Records that are begun are read again, by the new rules. Files that no input includes any more are forgotten; their
    /// checkpoints stay for [`Settings::remember`], so an input that comes back goes on where it ended.
    pub(super) fn replace_settings(&mut self, settings: Settings) {
        // The memory for files was planned for that number, and the checkpoints have that key.
        let (key, max_files) = (self.settings.key, self.settings.max_files);
        let start_offsets = settings.start_offsets.clone().or_else(|| self.settings.start_offsets.take());
        let settings = Settings { key, max_files, start_offsets, ..settings };
        let before = std::mem::replace(&mut self.settings, settings);
        let inputs = &self.settings.inputs;
        self.line_settings = inputs.iter().map(|input| Arc::new(input.lines.clone())).collect();
        self.resource.set_inputs(inputs);
        self.batch_limit = self.settings.batch;
        self.flushes.clear();
        let left = self.detach_left_names();
        let mut gone = Vec::new();
        for index in self.table.numbers() {
            if !self.set_input(index, &before.inputs, left.contains(&index)) {
                gone.push(index);
            }
        }
        gone.into_iter().for_each(|index| self.forget(index));
        self.count_held();
        self.count_names();
        for directory in self.directories.indexes() {
            if let Some(directory) = self.directories.get_mut(directory) {
                directory.positions.clear();
            }
        }
        // The names are found by the new patterns.
        self.begin_scan();
    }

    /// Removes the names that no input includes any more. Gives the files that lost one.
    fn detach_left_names(&mut self) -> HashSet<Index> {
        let mut left = HashSet::new();
        for at in self.directories.indexes() {
            for name in self.left_names(at) {
                let removed =
                    self.directories.get_mut(at).and_then(|directory| directory.names.remove(&name));
                let Some(index) = removed.and_then(|name| name.file) else { continue };
                if let Some(file) = self.table.get_mut(index) {
                    file.names = file.names.saturating_sub(1);
                    left.insert(index);
                }
            }
        }
        left
    }

    fn left_names(&self, at: DirectoryIndex) -> Vec<Box<OsStr>> {
        let Some(directory) = self.directories.get(at) else { return Vec::new() };
        let names = directory.names.iter().filter(|(name, entry)| {
            entry.is_included && self.input_of(&directory.path.join(&***name)).is_none()
        });
        names.map(|(name, _)| name.clone()).collect()
    }

    /// Gives a file its input among the new ones; says whether there is one.
    fn set_input(&mut self, index: Index, before: &[Input], has_lost_name: bool) -> bool {
        let Some(file) = self.table.get(index) else { return true };
        if has_lost_name && file.names == 0 {
            return false;
        }
        let mut path = None;
        let mut input = self.input_of(&file.path);
        if has_lost_name && input.is_none() && file.names > 0 {
            path = self.name_of(index);
            input = path.as_deref().and_then(|path| self.input_of(path));
        }
        let Some(input) = input else { return false };
        let Some(new) = self.settings.inputs.get(usize::from(input)) else { return false };
        let Some(file) = self.table.get_mut(index) else { return true };
        if let Some(path) = path {
            file.path = path.into();
        }
        let old = before.get(usize::from(file.input));
        if let Some(old) = old {
            file.committed.lines.change_settings(&old.lines, &new.lines);
        }
        let is_wanted_now = new.compressed && old.is_some_and(|old| !old.compressed);
        if is_wanted_now
            && file.stage == Stage::Skipped
            && file.coding.is_some()
            && file.committed.offset() == 0
        {
            file.committed.finished = false;
            file.stage = Stage::New;
        }
        file.input = input;
        file.flush = false;
        file.roll_back();
        if file.stage == Stage::New || file.length != file.next() {
            self.enqueue(index);
        }
        true
    }

    /// A path that leads to a file.
    fn name_of(&self, index: Index) -> Option<std::path::PathBuf> {
        self.directories.indexes().into_iter().find_map(|at| {
            let directory = self.directories.get(at)?;
            let (name, _) =
                directory.names.iter().find(|(_, entry)| entry.is_included && entry.file == Some(index))?;
            Some(directory.path.join(&**name))
        })
    }

    /// Leaves the directories in which no pattern has anything to look for.
    pub(super) fn leave_unneeded_directories(&mut self) {
        for at in self.directories.indexes() {
            let is_needed = |directory: &crate::directories::Directory| {
                !directory.positions.is_empty() || !directory.names.is_empty()
            };
            if self.directories.get(at).is_some_and(|directory| !is_needed(directory)) {
                self.leave_directory(at);
            }
        }
    }
}

//! Changes that the kernel told of.

use super::Tailer;
use crate::destination::Destination;
use crate::directories::DirectoryIndex;
use crate::resource::FileResource;
use crate::watch::{Change, Watch};
use std::ffi::OsStr;

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Takes all changes that are there.
    pub(super) fn take_changes(&mut self) {
        let mut changes = Vec::new();
        loop {
            let Some(watcher) = &mut self.watcher else { return };
            let may_be_more = watcher.take(&mut changes);
            for change in changes.drain(..) {
                self.change_seen(change);
            }
            if !may_be_more {
                return;
            }
        }
    }

    fn change_seen(&mut self, change: Change) {
        match change {
            Change::Modified { watch, name } => {
                for directory in self.directories.watched(watch) {
                    let known = self.directories.get(directory).and_then(|directory| directory.name(&name));
                    if let Some(file) = known.and_then(|name| name.file) {
                        self.enqueue(file);
                    }
                }
            }
            Change::Appeared { watch, name, is_directory } => self.each(watch, |tailer, directory| {
                tailer.entry_seen(directory, &name, 0, Some(is_directory));
            }),
            Change::Vanished { watch, name, is_directory: true } => {
                self.each(watch, |tailer, directory| tailer.directory_vanished(directory, &name));
            }
            Change::Vanished { watch, name, is_directory: false } => {
                self.each(watch, |tailer, directory| tailer.detach(directory, &name));
            }
            Change::Ended { watch } => {
                self.each(watch, |tailer, directory| tailer.leave_directory(directory))
            }
            Change::Overflow => {
                self.meters.add_overflows(1);
                self.look_at_all();
            }
        }
    }

    fn each(&mut self, watch: Watch, mut act: impl FnMut(&mut Self, DirectoryIndex)) {
        for directory in self.directories.watched(watch) {
            act(self, directory);
        }
    }

    /// A directory in `parent` is gone, or has another name: its files are found again under that.
    fn directory_vanished(&mut self, parent: DirectoryIndex, name: &OsStr) {
        let Some(parent) = self.directories.get(parent) else { return };
        let path = parent.path.join(name);
        for directory in self.directories.below(&path) {
            self.leave_directory(directory);
        }
    }

    /// Looks at every file and every directory.
    fn look_at_all(&mut self) {
        for index in self.table.numbers() {
            self.enqueue(index);
        }
        self.begin_scan();
    }
}

//! Lists the directories: all of them at the start, and from time to time for what changes did not tell.

use super::Tailer;
use crate::destination::Destination;
use crate::directories::{DirectoryIndex, Position};
use crate::resource::FileResource;
use crate::settings::Input;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{DirEntry, ReadDir};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;
use std::time::Duration;

/// Entries listed before other work is done.
const ENTRIES_A_STEP: usize = 512;
/// Each listing looks at every so many files.
const SAMPLED: u32 = 6;

/// The state of a listing.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    queue: VecDeque<DirectoryIndex>,
    listing: Option<(DirectoryIndex, ReadDir)>,
    /// The listing under way, or the last one.
    pub(super) round: u8,
    is_whole: bool,
    /// An entry is looked at for the listing, and not for a change: what is left out is counted once.
    pub(super) is_counting: bool,
    /// When the next one begins, since the start.
    pub(super) next: Duration,
    /// Whether one was completed: only then it is known which files are new.
    pub(super) was_complete: bool,
}

impl Scan {
    pub(super) fn is_active(&self) -> bool {
        self.is_whole || self.listing.is_some() || !self.queue.is_empty()
    }
}

impl<D: Destination, R: FileResource> Tailer<D, R> {
    /// Begins to list everything.
    pub(super) fn begin_scan(&mut self) {
        self.scan.round = self.scan.round.wrapping_add(1);
        self.scan.next = self.now() + self.settings.rescan;
        self.scan.is_whole = true;
        self.scan.listing = None;
        self.untracked = 0;
        self.scan.queue = self.directories.indexes().into();
        for index in &self.scan.queue {
            if let Some(directory) = self.directories.get_mut(*index) {
                directory.is_queued = true;
            }
        }
        self.enter_bases();
    }

    /// Enters the directories in which the patterns begin.
    fn enter_bases(&mut self) {
        let mut bases = Vec::new();
        for (input, settings) in self.settings.inputs.iter().enumerate() {
            for (glob, pattern) in settings.include.iter().enumerate() {
                let (path, at) = pattern.base();
                bases.push((path, position(input, glob, at)));
            }
        }
        for (path, position) in bases {
            if path.is_dir() {
                self.enter(&path, position);
            }
        }
    }

    /// Has the entries of a directory matched at `position`, from now on.
    pub(super) fn enter(&mut self, path: &Path, position: Position) {
        let Some(index) = self.enter_directory(path) else { return };
        let Some(directory) = self.directories.get_mut(index) else { return };
        if !directory.positions.contains(&position) {
            directory.positions.push(position);
            if !std::mem::replace(&mut directory.is_queued, true) {
                self.scan.queue.push_back(index);
            }
        }
    }

    /// Lists a little, if a listing is under way.
    pub(super) fn scan_step(&mut self) {
        if !self.scan.is_active() {
            if self.now() >= self.scan.next {
                self.begin_scan();
            } else {
                return;
            }
        }
        let mut left = ENTRIES_A_STEP;
        while left > 0 {
            let Some((index, mut listing)) = self.scan.listing.take().or_else(|| self.next_listing()) else {
                if self.scan.queue.is_empty() {
                    self.end_scan();
                    return;
                }
                left = left.saturating_sub(1);
                continue;
            };
            for entry in listing.by_ref().take(left) {
                left = left.saturating_sub(1);
                if let Ok(entry) = entry {
                    self.scan.is_counting = self.scan.is_whole;
                    self.listed(index, &entry);
                    self.scan.is_counting = false;
                }
            }
            if left > 0 {
                self.end_listing(index);
            } else {
                self.scan.listing = Some((index, listing));
            }
        }
    }

    /// Lists one directory at once, so that its new files are known before what follows.
    pub(super) fn list_now(&mut self, index: DirectoryIndex) {
        let Some(directory) = self.directories.get(index) else { return };
        let Ok(listing) = std::fs::read_dir(&directory.path) else { return };
        for entry in listing.flatten() {
            self.listed(index, &entry);
        }
    }

    fn next_listing(&mut self) -> Option<(DirectoryIndex, ReadDir)> {
        let index = self.scan.queue.pop_front()?;
        if let Some(directory) = self.directories.get_mut(index) {
            directory.is_queued = false;
        }
        self.watch_again(index);
        let directory = self.directories.get(index)?;
        if directory.positions.is_empty() {
            return None;
        }
        match std::fs::read_dir(&directory.path) {
            Ok(listing) => Some((index, listing)),
            Err(error) => {
                if is_gone(&error) {
                    self.leave_directory(index);
                } else {
                    let path = directory.path.clone();
                    self.cannot_read(&path, &error);
                }
                None
            }
        }
    }

    fn listed(&mut self, index: DirectoryIndex, entry: &DirEntry) {
        let kind = entry.file_type().ok();
        let is_directory = kind.filter(|kind| !kind.is_symlink()).map(|kind| kind.is_dir());
        let name = entry.file_name();
        let round = self.scan.round;
        let known =
            self.directories.get_mut(index).and_then(|directory| directory.names.get_mut(name.as_os_str()));
        // The same entry of the directory is the same file: no `stat`. A link may lead elsewhere by now.
        if let Some(known) = known
            && is_directory == Some(false)
            && known.inode == entry.ino()
            && known.is_included
        {
            known.round = round;
            return;
        }
        self.entry_seen(index, &name, entry.ino(), is_directory);
    }

    /// Names that the listing did not see are gone.
    fn end_listing(&mut self, index: DirectoryIndex) {
        if !self.scan.is_whole {
            return;
        }
        let round = self.scan.round;
        let Some(directory) = self.directories.get(index) else { return };
        let gone = directory.names.iter().filter(|(_, name)| name.is_included && name.round != round);
        let gone: Vec<_> = gone.map(|(name, _)| name.clone()).collect();
        for name in gone {
            // It may have appeared behind the place where the listing was.
            let path = self.directories.get(index).map(|directory| directory.path.join(&*name));
            if path.is_some_and(|path| path.symlink_metadata().is_err_and(|error| is_gone(&error))) {
                self.detach(index, &name);
            }
        }
    }

    fn end_scan(&mut self) {
        if !self.scan.is_whole {
            return;
        }
        self.scan.is_whole = false;
        self.unreadable.end_listing();
        self.leave_unneeded_directories();
        self.sample_lengths();
        if !self.scan.was_complete {
            self.scan.was_complete = true;
            self.first_scan_complete();
        }
        self.inputs_listed();
        self.forget_old();
        self.meters.set_files(self.table.len() as u64);
        self.meters.set_untracked(self.untracked);
        self.count_names();
        // They are for what was there when its input was new.
        self.settings.start_offsets = None;
    }

    /// Looks at a part of the files, for changes of which nobody told.
    fn sample_lengths(&mut self) {
        for index in self.table.numbers() {
            if index % SAMPLED != u32::from(self.scan.round) % SAMPLED {
                continue;
            }
            self.look_at(index);
        }
    }

    /// Puts a file into the queue if its length has changed.
    pub(super) fn look_at(&mut self, index: crate::file::Index) {
        let Some(file) = self.table.get_mut(index) else { return };
        if let Ok(metadata) = file.handle.metadata()
            && metadata.len() != file.length
        {
            self.enqueue(index);
        }
    }

    /// Matches an entry of a directory with the patterns. `is_directory`: `None` when it is a link, or not known.
    pub(super) fn entry_seen(
        &mut self,
        index: DirectoryIndex,
        name: &OsStr,
        inode: u64,
        is_directory: Option<bool>,
    ) {
        let Some(directory) = self.directories.get(index) else { return };
        let mut is_included = false;
        let mut further = Vec::new();
        for position in &directory.positions {
            let Some(glob) = self.glob(position) else { continue };
            let entry = glob.entry(usize::from(position.at), name.as_bytes());
            is_included |= entry.file;
            for at in entry.directories.into_iter().flatten() {
                // A link to a directory above would be followed for ever.
                let may_loop = is_directory.is_none() && glob.any_depth(at);
                if !may_loop {
                    further.push(Position { at: u16::try_from(at).unwrap_or(u16::MAX), ..*position });
                }
            }
        }
        let path = directory.path.join(name);
        if !further.is_empty() && is_directory.unwrap_or_else(|| path.is_dir()) {
            for position in further {
                self.enter(&path, position);
            }
        }
        if is_included
            && is_directory != Some(true)
            && let Some(input) = self.input_of(&path)
        {
            self.file_seen(index, name, inode, &path, input);
        }
    }

    /// The input that a file belongs to.
    pub(super) fn input_of(&self, path: &Path) -> Option<u16> {
        let includes =
            |input: &Input| input.include.iter().any(|glob| glob.matches(path)) && !input.excludes(path);
        self.settings.inputs.iter().position(includes).and_then(|at| u16::try_from(at).ok())
    }

    fn glob(&self, position: &Position) -> Option<&crate::Glob> {
        self.settings.inputs.get(usize::from(position.input))?.include.get(usize::from(position.glob))
    }
}

/// Whether an error says that there is nothing with a path. Any other may be over the next time.
fn is_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn position(input: usize, glob: usize, at: usize) -> Position {
    let small = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    Position { input: small(input), glob: small(glob), at: small(at) }
}

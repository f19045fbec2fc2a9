//! The directories that are watched, and the names in them.

use crate::file::Index;
use crate::watch::Watch;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The number of a directory.
pub(crate) type DirectoryIndex = u32;

/// Where in a pattern a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) input: u16,
    pub(crate) glob: u16,
    /// The component that its entries are matched with.
    pub(crate) at: u16,
}

/// A directory with files of the patterns, or on the way to them.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    pub(crate) watch: Option<Watch>,
    pub(crate) positions: Vec<Position>,
    pub(crate) names: HashMap<OsString, Name>,
}

/// A name that leads to a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    /// The file; `None`: known, and not to be read.
    pub(crate) file: Option<Index>,
    /// The inode that the directory's entry has, 0 when unknown.
    pub(crate) inode: u64,
    /// The listing that saw it last.
    pub(crate) round: u8,
    /// Whether the patterns have it; otherwise it is what a link leads to.
    pub(crate) is_included: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    slots: Vec<Option<Directory>>,
    free: Vec<DirectoryIndex>,
    by_path: HashMap<PathBuf, DirectoryIndex>,
    by_watch: HashMap<Watch, Vec<DirectoryIndex>>,
}

impl Directories {
    pub(crate) fn get(&self, index: DirectoryIndex) -> Option<&Directory> {
        self.slots.get(index as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: DirectoryIndex) -> Option<&mut Directory> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn at(&self, path: &Path) -> Option<DirectoryIndex> {
        self.by_path.get(path).copied()
    }

    pub(crate) fn watched(&self, watch: Watch) -> Vec<DirectoryIndex> {
        self.by_watch.get(&watch).cloned().unwrap_or_default()
    }

    pub(crate) fn indexes(&self) -> Vec<DirectoryIndex> {
        self.by_path.values().copied().collect()
    }

    /// Adds a directory.
    pub(crate) fn insert(&mut self, path: &Path, watch: Option<Watch>) -> DirectoryIndex {
        let directory = Directory { path: path.to_owned(), watch, ..Directory::default() };
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            DirectoryIndex::try_from(self.slots.len() - 1).unwrap_or(DirectoryIndex::MAX)
        });
        if let Some(slot) = self.slots.get_mut(index as usize) {
            *slot = Some(directory);
        }
        self.by_path.insert(path.to_owned(), index);
        if let Some(watch) = watch {
            self.by_watch.entry(watch).or_default().push(index);
        }
        index
    }

    /// Gives a directory its watch.
    pub(crate) fn set_watch(&mut self, index: DirectoryIndex, watch: Watch) {
        if let Some(directory) = self.get_mut(index) {
            directory.watch = Some(watch);
            self.by_watch.entry(watch).or_default().push(index);
        }
    }

    /// Removes a directory. Also says whether its watch is no other's.
    pub(crate) fn remove(&mut self, index: DirectoryIndex) -> Option<(Directory, bool)> {
        let directory = self.slots.get_mut(index as usize)?.take()?;
        self.free.push(index);
        self.by_path.remove(&directory.path);
        let mut was_last = false;
        if let Some(watch) = directory.watch
            && let Some(indexes) = self.by_watch.get_mut(&watch)
        {
            indexes.retain(|other| *other != index);
            was_last = indexes.is_empty();
            if was_last {
                self.by_watch.remove(&watch);
            }
        }
        Some((directory, was_last))
    }

    /// The directories at and below `path`.
    pub(crate) fn below(&self, path: &Path) -> Vec<DirectoryIndex> {
        self.by_path.iter().filter(|(other, _)| other.starts_with(path)).map(|(_, index)| *index).collect()
    }

    /// Whether there are directories without a watch.
    pub(crate) fn has_unwatched(&self) -> bool {
        self.by_path.len() > self.by_watch.values().map(Vec::len).sum::<usize>()
    }

    /// The files in directories without a watch.
    pub(crate) fn unwatched_files(&self) -> Vec<Index> {
        let unwatched = self.slots.iter().flatten().filter(|directory| directory.watch.is_none());
        unwatched.flat_map(|directory| directory.names.values().filter_map(|name| name.file)).collect()
    }
}

impl Directory {
    pub(crate) fn name(&self, name: &OsStr) -> Option<Name> {
        self.names.get(name).copied()
    }
}

//! The directories that are watched, and the names in them.

use crate::file::Index;
use crate::watch::Watch;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;
use std::rc::Rc;

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
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: Rc<Path>,
    pub(crate) watch: Option<Watch>,
    pub(crate) positions: Vec<Position>,
    pub(crate) names: BTreeMap<Box<OsStr>, Name>,
    /// Whether it waits to be listed.
    pub(crate) is_queued: bool,
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
    slots: Vec<Option<Box<Directory>>>,
    free: Vec<DirectoryIndex>,
    by_path: BTreeMap<Rc<Path>, DirectoryIndex>,
    by_watch: BTreeSet<(Watch, DirectoryIndex)>,
}

impl Directories {
    pub(crate) fn get(&self, index: DirectoryIndex) -> Option<&Directory> {
        self.slots.get(index as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, index: DirectoryIndex) -> Option<&mut Directory> {
        self.slots.get_mut(index as usize)?.as_deref_mut()
    }

    pub(crate) fn at(&self, path: &Path) -> Option<DirectoryIndex> {
        self.by_path.get(path).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_path.len()
    }

    /// All names in them.
    pub(crate) fn names(&self) -> usize {
        self.slots.iter().flatten().map(|directory| directory.names.len()).sum()
    }

    /// The bytes of all paths and names.
    pub(crate) fn text_bytes(&self) -> usize {
        self.slots.iter().flatten().map(|directory| directory.text_bytes()).sum()
    }

    pub(crate) fn watched(&self, watch: Watch) -> Vec<DirectoryIndex> {
        let range = (watch, 0)..=(watch, DirectoryIndex::MAX);
        self.by_watch.range(range).map(|(_, index)| *index).collect()
    }

    pub(crate) fn indexes(&self) -> Vec<DirectoryIndex> {
        self.by_path.values().copied().collect()
    }

    /// Adds a directory.
    pub(crate) fn insert(&mut self, path: &Path, watch: Option<Watch>) -> DirectoryIndex {
        let (positions, names) = (Vec::new(), BTreeMap::new());
        let path: Rc<Path> = path.into();
        let directory = Directory { path: Rc::clone(&path), watch, positions, names, is_queued: false };
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            DirectoryIndex::try_from(self.slots.len() - 1).unwrap_or(DirectoryIndex::MAX)
        });
        if let Some(slot) = self.slots.get_mut(index as usize) {
            *slot = Some(Box::new(directory));
        }
        self.by_path.insert(path, index);
        self.by_watch.extend(watch.map(|watch| (watch, index)));
        index
    }

    /// Gives a directory its watch. Gives back another one that it had and that no directory has any more.
    pub(crate) fn set_watch(&mut self, index: DirectoryIndex, watch: Option<Watch>) -> Option<Watch> {
        let before = std::mem::replace(&mut self.get_mut(index)?.watch, watch);
        if before == watch {
            return None;
        }
        self.by_watch.extend(watch.map(|watch| (watch, index)));
        self.release_watch(before?, index)
    }

    /// Takes a watch from a directory; gives it back if no other has it.
    fn release_watch(&mut self, watch: Watch, index: DirectoryIndex) -> Option<Watch> {
        self.by_watch.remove(&(watch, index));
        self.watched(watch).is_empty().then_some(watch)
    }

    /// Removes a directory. Also gives its watch, if no other has it.
    pub(crate) fn remove(&mut self, index: DirectoryIndex) -> Option<(Box<Directory>, Option<Watch>)> {
        let directory = self.slots.get_mut(index as usize)?.take()?;
        self.free.push(index);
        self.by_path.remove(&directory.path);
        let watch = directory.watch.and_then(|watch| self.release_watch(watch, index));
        Some((directory, watch))
    }

    /// The directories at and below `path`.
    pub(crate) fn below(&self, path: &Path) -> Vec<DirectoryIndex> {
        self.by_path.iter().filter(|(other, _)| other.starts_with(path)).map(|(_, index)| *index).collect()
    }

    /// Whether there are directories without a watch.
    pub(crate) fn has_unwatched(&self) -> bool {
        self.by_path.len() > self.by_watch.len()
    }

    /// The files in directories without a watch.
    pub(crate) fn unwatched_files(&self) -> Vec<Index> {
        let unwatched = self.slots.iter().flatten().filter(|directory| directory.watch.is_none());
        unwatched.flat_map(|directory| directory.names.values().filter_map(|name| name.file)).collect()
    }
}

impl Directory {
    /// The bytes of its path and of its names.
    fn text_bytes(&self) -> usize {
        self.path.as_os_str().len() + self.names.keys().map(|name| name.len()).sum::<usize>()
    }

    pub(crate) fn name(&self, name: &OsStr) -> Option<Name> {
        self.names.get(name).copied()
    }
}

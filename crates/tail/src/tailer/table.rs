//! All files that are known, by number and by inode.

use crate::file::{Index, Tracked};
use crate::identity::FileId;
use std::collections::BTreeMap;

/// The files.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    free: Vec<Index>,
    by_id: BTreeMap<FileId, Index>,
}

/// A place in the table.
#[derive(Debug)]
enum Slot {
    Free,
    /// The file is having its turn.
    Taken,
    File(Box<Tracked>),
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The numbers that files may have.
    pub(crate) fn numbers(&self) -> std::ops::Range<Index> {
        0..Index::try_from(self.slots.len()).unwrap_or(Index::MAX)
    }

    pub(crate) fn get(&self, index: Index) -> Option<&Tracked> {
        match self.slots.get(index as usize)? {
            Slot::File(file) => Some(file),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, index: Index) -> Option<&mut Tracked> {
        match self.slots.get_mut(index as usize)? {
            Slot::File(file) => Some(file),
            _ => None,
        }
    }

    pub(crate) fn find(&self, id: FileId) -> Option<Index> {
        self.by_id.get(&id).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Index, &Tracked)> {
        self.numbers().filter_map(|index| Some((index, self.get(index)?)))
    }

    pub(crate) fn insert(&mut self, file: Box<Tracked>) -> Index {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::Free);
            Index::try_from(self.slots.len() - 1).unwrap_or(Index::MAX)
        });
        self.by_id.insert(file.id, index);
        self.give_back(index, file);
        index
    }

    /// Takes a file out for its turn. Its number stays its own.
    pub(crate) fn take(&mut self, index: Index) -> Option<Box<Tracked>> {
        let slot = self.slots.get_mut(index as usize)?;
        match std::mem::replace(slot, Slot::Taken) {
            Slot::File(file) => Some(file),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Ends a turn.
    pub(crate) fn give_back(&mut self, index: Index, file: Box<Tracked>) {
        if let Some(slot) = self.slots.get_mut(index as usize) {
            *slot = Slot::File(file);
        }
    }

    pub(crate) fn remove(&mut self, index: Index) -> Option<Box<Tracked>> {
        let file = self.take(index)?;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            *slot = Slot::Free;
        }
        self.by_id.remove(&file.id);
        self.free.push(index);
        Some(file)
    }
}

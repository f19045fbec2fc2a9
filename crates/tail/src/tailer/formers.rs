//! Files that were read and are gone, or were truncated: what their copies and compressed forms are recognised by.

use crate::checkpoint::Checkpoint;
use crate::file::Former;
use crate::head_index::HeadIndex;
use crate::identity::FileId;
use std::collections::BTreeMap;

/// The file, and the hash of its head if other content has its inode.
type Key = (FileId, Option<u64>);

/// The newest of them, up to a bound.
#[derive(Debug)]
pub(crate) struct Formers {
    by_number: BTreeMap<u64, Former>,
    by_key: BTreeMap<Key, u64>,
    by_head: HeadIndex<u64>,
    next: u64,
    most: usize,
}

impl Formers {
    /// At most `most`.
    pub(crate) fn new(most: usize) -> Formers {
        Formers {
            by_number: BTreeMap::new(),
            by_key: BTreeMap::new(),
            by_head: HeadIndex::new(),
            next: 0,
            most: most.max(1),
        }
    }

    /// Adds one, in place of an older one with the same key; gives the one that has to be forgotten for it, if any. A file that was
    /// truncated and is gone later is there twice: a copy may be of either.
    pub(crate) fn insert(&mut self, former: Former) -> Option<Former> {
        if let Some(older) = self.by_key.get(&key(&former)) {
            self.remove(*older);
        }
        let number = self.next;
        self.next += 1;
        self.by_head.insert(former.checkpoint.head, number);
        self.by_key.insert(key(&former), number);
        self.by_number.insert(number, former);
        if self.by_number.len() <= self.most {
            return None;
        }
        let (&oldest, _) = self.by_number.first_key_value()?;
        self.remove(oldest)
    }

    /// Those whose file began with the beginning of `bytes`.
    pub(crate) fn matches(&self, bytes: &[u8]) -> Vec<Former> {
        let numbers = self.by_head.matches(bytes);
        numbers.iter().filter_map(|number| self.by_number.get(number)).copied().collect()
    }

    /// Takes out a file that is there again.
    pub(crate) fn take(&mut self, id: FileId) -> Option<Checkpoint> {
        let number = *self.by_key.get(&(id, None))?;
        self.remove(number).map(|former| former.checkpoint)
    }

    /// Forgets those that were last seen before `limit`, in seconds of Unix time, and gives them.
    pub(crate) fn expire(&mut self, limit: u32) -> Vec<Former> {
        let expired: Vec<u64> = self
            .by_number
            .iter()
            .filter(|(_, former)| former.checkpoint.seen < limit)
            .map(|(number, _)| *number)
            .collect();
        expired.iter().filter_map(|number| self.remove(*number)).collect()
    }

    fn remove(&mut self, number: u64) -> Option<Former> {
        let former = self.by_number.remove(&number)?;
        self.by_head.remove(former.checkpoint.head, number);
        self.by_key.remove(&key(&former));
        Some(former)
    }
}

fn key(former: &Former) -> Key {
    (former.id, former.is_displaced.then_some(former.checkpoint.head.hash))
}

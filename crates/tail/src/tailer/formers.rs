//! Files that were read and are gone, or were truncated: what their copies and compressed forms are recognised by.

use crate::checkpoint::Checkpoint;
use crate::file::Former;
use crate::head_index::HeadIndex;
use crate::identity::{FileId, Head};
use std::collections::{BTreeMap, HashMap};

/// The newest of them, up to a bound.
#[derive(Debug)]
pub(crate) struct Formers {
    by_number: BTreeMap<u64, (Former, Head)>,
    by_id: HashMap<FileId, u64>,
    by_head: HeadIndex<u64>,
    next: u64,
    most: usize,
}

impl Formers {
    /// At most `most`.
    pub(crate) fn new(most: usize) -> Formers {
        Formers {
            by_number: BTreeMap::new(),
            by_id: HashMap::new(),
            by_head: HeadIndex::new(),
            next: 0,
            most: most.max(1),
        }
    }

    /// Adds one; gives the file that has to be forgotten for it, if any. A file that was truncated and is gone later is there
    /// twice: a copy may be of either.
    pub(crate) fn insert(&mut self, former: Former, head: Head) -> Option<FileId> {
        let number = self.next;
        self.next += 1;
        self.by_head.insert(head, number);
        self.by_id.insert(former.id, number);
        self.by_number.insert(number, (former, head));
        if self.by_number.len() <= self.most {
            return None;
        }
        let (&oldest, _) = self.by_number.first_key_value()?;
        let forgotten = self.remove(oldest)?;
        (!self.by_id.contains_key(&forgotten.id)).then_some(forgotten.id)
    }

    /// Those whose file began with the beginning of `bytes`.
    pub(crate) fn matches(&self, bytes: &[u8]) -> Vec<Former> {
        let numbers = self.by_head.matches(bytes);
        numbers.iter().filter_map(|number| self.by_number.get(number)).map(|(former, _)| *former).collect()
    }

    /// Takes out the newest of a file that is there again.
    pub(crate) fn take(&mut self, id: FileId) -> Option<Checkpoint> {
        let number = *self.by_id.get(&id)?;
        self.remove(number).map(|former| former.checkpoint)
    }

    /// Forgets those that were last seen before `limit`, in seconds of Unix time; gives their files.
    pub(crate) fn expire(&mut self, limit: u32) -> Vec<FileId> {
        let expired: Vec<u64> = self
            .by_number
            .iter()
            .filter(|(_, (former, _))| former.checkpoint.seen < limit)
            .map(|(number, _)| *number)
            .collect();
        let removed: Vec<FileId> =
            expired.iter().filter_map(|number| self.remove(*number)).map(|former| former.id).collect();
        removed.into_iter().filter(|id| !self.by_id.contains_key(id)).collect()
    }

    fn remove(&mut self, number: u64) -> Option<Former> {
        let (former, head) = self.by_number.remove(&number)?;
        self.by_head.remove(head, number);
        if self.by_id.get(&former.id) == Some(&number) {
            self.by_id.remove(&former.id);
        }
        Some(former)
    }
}

//! The checkpoints in force: the newest value of each key, as far as the journal is published.

use super::file::StoredTable;
use super::{CHECKPOINT_KEY_MAX, CHECKPOINT_VALUE_MAX, Change, changes};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Memory of one checkpoint with `len` bytes of key and value: its node's share, its key and its value with what the allocator
/// adds, and its place in the encoded table.
pub(crate) const fn entry_bytes(len: usize) -> usize {
    NODE_BYTES + 2 * ALLOCATOR_BYTES + 2 * (len + 2)
}

/// Memory of one checkpoint at its longest, in bytes.
pub const CHECKPOINT_BYTES: usize = entry_bytes(CHECKPOINT_KEY_MAX + CHECKPOINT_VALUE_MAX);
/// Two slices, in nodes that may be half empty.
const NODE_BYTES: usize = 2 * 2 * size_of::<Box<[u8]>>();
const ALLOCATOR_BYTES: usize = 16;

/// The segments that may be deleted without regard to checkpoints: all, in a journal that has none.
const ALL: u64 = u64::MAX;

pub(crate) struct CheckpointTable {
    entries: BTreeMap<Box<[u8]>, Box<[u8]>>,
    /// The bytes of all keys and values.
    bytes: usize,
    /// New keys are forgotten beyond this many.
    limit: usize,
    /// It was changed by something other than a record since it was saved.
    pub(crate) unsaved: bool,
    /// The sequence up to which the notes of records are covered by a table that is durable. Segments that end
    /// behind it may not be deleted.
    pub(crate) saved_to: u64,
    /// Records are there whose notes do not hold: a table behind them is saved before others have notes.
    pub(crate) has_doubtful_notes: bool,
    /// Checkpoints of new keys that were forgotten because the table was full.
    pub(crate) forgotten: u64,
}

impl CheckpointTable {
    pub(crate) fn new(limit: usize) -> CheckpointTable {
        let entries = BTreeMap::new();
        CheckpointTable {
            entries,
            bytes: 0,
            limit,
            unsaved: false,
            saved_to: ALL,
            has_doubtful_notes: false,
            forgotten: 0,
        }
    }

    /// The table as it was saved. Never cut to the limit, which may have been higher.
    pub(crate) fn load(&mut self, stored: &StoredTable) {
        let limit = self.set_limit(usize::MAX);
        stored.entries().for_each(|change| self.change(change));
        self.set_limit(limit);
    }

    /// Sets the limit, and returns the one before.
    pub(crate) fn set_limit(&mut self, limit: usize) -> usize {
        std::mem::replace(&mut self.limit, limit)
    }

    /// Enters the note of a record, or the like without one.
    pub(crate) fn apply(&mut self, note: &[u8]) {
        let forgotten = self.forgotten;
        changes(note).for_each(|(_, change)| self.change(change));
        if forgotten == 0 && self.forgotten > 0 {
            tracing::warn!(
                limit = self.limit,
                "the journal holds as many checkpoints as it may: sources read new files again after a restart"
            );
        }
    }

    fn change(&mut self, change: Change<'_>) {
        let Change { key, value } = change;
        let Some(value) = value else {
            if let Some(old) = self.entries.remove(key) {
                self.bytes -= key.len() + old.len();
            }
            return;
        };
        if let Some(old) = self.entries.get_mut(key) {
            self.bytes = self.bytes - old.len() + value.len();
            if old.len() == value.len() {
                old.copy_from_slice(value);
            } else {
                *old = value.into();
            }
        } else if self.entries.len() < self.limit {
            self.bytes += key.len() + value.len();
            self.entries.insert(key.into(), value.into());
        } else {
            self.forgotten += 1;
        }
    }

    /// The keys that begin with `prefix`.
    pub(crate) fn keys_with(&self, prefix: &[u8]) -> impl Iterator<Item = &[u8]> {
        let from = self.entries.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded));
        from.map(|(key, _)| &**key).take_while(move |key| key.starts_with(prefix))
    }

    /// Removes the entries whose keys begin with `prefix`, and says how many there were.
    pub(crate) fn forget(&mut self, prefix: &[u8]) -> usize {
        let keys: Vec<Box<[u8]>> = self.keys_with(prefix).map(Into::into).collect();
        keys.iter().for_each(|key| self.change(Change { key, value: None }));
        self.unsaved |= !keys.is_empty();
        keys.len()
    }

    /// Raises the limit.
    pub(crate) fn allow(&mut self, more: usize) {
        self.limit = self.limit.saturating_add(more);
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.entries.get(key).map(|value| &**value)
    }

    /// Every key and value, in the order of the keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|(key, value)| (&**key, &**value))
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The heap memory of all entries, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes + self.entries.len() * (NODE_BYTES + 2 * ALLOCATOR_BYTES)
    }

    /// The length of [`encode`](Self::encode)'s result, in bytes.
    pub(crate) fn encoded_len(&self) -> usize {
        self.bytes + 2 * self.entries.len()
    }

    /// Appends every entry to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for (key, value) in self.iter() {
            Change { key, value: Some(value) }.encode(out);
        }
    }
}

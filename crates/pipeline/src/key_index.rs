//! Finds keys in a table that grows without comparing each with all of them.

use crate::any_value::Entry;
use crate::memory::{Memory, Slice};
use crate::table::MapTable;
use crate::value::Value;
use std::hash::{BuildHasher, RandomState};

/// A thing that has a key.
pub(crate) trait Keyed {
    fn key(&self) -> Slice;
}

impl Keyed for Entry {
    fn key(&self) -> Slice {
        self.key
    }
}

/// A text is its own key.
impl Keyed for Value {
    fn key(&self) -> Slice {
        if let Value::Text(text) = self { *text } else { Slice::EMPTY }
    }
}

/// An index over the keys of entries, of which the first with a key is the one. It follows entries that are added.
///
/// Its memory is constant. Few entries are searched one after the other, behind a filter; more have a hash table, whose hash
/// no sender of telemetry knows.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    filter: KeyFilter,
    /// Numbers of entries, and one; 0 in a free slot. A power of two, and at least twice as many as entries.
    slots: Vec<u16>,
    /// The entries that are in it.
    len: usize,
    hasher: RandomState,
}

impl KeyIndex {
    /// The most entries that are searched one after the other.
    pub(crate) const SEARCHED: usize = 32;
    /// The most slots: a table's entries have numbers of 16 bits.
    const SLOTS: usize = 2 * MapTable::CAPACITY;

    /// The bytes that it takes.
    pub(crate) const BYTES: usize = size_of::<KeyIndex>() + Self::SLOTS * size_of::<u16>();

    pub(crate) fn new() -> KeyIndex {
        let slots = Vec::with_capacity(Self::SLOTS);
        KeyIndex { filter: KeyFilter::default(), slots, len: 0, hasher: RandomState::new() }
    }

    /// Begins with other entries.
    pub(crate) fn begin(&mut self) {
        self.filter = KeyFilter::default();
        self.slots.clear();
        self.len = 0;
    }

    /// The place of the first entry with this key. Since [`begin`](Self::begin), entries may only have been added.
    #[inline(always)]
    pub(crate) fn find(&mut self, memory: &Memory<'_>, entries: &[impl Keyed], key: Slice) -> Option<usize> {
        let name = memory.get(key);
        // More than a table has are not indexed.
        if entries.len() > Self::SEARCHED && entries.len() <= MapTable::CAPACITY {
            return self.find_among_many(memory, entries, name);
        }
        while let Some(entry) = entries.get(self.len) {
            self.filter.add(memory.get(entry.key()));
            self.len += 1;
        }
        if self.filter.may_have(name) { search(memory, entries, name) } else { None }
    }

    #[inline(never)]
    fn find_among_many(&mut self, memory: &Memory<'_>, entries: &[impl Keyed], name: &[u8]) -> Option<usize> {
        self.follow(memory, entries);
        self.slot(memory, entries, name).ok()
    }

    /// Takes the entries in that were added.
    fn follow(&mut self, memory: &Memory<'_>, entries: &[impl Keyed]) {
        if self.slots.len() < 2 * entries.len() {
            let slots = (4 * entries.len()).next_power_of_two().min(Self::SLOTS);
            self.slots.clear();
            self.slots.resize(slots, 0);
            self.len = 0;
        }
        while let Some(entry) = entries.get(self.len) {
            if let Err(free) = self.slot(memory, entries, memory.get(entry.key()))
                && let Some(slot) = self.slots.get_mut(free)
            {
                // At most a table's capacity.
                *slot = self.len as u16 + 1;
            }
            self.len += 1;
        }
    }

    /// The place of the entry with this key, or else the free slot for one.
    fn slot(&self, memory: &Memory<'_>, entries: &[impl Keyed], name: &[u8]) -> Result<usize, usize> {
        let last = self.slots.len().saturating_sub(1);
        let mut at = self.hasher.hash_one(name) as usize & last;
        loop {
            // Half of the slots are free.
            let Some(number) = self.slots.get(at).and_then(|slot| usize::from(*slot).checked_sub(1)) else {
                return Err(at);
            };
            if entries.get(number).is_some_and(|entry| is_same(memory, entry, name)) {
                return Ok(number);
            }
            at = (at + 1) & last;
        }
    }
}

/// The place of the first entry with this key: one after the other.
pub(crate) fn search(memory: &Memory<'_>, entries: &[impl Keyed], name: &[u8]) -> Option<usize> {
    entries.iter().position(|entry| is_same(memory, entry, name))
}

#[inline]
fn is_same(memory: &Memory<'_>, entry: &impl Keyed, name: &[u8]) -> bool {
    let key = entry.key();
    key.len as usize == name.len() && memory.get(key) == name
}

/// Says of most keys that are not among some that they are not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeyFilter([u64; 8]);

impl KeyFilter {
    /// Adds a key. Returns whether it may have been there.
    #[inline(always)]
    pub(crate) fn add(&mut self, key: &[u8]) -> bool {
        let (word, bit) = Self::place(key);
        let Some(word) = self.0.get_mut(word) else { return true };
        let had = *word & bit != 0;
        *word |= bit;
        had
    }

    /// Whether the key may be there.
    #[inline(always)]
    pub(crate) fn may_have(&self, key: &[u8]) -> bool {
        let (word, bit) = Self::place(key);
        self.0.get(word).is_none_or(|word| word & bit != 0)
    }

    /// The word and the bit of a key, by its first and last bytes and its length.
    #[inline(always)]
    fn place(key: &[u8]) -> (usize, u64) {
        let end = |bytes: Option<&[u8; 4]>| u64::from(u32::from_le_bytes(bytes.copied().unwrap_or_default()));
        let bits = if key.len() < 4 {
            key.iter().fold(1, |bits, byte| bits << 8 | u64::from(*byte))
        } else {
            end(key.first_chunk()) | end(key.last_chunk()) << 32
        };
        let hash = (bits ^ (key.len() as u64) << 57).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }
}

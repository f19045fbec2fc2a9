//! The documents that have pending items, and the batch of each one's last item.

use crate::slots::NONE;
use std::hash::{BuildHasher, RandomState};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The memory of a document, in bytes: its entry, and up to two buckets.
pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>() + 2 * size_of::<u32>();

/// A document with pending items.
///
/// Documents are told apart by a hash of 64 bits with a seed of its own. Where two share one, they are kept in
/// one order: needless, and harmless.
#[derive(Debug)]
struct Entry {
    hash: u64,
    /// The next one in the same bucket, or the next free one.
    next: u32,
    /// How many items it has.
    items: u32,
    /// Where the last of them went. It lives as long as the entry: see `design/bulk.md`.
    batch: u16,
    /// An item was rejected in this attempt.
    rejected: bool,
    /// A later item was carried out nevertheless.
    overtaken: bool,
}

/// All of them: a hash table with chains, at most one entry for each slot.
pub(crate) struct Documents {
    seed: u64,
    /// The first entry of each bucket plus one: an unused bucket is zero.
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    free: u32,
}

impl Documents {
    /// None yet, and at most `most` ever.
    pub(crate) fn new(most: u32) -> Documents {
        let buckets = vec![0; (most as usize).next_power_of_two()];
        let entries = Vec::with_capacity(most as usize);
        Documents { seed: RandomState::new().hash_one(0), buckets, entries, free: NONE }
    }

    /// The identity of a document.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The entry for `hash`.
    pub(crate) fn find(&self, hash: u64) -> Option<u32> {
        let mut link = *self.buckets.get(self.bucket(hash))?;
        while let Some(at) = link.checked_sub(1) {
            let entry = self.entries.get(at as usize)?;
            if entry.hash == hash {
                return Some(at);
            }
            link = entry.next;
        }
        None
    }

    /// Where the last item of `document` went.
    pub(crate) fn batch(&self, document: u32) -> Option<u16> {
        self.entries.get(document as usize).map(|entry| entry.batch)
    }

    /// One more item, which went to `batch`.
    pub(crate) fn add(&mut self, found: Option<u32>, hash: u64, batch: u16) -> u32 {
        if let Some(document) = found
            && let Some(entry) = self.entries.get_mut(document as usize)
        {
            entry.items += 1;
            entry.batch = batch;
            return document;
        }
        let bucket = self.bucket(hash);
        let next = self.buckets.get(bucket).copied().unwrap_or(0);
        let entry = Entry { hash, next, items: 1, batch, rejected: false, overtaken: false };
        let document = match self.entries.get_mut(self.free as usize) {
            Some(free) => {
                let document = self.free;
                self.free = free.next;
                *free = entry;
                document
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).unwrap_or(NONE)
            }
        };
        if let Some(first) = self.buckets.get_mut(bucket) {
            *first = document + 1;
        }
        document
    }

    /// One item less.
    pub(crate) fn remove(&mut self, document: u32) {
        let Some(entry) = self.entries.get_mut(document as usize) else { return };
        entry.items -= 1;
        if entry.items > 0 {
            return;
        }
        let (hash, next) = (entry.hash, entry.next);
        entry.next = self.free;
        self.free = document;
        let bucket = self.bucket(hash);
        let Some(first) = self.buckets.get_mut(bucket) else { return };
        if *first == document + 1 {
            *first = next;
            return;
        }
        let mut link = *first;
        while let Some(entry) = link.checked_sub(1).and_then(|at| self.entries.get_mut(at as usize)) {
            if entry.next == document + 1 {
                entry.next = next;
                return;
            }
            link = entry.next;
        }
    }

    /// An item was rejected and may be sent again.
    pub(crate) fn rejected(&mut self, document: u32) {
        if let Some(entry) = self.entries.get_mut(document as usize) {
            entry.rejected = true;
        }
    }

    /// An item was carried out: one that was rejected before it in the same request must not follow it.
    pub(crate) fn carried_out(&mut self, document: u32) {
        if let Some(entry) = self.entries.get_mut(document as usize) {
            entry.overtaken |= entry.rejected;
        }
    }

    /// Whether an item of the last request that was rejected was overtaken by a later one.
    pub(crate) fn is_overtaken(&self, document: u32) -> bool {
        self.entries.get(document as usize).is_some_and(|entry| entry.overtaken)
    }

    /// Forgets about the last request.
    pub(crate) fn settle(&mut self, document: u32) {
        if let Some(entry) = self.entries.get_mut(document as usize) {
            (entry.rejected, entry.overtaken) = (false, false);
        }
    }

    fn bucket(&self, hash: u64) -> usize {
        // The table's length is a power of two, and at most 2^24.
        usize::try_from(hash).unwrap_or(0) & (self.buckets.len() - 1)
    }
}

/// Tells documents apart.
pub(crate) fn hash(seed: u64, index: &[u8], id: &[u8]) -> u64 {
    xxh3_64_with_seed(id, xxh3_64_with_seed(index, seed))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// The table says of every document with items how many it has and where the last went, and of no other.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0u64..40, any::<bool>(), any::<u16>()), 1..300)) {
            let mut documents = Documents::new(32);
            let mut model: HashMap<u64, (u32, u16, u32)> = HashMap::new();
            for (hash, add, batch) in steps {
                // Two in each bucket and more.
                let hash = hash << 3;
                let found = documents.find(hash);
                prop_assert_eq!(found, model.get(&hash).map(|(document, ..)| *document));
                if add && (found.is_some() || model.len() < 32) {
                    let document = documents.add(found, hash, batch);
                    let items = model.get(&hash).map_or(0, |(.., items)| *items);
                    model.insert(hash, (document, batch, items + 1));
                    prop_assert_eq!(documents.batch(document), Some(batch));
                } else if let Some((document, batch, items)) = model.remove(&hash) {
                    documents.remove(document);
                    if items > 1 {
                        model.insert(hash, (document, batch, items - 1));
                    }
                }
                prop_assert!(documents.entries.len() <= 32);
            }
        }
    }
}

//! A table that gives each distinct text a number, in memory of a size known beforehand.

use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::rewrite::RewriteError;

/// Where a text stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextLocation {
    /// Which of several bodies.
    pub(crate) body: u32,
    /// Where in it.
    pub(crate) offset: u32,
    /// How long.
    pub(crate) len: u32,
}

/// Numbers texts in the order of their first coming. The texts stay where they are; what is kept is where
/// that is, in two arrays that are taken once and never grow.
///
/// The hash is seeded anew in every table, so that senders cannot prepare texts that collide.
#[derive(Debug)]
pub(crate) struct Interner {
    entries: Vec<Entry>,
    /// Index into `entries` plus one, by hash with linear probing; 0 is free. A power of two, at least
    /// twice the entries.
    slots: Vec<u32>,
    limit: usize,
    seed: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    location: TextLocation,
    hash: u32,
}

impl Interner {
    /// A table for up to `limit` distinct texts (at most 2³⁰).
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.min(1 << 30);
        Self {
            entries: Vec::with_capacity(limit),
            slots: vec![0; slots_for(limit)],
            limit,
            seed: RandomState::new().hash_one(limit),
        }
    }

    /// How many bytes a table for `limit` texts takes.
    pub(crate) fn bytes_for(limit: usize) -> usize {
        let limit = limit.min(1 << 30);
        limit * size_of::<Entry>() + slots_for(limit) * size_of::<u32>()
    }

    /// How many distinct texts there is room for.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Whether no text has a number.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.slots.fill(0);
    }

    /// The number of `text`, and whether it is new. `text_at` finds the text of a place that was given
    /// before.
    pub(crate) fn intern<'t>(
        &mut self,
        text: &[u8],
        place: TextLocation,
        text_at: impl Fn(TextLocation) -> &'t [u8],
    ) -> Result<(u32, bool), RewriteError> {
        let hash = self.hash(text);
        match self.probe(hash, text, text_at) {
            Probe::Found(number) => Ok((number, false)),
            Probe::Free(slot) => {
                let full = || RewriteError::Scratch { limit: self.limit };
                let number = u32::try_from(self.entries.len()).map_err(|_| full())?;
                if self.entries.len() >= self.limit {
                    return Err(full());
                }
                if let Some(free) = self.slots.get_mut(slot) {
                    *free = number + 1;
                }
                self.entries.push(Entry { location: place, hash });
                Ok((number, true))
            }
        }
    }

    /// The number of `text`, if it has one.
    pub(crate) fn find<'t>(&self, text: &[u8], text_at: impl Fn(TextLocation) -> &'t [u8]) -> Option<u32> {
        match self.probe(self.hash(text), text, text_at) {
            Probe::Found(number) => Some(number),
            Probe::Free(_) => None,
        }
    }

    /// The place given with the text of this number.
    pub(crate) fn location(&self, number: u32) -> Option<TextLocation> {
        self.entries.get(usize::try_from(number).ok()?).map(|entry| entry.location)
    }

    fn hash(&self, text: &[u8]) -> u32 {
        crate::proto::low32(xxh3_64_with_seed(text, self.seed))
    }

    fn probe<'t>(&self, hash: u32, text: &[u8], text_at: impl Fn(TextLocation) -> &'t [u8]) -> Probe {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let number = match self.slots.get(slot) {
                None | Some(0) => return Probe::Free(slot),
                Some(taken) => taken - 1,
            };
            if let Some(entry) = self.entries.get(number as usize)
                && entry.hash == hash
                && text_at(entry.location) == text
            {
                return Probe::Found(number);
            }
            slot = (slot + 1) & mask;
        }
    }
}

enum Probe {
    Found(u32),
    Free(usize),
}

fn slots_for(limit: usize) -> usize {
    (limit * 2).next_power_of_two().max(2)
}

/// The place of `part`, a sub-slice of `whole`.
pub(crate) fn location_of(whole: &[u8], part: &[u8], body: u32) -> Result<TextLocation, RewriteError> {
    let offset = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    let narrow = |value| u32::try_from(value).map_err(|_| RewriteError::TooLong);
    Ok(TextLocation { body, offset: narrow(offset)?, len: narrow(part.len())? })
}

impl TextLocation {
    /// The bytes at this place of `whole`.
    pub(crate) fn of(self, whole: &[u8]) -> &[u8] {
        let start = self.offset as usize;
        whole.get(start..start.saturating_add(self.len as usize)).unwrap_or_default()
    }
}

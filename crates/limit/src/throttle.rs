//! At most so many keys hold a token, each for a time.

mod index;

use crate::clock::Moment;
use crate::hash::HashKey;
use index::HashIndex;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// At most so many keys hold a token at a time, each its own, until they give it back or its time is over.
///
/// All tokens live equally long, so they end in the order in which they were given: the list of them is sorted by
/// itself, and only its first need be looked at. Taking, giving back and being refused take the same time
/// whether eight keys hold tokens or ten thousand, and no memory. Clones are the same throttle.
#[derive(Debug)]
pub struct Throttle<K>(Arc<Inner<K>>);

#[derive(Debug)]
struct Inner<K> {
    lives: u64,
    key: HashKey,
    table: Mutex<TokenTable<K>>,
}

/// A token. Dropping it gives it back, unless its time was over and somebody else has its place.
#[derive(Debug)]
#[must_use = "dropping a token gives it back"]
pub struct Token<K: Copy + Eq + Hash> {
    throttle: Throttle<K>,
    place: u32,
    turn: u32,
}

/// No token was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoToken {
    /// The key holds one, for so long at most.
    Held(Duration),
    /// As many keys as may hold tokens do; the first of them for so long at most.
    Full(Duration),
}

/// The places of tokens, in a list from the first that ends to the last.
#[derive(Debug)]
struct TokenTable<K> {
    places: Vec<TokenSlot<K>>,
    most: usize,
    index: HashIndex,
    /// The list's ends, and the places that are free, singly linked; [`NO_SLOT`] where there is none.
    first: u32,
    last: u32,
    free: u32,
}

#[derive(Debug)]
struct TokenSlot<K> {
    key: K,
    hash: u64,
    ends: u64,
    /// How often it was given to somebody: tells a token from the one that had the place before.
    turn: u32,
    before: u32,
    after: u32,
}

const NO_SLOT: u32 = u32::MAX;

impl<K: Copy + Eq + Hash> Throttle<K> {
    /// Tokens for `most` keys, each for as long as `lives`.
    pub fn new(most: u32, lives: Duration) -> Throttle<K> {
        let most = most.clamp(1, NO_SLOT / 4) as usize;
        let lives = u64::try_from(lives.as_nanos()).unwrap_or(u64::MAX);
        let table = TokenTable {
            places: Vec::with_capacity(most),
            most,
            index: HashIndex::new(most),
            first: NO_SLOT,
            last: NO_SLOT,
            free: NO_SLOT,
        };
        Throttle(Arc::new(Inner { lives, key: HashKey::random(), table: Mutex::new(table) }))
    }

    /// Its memory for `most` keys, in bytes: a line of the memory plan.
    pub const fn bytes(most: u32) -> usize {
        most as usize * size_of::<TokenSlot<K>>() + HashIndex::bytes(most as usize)
    }

    /// A token for `key`.
    ///
    /// # Errors
    /// When the key holds one, or there is none left, with when that ends at the latest.
    pub fn acquire(&self, now: Moment, key: K) -> Result<Token<K>, NoToken> {
        let hash = self.0.key.hash(&key);
        let ends = now.0.saturating_add(self.0.lives);
        let (place, turn) = self.table().take(now.0, ends, key, hash)?;
        Ok(Token { throttle: self.clone(), place, turn })
    }

    /// How many hold one, those included whose time is over and whose place nobody wanted yet.
    pub fn held(&self) -> usize {
        self.table().index.len()
    }

    fn table(&self) -> MutexGuard<'_, TokenTable<K>> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> TokenTable<K> {
    fn take(&mut self, now: u64, ends: u64, key: K, hash: u64) -> Result<(u32, u32), NoToken> {
        let same = |place: u32| self.places.get(place as usize).is_some_and(|place| place.key == key);
        if let Some(place) = self.index.find(hash, same) {
            let left = self.places.get(place as usize).map_or(0, |place| place.ends.saturating_sub(now));
            if left > 0 {
                return Err(NoToken::Held(Duration::from_nanos(left)));
            }
            self.release(place);
        } else if self.free == NO_SLOT && self.places.len() == self.most {
            let first = self.first;
            let left = self.places.get(first as usize).map_or(0, |place| place.ends.saturating_sub(now));
            if left > 0 {
                return Err(NoToken::Full(Duration::from_nanos(left)));
            }
            self.release(first);
        }
        let new = TokenSlot { key, hash, ends, turn: 0, before: self.last, after: NO_SLOT };
        let (place, turn) = match self.places.get_mut(self.free as usize) {
            Some(free) => {
                let (place, turn) = (self.free, free.turn.wrapping_add(1));
                self.free = free.after;
                *free = TokenSlot { turn, ..new };
                (place, turn)
            }
            None => {
                self.places.push(new);
                // There are fewer than `NO_SLOT`.
                (self.places.len() as u32 - 1, 0)
            }
        };
        match self.places.get_mut(self.last as usize) {
            Some(last) => last.after = place,
            None => self.first = place,
        }
        self.last = place;
        self.index.insert(hash, place);
        Ok((place, turn))
    }

    /// Takes the place from whoever has it.
    fn release(&mut self, at: u32) {
        let free = self.free;
        let Some(place) = self.places.get_mut(at as usize) else { return };
        let (hash, before, after) = (place.hash, place.before, place.after);
        (place.after, place.turn) = (free, place.turn.wrapping_add(1));
        self.free = at;
        match self.places.get_mut(before as usize) {
            Some(place) => place.after = after,
            None => self.first = after,
        }
        match self.places.get_mut(after as usize) {
            Some(place) => place.before = before,
            None => self.last = before,
        }
        self.index.remove(hash, at);
    }
}

impl<K: Copy + Eq + Hash> Drop for Token<K> {
    fn drop(&mut self) {
        let mut table = self.throttle.table();
        if table.places.get(self.place as usize).is_some_and(|place| place.turn == self.turn) {
            table.release(self.place);
        }
    }
}

impl<K> Clone for Throttle<K> {
    fn clone(&self) -> Throttle<K> {
        Throttle(Arc::clone(&self.0))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

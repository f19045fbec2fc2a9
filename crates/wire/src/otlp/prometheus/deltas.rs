//! The memory that makes counters of deltas: a fixed table of series, each with what its points come to so far.
//!
//! A delta says how much came since the point before. Prometheus wants how much came in all, and takes a value
//! that is lower than the one before for a restart of the counter. So:
//!
//! - the first point of a series begins its counter, whose start is that of the point;
//! - what comes later is added. That points are missing between two is no reason to begin again: it would look
//!   like a restart only if the value fell, and what is missing is missing either way;
//! - a point that is not later than the last one is left out, since it was either counted already (a sender
//!   that repeats itself) or belongs to another sender of the same series, which deltas do not allow;
//! - after a restart of this process every counter begins again, which is what a restart of a counter looks like.
//!
//! A sum that may fall has no such way to begin again unnoticed, and an exponential histogram no fixed number of
//! counters: both stay untranslatable.
//!
//! # Trying again
//! A translation may be in vain: it does not fit, or the peer does not answer, and the same points are translated
//! again. What a translation adds therefore counts only when [`Deltas::commit`] is called; the next one takes
//! anything else back.

use xxhash_rust::xxh3::{Xxh3, xxh3_128_with_seed};

use crate::remote_write::Label;

/// The identity of a series: a hash of its labels and its name. With 128 bits and a secret seed, no two series
/// collide by chance or by intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u128);

/// Which of a point's counters it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// That of a sum.
    Value,
    /// The count of a histogram.
    Count,
    /// The sum of a histogram.
    Sum,
    /// A histogram's bucket, by its upper bound.
    Bucket(u64),
}

/// Why a delta does not become a counter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeltaError {
    /// It is not later than the last one.
    Late,
    /// The table is full.
    Full,
}

/// A counter's value, with its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sum {
    pub(super) value: f64,
    /// Nanoseconds; 0 when nobody said.
    pub(super) start: u64,
}

/// The sum of the points, and the time of the last.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct State {
    sum: f64,
    /// The rounding error of `sum` (Neumaier, 1974): otherwise a counter of many small deltas would stop growing.
    lost: f64,
    time: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    now: State,
    /// As it was before the translation that is not kept yet; nothing for one that began with it.
    before: Option<State>,
    start: u64,
    /// The translation that touched it last.
    touched: u64,
    /// When that was, in seconds of the caller's clock.
    seen: u64,
}

/// A table of so many series, taken once.
#[derive(Debug)]
pub struct Deltas {
    entries: Vec<Entry>,
    /// Numbers of entries and one more, by hash; 0 where there is none.
    slots: Vec<u32>,
    limit: usize,
    seed: u64,
    /// A hash of whose deltas are added: others' are other series.
    owner: u64,
    /// The translation under way, and whether it has touched anything.
    translation: u64,
    is_touched: bool,
    now: u64,
    swept: u64,
}

/// How long a series that is not heard of keeps its place while others want one, in seconds.
const IDLE_SECONDS: u64 = 3_600;
/// How often room is looked for at most, in seconds.
const SWEEP_SECONDS: u64 = 10;

impl Deltas {
    /// Room for `series` counters. A histogram takes one for each bucket and two more.
    #[must_use]
    pub fn new(series: usize) -> Self {
        let limit = series.min(MOST);
        Self {
            entries: Vec::with_capacity(limit),
            slots: vec![0; slots_for(limit)],
            limit,
            seed: random(),
            owner: 0,
            translation: 0,
            is_touched: false,
            now: 0,
            swept: 0,
        }
    }

    /// How many bytes [`new`](Self::new) takes.
    #[must_use]
    pub const fn bytes_for(series: usize) -> usize {
        let limit = if series < MOST { series } else { MOST };
        limit * size_of::<Entry>() + slots_for(limit) * size_of::<u32>()
    }

    /// Tells it the time, in seconds of whatever clock, so that it can forget what is not heard of any more.
    pub fn set_time(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Sets the owner of following additions: the same series of another owner is a different one.
    pub fn set_owner(&mut self, owner: &[u8]) {
        let mut hash = Xxh3::with_seed(self.seed);
        hash.update(owner);
        self.owner = hash.digest();
    }

    /// Commits the last additions.
    pub fn commit(&mut self) {
        self.begin();
    }

    /// How many series it knows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it knows none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Undoes the additions since the last [`commit`](Self::commit).
    pub(super) fn rollback(&mut self) {
        if self.is_touched {
            let translation = self.translation;
            let is_new = |entry: &Entry| entry.touched == translation && entry.before.is_none();
            let any_new = self.entries.iter().any(is_new);
            for entry in self.entries.iter_mut().filter(|entry| entry.touched == translation) {
                entry.now = entry.before.unwrap_or(entry.now);
            }
            if any_new {
                self.retain(|entry| !is_new(entry));
            }
        }
        self.begin();
    }

    fn begin(&mut self) {
        self.translation += 1;
        self.is_touched = false;
    }

    /// The identities of a point's series.
    pub(super) fn key<'a>(&self, name: &[u8], labels: impl Iterator<Item = Label<'a>>) -> Key {
        let mut hash = Xxh3::with_seed(self.seed);
        hash.update(&self.owner.to_le_bytes());
        // Lengths, so that no two lists of texts are the same bytes.
        let mut put = |text: &[u8]| {
            hash.update(&text.len().to_le_bytes());
            hash.update(text);
        };
        put(name);
        labels.for_each(|label| {
            put(label.name);
            put(label.value);
        });
        Key(hash.digest128())
    }

    /// Whether there is room for these counters of a point, as far as they are new.
    pub(super) fn has_room(&mut self, point: Key, counters: impl Iterator<Item = Counter> + Clone) -> bool {
        let is_room = |deltas: &Self| {
            let free = deltas.limit - deltas.entries.len();
            // Looked up only where it matters.
            counters.clone().count() <= free
                || counters
                    .clone()
                    .filter(|counter| deltas.find(deltas.of(point, *counter)).is_none())
                    .count()
                    <= free
        };
        is_room(self) || (self.sweep() && is_room(self))
    }

    /// Adds a delta to a counter.
    pub(super) fn add(
        &mut self,
        point: Key,
        counter: Counter,
        delta: f64,
        start: u64,
        time: u64,
    ) -> Result<Sum, DeltaError> {
        let key = self.of(point, counter);
        let number = match self.find(key) {
            Some(number) => number,
            None => self.insert(key, start)?,
        };
        let (translation, now) = (self.translation, self.now);
        let Some(entry) = self.entries.get_mut(number) else { return Err(DeltaError::Full) };
        let is_first =
            entry.touched == translation && entry.before.is_none() && entry.now == State::default();
        if time <= entry.now.time && !is_first {
            return Err(DeltaError::Late);
        }
        if entry.touched != translation {
            entry.before = Some(entry.now);
        }
        (entry.touched, entry.seen) = (translation, now);
        self.is_touched = true;
        entry.now.add(delta);
        entry.now.time = time;
        Ok(Sum { value: entry.now.sum + entry.now.lost, start: entry.start })
    }

    fn of(&self, Key(point): Key, counter: Counter) -> Key {
        let (kind, bound) = match counter {
            Counter::Value => (0, 0),
            Counter::Count => (1, 0),
            Counter::Sum => (2, 0),
            Counter::Bucket(bound) => (3, bound),
        };
        let mut bytes = [0; 25];
        let (hash, rest) = bytes.split_at_mut(16);
        hash.copy_from_slice(&point.to_le_bytes());
        if let Some((first, rest)) = rest.split_first_mut() {
            *first = kind;
            rest.copy_from_slice(&u64::to_le_bytes(bound));
        }
        Key(xxh3_128_with_seed(&bytes, self.seed))
    }

    fn find(&self, key: Key) -> Option<usize> {
        let number = self.slots.get(self.slot_of(key)).copied()?;
        usize::try_from(number.checked_sub(1)?).ok()
    }

    /// Where a series is, or would be.
    fn slot_of(&self, key: Key) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = key.0 as usize & mask;
        loop {
            // Half of the slots are empty, so this ends.
            let number = self.slots.get(slot).map_or(0, |number| *number as usize);
            match number.checked_sub(1).and_then(|number| self.entries.get(number)) {
                Some(entry) if entry.key != key => slot = (slot + 1) & mask,
                _ => return slot,
            }
        }
    }

    fn insert(&mut self, key: Key, start: u64) -> Result<usize, DeltaError> {
        if self.entries.len() == self.limit && !self.sweep() {
            return Err(DeltaError::Full);
        }
        let (touched, seen) = (self.translation, self.now);
        self.entries.push(Entry { key, now: State::default(), before: None, start, touched, seen });
        self.is_touched = true;
        self.enter(self.entries.len() - 1);
        Ok(self.entries.len() - 1)
    }

    fn enter(&mut self, number: usize) {
        let Some(key) = self.entries.get(number).map(|entry| entry.key) else { return };
        let slot = self.slot_of(key);
        if let (Some(slot), Ok(number)) = (self.slots.get_mut(slot), u32::try_from(number + 1)) {
            *slot = number;
        }
    }

    /// Makes room of series that are not heard of any more; says whether there was one.
    fn sweep(&mut self) -> bool {
        if self.now < self.swept + SWEEP_SECONDS {
            return false;
        }
        self.swept = self.now;
        let (now, before) = (self.now, self.entries.len());
        self.retain(|entry| entry.seen + IDLE_SECONDS >= now);
        self.entries.len() < before
    }

    fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(keep);
        self.slots.fill(0);
        (0..self.entries.len()).for_each(|number| self.enter(number));
    }
}

impl State {
    fn add(&mut self, delta: f64) {
        let sum = self.sum + delta;
        let rounded =
            if self.sum.abs() >= delta.abs() { (self.sum - sum) + delta } else { (delta - sum) + self.sum };
        // Not of infinities, whose difference is no number.
        self.lost += if rounded.is_finite() { rounded } else { 0.0 };
        self.sum = sum;
    }
}

/// The most series of a table: what its numbers can say.
const MOST: usize = 1 << 30;

/// A power of two, at least twice as many.
const fn slots_for(limit: usize) -> usize {
    (limit * 2 + 1).next_power_of_two()
}

/// A number that nobody outside knows.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

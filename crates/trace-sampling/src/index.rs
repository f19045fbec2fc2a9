//! Finds entries of a table of fixed size by hashes: open addressing, with the next place tried on a clash.
//!
//! Invariant: from an entry's own place (its hash scaled to the length) to where it is, no place is free.

const FREE: u32 = u32::MAX;

/// The places of entries, by their hashes.
#[derive(Debug)]
pub(crate) struct Index(Box<[u32]>);

/// How much of an index may be full. To take out an entry of one that is full by two thirds looks at five others, by the half at two or three: each is
/// somewhere else in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fullness {
    /// By two thirds: for one that is seldom full.
    TwoThirds,
    /// By the half: for one that always is.
    Half,
}

impl Index {
    /// The bytes of an index for so many entries.
    pub(crate) fn bytes(entries: u32, fullness: Fullness) -> usize {
        places(entries, fullness) * size_of::<u32>()
    }

    /// An index for so many entries.
    pub(crate) fn new(entries: u32, fullness: Fullness) -> Index {
        Index(vec![FREE; places(entries, fullness)].into())
    }

    /// The entry with this hash for which `is_it` holds.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = self.own(hash);
        loop {
            match self.0[place] {
                FREE => return None,
                entry if is_it(entry) => return Some(entry),
                _ => place = self.after(place),
            }
        }
    }

    /// Adds an entry, which is not there yet.
    pub(crate) fn insert(&mut self, hash: u64, entry: u32) {
        let mut place = self.own(hash);
        while self.0[place] != FREE {
            place = self.after(place);
        }
        self.0[place] = entry;
    }

    /// Takes an entry out, which is there; `hash_of` has the hashes of all entries.
    pub(crate) fn remove(&mut self, entry: u32, hash_of: impl Fn(u32) -> u64) {
        let mut hole = self.own(hash_of(entry));
        while self.0[hole] != entry {
            hole = self.after(hole);
        }
        let mut place = hole;
        loop {
            place = self.after(place);
            let moved = self.0[place];
            if moved == FREE {
                break;
            }
            // It moves into the hole, unless its own place is behind that.
            let own = self.own(hash_of(moved));
            if self.distance(own, place) >= self.distance(hole, place) {
                self.0[hole] = moved;
                hole = place;
            }
        }
        self.0[hole] = FREE;
    }

    fn own(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.0.len() as u128) >> u64::BITS) as usize
    }

    fn after(&self, place: usize) -> usize {
        if place + 1 == self.0.len() { 0 } else { place + 1 }
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.0.len() - from }
    }
}

/// One more than needed, so that there always is a free one.
fn places(entries: u32, fullness: Fullness) -> usize {
    let entries = entries as usize;
    let more = match fullness {
        Fullness::TwoThirds => entries / 2,
        Fullness::Half => entries,
    };
    entries + more + 1
}

//! Finds entries of a table of fixed size by hashes: open addressing, with the next place tried on a clash.
//!
//! Entries are added, and all are taken out at once; none is alone.

const FREE: u32 = u32::MAX;

/// The places of entries, by their hashes.
#[derive(Debug)]
pub(crate) struct Index(Box<[u32]>);

impl Index {
    /// The bytes of an index for so many entries.
    pub(crate) fn bytes(entries: usize) -> usize {
        places(entries) * size_of::<u32>()
    }

    /// An index for so many entries.
    pub(crate) fn new(entries: usize) -> Index {
        Index(vec![FREE; places(entries)].into())
    }

    /// The entry with this hash for which `is_it` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = self.own(hash);
        loop {
            match self.0[place] {
                FREE => return None,
                entry if is_it(entry) => return Some(entry),
                _ => place = self.after(place),
            }
        }
    }

    /// Adds an entry, which is not there yet. There are never more than the index was made for.
    pub(crate) fn insert(&mut self, hash: u32, entry: u32) {
        let mut place = self.own(hash);
        while self.0[place] != FREE {
            place = self.after(place);
        }
        self.0[place] = entry;
    }

    /// Takes all entries out.
    pub(crate) fn clear(&mut self) {
        self.0.fill(FREE);
    }

    fn own(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.0.len() as u64) >> u32::BITS) as usize
    }

    fn after(&self, place: usize) -> usize {
        if place + 1 == self.0.len() { 0 } else { place + 1 }
    }
}

/// Full by two thirds, and one more than needed: there always is a free one.
fn places(entries: usize) -> usize {
    entries + entries / 2 + 1
}

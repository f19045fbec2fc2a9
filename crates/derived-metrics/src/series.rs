//! The series: keys and values by resource and measure.
//!
//! Invariant: the series are in the order in which they were seen first, and so are their keys in the blob.

use crate::blob::Blob;
use crate::exemplar::Exemplar;
use crate::index::Index;
use crate::settings::Sizes;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// All series.
#[derive(Debug)]
pub(crate) struct SeriesTable {
    entries: Vec<Series>,
    index: Index,
    /// `stride` words for each series.
    values: Vec<u64>,
    stride: usize,
    /// One for each series, where there are any.
    exemplars: Option<Vec<Exemplar>>,
    seed: u64,
    /// The most that are not overflow series.
    most: usize,
    overflow_most: usize,
    overflow: usize,
}

/// A series. Its key is in the blob.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Series {
    hash: u32,
    key_start: u32,
    /// When it begins, in milliseconds since 1970: the low half, and the high one. With 64 bits in a word it would be four bytes larger.
    start_ms: [u32; 2],
    /// When it was seen last, in seconds since 1970.
    last_seen_s: u32,
    pub(crate) resource: u32,
    key_len: u16,
    pub(crate) measure: u16,
}

/// The identity of a series beside its key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    pub(crate) resource: u32,
    pub(crate) measure: u16,
    pub(crate) is_overflow: bool,
}

/// A series that an observation changes.
#[derive(Debug)]
pub(crate) struct SeriesMut<'a> {
    pub(crate) words: &'a mut [u64],
    pub(crate) exemplar: Option<&'a mut Exemplar>,
}

impl Series {
    pub(crate) fn start_ms(&self) -> u64 {
        let [low, high] = self.start_ms;
        u64::from(high) << 32 | u64::from(low)
    }

    pub(crate) fn set_start_ms(&mut self, start_ms: u64) {
        self.start_ms = [start_ms as u32, (start_ms >> 32) as u32];
    }

    pub(crate) fn last_seen_s(&self) -> u32 {
        self.last_seen_s
    }

    pub(crate) fn seen_at_most(&mut self, at_s: u32) {
        self.last_seen_s = self.last_seen_s.min(at_s);
    }

    pub(crate) fn see(&mut self, at_s: u32) {
        self.last_seen_s = self.last_seen_s.max(at_s);
    }

    pub(crate) fn key<'a>(&self, blob: &'a Blob) -> &'a [u8] {
        blob.get(self.key_start, self.key_len.into())
    }
}

impl SeriesTable {
    pub(crate) fn new(sizes: &Sizes, exemplars: bool, seed: u64) -> SeriesTable {
        let count = sizes.all_series();
        SeriesTable {
            entries: Vec::with_capacity(count),
            index: Index::new(count),
            values: Vec::with_capacity(count * sizes.stride),
            stride: sizes.stride,
            exemplars: exemplars.then(|| Vec::with_capacity(count)),
            seed,
            most: sizes.series,
            overflow_most: sizes.overflow_series,
            overflow: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn all(&self) -> &[Series] {
        &self.entries
    }

    pub(crate) fn all_mut(&mut self) -> &mut [Series] {
        &mut self.entries
    }

    pub(crate) fn at(&self, number: u32) -> &Series {
        &self.entries[number as usize]
    }

    pub(crate) fn at_mut(&mut self, number: u32) -> &mut Series {
        &mut self.entries[number as usize]
    }

    /// The values of a series, and more words behind them where others have more.
    pub(crate) fn words(&self, number: u32) -> &[u64] {
        let start = number as usize * self.stride;
        &self.values[start..start + self.stride]
    }

    pub(crate) fn exemplar(&self, number: u32) -> Option<&Exemplar> {
        self.exemplars.as_ref()?.get(number as usize)
    }

    pub(crate) fn change(&mut self, number: u32) -> SeriesMut<'_> {
        let start = number as usize * self.stride;
        SeriesMut {
            words: &mut self.values[start..start + self.stride],
            exemplar: self.exemplars.as_mut().and_then(|exemplars| exemplars.get_mut(number as usize)),
        }
    }

    /// Forgets the values of a series, which begins again at a time.
    pub(crate) fn empty(&mut self, number: u32, start_ms: u64) {
        self.at_mut(number).set_start_ms(start_ms);
        let SeriesMut { words, exemplar } = self.change(number);
        words.fill(0);
        if let Some(exemplar) = exemplar {
            *exemplar = Exemplar::default();
        }
    }

    /// The number of a series. It is added where there is none; `None` where there is no room for it.
    #[inline]
    pub(crate) fn intern(&mut self, owner: Owner, key: &[u8], start_ms: u64, blob: &mut Blob) -> Option<u32> {
        let hash = hash(self.seed, owner.resource, owner.measure, key);
        let is_it = |number: u32| {
            let series = &self.entries[number as usize];
            series.hash == hash
                && series.resource == owner.resource
                && series.measure == owner.measure
                && series.key(blob) == key
        };
        self.index.find(hash, is_it).or_else(|| self.add(hash, owner, key, start_ms, blob))
    }

    #[cold]
    fn add(&mut self, hash: u32, owner: Owner, key: &[u8], start_ms: u64, blob: &mut Blob) -> Option<u32> {
        let is_full = match owner.is_overflow {
            true => self.overflow == self.overflow_most,
            false => self.entries.len() - self.overflow == self.most,
        };
        if is_full {
            return None;
        }
        let key_len = key.len().try_into().ok()?;
        let key_start = blob.push_key(key)?;
        let number = self.entries.len() as u32;
        let Owner { resource, measure, is_overflow } = owner;
        let mut series =
            Series { hash, key_start, start_ms: [0; 2], last_seen_s: 0, resource, key_len, measure };
        series.set_start_ms(start_ms);
        self.entries.push(series);
        self.values.resize(self.values.len() + self.stride, 0);
        if let Some(exemplars) = &mut self.exemplars {
            exemplars.push(Exemplar::default());
        }
        self.overflow += usize::from(is_overflow);
        self.index.insert(hash, number);
        Some(number)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.values.clear();
        if let Some(exemplars) = &mut self.exemplars {
            exemplars.clear();
        }
        self.index.clear();
        self.overflow = 0;
    }

    pub(crate) fn clear_exemplars(&mut self) {
        if let Some(exemplars) = &mut self.exemplars {
            exemplars.fill(Exemplar::default());
        }
    }

    /// Keeps some, whose resources have new numbers. Says of the new numbers of resources whether they are of overflow series.
    pub(crate) fn compact(
        &mut self,
        blob: &mut Blob,
        numbers: &[u32],
        is_kept: impl Fn(&Series) -> bool,
        is_overflow: impl Fn(u32) -> bool,
    ) {
        blob.clear_keys();
        self.index.clear();
        self.overflow = 0;
        let mut kept = 0;
        for number in 0..self.entries.len() {
            let mut series = self.entries[number];
            if !is_kept(&series) {
                continue;
            }
            series.resource = numbers[series.resource as usize];
            series.key_start = blob.move_key(series.key_start, series.key_len.into());
            series.hash = hash(self.seed, series.resource, series.measure, series.key(blob));
            self.index.insert(series.hash, kept as u32);
            self.overflow += usize::from(is_overflow(series.resource));
            self.entries[kept] = series;
            let words = number * self.stride..(number + 1) * self.stride;
            self.values.copy_within(words, kept * self.stride);
            if let Some(exemplars) = &mut self.exemplars {
                exemplars[kept] = exemplars[number];
            }
            kept += 1;
        }
        self.entries.truncate(kept);
        self.values.truncate(kept * self.stride);
        if let Some(exemplars) = &mut self.exemplars {
            exemplars.truncate(kept);
        }
    }
}

#[inline]
fn hash(seed: u64, resource: u32, measure: u16, key: &[u8]) -> u32 {
    let owner = u64::from(resource) << 16 | u64::from(measure);
    (xxh3_64_with_seed(key, seed ^ owner.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 32) as u32
}

//! The exponential histogram: buckets of equal width on a logarithmic scale, which gets coarser when they do not suffice.
//!
//! It is the `structure.Histogram` of <https://github.com/lightstep/go-expohisto>, but for one thing: positive and negative values share
//! the buckets. Values of one sign, as durations are, have the same buckets as there. With both signs the scale is coarser than
//! there only if the two ranges together do not fit, and the memory of a series is half.
//!
//! Invariant: a bucket outside of both ranges is zero.

#[cfg(test)]
pub(crate) mod tests;

use crate::number;
use std::f64::consts::LOG2_E;

const MAX_SCALE: i32 = 20;
const MIN_SCALE: i32 = -10;
/// At the coarsest scale each sign has two buckets.
const FEWEST_BUCKETS: usize = 4;
/// The words before the buckets.
const HEAD: usize = 8;
const COUNT: usize = 0;
const ZEROS: usize = 1;
const SUM: usize = 2;
const MIN: usize = 3;
const MAX: usize = 4;
/// How far the scale is below the finest.
const DOWNSCALED: usize = 5;
const POSITIVE: usize = 6;
const NEGATIVE: usize = 7;

/// The words of a histogram.
pub(crate) fn words(max_size: u32) -> usize {
    HEAD + (limit(max_size) as usize).max(FEWEST_BUCKETS)
}

/// Adds `count` observations of a finite value.
pub(crate) fn fold(words: &mut [u64], max_size: u32, value: f64, count: u64) {
    let Some((head, buckets)) = words.split_first_chunk_mut::<HEAD>() else { return };
    if count == 0 {
        return;
    }
    let is_first = head[COUNT] == 0;
    if is_first || value < f64::from_bits(head[MIN]) {
        head[MIN] = value.to_bits();
    }
    if is_first || value > f64::from_bits(head[MAX]) {
        head[MAX] = value.to_bits();
    }
    head[COUNT] = head[COUNT].saturating_add(count);
    if value == 0.0 {
        head[ZEROS] = head[ZEROS].saturating_add(count);
        return;
    }
    head[SUM] = number::added(f64::from_bits(head[SUM]), value, count).to_bits();
    let sign = if value > 0.0 { Sign::Positive } else { Sign::Negative };
    let index = make_room(head, buckets, limit(max_size), sign, value.abs());
    if let Some(bucket) = buckets.get_mut(sign.place(range(head, sign).position(index), buckets.len())) {
        *bucket = bucket.saturating_add(count);
    }
}

/// A histogram to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    head: &'a [u64; HEAD],
    buckets: &'a [u64],
}

/// The sign of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Positive,
    Negative,
}

impl<'a> View<'a> {
    pub(crate) fn new(words: &'a [u64]) -> Option<View<'a>> {
        let (head, buckets) = words.split_first_chunk()?;
        Some(View { head, buckets })
    }

    pub(crate) fn count(&self) -> u64 {
        self.head[COUNT]
    }

    pub(crate) fn zero_count(&self) -> u64 {
        self.head[ZEROS]
    }

    pub(crate) fn sum(&self) -> f64 {
        f64::from_bits(self.head[SUM])
    }

    pub(crate) fn min(&self) -> f64 {
        f64::from_bits(self.head[MIN])
    }

    pub(crate) fn max(&self) -> f64 {
        f64::from_bits(self.head[MAX])
    }

    /// Zero where there are only zeros.
    pub(crate) fn scale(&self) -> i32 {
        if self.count() == self.zero_count() { 0 } else { scale(self.head) }
    }

    /// The index of the first bucket.
    pub(crate) fn offset(&self, sign: Sign) -> i32 {
        range(self.head, sign).start
    }

    pub(crate) fn buckets(&self, sign: Sign) -> impl Iterator<Item = u64> + use<'a> {
        let (len, buckets) = (range(self.head, sign).len as usize, self.buckets);
        (0..len).map(move |position| buckets.get(sign.place(position, buckets.len())).copied().unwrap_or(0))
    }
}

/// Whether words from outside keep the invariants.
pub(crate) fn is_valid(words: &[u64], max_size: u32) -> bool {
    let Some(View { head, buckets }) = View::new(words) else { return false };
    let is_range = |range: Range| {
        let is_empty = range.len == 0 && range.start == 0;
        let end = range.start.checked_add(range.len.cast_signed());
        is_empty || (range.len > 0 && range.len <= limit(max_size) && end.is_some())
    };
    let ranges = [range(head, Sign::Positive), range(head, Sign::Negative)];
    let used: usize = ranges.iter().map(|range| range.len as usize).sum();
    let scales = (MAX_SCALE - MIN_SCALE).cast_unsigned();
    if head[DOWNSCALED] > scales.into() || !ranges.into_iter().all(is_range) || used > buckets.len() {
        return false;
    }
    let free = ranges[0].len as usize..buckets.len() - ranges[1].len as usize;
    buckets.get(free).is_some_and(|free| free.iter().all(|bucket| *bucket == 0))
}

impl Sign {
    /// The place of a bucket: those of positive values are at the front, those of negative ones at the back.
    fn place(self, position: usize, len: usize) -> usize {
        match self {
            Sign::Positive => position,
            Sign::Negative => len.saturating_sub(position + 1),
        }
    }

    fn word(self) -> usize {
        match self {
            Sign::Positive => POSITIVE,
            Sign::Negative => NEGATIVE,
        }
    }
}

/// Indices of buckets, of which the first and the last are not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: i32,
    len: u32,
}

impl Range {
    fn position(self, index: i32) -> usize {
        index.wrapping_sub(self.start).max(0) as usize
    }

    fn has(self, index: i32) -> bool {
        self.start <= index && i64::from(index) <= self.last()
    }

    /// The range with this index.
    fn with(self, index: i32) -> Range {
        if self.len == 0 {
            return Range { start: index, len: 1 };
        }
        let last = self.last().max(index.into());
        let start = self.start.min(index);
        Range { start, len: (last - i64::from(start) + 1) as u32 }
    }

    /// The range at a scale that is coarser by `change`.
    fn coarser(self, change: u32) -> Range {
        if self.len == 0 {
            return self;
        }
        let (start, last) = (self.start >> change, self.last() >> change);
        Range { start, len: (last - i64::from(start) + 1) as u32 }
    }

    fn last(self) -> i64 {
        i64::from(self.start) + i64::from(self.len) - 1
    }
}

fn range(head: &[u64; HEAD], sign: Sign) -> Range {
    let word = head[sign.word()];
    Range { start: (word as u32).cast_signed(), len: (word >> 32) as u32 }
}

fn set_range(head: &mut [u64; HEAD], sign: Sign, range: Range) {
    head[sign.word()] = u64::from(range.len) << 32 | u64::from(range.start.cast_unsigned());
}

fn scale(head: &[u64; HEAD]) -> i32 {
    MAX_SCALE - head[DOWNSCALED] as i32
}

fn limit(max_size: u32) -> u32 {
    if max_size == 0 { 160 } else { max_size.clamp(2, 16_384) }
}

/// Makes a magnitude's index a part of the range of its sign. Returns the index.
fn make_room(head: &mut [u64; HEAD], buckets: &mut [u64], limit: u32, sign: Sign, magnitude: f64) -> i32 {
    loop {
        let scale = scale(head);
        let index = index_of(magnitude, scale);
        let before = range(head, sign);
        if before.has(index) {
            return index;
        }
        let other = match sign {
            Sign::Positive => Sign::Negative,
            Sign::Negative => Sign::Positive,
        };
        let others = range(head, other);
        let after = before.with(index);
        let fits = |change: u32| {
            let (after, others) = (after.coarser(change), others.coarser(change));
            after.len <= limit && after.len as usize + others.len as usize <= buckets.len()
        };
        let coarsest = (scale - MIN_SCALE).max(0).cast_unsigned();
        let change = (0..coarsest).find(|change| fits(*change)).unwrap_or(coarsest);
        if change == 0 {
            shift(buckets, sign, before, before.start.wrapping_sub(after.start).max(0) as usize);
            set_range(head, sign, after);
            return index;
        }
        for sign in [sign, other] {
            let range = range(head, sign);
            merge(buckets, sign, range, change);
            set_range(head, sign, range.coarser(change));
        }
        head[DOWNSCALED] += u64::from(change);
    }
}

/// Moves the buckets of a range, for others before them.
fn shift(buckets: &mut [u64], sign: Sign, range: Range, by: usize) {
    if by == 0 || range.len == 0 {
        return;
    }
    for position in (0..range.len as usize).rev() {
        let count = take(buckets, sign, position);
        add(buckets, sign, position + by, count);
    }
}

/// Adds up buckets that are one at a scale that is coarser by `change`.
fn merge(buckets: &mut [u64], sign: Sign, range: Range, change: u32) {
    let start = range.coarser(change).start;
    for position in 0..range.len as usize {
        let index = i64::from(range.start) + position as i64;
        let merged = ((index >> change) - i64::from(start)) as usize;
        let count = take(buckets, sign, position);
        add(buckets, sign, merged, count);
    }
}

fn take(buckets: &mut [u64], sign: Sign, position: usize) -> u64 {
    let place = sign.place(position, buckets.len());
    buckets.get_mut(place).map(std::mem::take).unwrap_or(0)
}

fn add(buckets: &mut [u64], sign: Sign, position: usize, count: u64) {
    let place = sign.place(position, buckets.len());
    if let Some(bucket) = buckets.get_mut(place) {
        *bucket = bucket.saturating_add(count);
    }
}

/// The index of the bucket of a positive value.
fn index_of(value: f64, scale: i32) -> i32 {
    const SIGNIFICAND_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = value.to_bits();
    let exponent = (bits >> SIGNIFICAND_BITS & 0x7ff) as i32 - (f64::MAX_EXP - 1);
    let is_power_of_two = bits & ((1 << SIGNIFICAND_BITS) - 1) == 0;
    const MIN_EXPONENT: i32 = f64::MIN_EXP - 1;
    if scale > 0 {
        if value <= f64::MIN_POSITIVE {
            return (MIN_EXPONENT << scale) - 1;
        }
        if is_power_of_two {
            return (exponent << scale) - 1;
        }
        let most = (f64::MAX_EXP << scale) - 1;
        let factor = LOG2_E * f64::from(1_u32 << scale);
        return ((value.ln() * factor).floor() as i32).min(most);
    }
    let shift = scale.unsigned_abs();
    if value < f64::MIN_POSITIVE {
        let index = MIN_EXPONENT >> shift;
        return if shift < 2 { index - 1 } else { index };
    }
    (exponent - i32::from(is_power_of_two)) >> shift
}

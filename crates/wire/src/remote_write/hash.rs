//! A number for each series, to spread series over lanes and keep each on its own.

use xxhash_rust::xxh3::xxh3_64;

use super::item::Label;

/// An odd number with its bits well mixed (the fractional part of the golden ratio).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of a label set: the same for both versions, on every machine, and after a restart.
pub fn series_hash<'a>(labels: impl Iterator<Item = Label<'a>>) -> u64 {
    let mut hash = 0u64;
    for Label { name, value } in labels {
        for text in [name, value] {
            hash = (hash.rotate_left(5) ^ xxh3_64(text)).wrapping_mul(MULTIPLIER);
        }
    }
    hash ^ (hash >> 32)
}

/// Which of `lanes` a series with this hash belongs to; 0 when there are none.
#[must_use]
pub fn lane_of(hash: u64, lanes: usize) -> usize {
    let scaled = (u128::from(hash) * lanes as u128) >> 64;
    usize::try_from(scaled).unwrap_or(0)
}

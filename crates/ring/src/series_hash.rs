//! The hash of a series, as Thanos computes it (`HashWithPrefix` of `pkg/store/labelpb/label.go`).

use xxhash_rust::xxh64::{Xxh64, xxh64};

/// Ends the tenant, each name and each value.
const SEPARATOR: u8 = 0xFF;
/// Longer keys are hashed in pieces of about this many bytes.
const BUFFER: usize = 1024;

/// Hashes series: xxHash64 with seed 0 of `tenant 0xFF (name 0xFF value 0xFF)*`, labels in the order in which they are given.
///
/// It has a fixed size, whatever the labels' length, and is reused: [`SeriesHasher::finish`] makes it ready for the next series.
#[derive(Clone)]
pub struct SeriesHasher {
    buffer: [u8; BUFFER],
    len: usize,
    /// The state over the bytes before those in the buffer, if there are any.
    long: Option<Xxh64>,
}

impl SeriesHasher {
    /// A hasher before its first series.
    pub fn new() -> Self {
        Self { buffer: [0; BUFFER], len: 0, long: None }
    }

    /// Adds the tenant. Comes before the labels.
    pub fn tenant(&mut self, tenant: &[u8]) {
        self.part(tenant);
    }

    /// Adds a label.
    #[inline]
    pub fn label(&mut self, name: &[u8], value: &[u8]) {
        let end = self.len + name.len() + value.len() + 2;
        let Some(room) = self.buffer.get_mut(self.len..end) else {
            self.part(name);
            return self.part(value);
        };
        let (name_room, value_room) = room.split_at_mut(name.len() + 1);
        fill(name_room, name);
        fill(value_room, value);
        self.len = end;
    }

    /// The hash of what was added since the last call.
    pub fn finish(&mut self) -> u64 {
        let bytes = self.buffer.get(..self.len).unwrap_or_default();
        self.len = 0;
        match self.long.take() {
            None => xxh64(bytes, 0),
            Some(mut long) => {
                long.update(bytes);
                long.digest()
            }
        }
    }

    fn part(&mut self, part: &[u8]) {
        let end = self.len + part.len() + 1;
        let Some(room) = self.buffer.get_mut(self.len..end) else { return self.long_part(part) };
        fill(room, part);
        self.len = end;
    }

    #[cold]
    fn long_part(&mut self, part: &[u8]) {
        let long = self.long.get_or_insert_with(|| Xxh64::new(0));
        long.update(self.buffer.get(..self.len).unwrap_or_default());
        long.update(part);
        long.update(&[SEPARATOR]);
        self.len = 0;
    }
}

/// Fills the room for a part with it and its separator.
#[inline]
fn fill(room: &mut [u8], part: &[u8]) {
    if let Some((last, text)) = room.split_last_mut() {
        copy(part, text);
        *last = SEPARATOR;
    }
}

/// Copies between slices of one length. Most names and values are short, for which a call of `memcpy` costs more than the copy:
/// two copies of a fixed length, which overlap, do instead.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    fn ends<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
        if let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>())
            && let Some(start) = to.first_chunk_mut::<N>()
        {
            *start = *first;
            if let Some(end) = to.last_chunk_mut::<N>() {
                *end = *last;
            }
            return true;
        }
        false
    }
    match from.len() {
        0..4 => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
        4..8 => _ = ends::<4>(from, to),
        8..16 => _ = ends::<8>(from, to),
        16..32 => _ = ends::<16>(from, to),
        _ => to.copy_from_slice(from),
    }
}

impl Default for SeriesHasher {
    fn default() -> Self {
        Self::new()
    }
}

/// The hash of one series; [`SeriesHasher`] is for many.
pub fn series_hash<'a>(tenant: &[u8], labels: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> u64 {
    let mut hasher = SeriesHasher::new();
    hasher.tenant(tenant);
    labels.into_iter().for_each(|(name, value)| hasher.label(name, value));
    hasher.finish()
}

/// The hash of a key that is one string of bytes, like a trace id: xxHash64 with seed 0.
pub fn hash_bytes(key: &[u8]) -> u64 {
    xxh64(key, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However long its parts, the hash of a series is that of its bytes in a row.
        #[test]
        fn equals_the_hash_of_the_joined_bytes(
            tenant in 0_usize..1200,
            labels in prop::collection::vec((0_usize..30, 0_usize..1200), 0..20),
        ) {
            let labels: Vec<_> = labels.iter().map(|&(name, value)| (vec![b'n'; name], vec![b'v'; value])).collect();
            let tenant = vec![b't'; tenant];
            let mut joined = [&tenant[..], &[SEPARATOR]].concat();
            let mut hasher = SeriesHasher::new();
            for _ in 0..2 {
                hasher.tenant(&tenant);
                labels.iter().for_each(|(name, value)| hasher.label(name, value));
                hasher.finish();
            }
            for (name, value) in &labels {
                joined.extend([name, &[SEPARATOR][..], value, &[SEPARATOR]].concat());
            }
            hasher.tenant(&tenant);
            labels.iter().for_each(|(name, value)| hasher.label(name, value));
            prop_assert_eq!(hasher.finish(), xxh64(&joined, 0));
            let pairs = labels.iter().map(|(name, value)| (&name[..], &value[..]));
            prop_assert_eq!(series_hash(&tenant, pairs), xxh64(&joined, 0));
        }
    }
}

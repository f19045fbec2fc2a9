//! The hash of a series, as Thanos computes it (`HashWithPrefix` of `pkg/store/labelpb/label.go`).

use xxhash_rust::xxh64::{Xxh64, xxh64};

/// Ends the tenant, each name and each value.
const SEPARATOR: u8 = 0xFF;
/// Longer keys are hashed in pieces of about this many bytes.
const BUFFER: usize = 1024;

/// Hashes series: xxHash64 with seed 0 of `tenant 0xFF (name 0xFF value 0xFF)*`, labels in the order in which they are given.
///
/// It has a fixed size, whatever the labels' length, and is reused: [`SeriesHasher::finish`] makes it ready for the next series of the same
/// tenant.
#[derive(Clone)]
pub struct SeriesHasher {
    buffer: [u8; BUFFER],
    len: usize,
    /// The state over the bytes before those in the buffer, if there are any.
    long: Option<Xxh64>,
    /// Where the labels begin in the buffer.
    start: usize,
    /// The state before the labels of each series, where the tenant is too long for the buffer.
    long_start: Option<Xxh64>,
}

impl SeriesHasher {
    /// A hasher for series of no tenant: their keys begin with the first label.
    pub fn new() -> Self {
        Self { buffer: [0; BUFFER], len: 0, long: None, start: 0, long_start: None }
    }

    /// A hasher for the series of a tenant.
    pub fn for_tenant(tenant: &[u8]) -> Self {
        let mut hasher = Self::new();
        hasher.part(tenant);
        (hasher.start, hasher.long_start) = (hasher.len, hasher.long.clone());
        hasher
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

    /// The hash of the tenant and the labels since the last call.
    #[inline]
    pub fn finish(&mut self) -> u64 {
        if self.long.is_some() {
            return self.finish_long();
        }
        let bytes = self.buffer.get(..self.len).unwrap_or_default();
        self.len = self.start;
        xxh64(bytes, 0)
    }

    #[cold]
    fn finish_long(&mut self) -> u64 {
        let mut long = std::mem::replace(&mut self.long, self.long_start.clone())
            .unwrap_or_else(|| self.state_after_tenant());
        long.update(self.labels());
        self.len = self.start;
        long.digest()
    }

    /// The state over the tenant in the buffer.
    fn state_after_tenant(&self) -> Xxh64 {
        let mut state = Xxh64::new(0);
        state.update(self.buffer.get(..self.start).unwrap_or_default());
        state
    }

    /// The labels in the buffer.
    fn labels(&self) -> &[u8] {
        self.buffer.get(self.start..self.len).unwrap_or_default()
    }

    fn part(&mut self, part: &[u8]) {
        let end = self.len + part.len() + 1;
        let Some(room) = self.buffer.get_mut(self.len..end) else { return self.long_part(part) };
        fill(room, part);
        self.len = end;
    }

    #[cold]
    fn long_part(&mut self, part: &[u8]) {
        let mut long = self.long.take().unwrap_or_else(|| self.state_after_tenant());
        long.update(self.labels());
        long.update(part);
        long.update(&[SEPARATOR]);
        self.long = Some(long);
        self.len = self.start;
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
        32..64 => _ = ends::<32>(from, to),
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
    let mut hasher = SeriesHasher::for_tenant(tenant);
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
            let mut hasher = SeriesHasher::for_tenant(&tenant);
            for (name, value) in &labels {
                joined.extend([name, &[SEPARATOR][..], value, &[SEPARATOR]].concat());
            }
            for _ in 0..3 {
                labels.iter().for_each(|(name, value)| hasher.label(name, value));
                prop_assert_eq!(hasher.finish(), xxh64(&joined, 0));
            }
            let pairs = labels.iter().map(|(name, value)| (&name[..], &value[..]));
            prop_assert_eq!(series_hash(&tenant, pairs), xxh64(&joined, 0));
        }
    }
}

//! Maps that are being written: the last of entries with the same key is the one, as in the maps of Go.

use super::encoded::{ELEMENT, KEY, STRING, VALUE};
use crate::key_index::KeyFilter;
use crate::memory::Room;
use crate::value::Failure;
use std::ops::Range;
use tidegate_wire::output::Output;
use tidegate_wire::proto::{Reader, write};

/// Keys that a map has, so that most maps are never searched for a second entry of a key.
#[derive(Default)]
pub(super) struct Names {
    filter: KeyFilter,
    len: usize,
    is_unsettled: bool,
}

/// State of a key in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It is not there.
    New,
    /// An entry may have it: search for that now.
    Maybe,
}

impl Names {
    /// The entries that are searched for each key that may be known. In larger maps [`settle`](Self::settle) does it at the
    /// end, for all of them: a search for each would be quadratic.
    const SEARCHED: usize = 64;

    /// Adds a key. Whether it may have been there.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) -> Known {
        self.len += 1;
        if !self.filter.add(key) {
            return Known::New;
        }
        self.is_unsettled |= self.len > Self::SEARCHED;
        if self.is_unsettled { Known::New } else { Known::Maybe }
    }

    /// A filter of the keys that were added.
    pub(super) fn filter(&self) -> KeyFilter {
        self.filter
    }

    /// Whether [`settle`](Self::settle) has nothing to do.
    pub(super) fn is_settled(&self) -> bool {
        !self.is_unsettled
    }

    /// Removes all but the last of entries with the same key from the map that is written from `start` to the end.
    ///
    /// # Errors
    /// When there is no room for 4 bytes for each entry.
    #[inline]
    pub(super) fn settle(&self, room: &mut Room<'_>, start: usize) -> Result<(), Failure> {
        if self.is_unsettled { keep_last(room, start) } else { Ok(()) }
    }
}

/// Removes all but the last of entries with the same key from the map that is written from `start` to the end.
///
/// # Errors
/// When there is no room for 4 bytes for each entry.
#[cold]
pub(super) fn keep_last(room: &mut Room<'_>, start: usize) -> Result<(), Failure> {
    let end = room.len();
    // The places of the entries, behind the map.
    let mut at = 0;
    while let Some((_, next)) = entry(room.written().get(start..end).unwrap_or_default(), at) {
        // Places in the memory are 32 bits.
        room.put(&(at as u32).to_le_bytes())?;
        at = next;
    }
    let (map, index) = room.written().get_mut(start..).unwrap_or_default().split_at_mut(end - start);
    let index = index.as_chunks_mut::<4>().0;
    let place = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
    let key = |map: &'_ [u8], bytes: &[u8; 4]| entry(map, place(bytes)).map_or(0..0, |(key, _)| key);
    {
        let map = &*map;
        let name = |bytes: &[u8; 4]| map.get(key(map, bytes)).unwrap_or_default();
        index.sort_unstable_by(|one, other| {
            name(one).cmp(name(other)).then_with(|| place(one).cmp(&place(other)))
        });
    }
    for pair in index.windows(2) {
        let [one, other] = pair else { continue };
        if map.get(key(map, one)) == map.get(key(map, other))
            && let Some(tag) = map.get_mut(place(one))
        {
            *tag = GONE;
        }
    }
    let (mut from, mut to) = (0, 0);
    while let Some((_, next)) = entry(map, from) {
        if map.get(from) != Some(&GONE) {
            map.copy_within(from..next, to);
            to += next - from;
        }
        from = next;
    }
    room.truncate(start + to);
    Ok(())
}

/// The tag of an entry that goes: no field has it.
const GONE: u8 = 0;

/// The place of the key of the entry at `at`, and the end of the entry. Its tag is one byte, whatever that is.
fn entry(map: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let mut reader = Reader::new(map.get(at + 1..)?);
    let len = reader.raw_varint(ELEMENT).ok()?;
    let begin = at + 1 + reader.offset();
    let end = begin.checked_add(usize::try_from(len).ok()?)?;
    let mut entry = Reader::new(map.get(begin..end)?);
    let Ok(Some(tag)) = entry.key() else { return Some((begin..begin, end)) };
    let key = entry.bytes(tag).unwrap_or_default();
    let behind = begin + entry.offset();
    Some((behind - key.len()..behind, end))
}

/// Removes the entry with this key from the map that is written from `start` to the end.
#[cold]
pub(super) fn remove(room: &mut Room<'_>, start: usize, key: &[u8]) {
    let end = room.len();
    if let Some(place) = find(room.written(), start..end, key) {
        cut(room, place);
    }
}

/// Removes the entry with the key that is written at `key`, behind the map at `map`. Returns the bytes that went.
#[cold]
pub(super) fn remove_same(room: &mut Room<'_>, map: Range<usize>, key: Range<usize>) -> usize {
    let written = &*room.written();
    let Some(place) = find(written, map, written.get(key).unwrap_or_default()) else { return 0 };
    let len = place.len();
    cut(room, place);
    len
}

fn cut(room: &mut Room<'_>, place: Range<usize>) {
    room.written().copy_within(place.end.., place.start);
    let left = room.len() - place.len();
    room.truncate(left);
}

/// The place of the entry with this key in the map at `map`.
fn find(written: &[u8], map: Range<usize>, wanted: &[u8]) -> Option<Range<usize>> {
    let start = map.start;
    let mut entries = Reader::new(written.get(map)?);
    loop {
        let from = entries.offset();
        let key = entries.key().ok()??;
        let mut entry = Reader::new(entries.bytes(key).ok()?);
        let key = entry.key().ok()??;
        if entry.bytes(key).ok()? == wanted {
            return Some(start + from..start + entries.offset());
        }
    }
}

/// Removes the entry with this key from the map that is written at `map`. Returns the bytes that went.
#[cold]
pub(super) fn remove_from(room: &mut Room<'_>, map: Range<usize>, key: &[u8]) -> usize {
    let Some(place) = find(room.written(), map, key) else { return 0 };
    let len = place.len();
    cut(room, place);
    len
}

/// Makes an entry with this key of the text that is written from `start` to the end.
pub(super) fn finish(room: &mut Room<'_>, start: usize, key: &[u8]) -> Result<(), Failure> {
    let end = room.len();
    let text_len = (end - start) as u64;
    let any_len = write::bytes_len(text_len);
    write::length(room, ELEMENT, write::bytes_len(key.len() as u64) + write::bytes_len(any_len))?;
    write::bytes(room, KEY, key)?;
    write::length(room, VALUE, any_len)?;
    write::length(room, STRING, text_len)?;
    let head = room.len() - end;
    room.written().get_mut(start..).unwrap_or_default().rotate_right(head);
    Ok(())
}

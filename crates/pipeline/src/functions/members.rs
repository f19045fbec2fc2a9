//! Maps that are being written: the last of entries with the same key is the one, as in the maps of Go.

use super::encoded::{ELEMENT, KEY, STRING, VALUE};
use crate::memory::Room;
use crate::value::Failure;
use std::ops::Range;
use tidegate_wire::proto::{Reader, write};

/// Keys that a map has, so that most maps are never searched for a second entry of a key.
#[derive(Default)]
pub(super) struct Names([u64; 4]);

impl Names {
    /// Adds a key. Whether it may have been there.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) -> bool {
        let end = |bytes: Option<&[u8; 4]>| u64::from(u32::from_le_bytes(bytes.copied().unwrap_or_default()));
        let bits = if key.len() < 4 {
            key.iter().fold(1, |bits, byte| bits << 8 | u64::from(*byte))
        } else {
            end(key.first_chunk()) | end(key.last_chunk()) << 32
        };
        let hash = (bits ^ (key.len() as u64) << 57).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        let Some(word) = self.0.get_mut((hash >> 6) as usize) else { return true };
        let bit = 1 << (hash & 63);
        let was = *word & bit != 0;
        *word |= bit;
        was
    }
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

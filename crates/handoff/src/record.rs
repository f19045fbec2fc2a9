//! Records: their metadata, and their bytes on disk.

use crate::totals::{Position, Totals, u32_at, u64_at};
use std::fmt;

/// The length of a header, in bytes.
pub(crate) const HEADER: usize = 64;
/// Records begin at multiples of this, so that a search for one looks at one offset in eight.
pub(crate) const ALIGN: u64 = 8;
/// The first bytes of every record. Not valid UTF-8, so that text bodies do not hold it.
pub(crate) const MAGIC: [u8; 4] = [0xF5, b'T', b'G', 0xA2];
/// The longest note, in bytes.
pub const NOTE_MAX: usize = 192;

/// A few bytes that the sink needs to send a record (tenant, replica, encoding …), known before its body is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Note {
    len: u8,
    bytes: [u8; NOTE_MAX],
}

impl Note {
    /// A note with these bytes, or nothing where they are more than [`NOTE_MAX`].
    pub fn new(bytes: &[u8]) -> Option<Note> {
        let mut note = Note { len: u8::try_from(bytes.len()).ok()?, bytes: [0; NOTE_MAX] };
        note.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(note)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Note({:?})", self.as_bytes().escape_ascii().to_string())
    }
}

/// A record without its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// How many items it holds.
    pub items: u32,
    /// When it was received, in nanoseconds since 1970.
    pub received_at_ns: u64,
    /// The sink's note.
    pub note: Note,
}

/// A record that waits for its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Its number among the member's records.
    pub sequence: u64,
    /// Its metadata.
    pub meta: Meta,
    /// The length of its body, in bytes: what the window to read it into must have.
    pub body_len: u32,
    pub(crate) start: Position,
    pub(crate) crc: u32,
}

impl Record {
    /// The place behind it.
    pub(crate) fn end(&self) -> Position {
        let size = size_of_record(self.meta.note.as_bytes().len(), self.body_len);
        let Position { segment, offset, before } = self.start;
        Position { segment, offset: offset + size, before: before.and_record(self.meta.items, size) }
    }
}

/// A header as it is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) body_len: u32,
    /// The identity of the folder: bytes that a client sent never pass for a record.
    pub(crate) key: u64,
    /// The sequence, and items and bytes of all records before.
    pub(crate) before: Totals,
    pub(crate) received_at_ns: u64,
    pub(crate) items: u32,
    pub(crate) note_len: u8,
    /// CRC32C of note and body.
    pub(crate) crc: u32,
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let fields: [&[u8]; 8] = [
            &MAGIC,
            &self.body_len.to_le_bytes(),
            &self.key.to_le_bytes(),
            &self.before.encode(),
            &self.received_at_ns.to_le_bytes(),
            &self.items.to_le_bytes(),
            &[self.note_len, 0, 0, 0],
            &self.crc.to_le_bytes(),
        ];
        let mut at = 0;
        for field in fields {
            if let Some(place) = bytes.get_mut(at..at + field.len()) {
                place.copy_from_slice(field);
            }
            at += field.len();
        }
        let (covered, sum) = bytes.split_at_mut(HEADER - 4);
        sum.copy_from_slice(&crc32c::crc32c(covered).to_le_bytes());
        bytes
    }

    /// The header at the start of `bytes`, if its magic and its checksum say that it is one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER] = bytes.first_chunk()?;
        if bytes.first_chunk() != Some(&MAGIC) {
            return None;
        }
        let (covered, sum) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(covered) != u32::from_le_bytes(*sum) {
            return None;
        }
        let header = Header {
            body_len: u32_at(bytes, 4)?,
            key: u64_at(bytes, 8)?,
            before: Totals::decode(bytes.get(16..)?)?,
            received_at_ns: u64_at(bytes, 40)?,
            items: u32_at(bytes, 48)?,
            note_len: *bytes.get(52)?,
            crc: u32_at(bytes, 56)?,
        };
        let plausible = usize::from(header.note_len) <= NOTE_MAX && header.before.records < u64::MAX;
        plausible.then_some(header)
    }

    /// Everything from its magic to the next record's, in bytes.
    pub(crate) fn size(&self) -> u64 {
        size_of_record(usize::from(self.note_len), self.body_len)
    }

    /// The totals behind it.
    pub(crate) fn after(&self) -> Totals {
        self.before.and_record(self.items, self.size())
    }
}

/// The bytes of a record on disk.
pub(crate) fn size_of_record(note_len: usize, body_len: u32) -> u64 {
    (HEADER as u64 + note_len as u64 + u64::from(body_len)).next_multiple_of(ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A header reads back as it was written, and a flipped bit is detected.
        #[test]
        fn headers_round_trip(longs in any::<[u64; 5]>(), ints in any::<[u32; 3]>(), note_len in 0u8..=192, flip in 0usize..512) {
            let [key, records, items, bytes, received_at_ns] = longs;
            let records = records >> 1;
            let before = Totals { records, items, bytes };
            let header = Header { body_len: ints[0], key, before, received_at_ns, items: ints[1], note_len, crc: ints[2] };
            let mut encoded = header.encode();
            prop_assert_eq!(Header::decode(&encoded), Some(header));
            prop_assert_eq!(header.size() % ALIGN, 0);
            encoded[flip / 8] ^= 1 << (flip % 8);
            prop_assert_eq!(Header::decode(&encoded), None);
        }
    }

    #[test]
    fn notes_have_a_longest() {
        assert_eq!(Note::new(&[7; NOTE_MAX]).unwrap().as_bytes(), [7; NOTE_MAX]);
        assert!(Note::new(&[7; NOTE_MAX + 1]).is_none());
    }
}

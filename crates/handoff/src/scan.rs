//! Reading records of a segment, and finding the next one behind something unreadable.

use crate::record::{ALIGN, HEADER, Header, MAGIC, NOTE_MAX, Note};
use crate::totals::Totals;
use std::io;
use std::ops::Range;
use tidegate_files::folder::File;

/// The read buffer, in bytes.
pub(crate) const SCRATCH: usize = 64 << 10;
/// Bytes that are skipped when the device cannot read a place.
const UNREADABLE: u64 = 4 << 10;

/// A record's header and its note.
pub(crate) type Found = (Header, Note);

/// The record at `at`, if it has the key and lies before `end` whole by its lengths.
pub(crate) fn record_at(file: &dyn File, (at, end): (u64, u64), key: u64) -> Option<Found> {
    let mut bytes = [0; HEADER + NOTE_MAX];
    let wanted = end.checked_sub(at)?.min(bytes.len() as u64) as usize;
    let read = file.read_at(bytes.get_mut(..wanted)?, at).ok()?;
    let header = Header::decode(bytes.get(..read)?)?;
    let fits = header.key == key && header.size() <= end - at;
    let note = bytes.get(HEADER..read)?.get(..usize::from(header.note_len))?;
    if fits { Some((header, Note::new(note)?)) } else { None }
}

/// As [`record_at`], if it is also the one behind `before`.
pub(crate) fn record_behind(file: &dyn File, place: (u64, u64), key: u64, before: Totals) -> Option<Found> {
    record_at(file, place, key).filter(|(header, _)| header.before == before)
}

/// The first record at or behind `at` and before `end` whose sequence is one of these.
pub(crate) fn search(
    file: &dyn File,
    (mut at, end): (u64, u64),
    key: u64,
    sequences: Range<u64>,
    scratch: &mut [u8],
) -> Option<(u64, Header)> {
    at = at.next_multiple_of(ALIGN);
    while at + HEADER as u64 <= end && !sequences.is_empty() {
        let wanted = (end - at).min(scratch.len() as u64) as usize;
        let Some(read) = scratch.get_mut(..wanted).and_then(|into| file.read_at(into, at).ok()) else {
            at = (at + 1).next_multiple_of(UNREADABLE);
            continue;
        };
        let last = read.checked_sub(HEADER)?;
        for step in (0..=last).step_by(ALIGN as usize) {
            let bytes = scratch.get(step..read).unwrap_or_default();
            if !bytes.starts_with(&MAGIC) {
                continue;
            }
            let place = at + step as u64;
            let ours = |header: &Header| {
                header.key == key
                    && sequences.contains(&header.before.records)
                    && header.size() <= end - place
            };
            if let Some(header) = Header::decode(bytes).filter(ours) {
                return Some((place, header));
            }
        }
        at += (last as u64 / ALIGN + 1) * ALIGN;
    }
    None
}

/// Whether note and body of the record at `at` are as they were written.
pub(crate) fn is_whole(file: &dyn File, at: u64, header: &Header, scratch: &mut [u8]) -> bool {
    let mut from = at + HEADER as u64;
    let end = from + u64::from(header.note_len) + u64::from(header.body_len);
    let mut sum = 0;
    while from < end {
        let wanted = (end - from).min(scratch.len() as u64) as usize;
        let Some(part) = scratch.get_mut(..wanted) else { return false };
        if file.read_at(part, from).ok() != Some(wanted) {
            return false;
        }
        sum = crc32c::crc32c_append(sum, part);
        from += wanted as u64;
    }
    sum == header.crc
}

/// Reads the body of a record at `at` into `body` and says whether it is as it was written.
///
/// # Errors
/// The file's.
pub(crate) fn read_body(
    file: &dyn File,
    at: u64,
    (note, crc): (&Note, u32),
    body: &mut [u8],
) -> io::Result<bool> {
    let note = note.as_bytes();
    let read = file.read_at(body, at + (HEADER + note.len()) as u64)?;
    Ok(read == body.len() && crc32c::crc32c_append(crc32c::crc32c(note), body) == crc)
}

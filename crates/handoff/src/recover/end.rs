//! Finding the end of a member's log, and cutting off what is behind it.

use super::Recovery;
use super::logs::Segments;
use crate::address::file_prefix;
use crate::cursors::SavedMember;
use crate::disk::Disk;
use crate::log::FIRST;
use crate::record::ALIGN;
use crate::scan;
use crate::segment::{HEAD, SegmentHead, file_name};
use crate::totals::Position;
use std::io;
use tidegate_files::folder::File;

/// Behind the last record that is whole, in the last segment that has one or can have one.
pub(super) fn find_end(
    disk: &mut Disk,
    recovery: &mut Recovery,
    address: &str,
    segments: &Segments,
    saved: Option<&SavedMember>,
) -> io::Result<Position> {
    let prefix = file_prefix(address);
    let saved_head = saved.map(|saved| saved.head);
    let mut last = Some(segments.last);
    while let Some(number) = last {
        if let Some(mut end) = end_of(disk, recovery, &prefix, number, saved_head)? {
            // What was acknowledged counts, also where it is not there any more.
            if let Some(saved) = saved_head.filter(|saved| saved.before.records > end.before.records) {
                end.before = saved.before;
            }
            return Ok(end);
        }
        last = previous(disk, &prefix, number, segments.first)?;
    }
    Ok(saved_head.unwrap_or_default())
}

/// The end of one segment; nothing when nothing in it can be read. Such a one is set aside.
fn end_of(
    disk: &mut Disk,
    recovery: &mut Recovery,
    prefix: &str,
    number: u64,
    saved: Option<Position>,
) -> io::Result<Option<Position>> {
    let name = file_name(prefix, number);
    let file = match disk.files.open(&name, true) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let size = file.size()?;
    let saved = saved.filter(|saved| saved.segment == number && saved.offset <= size);
    let Some(start) = saved.or(start(disk, &*file, number, size)?) else {
        let blank = is_blank(&*file, size, &mut disk.scratch)?;
        recovery.unreadable_segments += u64::from(!blank);
        disk.remove(prefix, number, !blank)?;
        return Ok(None);
    };
    let end = scan_to_end(disk, &*file, start, size);
    if end.offset < size {
        recovery.torn_bytes += size - end.offset;
        if let Err(error) = file.set_len(end.offset) {
            tracing::warn!(%error, name, "the end of a segment cannot be cut off");
        }
    }
    // Records behind those that were known to be durable must be, before one behind them is.
    if saved.is_none_or(|saved| saved.offset < end.offset)
        && let Err(error) = disk.sync(&*file)
    {
        tracing::warn!(%error, name, "the end of a segment cannot be synced");
    }
    Ok(Some(end))
}

/// Where the first record of a segment is, and what is before it.
fn start(disk: &mut Disk, file: &dyn File, number: u64, size: u64) -> io::Result<Option<Position>> {
    let mut bytes = [0; HEAD];
    let read = file.read_at(&mut bytes, 0)?;
    let head = SegmentHead::decode(bytes.get(..read).unwrap_or_default()).whole();
    if let Some(head) = head.filter(|head| head.number == number) {
        return Ok(Some(Position { segment: number, offset: FIRST, before: head.before }));
    }
    let found = scan::search(file, (FIRST, size), disk.key, 0..u64::MAX, &mut disk.scratch);
    Ok(found.map(|(offset, header)| Position { segment: number, offset, before: header.before }))
}

/// Follows the whole records from `at` on. Behind damage it goes on with the next whole record, if there is one.
fn scan_to_end(disk: &mut Disk, file: &dyn File, mut at: Position, size: u64) -> Position {
    loop {
        let behind = scan::record_behind(file, (at.offset, size), disk.key, at.before);
        if let Some((header, _)) = behind
            && scan::is_whole(file, at.offset, &header, &mut disk.scratch)
        {
            at = Position { offset: at.offset + header.size(), before: header.after(), ..at };
            continue;
        }
        let mut from = at.offset + if behind.is_some() { ALIGN } else { 0 };
        loop {
            let sequences = at.before.records..u64::MAX;
            let found = scan::search(file, (from, size), disk.key, sequences, &mut disk.scratch);
            let Some((offset, header)) = found else { return at };
            if scan::is_whole(file, offset, &header, &mut disk.scratch) {
                at = Position { offset, before: header.before, ..at };
                break;
            }
            from = offset + ALIGN;
        }
    }
}

/// Whether nothing but zeros ever arrived.
fn is_blank(file: &dyn File, size: u64, scratch: &mut [u8]) -> io::Result<bool> {
    let mut at = 0;
    while at < size {
        let read = file.read_at(scratch, at)?;
        if read == 0 || scratch.get(..read).is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0)) {
            return Ok(read == 0);
        }
        at += read as u64;
    }
    Ok(true)
}

/// The highest number below `number` of the segments that there are, and not below `first`.
fn previous(disk: &Disk, prefix: &str, number: u64, first: u64) -> io::Result<Option<u64>> {
    let mut found = None;
    let list = disk.files.list()?;
    for (other, at) in list.iter().filter_map(|(name, _)| crate::segment::parse_name(name)) {
        if other == prefix && (first..number).contains(&at) {
            found = found.max(Some(at));
        }
    }
    Ok(found)
}

/// The bytes of a member's segments, after what was cut and set aside.
pub(super) fn size_of(disk: &Disk, prefix: &str, segments: &Segments) -> io::Result<u64> {
    let mut total = 0;
    let mut number = segments.first;
    loop {
        match disk.files.open(&file_name(prefix, number), false) {
            Ok(file) => total += file.size()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match disk.next_segment(prefix, number, segments.last)? {
            Some(next) => number = next,
            None => return Ok(total),
        }
    }
}

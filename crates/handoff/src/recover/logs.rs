//! Telling which segments are a member's log.

use super::{LOG_SHIFT, Recovery};
use crate::address::file_prefix;
use crate::cursors::SavedMember;
use crate::disk::Disk;
use crate::segment::{Decoded, HEAD, SegmentHead, file_name, parse_name};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use tidegate_files::folder::Files;

/// The segments of one member.
pub(super) struct Segments {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) bytes: u64,
}

/// A prefix, and the upper half of segment numbers.
pub(super) type LogName = (String, u64);

/// Why the heads of segments say that the folder cannot be opened.
pub(super) enum HeadError {
    /// The file, and its version.
    Version(String, u32),
    Io(io::Error),
}

/// The segments of each log.
pub(super) fn group(list: &[(String, u64)]) -> BTreeMap<LogName, Segments> {
    let mut found: BTreeMap<LogName, Segments> = BTreeMap::new();
    for (name, size) in list {
        let Some((prefix, number)) = parse_name(name) else { continue };
        let empty = Segments { first: number, last: number, bytes: 0 };
        let segments = found.entry((prefix.into(), number >> LOG_SHIFT)).or_insert(empty);
        segments.first = segments.first.min(number);
        segments.last = segments.last.max(number);
        segments.bytes += size;
    }
    found
}

/// A whole head of each log: that of the last segment, or of another one where that is damaged.
pub(super) fn heads(
    files: &dyn Files,
    found: &BTreeMap<LogName, Segments>,
    list: &[(String, u64)],
) -> Result<BTreeMap<LogName, SegmentHead>, HeadError> {
    let mut heads = BTreeMap::new();
    let lasts = found.iter().map(|((prefix, _), segments)| file_name(prefix, segments.last));
    for name in lasts.chain(list.iter().map(|(name, _)| name.clone())) {
        let Some((prefix, number)) = parse_name(&name) else { continue };
        let log = (prefix.to_owned(), number >> LOG_SHIFT);
        if heads.contains_key(&log) {
            continue;
        }
        match head(files, &name).map_err(HeadError::Io)? {
            Decoded::Whole(head) if head.number == number && file_prefix(&head.address) == prefix => {
                heads.insert(log, head);
            }
            Decoded::OtherVersion(version) => return Err(HeadError::Version(name, version)),
            _ => {}
        }
    }
    Ok(heads)
}

fn head(files: &dyn Files, name: &str) -> io::Result<Decoded<SegmentHead>> {
    let file = match files.open(name, false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Decoded::Broken),
        Err(error) => return Err(error),
    };
    let mut bytes = [0; HEAD];
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    Ok(SegmentHead::decode(bytes.get(..read).unwrap_or_default()))
}

/// The segments of each member's log, or where they were; those of other logs are deleted, or set aside.
pub(super) fn choose_logs(
    disk: &mut Disk,
    recovery: &mut Recovery,
    logs_found: BTreeMap<LogName, Segments>,
    heads: &BTreeMap<LogName, SegmentHead>,
    saved_members: &BTreeMap<String, SavedMember>,
) -> BTreeMap<String, Segments> {
    let mut found: BTreeMap<String, Segments> = BTreeMap::new();
    // The newest log of each member first.
    for ((prefix, log), segments) in logs_found.into_iter().rev() {
        let known = |saved: &SavedMember| saved.head.segment >> LOG_SHIFT == log;
        let readable =
            heads.contains_key(&(prefix.clone(), log)) || saved_members.get(&prefix).is_some_and(known);
        match found.entry(prefix) {
            Entry::Occupied(newer) => {
                // A log ends when all of it is consumed.
                each_segment(disk, newer.key(), &segments, false);
            }
            Entry::Vacant(place) if readable => {
                place.insert(segments);
            }
            Entry::Vacant(place) => {
                recovery.unreadable_segments += each_segment(disk, place.key(), &segments, true);
            }
        }
    }
    for (prefix, member) in saved_members {
        // Its segments are lost: what was not delivered is damage.
        if !found.contains_key(prefix) && member.cursor.before != member.head.before {
            let (first, last) = (member.head.segment, member.head.segment);
            found.insert(prefix.clone(), Segments { first, last, bytes: 0 });
        }
    }
    found
}

/// Deletes the segments of a log, or keeps them for people. How many there were.
fn each_segment(disk: &mut Disk, prefix: &str, segments: &Segments, set_aside: bool) -> u64 {
    let (mut count, mut number) = (0, Some(segments.first));
    while let Some(at) = number {
        match disk.remove(prefix, at, set_aside) {
            Ok(freed) => count += u64::from(freed > 0),
            Err(error) => tracing::warn!(%error, prefix, "a segment cannot be removed"),
        }
        number = disk.next_segment(prefix, at, segments.last).unwrap_or(None);
    }
    count
}

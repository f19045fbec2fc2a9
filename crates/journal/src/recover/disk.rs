//! Reads the state on disk: cursors, segments, and the end of the last one. Reads O(segments) headers, one whole
//! segment, and no more; changes only files that no sink can still need.

use super::Recovery;
use super::checkpoints::{FoundTables, rewrite};
use crate::checkpoints::file::TableFiles;
use crate::checkpoints::table::CheckpointTable;
use crate::cursor::file::{CursorFile, sink_of};
use crate::cursor::{Cursor, RestoredCursor};
use crate::cursor_state::CursorState;
use crate::receive_times::ReceiveTimes;
use crate::record::random;
use crate::record::{HEADER, Header, key, salt_of};
use crate::record_scanner::RecordScanner;
use crate::segment::{
    Segment, SegmentHead, file_name, is_quarantined, is_spare, parse_name, quarantine_name,
};
use crate::segment_index::{Counters, Head, oldest_cursor};
use crate::settings::{Durability, Settings};
use crate::writer::{OpenSegment, QUARANTINED};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use tidegate_files::folder::{File, Files};

pub(super) struct DiskContents {
    pub(super) salt: Option<u64>,
    pub(super) segments: VecDeque<Segment>,
    pub(super) quarantined: VecDeque<(String, u64)>,
    pub(super) cursors: Vec<Arc<CursorState>>,
    pub(super) head: Head,
    pub(super) tail: Option<OpenSegment>,
    pub(super) counters: Counters,
    pub(super) times: ReceiveTimes,
    pub(super) checkpoints: CheckpointTable,
    pub(super) tables: TableFiles,
    /// Where in the last segment the first record is whose checkpoints no saved table has.
    pub(super) noted: Option<u64>,
    pub(super) recovery: Recovery,
}

/// The operation that the system refused.
type DiskOperationError = (String, io::Error);
/// A sink's name, and its cursor where it could be read.
type ReadCursor = (String, Option<(CursorFile, RestoredCursor)>);

impl DiskContents {
    /// Nothing.
    pub(super) fn new(settings: &Settings) -> DiskContents {
        DiskContents {
            salt: None,
            segments: VecDeque::new(),
            quarantined: VecDeque::new(),
            cursors: Vec::new(),
            head: Head::default(),
            tail: None,
            counters: Counters::default(),
            times: ReceiveTimes::default(),
            checkpoints: CheckpointTable::new(settings.checkpoints),
            tables: TableFiles::new(settings.checkpoints),
            noted: None,
            recovery: Recovery::default(),
        }
    }

    pub(super) fn on_disk(
        settings: &Settings,
        files: &dyn Files,
    ) -> Result<DiskContents, DiskOperationError> {
        let mut found = DiskContents::new(settings);
        let list = files.list().map_err(|error| ("list its files".to_owned(), error))?;
        let mut kept: Vec<(String, u64)> =
            list.iter().filter(|(name, _)| is_quarantined(name)).cloned().collect();
        kept.sort_unstable();
        found.quarantined = kept.into();
        remove_spares(files, &list);
        let cursors = read_cursors(files, &list)?;
        let written = || cursors.iter().filter_map(|(_, read)| Some(&read.as_ref()?.1));
        let tables = FoundTables::read(files, &list);
        let tables = tables.map_err(|error| ("read the checkpoints".to_owned(), error))?;
        found.read_segments(files, &list, written().next().map(|written| written.salt).or(tables.salt()));
        let table = tables.newest(found.salt).map(|table| table.head);
        // No sequence below a cursor is ever given again: a sink would take the record for a completed one. Nor one below
        // the table: the note of its record would be taken for one that is in the table.
        let known_to = written().map(RestoredCursor::known_to).chain(table.map(|table| table.sequence));
        found.head.sequence = known_to.max().unwrap_or(0);
        let items = written().map(|written| written.cursor.items).chain(table.map(|table| table.items));
        found.head.items = items.max().unwrap_or(0);
        // Before a segment is deleted that a power cut could leave without the table that covers it.
        let covered = found.resume_tables(files, &tables);
        if cursors.iter().all(|(_, read)| read.is_some())
            && let Some(past) = written().map(|written| written.cursor.low).min()
        {
            found.discard_consumed(files, past.min(covered));
        }
        found.find_end(files, settings, table.map_or(0, |table| table.sequence));
        found.place();
        found.restore_checkpoints(files, &tables);
        for (name, read) in cursors {
            found.add_cursor(files, name, read)?;
        }
        let recovery = &mut found.recovery;
        recovery.segments = found.segments.len();
        recovery.bytes = found.segments.iter().map(|segment| segment.len).sum();
        (recovery.head, recovery.items) = (found.head.sequence, found.head.items);
        Ok(found)
    }

    /// Every segment by its name and its first header.
    fn read_segments(&mut self, files: &dyn Files, list: &[(String, u64)], cursors_salt: Option<u64>) {
        let mut named: BTreeMap<u64, (u64, bool)> = BTreeMap::new();
        for (name, len) in list {
            if let Some((first, marked)) = parse_name(name) {
                // Both names at a time are two files only by hand: the longer one is likelier to hold more. One file
                // with both was being marked as damaged when the power was cut.
                let known = named.entry(first).or_insert((*len, marked));
                *known = (*known).max((*len, marked));
            }
        }
        // One with another sequence is what an earlier segment left in the file.
        let headers: Vec<Option<Header>> = named
            .iter()
            .map(|(first, (_, marked))| {
                let header = first_header(files, &file_name(*first, *marked));
                header.filter(|header| header.sequence == *first)
            })
            .collect();
        // The start of a file never comes from a client, so it identifies its journal reliably.
        let newest = headers.iter().rev().flatten().next();
        let salt = newest.map(|header| salt_of(header.key, header.sequence)).or(cursors_salt);
        for ((first, (len, marked)), header) in named.into_iter().zip(headers) {
            let header = header.filter(|header| salt == Some(salt_of(header.key, first)));
            let head = header.map(|header| SegmentHead {
                items_before: header.items_before,
                received_at_ns: header.received_at_ns,
            });
            self.segments.push_back(Segment {
                first,
                start: 0,
                len,
                end: len,
                head,
                damaged: marked,
                marked,
            });
        }
        self.salt = salt;
    }

    /// Deletes the segments that every sink is past. Damaged ones are kept aside.
    fn discard_consumed(&mut self, files: &dyn Files, past: u64) {
        while self.segments.get(1).is_some_and(|next| next.first <= past) {
            let Some(segment) = self.segments.pop_front() else { break };
            if segment.damaged {
                self.set_aside(files, &segment);
            } else if let Err(error) = files.remove(&segment.file_name()) {
                tracing::warn!(%error, segment = segment.file_name(), "a consumed segment cannot be deleted");
            }
        }
    }

    /// Finds the last whole record and cuts off what is behind it. Segments at the end without any are
    /// removed, or set aside when there is something in them. Checkpoints are saved up to the sequence `saved_to`.
    fn find_end(&mut self, files: &dyn Files, settings: &Settings, saved_to: u64) {
        while let Some(mut last) = self.segments.pop_back() {
            let name = last.file_name();
            self.head.sequence = self.head.sequence.max(last.first);
            let Ok(file) = files.open(&name, true).or_else(|_| files.open(&name, false)) else {
                tracing::warn!(name, "the journal's last segment cannot be opened");
                self.set_aside(files, &last);
                continue;
            };
            let known = self.salt.map(|salt| key(salt, last.first));
            let scan = scan(file.clone(), (last.len, last.first), known, saved_to, &mut self.times);
            if scan.records == 0 && self.is_blank(&*file, &last) {
                // Begun and never written to.
                drop(files.remove(&name));
                continue;
            }
            if scan.records == 0 {
                self.recovery.unreadable_segments += 1;
                self.set_aside(files, &last);
                continue;
            }
            self.salt = self.salt.or(scan.key.map(|key| salt_of(key, last.first)));
            self.head.sequence = self.head.sequence.max(scan.next);
            self.head.items = self.head.items.max(scan.items);
            self.recovery.tail_records = scan.records;
            self.recovery.torn_bytes = scan.torn;
            self.recovery.damaged_records = scan.damaged;
            last.end = scan.end;
            if last.head.is_none() || scan.damaged > 0 {
                last.damaged = true;
                self.counters.damaged_segments += 1;
            }
            self.noted = scan.noted;
            match make_durable(files, &*file, &mut last, scan.noted, settings.durability) {
                Ok(()) => {
                    self.tail = reserve(&*file, &last, settings).and_then(|capacity| {
                        last.len = capacity;
                        let name = (&*name, last.first);
                        OpenSegment::open((files, settings.durability), name, file, (scan.end, capacity)).ok()
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "the journal's last segment is left as it was found");
                    // A source that goes on behind a record that a power cut undoes loses its lines.
                    if settings.durability == Durability::Fsync {
                        self.recovery.doubtful_checkpoints = self.noted.take().is_some();
                    }
                }
            }
            self.segments.push_back(last);
            return;
        }
    }

    /// Whether nothing of this segment ever arrived: there are only zeros, or at its start still stands the
    /// first header of the one that was in the file before. The first record is acknowledged when it has
    /// taken that place, and no other before it.
    fn is_blank(&self, file: &dyn File, segment: &Segment) -> bool {
        let mut bytes = [0; HEADER];
        let read = file.read_at(&mut bytes, 0).unwrap_or(0);
        let earlier = Header::decode(bytes.get(..read).unwrap_or_default()).is_some_and(|header| {
            let ours = self.salt.is_none_or(|salt| key(salt, header.sequence) == header.key);
            ours && header.sequence < segment.first
        });
        earlier || torn(file, 0, segment.len) == 0
    }

    /// Keeps a damaged segment for people to look at, and the newest few only.
    fn set_aside(&mut self, files: &dyn Files, segment: &Segment) {
        let kept = quarantine_name(segment.first);
        if let Err(error) = files.rename(&segment.file_name(), &kept) {
            tracing::warn!(%error, kept, "a damaged segment cannot be set aside");
            return;
        }
        self.quarantined.retain(|(name, _)| *name != kept);
        self.quarantined.push_back((kept, segment.len));
        while self.quarantined.len() > QUARANTINED {
            let Some((name, _)) = self.quarantined.pop_front() else { break };
            if let Err(error) = files.remove(&name) {
                tracing::warn!(%error, name, "a damaged segment cannot be deleted");
            }
        }
    }

    /// Gives every segment its place among the bytes.
    fn place(&mut self) {
        let mut start = 0;
        for segment in &mut self.segments {
            segment.start = start;
            start += segment.end;
        }
        self.head.bytes = start;
    }

    fn add_cursor(
        &mut self,
        files: &dyn Files,
        name: String,
        read: Option<(CursorFile, RestoredCursor)>,
    ) -> Result<(), DiskOperationError> {
        let salt = *self.salt.get_or_insert_with(random);
        let (cursor, file) = match read {
            Some((file, written)) => (self.cursor(files, &written), file),
            None => {
                let cursor = oldest_cursor(&self.segments, self.head);
                let file = CursorFile::create(files, &name, &cursor, salt)
                    .map_err(|error| (format!("create the cursor of `{name}` anew"), error))?;
                self.recovery.lost_cursors.push(name.clone());
                (cursor, file)
            }
        };
        self.cursors.push(Arc::new(CursorState::new(name, salt, cursor, Some(file))));
        Ok(())
    }

    /// A cursor that was read, with what it says about records behind its low-water mark looked up.
    fn cursor(&self, files: &dyn Files, written: &RestoredCursor) -> Cursor {
        let mut cursor = written.cursor.clone();
        let (low, known_to) = (cursor.low, written.known_to());
        let from = self.segments.partition_point(|segment| segment.first <= low).saturating_sub(1);
        cursor.bytes = self.segments.get(from).map_or(self.head.bytes, |segment| segment.start);
        let mut completed = Vec::new();
        for segment in self.segments.iter().skip(from).take_while(|segment| segment.first < known_to) {
            let Ok(file) = files.open(&segment.file_name(), false) else { continue };
            let key = self.salt.map(|salt| key(salt, segment.first));
            let (mut walker, mut at) = (RecordScanner::new(file, key), 0);
            while let Some((found, header)) = walker.find(at, segment.end, 0..u64::MAX)
                && header.sequence < known_to
            {
                at = found + header.size();
                if header.sequence >= low && written.completed(header.sequence) {
                    completed.push((header.sequence, u64::from(header.items)));
                }
            }
        }
        cursor.restore(completed);
        cursor
    }
}

fn read_cursors(files: &dyn Files, list: &[(String, u64)]) -> Result<Vec<ReadCursor>, DiskOperationError> {
    let mut cursors = Vec::new();
    for (name, _) in list {
        let Some(sink) = sink_of(name) else { continue };
        let read = files.open(name, true).and_then(CursorFile::resume);
        let read = read.map_err(|error| (format!("read the cursor of `{sink}`"), error))?;
        cursors.push((sink.to_owned(), read));
    }
    Ok(cursors)
}

/// Removes the names of files that were to be written over. A power cut in the middle of a rename may have left a
/// file with two names, on file systems where a rename is two changes: then the other is that of a segment that is
/// still wanted.
fn remove_spares(files: &dyn Files, list: &[(String, u64)]) {
    for (name, _) in list.iter().filter(|(name, _)| is_spare(name)) {
        if let Err(error) = files.remove(name) {
            tracing::warn!(%error, name, "a consumed segment cannot be deleted");
        }
    }
}

fn first_header(files: &dyn Files, name: &str) -> Option<Header> {
    let mut bytes = [0; HEADER];
    files.open(name, false).ok()?.read_at(&mut bytes, 0).ok()?;
    Header::decode(&bytes)
}

/// Cuts off what is behind the last whole record, and makes the rest durable. What is from `noted` on carries checkpoints.
fn make_durable(
    files: &dyn Files,
    file: &dyn File,
    last: &mut Segment,
    noted: Option<u64>,
    durability: Durability,
) -> io::Result<()> {
    // Cut before reserving, so that what is reserved is zeros. And an empty segment that was removed, now or
    // before, must not come back after a power cut: its name would end this one where it ends now.
    file.set_len(last.end)?;
    last.len = last.end;
    if let (Some(noted), Durability::Fsync) = (noted, durability) {
        rewrite(file, noted, last.end)?;
    }
    file.sync()?;
    files.sync_names()
}

/// The room that is reserved for a segment to be written on. `None` when it is to be left as it is; then the next append
/// begins another.
fn reserve(file: &dyn File, last: &Segment, settings: &Settings) -> Option<u64> {
    let capacity = settings.segment_bytes.max(last.end);
    (!last.damaged && file.allocate(capacity).is_ok()).then_some(capacity)
}

struct Scan {
    key: Option<u64>,
    /// Where the last whole record ends.
    end: u64,
    /// Whole records.
    records: u64,
    /// Records missing between whole ones.
    damaged: u64,
    /// Bytes behind `end` that are neither zero nor what an earlier segment left there, as far as that can be
    /// told.
    torn: u64,
    next: u64,
    items: u64,
    /// Where the first record with a note is whose checkpoints are not saved.
    noted: Option<u64>,
}

/// Reads a segment of `len` bytes whose first record is `first`, and checks every record; notes when each was received.
fn scan(
    file: Arc<dyn File>,
    (len, first): (u64, u64),
    key: Option<u64>,
    saved_to: u64,
    times: &mut ReceiveTimes,
) -> Scan {
    let mut walker = RecordScanner::new(file.clone(), key);
    let mut scan = Scan { key, end: 0, records: 0, damaged: 0, torn: 0, next: first, items: 0, noted: None };
    let mut at = 0;
    while let Some((found, header)) = walker.find(at, len, scan.next..u64::MAX) {
        at = found + header.size();
        if walker.is_whole(found, &header) {
            times.note(header.sequence, header.received_at_ns);
            scan.damaged += header.sequence - scan.next;
            if header.note_len > 0 && header.sequence >= saved_to {
                scan.noted.get_or_insert(found);
            }
            scan.records += 1;
            (scan.end, scan.next, scan.items) = (at, header.sequence + 1, header.items_after());
        }
    }
    scan.key = walker.key();
    let mut mark = [0; HEADER];
    let marked = file.read_at(&mut mark, scan.end).is_ok() && mark.iter().all(|byte| *byte == 0);
    if !marked {
        // The sequences of an earlier segment's records are below this one's.
        let left = RecordScanner::new(file.clone(), None).find(scan.end, len, 0..first);
        scan.torn = torn(&*file, scan.end, left.map_or(len, |(at, _)| at));
    }
    scan
}

/// How many bytes from `from` on and before `to` there are up to the last that is not zero.
fn torn(file: &dyn File, from: u64, to: u64) -> u64 {
    let mut buffer = vec![0; 64 << 10];
    let (mut at, mut last) = (from, from);
    while at < to {
        let wanted = usize::try_from(to - at).unwrap_or(usize::MAX).min(buffer.len());
        let read = file.read_at(buffer.get_mut(..wanted).unwrap_or_default(), at).unwrap_or(0);
        if read == 0 {
            break;
        }
        let read = buffer.get(..read).unwrap_or_default();
        if let Some(position) = read.iter().rposition(|byte| *byte != 0) {
            last = at + position as u64 + 1;
        }
        at += read.len() as u64;
    }
    last - from
}

//! Reading from the cursor on, and crossing damage.

use super::{FIRST, Log, Reader};
use crate::disk::Disk;
use crate::error::ReadError;
use crate::record::{Header, Meta, Note, Record};
use crate::scan;
use crate::segment::file_name;
use crate::totals::Position;
use std::io;
use std::sync::Arc;
use tidegate_arena::Window;
use tidegate_files::folder::File;

/// The content at a place.
#[expect(clippy::large_enum_variant, reason = "short-lived, and mostly a record")]
enum Located {
    Record(Record),
    /// The log ends there.
    End,
    /// The record that should be at this place cannot be read.
    Damage(Position),
}

/// A segment that is open for reading, up to where, and the first sequence that it does not hold.
struct Open {
    file: Arc<dyn File>,
    end: u64,
    bound: u64,
}

impl Log {
    /// The record at the cursor. Damage there is crossed and counted.
    pub(crate) fn next_record(&mut self, disk: &mut Disk) -> Result<Option<Record>, ReadError> {
        loop {
            let (cursor, head) = {
                let view = self.member.view();
                (view.cursor, view.head)
            };
            match self.locate(disk, cursor, head).map_err(unavailable)? {
                Located::End => return Ok(None),
                Located::Record(record) => {
                    let mut view = self.member.view();
                    if view.cursor.before == record.start.before {
                        view.cursor = record.start;
                        view.oldest_ns = record.meta.received_at_ns;
                        return Ok(Some(record));
                    }
                    // A task completed it meanwhile.
                }
                Located::Damage(at) => {
                    let to = self.behind_damage(disk, at, head).map_err(unavailable)?;
                    if to == at {
                        // The device reads the place now and not a moment ago.
                        return Err(ReadError::Disk(io::ErrorKind::Other));
                    }
                    self.cross(at, to);
                }
            }
        }
    }

    /// The record behind `record`, if it can be read.
    pub(crate) fn record_after(
        &mut self,
        disk: &mut Disk,
        record: &Record,
    ) -> Result<Option<Record>, ReadError> {
        let head = self.member.view().head;
        match self.locate(disk, record.end(), head).map_err(unavailable)? {
            Located::Record(record) => Ok(Some(record)),
            Located::End | Located::Damage(_) => Ok(None),
        }
    }

    /// Reads a record's body behind what the window holds. A damaged one is crossed if it is at the cursor.
    pub(crate) fn read(
        &mut self,
        disk: &mut Disk,
        record: &Record,
        mut window: Window,
    ) -> Result<Window, ReadError> {
        let (cursor, head) = {
            let view = self.member.view();
            (view.cursor, view.head)
        };
        if record.start.before.records < cursor.before.records {
            return Err(ReadError::Gone);
        }
        let opened = self.open(disk, record.start.segment, head).map_err(unavailable)?;
        let Some(Open { file, .. }) = opened else { return Err(ReadError::Gone) };
        let len = record.body_len as usize;
        let body = window.spare_mut().get_mut(..len).ok_or(ReadError::WindowTooSmall)?;
        let whole = scan::read_body(&*file, record.start.offset, (&record.meta.note, record.crc), body);
        if whole.unwrap_or(false) {
            window.advance(len);
            return Ok(window);
        }
        self.cross(record.start, record.end());
        Err(ReadError::Damaged)
    }

    /// Moves the cursor from damage at `from` to `to`, if it is there: damage further on is crossed when its turn comes.
    fn cross(&self, from: Position, to: Position) {
        let mut view = self.member.view();
        if view.cursor.before != from.before {
            return;
        }
        let lost = view.place(to);
        view.damaged = view.damaged.plus(lost);
        // Where the next record is the first of its segment, that one is sound.
        let damaged = if to.offset > FIRST { to.segment } else { to.segment.saturating_sub(1) };
        if damaged >= from.segment {
            let (first, last) = view.damaged_segments.unwrap_or((from.segment, damaged));
            view.damaged_segments = Some((first.min(from.segment), last.max(damaged)));
        }
        drop(view);
        tracing::warn!(
            member = &*self.member.address,
            records = lost.records,
            items = lost.items,
            "records of the handoff log are damaged on disk: they are skipped"
        );
    }

    /// The record whose totals before it are those of `at`, at that place or at the start of the next segment.
    fn locate(&mut self, disk: &mut Disk, mut at: Position, head: Position) -> io::Result<Located> {
        loop {
            if at.before.records >= head.before.records {
                return Ok(Located::End);
            }
            let opened = self.open(disk, at.segment, head)?;
            match opened {
                Some(Open { file, end, bound }) if at.before.records < bound && at.offset < end => {
                    let found = scan::record_behind(&*file, (at.offset, end), disk.key, at.before);
                    return Ok(found.map_or(Located::Damage(at), |found| Located::Record(record(at, found))));
                }
                _ => {}
            }
            let Some(number) = disk.next_segment(&self.prefix(), at.segment, head.segment)? else {
                return Ok(Located::Damage(at));
            };
            at = Position { segment: number, offset: FIRST, before: at.before };
        }
    }

    /// The first readable record behind damage at `from`, or the end of the log.
    fn behind_damage(&mut self, disk: &mut Disk, from: Position, head: Position) -> io::Result<Position> {
        let (mut segment, mut offset) = (from.segment, from.offset);
        loop {
            if let Some(Open { file, end, bound }) = self.open(disk, segment, head)? {
                let sequences = from.before.records..bound;
                let found = scan::search(&*file, (offset, end), disk.key, sequences, &mut disk.scratch);
                if let Some((offset, header)) = found {
                    return Ok(Position { segment, offset, before: header.before });
                }
            }
            match disk.next_segment(&self.prefix(), segment, head.segment)? {
                Some(number) => (segment, offset) = (number, FIRST),
                None => return Ok(head),
            }
        }
    }

    /// Opens a segment, if it is there.
    fn open(&mut self, disk: &mut Disk, number: u64, head: Position) -> io::Result<Option<Open>> {
        if self.reader.as_ref().is_none_or(|reader| reader.number != number) {
            self.reader = None;
            let file = match disk.files.open(&file_name(&self.prefix(), number), false) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            self.reader = Some(Reader { number, file, sealed: None });
        }
        let known = self.reader.as_ref().and_then(|reader| reader.sealed);
        let (end, bound) = match known {
            _ if number == head.segment => (head.offset, head.before.records),
            Some(sealed) => sealed,
            None => self.seal(disk, number, head)?,
        };
        Ok(self.reader.as_ref().map(|reader| Open { file: reader.file.clone(), end, bound }))
    }

    /// Where a segment ends that is not the last one, and the first sequence of the next.
    fn seal(&mut self, disk: &mut Disk, number: u64, head: Position) -> io::Result<(u64, u64)> {
        let mut following = number;
        let mut bound = head.before.records;
        while let Some(next) = disk.next_segment(&self.prefix(), following, head.segment)? {
            if let Some(before) = self.before_segment(disk, next)? {
                bound = before.records;
                break;
            }
            following = next;
        }
        let Some(reader) = &mut self.reader else { return Ok((0, 0)) };
        let sealed = (reader.file.size()?, bound);
        reader.sealed = Some(sealed);
        Ok(sealed)
    }
}

fn record(start: Position, (header, note): (Header, Note)) -> Record {
    let meta = Meta { items: header.items, received_at_ns: header.received_at_ns, note };
    Record { sequence: header.before.records, meta, body_len: header.body_len, start, crc: header.crc }
}

fn unavailable(error: io::Error) -> ReadError {
    tracing::warn!(%error, "the handoff log cannot be read");
    ReadError::Disk(error.kind())
}

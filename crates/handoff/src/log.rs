//! One member's log, as the I/O thread has it.

mod append;
mod read;

use crate::address::file_prefix;
use crate::disk::{Disk, Suspension};
use crate::error::AppendError;
use crate::scan;
use crate::segment::HEAD;
use crate::state::{MemberState, View};
use crate::totals::{Position, Totals};
use std::io;
use std::sync::Arc;
use tidegate_files::folder::File;

/// Where the first record of a segment is.
pub(crate) const FIRST: u64 = HEAD as u64;

pub(crate) struct Log {
    pub(crate) member: Arc<MemberState>,
    /// No segment has a lower number.
    pub(crate) first: u64,
    /// The number of the next segment to be created.
    pub(crate) next: u64,
    /// Everything written, durable or not.
    end: Totals,
    pub(crate) disk_bytes: u64,
    active: Option<ActiveSegment>,
    reader: Option<Reader>,
    /// The cursor of the last durable save: what may be deleted.
    pub(crate) saved: Position,
    /// The cursor of the save under way.
    pub(crate) saving: Position,
    /// When the first record was received that is not durable yet.
    unsynced_received_ns: Option<u64>,
    pub(crate) suspension: Suspension,
    /// The outcome of the last sync, until its appends are answered.
    pub(crate) synced: Option<Result<(), AppendError>>,
}

/// The segment that is written to.
struct ActiveSegment {
    number: u64,
    file: Arc<dyn File>,
    end: u64,
    /// How much of it is durable; zero before its name is.
    durable: u64,
}

/// The segment that was read last.
struct Reader {
    number: u64,
    file: Arc<dyn File>,
    /// Where it ends, and the first sequence of the next; unknown while it is the last.
    sealed: Option<(u64, u64)>,
}

impl Log {
    /// A log of a member that has none, whose first segment is `number`.
    pub(crate) fn begin(member: Arc<MemberState>, number: u64) -> Log {
        let start = Position { segment: number, offset: FIRST, before: Totals::ZERO };
        {
            let mut view = member.view();
            (view.cursor, view.head) = (start, start);
        }
        Log::new(member, number, number, 0)
    }

    /// A log with segments from `first` to before `next`, which take `disk_bytes`.
    pub(crate) fn new(member: Arc<MemberState>, first: u64, next: u64, disk_bytes: u64) -> Log {
        let View { head, cursor, .. } = *member.view();
        Log {
            member,
            first,
            next,
            end: head.before,
            disk_bytes,
            active: None,
            reader: None,
            saved: cursor,
            saving: cursor,
            unsynced_received_ns: None,
            suspension: Suspension::default(),
            synced: None,
        }
    }

    pub(crate) fn prefix(&self) -> String {
        file_prefix(&self.member.address)
    }

    /// Whether something was written that is not durable.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.durable < active.end)
    }

    /// Whether the name of the last segment is not durable.
    pub(crate) fn is_new(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.durable == 0)
    }

    /// Whether nothing is left of it but its counts.
    pub(crate) fn is_blank(&self) -> bool {
        self.disk_bytes == 0 && self.active.is_none() && self.member.view().is_empty()
    }

    /// Everything before the first record of a segment, by its head or by its first readable record.
    pub(crate) fn before_segment(&self, disk: &mut Disk, number: u64) -> io::Result<Option<Totals>> {
        let prefix = self.prefix();
        let head = match disk.head(&prefix, number) {
            Ok(head) => head.whole(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some(head) = head.filter(|head| head.number == number) {
            return Ok(Some(head.before));
        }
        let file = disk.files.open(&crate::segment::file_name(&prefix, number), false)?;
        let place = (FIRST, file.size()?);
        let found = scan::search(&*file, place, disk.key, 0..u64::MAX, &mut disk.scratch);
        Ok(found.map(|(_, header)| header.before))
    }

    /// Where the log begins without its first segment. A segment of which nothing can be read goes with it.
    pub(crate) fn second_start(&self, disk: &mut Disk) -> io::Result<Position> {
        let prefix = self.prefix();
        let mut segment = self.first;
        while let Some(number) = disk.next_segment(&prefix, segment, self.next.saturating_sub(1))? {
            if let Some(before) = self.before_segment(disk, number)? {
                return Ok(Position { segment: number, offset: FIRST, before });
            }
            segment = number;
        }
        Ok(Position { segment: self.next, offset: FIRST, before: self.member.view().head.before })
    }

    /// Whether its last durable save allows a segment to be deleted.
    pub(crate) fn has_consumed(&self) -> bool {
        self.disk_bytes > 0 && (self.saved.segment > self.first || self.is_consumed_whole())
    }

    /// Whether the cursor could be saved so that a segment can be deleted.
    pub(crate) fn could_be_consumed(&self) -> bool {
        let view = self.member.view();
        self.disk_bytes > 0 && (view.cursor.segment > self.first || view.is_empty())
    }

    fn is_consumed_whole(&self) -> bool {
        self.saved.before == self.end && !self.is_unsynced()
    }

    /// Deletes the segments that the durable cursor is past. True when there were any.
    pub(crate) fn delete_consumed(&mut self, disk: &mut Disk) -> io::Result<bool> {
        if !self.has_consumed() {
            return Ok(false);
        }
        if self.is_consumed_whole() {
            self.active = None;
            let place = Position { segment: self.next, offset: FIRST, before: self.end };
            let mut view = self.member.view();
            // Nothing was appended since, and completing more than everything is impossible.
            (view.cursor, view.head, self.saved) = (place, place, place);
        }
        self.delete_before(disk, self.saved.segment)
    }

    /// Deletes the segments below `end`.
    pub(crate) fn delete_before(&mut self, disk: &mut Disk, end: u64) -> io::Result<bool> {
        let prefix = self.prefix();
        let mut deleted = false;
        if self.reader.as_ref().is_some_and(|reader| reader.number < end) {
            self.reader = None;
        }
        while self.first < end {
            let damaged = self.member.view().damaged_segments;
            let damaged = damaged.is_some_and(|(from, to)| (from..=to).contains(&self.first));
            let freed = disk.remove(&prefix, self.first, damaged)?;
            self.disk_bytes = self.disk_bytes.saturating_sub(freed);
            deleted |= freed > 0;
            self.first = match freed {
                // A gap, which may be a wide one.
                0 => disk.next_segment(&prefix, self.first, end.saturating_sub(1))?.unwrap_or(end),
                _ => self.first + 1,
            };
        }
        if self.first >= self.next && self.active.is_none() {
            // What a failed cut left was in files that are gone.
            disk.used = disk.used.saturating_sub(self.disk_bytes);
            self.disk_bytes = 0;
        }
        self.publish_size();
        Ok(deleted)
    }

    pub(crate) fn publish_size(&self) {
        self.member.view().disk_bytes = self.disk_bytes;
    }
}

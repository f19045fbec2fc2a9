//! Room to write: beginning and ending segments, the quota, and freeing what every sink is past.

use super::{OpenSegment, Writer};
use crate::record::key;
use crate::record_scanner::RecordScanner;
use crate::segment::{Segment, file_name, quarantine_name, spare_name};
use crate::segment_index::SegmentIndex;
use crate::settings::{DiskError, Durability};
use crate::shared::{Shared, disk_error};
use crate::sync::lock;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidegate_files::folder::{File, Files};

/// How many damaged segments are kept after every sink is past them.
pub(crate) const QUARANTINED: usize = 4;
/// How many consumed segments are kept to be written over.
const SPARES: usize = 2;
/// A segment is made shorter than it should be where the disk is nearly full, down to this, in bytes.
const SHORTEST: u64 = 1 << 20;
/// Segments that are kept to be sent again leave one part in so many of the disk to others.
const SPARED: u64 = 20;

impl Writer {
    /// Whether the last segment has room for `need` bytes.
    pub(super) fn has_room(&self, need: u64) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.end + need <= tail.capacity)
    }

    /// Ends the last segment and begins one that has room for `need` bytes. Nothing may be on its way.
    pub(super) fn make_room(&mut self, need: u64) -> Result<(), DiskError> {
        self.seal();
        // Before the next segment is created, so that only the last one's notes are not in the table.
        self.save_checkpoints(self.head.sequence);
        if self.lacks_spare() {
            self.free();
        }
        let wanted = need.max(self.shared.settings.segment_bytes);
        self.obey_quota(wanted)?;
        loop {
            let Err(error) = self.begin_segment(wanted, need) else { return Ok(()) };
            // What is kept to be sent again gives way on a full disk, too.
            if disk_error(&error) == DiskError::Full && self.drop_kept() {
                continue;
            }
            lock(&self.shared.index).counters.write_errors += 1;
            tracing::warn!(%error, "the journal cannot begin a segment: it refuses appends");
            return Err(disk_error(&error));
        }
    }

    /// Ends the last segment where its last good record ends. What may stand behind that is not part of the
    /// journal, whether or not it can be cut off now: its sequences are at or past the next segment's name.
    pub(super) fn seal(&mut self) {
        let Some(tail) = self.tail.take() else { return };
        let mut index = lock(&self.shared.index);
        if let Some(begun) = index.begun.take() {
            drop(index);
            // Its name would be the next segment's too.
            if let Err(error) = self.shared.files.remove(&begun.file_name()) {
                tracing::warn!(%error, "an empty segment cannot be removed");
            }
            return;
        }
        drop(index);
        let cut = tail.file.set_len(tail.end);
        if let (Ok(()), Some(segment)) = (cut, lock(&self.shared.index).segments.back_mut()) {
            segment.len = tail.end;
        }
    }

    /// Creates the next segment, `wanted` bytes long, or shorter where the disk has less; at least `need`.
    fn begin_segment(&mut self, wanted: u64, need: u64) -> io::Result<()> {
        let files = &self.shared.files;
        let first = self.head.sequence;
        let name = file_name(first, false);
        let (file, there) = match self.reuse(&name) {
            Some(reused) => reused,
            None => (create(&**files, &name)?, 0),
        };
        let durability = self.shared.settings.durability;
        let begun = reserve(&*file, (there, wanted), need).and_then(|len| {
            // Before anything is written: under its old name the file must never hold anything new.
            files.sync_names()?;
            OpenSegment::open((&**files, durability), (&name, first), file, (0, len))
        });
        let tail = match begun {
            Ok(tail) => tail,
            Err(error) => {
                // Best effort: an empty file is not harmful, and the next try removes it.
                drop(files.remove(&name));
                return Err(error);
            }
        };
        let (start, len) = (self.head.bytes, tail.capacity);
        self.tail = Some(tail);
        let segment = Segment { first, start, len, end: 0, head: None, damaged: false, marked: false };
        lock(&self.shared.index).begun = Some(segment);
        Ok(())
    }

    /// Makes `wanted` bytes fit under the quota, or says that they do not.
    fn obey_quota(&mut self, wanted: u64) -> Result<(), DiskError> {
        loop {
            let index = lock(&self.shared.index);
            let reused = index.spares.front().map_or(0, |(_, len)| *len);
            let after = index.bytes() - reused + wanted.max(reused);
            drop(index);
            if after <= self.shared.settings.quota {
                self.shared.starved.store(false, Ordering::Relaxed);
                return Ok(());
            }
            if self.drop_spares(1)
                || self.free()
                || self.drop_kept()
                || self.drop_quarantined(0)
                || self.drop_oldest()
            {
                continue;
            }
            return Err(DiskError::Quota);
        }
    }

    /// The work of about once a second: syncs the cursors, frees space, marks damaged segments, and computes how long
    /// refused clients should wait.
    pub(super) fn tick(&mut self, now: u64) {
        if self.shared.settings.durability != Durability::Memory {
            self.mark_damaged();
            let ended = self.tail.as_ref().map_or(self.head.sequence, |tail| tail.first);
            self.save_checkpoints(ended);
            let is_needed = self.shared.starved.load(Ordering::Relaxed) || self.is_disk_short();
            if (self.free() || (is_needed && self.drop_kept()))
                && self.shared.starved.swap(false, Ordering::Relaxed)
            {
                self.shared.queue.resume();
            }
        }
        let mut index = lock(&self.shared.index);
        let slowest = index.cursors.iter().map(|cursor| cursor.with(|cursor| cursor.bytes)).min();
        let oldest = index.segments.front().map_or(0, |oldest| oldest.start + oldest.end);
        if let Some(slowest) = slowest {
            index.drain.observe(now, slowest);
        }
        let wait = index.drain.time_for(oldest.saturating_sub(slowest.unwrap_or(0)));
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.shared.retry_after_ms.store(ms, Ordering::Relaxed);
    }

    /// Whether the disk has so little room that what is kept to be sent again would take it from others.
    fn is_disk_short(&self) -> bool {
        let settings = &self.shared.settings;
        if settings.keep.is_zero() {
            return false;
        }
        // Where nobody can tell, the quota has to do.
        rustix::fs::statvfs(&settings.dir).is_ok_and(|disk| disk.f_bavail < disk.f_blocks / SPARED)
    }

    /// Deletes the oldest segment that is only there to be sent again. True when there was one.
    fn drop_kept(&mut self) -> bool {
        !self.shared.settings.keep.is_zero() && self.free_older_than(u64::MAX, 1)
    }

    /// Makes the cursors durable, then deletes the segments that all of them are past and that are not kept any longer. True
    /// when one was.
    fn free(&mut self) -> bool {
        let keep = u64::try_from(self.shared.settings.keep.as_nanos()).unwrap_or(u64::MAX);
        let kept_from = match keep {
            0 => u64::MAX,
            keep => self.shared.clock.unix_ns().saturating_sub(keep),
        };
        self.free_older_than(kept_from, usize::MAX)
    }

    /// Makes the cursors durable, then deletes the segments that all of them are past, `most` at most, of which all records were
    /// received before `kept_from`. True when one was.
    fn free_older_than(&mut self, kept_from: u64, most: usize) -> bool {
        let cursors = lock(&self.shared.index).cursors.clone();
        for cursor in &cursors {
            if let Err(error) = cursor.sync() {
                tracing::warn!(%error, sink = cursor.name, "a sink's cursor cannot be made durable");
            }
        }
        let Some(past) = cursors.iter().map(|cursor| cursor.durable_low()).min() else { return false };
        let past = past.min(lock(&self.shared.index).checkpoints.saved_to);
        let mut freed = false;
        for _ in 0..most {
            let consumed =
                take_consumed(&mut lock(&self.shared.index), (past, kept_from), self.tail.is_some());
            let Some(segment) = consumed else { break };
            self.dispose(&segment);
            freed = true;
        }
        self.drop_quarantined(QUARANTINED);
        freed
    }

    /// Whether there is no file to write over, and a segment that every sink is past, as far as is known in
    /// memory.
    fn lacks_spare(&self) -> bool {
        let index = lock(&self.shared.index);
        let slowest = index.cursors.iter().map(|cursor| cursor.with(|cursor| cursor.low)).min();
        index.spares.is_empty() && slowest.is_some_and(|low| index.is_consumed(low))
    }

    /// Gives the file of a consumed segment the name of a new one, and says how long it is.
    fn reuse(&self, name: &str) -> Option<(Arc<dyn File>, u64)> {
        let files = &self.shared.files;
        let (spare, len) = lock(&self.shared.index).spares.pop_front()?;
        match files.rename(&spare, name).and_then(|()| files.open(name, true)) {
            Ok(file) => Some((file, len)),
            Err(error) => {
                tracing::warn!(%error, spare, "a consumed segment cannot be written over");
                drop(files.remove(&spare));
                None
            }
        }
    }

    /// Keeps the file of a consumed segment to be written over. True when it was worth that, and possible.
    fn keep_spare(&self, segment: &Segment) -> bool {
        let whole = self.shared.settings.segment_bytes;
        if !(whole / 2..=whole).contains(&segment.len) || lock(&self.shared.index).spares.len() >= SPARES {
            return false;
        }
        let spare = spare_name(segment.first);
        let kept = self.shared.files.rename(&segment.file_name(), &spare).is_ok();
        if kept {
            lock(&self.shared.index).spares.push_back((spare, segment.len));
        }
        kept
    }

    /// Deletes files that were kept to be written over, down to `keep`. True when one was deleted.
    fn drop_spares(&self, keep: usize) -> bool {
        let mut dropped = false;
        loop {
            let mut index = lock(&self.shared.index);
            let spare = if index.spares.len() > keep { index.spares.pop_back() } else { None };
            let Some((name, _)) = spare else { return dropped };
            drop(index);
            drop(self.shared.files.remove(&name));
            dropped = true;
        }
    }

    /// Keeps the file of a segment that nobody needs to be written over, or aside when it is damaged, or
    /// deletes it.
    fn dispose(&self, segment: &Segment) {
        let files = &self.shared.files;
        let name = segment.file_name();
        if segment.damaged {
            let kept = quarantine_name(segment.first);
            if files.rename(&name, &kept).is_ok() {
                lock(&self.shared.index).quarantined.push_back((kept, segment.len));
                return;
            }
        }
        if !segment.damaged && self.keep_spare(segment) {
            return;
        }
        match files.remove(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, name, "a segment cannot be deleted; it will be when the journal opens");
            }
            _ => {}
        }
    }

    /// Deletes damaged segments that were kept aside, down to the newest `keep`. True when one was deleted.
    fn drop_quarantined(&mut self, keep: usize) -> bool {
        let mut dropped = false;
        loop {
            let mut index = lock(&self.shared.index);
            let Some((name, _)) =
                (index.quarantined.len() > keep).then(|| index.quarantined.pop_front()).flatten()
            else {
                return dropped;
            };
            drop(index);
            drop(self.shared.files.remove(&name));
            dropped = true;
        }
    }

    /// Moves the sinks that allow it past the oldest segment, where no other sink needs it.
    fn drop_oldest(&mut self) -> bool {
        let index = lock(&self.shared.index);
        let Some(oldest) = index.segments.front() else { return false };
        let to = index.segments.get(1).map_or(index.head.sequence, |next| next.first);
        let bytes = oldest.start + oldest.end;
        if to > index.checkpoints.saved_to {
            // It could not be deleted.
            return false;
        }
        let cursors = index.cursors.clone();
        let items = match index.segments.get(1) {
            None => Some(index.head.items),
            Some(next) => next.head.map(|head| head.items_before),
        };
        drop(index);
        if cursors.is_empty() || !cursors.iter().all(|cursor| cursor.may_skip_to(to)) {
            return false;
        }
        let items = items.or_else(|| items_before(&self.shared, to));
        for cursor in cursors {
            let known = cursor.with(|cursor| cursor.items);
            if let Err(error) = cursor.drop_to(to, items.unwrap_or(known), bytes) {
                tracing::warn!(%error, sink = cursor.name, "a sink cannot be moved past the oldest segment");
                return false;
            }
        }
        self.free() || self.drop_kept()
    }

    /// Renames segments in which damage was found.
    fn mark_damaged(&mut self) {
        loop {
            let mut index = lock(&self.shared.index);
            let Some(segment) = index.segments.iter_mut().find(|segment| segment.damaged && !segment.marked)
            else {
                return;
            };
            let (old, new) = (segment.file_name(), file_name(segment.first, true));
            // Under the lock: a reader that saw the old name must not open a newer file by it.
            if let Err(error) = self.shared.files.rename(&old, &new)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, old, "a damaged segment cannot be renamed");
                return;
            }
            segment.marked = true;
            tracing::warn!(segment = new, "a segment of the journal is damaged: what can be read of it is");
        }
    }

    /// Lets go of the records in memory that every sink has completed, and acknowledges them.
    pub(super) fn release(&mut self) {
        let mut index = lock(&self.shared.index);
        let past = index.cursors.iter().map(|cursor| cursor.with(|cursor| cursor.low)).min().unwrap_or(0);
        while index.in_memory.front().is_some_and(|held| held.header.sequence < past) {
            let Some(held) = index.in_memory.pop_front() else { break };
            self.shared.held_bytes.fetch_sub(held.entry.charged(), Ordering::Relaxed);
            index.checkpoints.apply(held.entry.checkpoints.note());
            self.outcomes.push((held.slot, Ok(held.receipt())));
        }
        drop(index);
        self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
    }
}

/// The oldest segment, if every sink is past it and it ended before `kept_from`: never the one that is being written.
fn take_consumed(index: &mut SegmentIndex, (past, kept_from): (u64, u64), writing: bool) -> Option<Segment> {
    let (next, ended_ns) = match index.segments.get(1) {
        // Where its header cannot be read, it is not known and not kept.
        Some(next) => (next.first, next.head.map_or(0, |head| head.received_at_ns)),
        None if writing => return None,
        // Its records may all be of this moment.
        None if kept_from < u64::MAX => return None,
        None => (index.head.sequence, 0),
    };
    if next <= past && ended_ns < kept_from { index.segments.pop_front() } else { None }
}

/// Creates the file of a segment.
fn create(files: &dyn Files, name: &str) -> io::Result<Arc<dyn File>> {
    match files.create(name) {
        // Left from a segment that failed before its first record was acknowledged.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            files.remove(name)?;
            files.create(name)
        }
        other => other,
    }
}

/// Reserves `wanted` bytes for a new segment, or half, or a quarter …, and at least `need`. The file has
/// `there` bytes already.
fn reserve(file: &dyn File, (there, wanted): (u64, u64), need: u64) -> io::Result<u64> {
    let mut len = wanted.max(there);
    loop {
        match file.allocate(len) {
            Ok(()) => return Ok(len),
            Err(error) if disk_error(&error) == DiskError::Full && there >= need => return Ok(there),
            Err(error) if disk_error(&error) == DiskError::Full && len > need.max(SHORTEST) => {
                len = (len / 2).max(need).max(SHORTEST);
            }
            Err(error) => return Err(error),
        }
    }
}

/// The items before the first record that can be read at or behind `sequence`, found by reading.
fn items_before(shared: &Arc<Shared>, sequence: u64) -> Option<u64> {
    let view = lock(&shared.index).view(sequence, sequence)?;
    let file = shared.files.open(&view.segment.file_name(), false).ok()?;
    let key = key(shared.salt, view.segment.first);
    let found = RecordScanner::new(file, Some(key)).find(0, view.segment.end, sequence..view.bound)?;
    Some(found.1.items_before)
}

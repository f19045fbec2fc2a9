//! Room to write: beginning and ending segments, the quota, and freeing what every sink is past.

use super::{Tail, Writer, trouble};
use crate::files::File;
use crate::log::{Log, Shared};
use crate::segment::{Segment, file_name, kept_name};
use crate::settings::{Durability, Trouble};
use crate::sync::lock;
use crate::walker::Walker;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many damaged segments are kept after every sink is past them.
pub(crate) const QUARANTINED: usize = 4;
/// A segment is made shorter than it should be where the disk is nearly full, down to this, in bytes.
const SHORTEST: u64 = 1 << 20;

impl Writer {
    /// Whether the last segment has room for `need` bytes.
    pub(super) fn has_room(&self, need: u64) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.end + need <= tail.capacity)
    }

    /// Ends the last segment and begins one that has room for `need` bytes. Nothing may be on its way.
    pub(super) fn make_room(&mut self, need: u64) -> Result<(), Trouble> {
        self.seal();
        let wanted = need.max(self.shared.settings.segment_bytes);
        self.obey_quota(wanted)?;
        self.begin_segment(wanted, need).map_err(|error| {
            lock(&self.shared.log).counters.write_errors += 1;
            tracing::warn!(%error, "the journal cannot begin a segment: it refuses what comes");
            trouble(&error)
        })
    }

    /// Ends the last segment where its last good record ends. What may stand behind that is not part of the
    /// journal, whether or not it can be cut off now: its sequences are at or past the next segment's name.
    pub(super) fn seal(&mut self) {
        let Some(tail) = self.tail.take() else { return };
        let mut log = lock(&self.shared.log);
        if let Some(begun) = log.begun.take() {
            drop(log);
            // Its name would be the next segment's too.
            if let Err(error) = self.shared.files.remove(&begun.file_name()) {
                tracing::warn!(%error, "an empty segment cannot be removed");
            }
            return;
        }
        drop(log);
        let cut = tail.file.set_len(tail.end);
        if let (Ok(()), Some(segment)) = (cut, lock(&self.shared.log).segments.back_mut()) {
            segment.len = tail.end;
        }
    }

    /// Creates the next segment, `wanted` bytes long, or shorter where the disk has less; at least `need`.
    fn begin_segment(&mut self, wanted: u64, need: u64) -> io::Result<()> {
        let files = &self.shared.files;
        let first = self.head.sequence;
        let name = file_name(first, false);
        let file = match files.create(&name) {
            // Left from a segment that failed before its first record was acknowledged.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                files.remove(&name)?;
                files.create(&name)?
            }
            other => other?,
        };
        let durability = self.shared.settings.durability;
        let begun = reserve(&*file, wanted, need).and_then(|len| {
            files.sync_names()?;
            Tail::open((&**files, durability), &name, file, (0, len))
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
        lock(&self.shared.log).begun = Some(segment);
        Ok(())
    }

    /// Makes `wanted` bytes fit under the quota, or says that they do not.
    fn obey_quota(&mut self, wanted: u64) -> Result<(), Trouble> {
        loop {
            if lock(&self.shared.log).bytes() + wanted <= self.shared.settings.quota {
                self.shared.starved.store(false, Ordering::Relaxed);
                return Ok(());
            }
            if self.drop_quarantined(0) || self.free() || self.drop_oldest() {
                continue;
            }
            return Err(Trouble::Quota);
        }
    }

    /// What is done about once a second: syncs the cursors, frees space, marks damaged segments, and works
    /// out how long whoever is refused should wait.
    pub(super) fn tick(&mut self, now: u64) {
        if self.shared.settings.durability != Durability::Memory {
            self.mark_damaged();
            if self.free() && self.shared.starved.swap(false, Ordering::Relaxed) {
                self.shared.queue.unbar();
            }
        }
        let mut log = lock(&self.shared.log);
        let slowest = log.cells.iter().map(|cell| cell.with(|cursor| cursor.bytes)).min();
        let oldest = log.segments.front().map_or(0, |oldest| oldest.start + oldest.end);
        if let Some(slowest) = slowest {
            log.drain.observe(now, slowest);
        }
        let wait = log.drain.time_for(oldest.saturating_sub(slowest.unwrap_or(0)));
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.shared.retry_after_ms.store(ms, Ordering::Relaxed);
    }

    /// Makes the cursors durable, then deletes the segments that all of them are past. True when one was.
    fn free(&mut self) -> bool {
        let cells = lock(&self.shared.log).cells.clone();
        for cell in &cells {
            if let Err(error) = cell.sync() {
                tracing::warn!(%error, sink = cell.name, "a sink's cursor cannot be made durable");
            }
        }
        let Some(past) = cells.iter().map(|cell| cell.durable_low()).min() else { return false };
        let mut freed = false;
        loop {
            let consumed = take_consumed(&mut lock(&self.shared.log), past, self.tail.is_some());
            let Some(segment) = consumed else { break };
            self.dispose(&segment);
            freed = true;
        }
        self.drop_quarantined(QUARANTINED);
        freed
    }

    /// Deletes a segment that nobody needs, or keeps it aside when it is damaged.
    fn dispose(&self, segment: &Segment) {
        let files = &self.shared.files;
        let name = segment.file_name();
        if segment.damaged {
            let kept = kept_name(segment.first);
            if files.rename(&name, &kept).is_ok() {
                lock(&self.shared.log).quarantined.push_back((kept, segment.len));
                return;
            }
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
            let mut log = lock(&self.shared.log);
            let Some((name, _)) =
                (log.quarantined.len() > keep).then(|| log.quarantined.pop_front()).flatten()
            else {
                return dropped;
            };
            drop(log);
            drop(self.shared.files.remove(&name));
            dropped = true;
        }
    }

    /// Moves the sinks that allow it past the oldest segment, where no other sink needs it.
    fn drop_oldest(&mut self) -> bool {
        let log = lock(&self.shared.log);
        let Some(oldest) = log.segments.front() else { return false };
        let to = log.segments.get(1).map_or(log.head.sequence, |next| next.first);
        let bytes = oldest.start + oldest.end;
        let cells = log.cells.clone();
        let items = match log.segments.get(1) {
            None => Some(log.head.items),
            Some(next) => next.head.map(|head| head.items_before),
        };
        drop(log);
        if cells.is_empty() || !cells.iter().all(|cell| cell.gives_way(to)) {
            return false;
        }
        let items = items.or_else(|| items_before(&self.shared, to));
        for cell in cells {
            let known = cell.with(|cursor| cursor.items);
            if let Err(error) = cell.drop_to(to, items.unwrap_or(known), bytes) {
                tracing::warn!(%error, sink = cell.name, "a sink cannot be moved past the oldest segment");
                return false;
            }
        }
        self.free()
    }

    /// Renames segments in which damage was found.
    fn mark_damaged(&mut self) {
        loop {
            let mut log = lock(&self.shared.log);
            let Some(segment) = log.segments.iter_mut().find(|segment| segment.damaged && !segment.marked)
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
        let mut log = lock(&self.shared.log);
        let past = log.cells.iter().map(|cell| cell.with(|cursor| cursor.low)).min().unwrap_or(0);
        while log.held.front().is_some_and(|held| held.header.sequence < past) {
            let Some(held) = log.held.pop_front() else { break };
            self.outcomes.push((held.slot, Ok(held.receipt())));
        }
        drop(log);
        self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
    }
}

/// The oldest segment, if every sink is past it: never the one that is being written.
fn take_consumed(log: &mut Log, past: u64, writing: bool) -> Option<Segment> {
    let next = match log.segments.get(1) {
        Some(next) => next.first,
        None if writing => return None,
        None => log.head.sequence,
    };
    if next <= past { log.segments.pop_front() } else { None }
}

/// Reserves `wanted` bytes for a new segment, or half, or a quarter …, and at least `need`.
fn reserve(file: &dyn File, wanted: u64, need: u64) -> io::Result<u64> {
    let mut len = wanted;
    loop {
        match file.allocate(len) {
            Ok(()) => return Ok(len),
            Err(error) if trouble(&error) == Trouble::Full && len > need.max(SHORTEST) => {
                len = (len / 2).max(need).max(SHORTEST);
            }
            Err(error) => return Err(error),
        }
    }
}

/// The items before the first record that can be read at or behind `sequence`, found by reading.
fn items_before(shared: &Arc<Shared>, sequence: u64) -> Option<u64> {
    let view = lock(&shared.log).view(sequence, sequence)?;
    let file = shared.files.open(&view.segment.file_name(), false).ok()?;
    let found = Walker::new(file, Some(shared.salt)).find(0, view.segment.end, sequence..view.bound)?;
    Some(found.1.items_before)
}

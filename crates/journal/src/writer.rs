//! Writing: all that has arrived is written together, synced together, and acknowledged together. While one
//! group is synced the next is written.

mod save_checkpoints;
mod space;
mod write_chunk;
mod write_group;
mod writer_threads;

pub(crate) use space::QUARANTINED;
pub(crate) use write_group::WriteGroup;
pub(crate) use writer_threads::STACK_BYTES;

use crate::append::PendingAppend;
use crate::append::{AppendResult, InMemoryRecord, Receipt};
use crate::checkpoints::file::TableFiles;
use crate::record::key;
use crate::segment::SegmentHead;
use crate::segment_index::Head;
use crate::settings::{AppendError, DiskError, Durability, RETRY_INTERVAL_NS};
use crate::shared::Shared;
use crate::sync::lock;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use tidegate_files::folder::{File, Files};
use write_chunk::{MAX_RECORDS_PER_WRITE, write_chunk};

/// The segment that is being written.
pub(crate) struct OpenSegment {
    pub(crate) file: Arc<dyn File>,
    /// As many more descriptions of it as other threads sync by, each its own: see [`WriteGroup`].
    others: Vec<Arc<dyn File>>,
    /// The sequence of its first record.
    first: u64,
    /// Where the next record goes. What is before is written, and durable as far as it is published.
    pub(crate) end: u64,
    /// The bytes that are reserved for it.
    pub(crate) capacity: u64,
}

impl OpenSegment {
    /// `file` is the one called `name`.
    pub(crate) fn open(
        (files, durability): (&dyn Files, Durability),
        (name, first): (&str, u64),
        file: Arc<dyn File>,
        (end, capacity): (u64, u64),
    ) -> io::Result<OpenSegment> {
        let others =
            (1..durability.writer_threads()).map(|_| files.open(name, true)).collect::<io::Result<_>>()?;
        Ok(OpenSegment { file, others, first, end, capacity })
    }

    /// The descriptor that writer thread number `hand` syncs.
    fn of(&self, hand: usize) -> &Arc<dyn File> {
        hand.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.file)
    }
}

/// The writing side, held by who has the turn.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tail: Option<OpenSegment>,
    /// Where the checkpoints are saved.
    tables: TableFiles,
    /// As [`CheckpointTable::has_doubtful_notes`](crate::checkpoints::table::CheckpointTable).
    has_doubtful_notes: bool,
    /// The head that the next group starts from: behind that of the log by what is on its way.
    head: Head,
    /// A write failed: nothing behind the last good end is to be believed.
    write_failed: bool,
    next_tick: u64,
    /// When the checkpoints may be saved again, after a failure.
    next_save: u64,
    /// When the last group was begun, and how many batches it had.
    begun_ns: u64,
    last_group: usize,
    group: Vec<(u32, PendingAppend)>,
    outcomes: Vec<(u32, AppendResult)>,
    wakers: Vec<Waker>,
    /// The headers, tenants and paddings of a group, one behind the other, and where each record's begin.
    heads: Vec<u8>,
    starts: Vec<usize>,
}

/// The result of [`Writer::begin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BeginOutcome {
    /// There is nothing to be synced.
    Idle,
    /// A group is written, and is to be synced and settled.
    Written,
    /// Nothing can be written before every group on its way is settled.
    Blocked,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, tail: Option<OpenSegment>, tables: TableFiles) -> Writer {
        let slots = shared.settings.queue;
        let index = lock(&shared.index);
        let (head, has_doubtful_notes) = (index.head, index.checkpoints.has_doubtful_notes);
        drop(index);
        let next_tick = shared.clock.monotonic_ns() + RETRY_INTERVAL_NS;
        Writer {
            shared,
            tail,
            tables,
            has_doubtful_notes,
            head,
            write_failed: false,
            next_tick,
            next_save: 0,
            begun_ns: 0,
            last_group: 0,
            group: Vec::with_capacity(slots),
            outcomes: Vec::with_capacity(slots),
            wakers: Vec::with_capacity(slots),
            heads: Vec::new(),
            starts: Vec::with_capacity(slots),
        }
    }

    /// Takes what has arrived.
    pub(crate) fn take_queued(&mut self) {
        self.shared.queue.take(&mut self.group);
        self.last_group = self.group.len();
    }

    /// Whether something that was taken is not written yet.
    pub(crate) fn has_more(&self) -> bool {
        !self.group.is_empty()
    }

    /// Periodic work, if it is due.
    pub(crate) fn maintain(&mut self) {
        let now = self.shared.clock.monotonic_ns();
        if now >= self.next_tick || self.shared.starved.load(Ordering::Relaxed) {
            self.next_tick = now + RETRY_INTERVAL_NS;
            self.roll_back();
            self.tick(now);
        }
    }

    /// The last things, once nothing more can arrive and everything is settled.
    pub(crate) fn finish(&mut self) {
        self.roll_back();
        if self.shared.settings.durability != Durability::Memory {
            self.save_checkpoints_now(self.head.sequence);
        }
        self.tick(self.shared.clock.monotonic_ns());
        self.seal();
        self.shared.closed.store(true, Ordering::Release);
        let mut index = lock(&self.shared.index);
        for held in index.in_memory.drain(..) {
            self.outcomes.push((held.slot, Err(AppendError::Closed)));
        }
        index.wakers(&mut self.wakers);
        drop(index);
        self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
    }

    /// Writes as much of what was taken as one segment has room for, and leaves it in `flight`.
    pub(crate) fn begin(&mut self, flight: &mut WriteGroup) -> BeginOutcome {
        if self.shared.settings.durability == Durability::Memory {
            self.hold();
            self.release();
            return BeginOutcome::Idle;
        }
        while let Some((_, first)) = self.group.first() {
            let need = first.size();
            if !self.roll_back() {
                return BeginOutcome::Blocked;
            }
            let written = if let Err(trouble) = self.create_table() {
                Err(trouble)
            } else if self.has_room(need) {
                self.write_run(flight).map_err(|error| self.fail(&error))
            } else if self.shared.order.is_busy() {
                // A segment is complete and durable before the next one is created.
                return BeginOutcome::Blocked;
            } else {
                self.make_room(need).map(|()| false)
            };
            match written {
                Ok(true) => return BeginOutcome::Written,
                Ok(false) => {}
                Err(trouble) => self.refuse(trouble),
            }
        }
        BeginOutcome::Idle
    }

    /// Writes as much of the group as the segment takes. True when that is something.
    fn write_run(&mut self, flight: &mut WriteGroup) -> io::Result<bool> {
        let Some(tail) = &self.tail else { return Ok(false) };
        let (file, offset) = (tail.file.clone(), tail.end);
        let mut end = offset;
        let fit = self.group.iter().take_while(|(_, entry)| {
            end += entry.size();
            end <= tail.capacity
        });
        let count = fit.count();
        let times = self.group.iter_mut().take(count).map(|(_, entry)| &mut entry.meta.received_at_ns);
        let now_ns = self.shared.clock.unix_ns();
        self.shared.receive_clock.give(times, self.head.sequence + count as u64, now_ns);
        let first = self.group.first().map(|(_, entry)| SegmentHead {
            items_before: self.head.items,
            received_at_ns: entry.meta.received_at_ns,
        });
        let Some(first) = first.filter(|_| count > 0) else { return Ok(false) };
        let (key, room) = (key(self.shared.salt, tail.first), tail.capacity);
        let end = self.write((&*file, room), key, offset, count)?;
        for (slot, entry) in self.group.drain(..count) {
            let receipt = Receipt { sequence: self.head.sequence, items_before: self.head.items };
            self.head.sequence += 1;
            self.head.items += u64::from(entry.meta.items);
            flight.outcomes.push((slot, Ok(receipt)));
            if !entry.checkpoints.is_empty() {
                flight.checkpoints.push(entry.checkpoints);
            }
            // With the entry goes its window: what is in the page cache needs no other memory.
        }
        self.head.bytes += end - offset;
        if let Some(tail) = &mut self.tail {
            tail.end = end;
            flight.start_sync(tail.of(flight.hand).clone(), end, self.head, first);
        }
        Ok(true)
    }

    /// Writes the first `count` entries of the group at `offset`, and says where they end. Behind them go
    /// zeros, where there is room: over what an earlier segment left there, so that the end can be told from
    /// a torn record, and to the end of a page, so that the kernel need not read the rest of it from the disk.
    fn write(
        &mut self,
        (file, capacity): (&dyn File, u64),
        key: u64,
        offset: u64,
        count: usize,
    ) -> io::Result<u64> {
        self.heads.clear();
        self.starts.clear();
        let Head { mut sequence, mut items, .. } = self.head;
        for (_, entry) in self.group.iter().take(count) {
            self.starts.push(self.heads.len());
            let header = entry.header(key, sequence, items);
            self.heads.extend_from_slice(&header.encode());
            self.heads.extend_from_slice(entry.meta.tenant.as_str().as_bytes());
            (sequence, items) = (sequence + 1, header.items_after());
        }
        let mut at = offset;
        let chunks = self.group.get(..count).unwrap_or_default().chunks(MAX_RECORDS_PER_WRITE);
        for (entries, starts) in chunks.zip(self.starts.chunks(MAX_RECORDS_PER_WRITE)) {
            at = write_chunk((file, capacity), at, entries, starts, &self.heads)?;
        }
        Ok(at)
    }

    /// Refuses what is left of the group, and everybody else for a moment.
    fn refuse(&mut self, trouble: DiskError) {
        let refused = Err(self.shared.refusal(trouble));
        self.outcomes.extend(self.group.drain(..).map(|(slot, _)| (slot, refused)));
        self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
    }

    /// After a write that failed, what was written behind the last good end may not be believed.
    fn fail(&mut self, error: &io::Error) -> DiskError {
        self.write_failed = true;
        self.shared.failed(error)
    }

    /// After a write or a sync that failed, goes back to the end of the last good group and ends the segment
    /// there: nothing behind may be believed, nor synced again and then believed. False when that has to wait
    /// for groups that are on their way: those before the failure may yet turn out good.
    fn roll_back(&mut self) -> bool {
        if !self.write_failed && !self.shared.order.has_failed() {
            return true;
        }
        if self.shared.order.is_busy() {
            return false;
        }
        let index = lock(&self.shared.index);
        self.head = index.head;
        self.shared.receive_clock.take_back(self.head.sequence);
        if let Some(tail) = &mut self.tail {
            let segment = index.begun.as_ref().or(index.segments.back());
            tail.end = segment.map_or(0, |segment| segment.end);
        }
        drop(index);
        self.seal();
        self.write_failed = false;
        self.shared.order.clear_failure();
        true
    }

    /// Keeps the group in memory, for sinks to read from there.
    fn hold(&mut self) {
        if self.group.is_empty() {
            return;
        }
        let head = self.head.sequence + self.group.len() as u64;
        let times = self.group.iter_mut().map(|(_, entry)| &mut entry.meta.received_at_ns);
        self.shared.receive_clock.give(times, head, self.shared.clock.unix_ns());
        let mut index = lock(&self.shared.index);
        for (slot, entry) in self.group.drain(..) {
            let Head { sequence, items, .. } = self.head;
            let header = entry.header(self.shared.salt, sequence, items);
            self.head = Head {
                sequence: sequence + 1,
                items: header.items_after(),
                bytes: self.head.bytes + header.size(),
            };
            index.in_memory.push_back(InMemoryRecord {
                slot,
                header,
                entry,
                bytes_before: self.head.bytes - header.size(),
            });
        }
        index.advance(self.head);
        index.wakers(&mut self.wakers);
        drop(index);
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

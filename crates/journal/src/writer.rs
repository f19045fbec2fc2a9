//! Writing: all that has arrived is written together, synced together, and acknowledged together. While one
//! group is synced the next is written.

mod hands;
mod order;
mod space;

pub(crate) use hands::STACK;
pub(crate) use order::{Flight, Order};
pub(crate) use space::QUARANTINED;

use crate::files::{File, Files, write_all};
use crate::journal::Receipt;
use crate::log::{Head, Outcome, Shared};
use crate::memory::Held;
use crate::meta::Meta;
use crate::record::{ALIGN, HEADER, Header, key, size_of_record};
use crate::segment::SegmentHead;
use crate::settings::{Durability, Refused, Trouble};
use crate::sync::lock;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;
use tidegate_arena::Window;

/// After the disk refused, it is tried again this much later at the soonest; cursors are synced as often.
pub(crate) const BREATH_NS: u64 = 1_000_000_000;
/// Records in one system call, three slices each (what goes before the body, the body, the padding): well
/// below `IOV_MAX`, and small enough for the stack.
const RECORDS: usize = 85;
/// The unit in which the kernel caches and reads, in bytes. Smaller in tests, whose segments are small, so that old
/// data remains in them.
const PAGE: u64 = if cfg!(test) { 64 } else { 4096 };
/// The minimum after the last record: as many zeros as a header is long.
const MARK: [u8; PAGE as usize + HEADER] = [0; PAGE as usize + HEADER];
const PADDING: [u8; ALIGN as usize] = [0; ALIGN as usize];

/// A batch on its way to the disk.
pub(crate) struct Entry {
    pub(crate) meta: Meta,
    pub(crate) window: Window,
    pub(crate) from: usize,
    pub(crate) len: u32,
    pub(crate) crc: u32,
}

impl Entry {
    pub(crate) fn body(&self) -> &[u8] {
        self.window.get(self.from..self.from + self.len as usize).unwrap_or_default()
    }

    /// The memory of its window, in bytes.
    pub(crate) fn charged(&self) -> u64 {
        self.window.charged() as u64
    }

    pub(crate) fn size(&self) -> u64 {
        size_of_record(self.meta.tenant.as_str().len(), self.len)
    }
}

/// The segment that is being written.
pub(crate) struct Tail {
    pub(crate) file: Arc<dyn File>,
    /// As many more descriptions of it as other threads sync by, each its own: see [`Flight`].
    others: Vec<Arc<dyn File>>,
    /// The sequence of its first record.
    first: u64,
    /// Where the next record goes. What is before is written, and durable as far as it is published.
    pub(crate) end: u64,
    /// The bytes that are reserved for it.
    pub(crate) capacity: u64,
}

impl Tail {
    /// `file` is the one called `name`.
    pub(crate) fn open(
        (files, durability): (&dyn Files, Durability),
        (name, first): (&str, u64),
        file: Arc<dyn File>,
        (end, capacity): (u64, u64),
    ) -> io::Result<Tail> {
        let others = (1..durability.hands()).map(|_| files.open(name, true)).collect::<io::Result<_>>()?;
        Ok(Tail { file, others, first, end, capacity })
    }

    /// The descriptor that writer thread number `hand` syncs.
    fn of(&self, hand: usize) -> &Arc<dyn File> {
        hand.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.file)
    }
}

/// The writing side, held by who has the turn.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tail: Option<Tail>,
    /// The head that the next group starts from: behind that of the log by what is on its way.
    head: Head,
    /// A write failed: nothing behind the last good end is to be believed.
    spoilt: bool,
    next_tick: u64,
    /// When the last group was begun, and how many batches it had.
    begun_ns: u64,
    last_group: usize,
    group: Vec<(u32, Entry)>,
    outcomes: Vec<(u32, Outcome)>,
    wakers: Vec<Waker>,
    /// The headers, tenants and paddings of a group, one behind the other, and where each record's begin.
    heads: Vec<u8>,
    starts: Vec<usize>,
}

/// The result of [`Writer::begin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// There is nothing to be synced.
    Idle,
    /// A group is written, and is to be synced and settled.
    Written,
    /// Nothing can be written before every group on its way is settled.
    Blocked,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, tail: Option<Tail>) -> Writer {
        let slots = shared.settings.queue;
        let head = lock(&shared.log).head;
        let next_tick = shared.clock.monotonic_ns() + BREATH_NS;
        Writer {
            shared,
            tail,
            head,
            spoilt: false,
            next_tick,
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
    pub(crate) fn gather(&mut self) {
        self.shared.queue.take(&mut self.group);
        self.last_group = self.group.len();
    }

    /// Whether something that was taken is not written yet.
    pub(crate) fn has_more(&self) -> bool {
        !self.group.is_empty()
    }

    /// Periodic work, if it is due.
    pub(crate) fn upkeep(&mut self) {
        let now = self.shared.clock.monotonic_ns();
        if now >= self.next_tick || self.shared.starved.load(Ordering::Relaxed) {
            self.next_tick = now + BREATH_NS;
            self.mend();
            self.tick(now);
        }
    }

    /// The last things, once nothing more can arrive and everything is settled.
    pub(crate) fn finish(&mut self) {
        self.mend();
        self.tick(self.shared.clock.monotonic_ns());
        self.seal();
        self.shared.closed.store(true, Ordering::Release);
        let mut log = lock(&self.shared.log);
        for held in log.held.drain(..) {
            self.outcomes.push((held.slot, Err(Refused::Closed)));
        }
        log.wakers(&mut self.wakers);
        drop(log);
        self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
    }

    /// Writes as much of what was taken as one segment has room for, and leaves it in `flight`.
    pub(crate) fn begin(&mut self, flight: &mut Flight) -> Begun {
        if self.shared.settings.durability == Durability::Memory {
            self.hold();
            self.release();
            return Begun::Idle;
        }
        while let Some((_, first)) = self.group.first() {
            let need = first.size();
            if !self.mend() {
                return Begun::Blocked;
            }
            let written = if self.has_room(need) {
                self.write_run(flight).map_err(|error| self.fail(&error))
            } else if self.shared.order.is_busy() {
                // A segment is complete and durable before the next one is created.
                return Begun::Blocked;
            } else {
                self.make_room(need).map(|()| false)
            };
            match written {
                Ok(true) => return Begun::Written,
                Ok(false) => {}
                Err(trouble) => self.refuse(trouble),
            }
        }
        Begun::Idle
    }

    /// Writes as much of the group as the segment takes. True when that is something.
    fn write_run(&mut self, flight: &mut Flight) -> io::Result<bool> {
        let Some(tail) = &self.tail else { return Ok(false) };
        let (file, offset) = (tail.file.clone(), tail.end);
        let mut end = offset;
        let fit = self.group.iter().take_while(|(_, entry)| {
            end += entry.size();
            end <= tail.capacity
        });
        let count = fit.count();
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
            // With the entry goes its window: what is in the page cache needs no other memory.
        }
        self.head.bytes += end - offset;
        if let Some(tail) = &mut self.tail {
            tail.end = end;
            flight.depart(tail.of(flight.hand).clone(), end, self.head, first);
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
            let header = Header::new(key, sequence, items, &entry.meta, entry.len, entry.crc);
            self.heads.extend_from_slice(&header.encode());
            self.heads.extend_from_slice(entry.meta.tenant.as_str().as_bytes());
            (sequence, items) = (sequence + 1, header.items_after());
        }
        let mut at = offset;
        let chunks = self.group.get(..count).unwrap_or_default().chunks(RECORDS);
        for (entries, starts) in chunks.zip(self.starts.chunks(RECORDS)) {
            at = write_chunk((file, capacity), at, entries, starts, &self.heads)?;
        }
        Ok(at)
    }

    /// Refuses what is left of the group, and everybody else for a moment.
    fn refuse(&mut self, trouble: Trouble) {
        let refused = Err(self.shared.refusal(trouble));
        self.outcomes.extend(self.group.drain(..).map(|(slot, _)| (slot, refused)));
        self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
    }

    /// After a write that failed, what was written behind the last good end may not be believed.
    fn fail(&mut self, error: &io::Error) -> Trouble {
        self.spoilt = true;
        self.shared.failed(error)
    }

    /// After a write or a sync that failed, goes back to the end of the last good group and ends the segment
    /// there: nothing behind may be believed, nor synced again and then believed. False when that has to wait
    /// for groups that are on their way: those before the failure may yet turn out good.
    fn mend(&mut self) -> bool {
        if !self.spoilt && !self.shared.order.is_broken() {
            return true;
        }
        if self.shared.order.is_busy() {
            return false;
        }
        let log = lock(&self.shared.log);
        self.head = log.head;
        if let Some(tail) = &mut self.tail {
            let segment = log.begun.as_ref().or(log.segments.back());
            tail.end = segment.map_or(0, |segment| segment.end);
        }
        drop(log);
        self.seal();
        self.spoilt = false;
        self.shared.order.mended();
        true
    }

    /// Keeps the group in memory, for sinks to read from there.
    fn hold(&mut self) {
        if self.group.is_empty() {
            return;
        }
        let mut log = lock(&self.shared.log);
        for (slot, entry) in self.group.drain(..) {
            let Head { sequence, items, .. } = self.head;
            let header = Header::new(self.shared.salt, sequence, items, &entry.meta, entry.len, entry.crc);
            self.head = Head {
                sequence: sequence + 1,
                items: header.items_after(),
                bytes: self.head.bytes + header.size(),
            };
            log.held.push_back(Held { slot, header, entry, bytes_before: self.head.bytes - header.size() });
        }
        log.advance(self.head);
        log.wakers(&mut self.wakers);
        drop(log);
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

impl Shared {
    /// The answer to appends that the disk does not accept, and to all others for a moment.
    fn refusal(&self, trouble: Trouble) -> Refused {
        let retry_after = Duration::from_millis(self.retry_after_ms.load(Ordering::Relaxed));
        let refused = Refused::Disk { trouble, retry_after };
        self.starved.store(trouble == Trouble::Quota, Ordering::Relaxed);
        self.queue.bar(Err(refused), self.clock.monotonic_ns() + BREATH_NS);
        refused
    }

    /// Counts and tells that writing failed.
    fn failed(&self, error: &io::Error) -> Trouble {
        lock(&self.log).counters.write_errors += 1;
        tracing::warn!(%error, "the journal cannot write: it refuses what comes, and tries again in a second");
        trouble(error)
    }
}

/// Writes `entries` at `at` with one system call where the kernel takes it all, and says where they end.
/// `starts` says where in `heads` each begins.
fn write_chunk(
    (file, capacity): (&dyn File, u64),
    at: u64,
    entries: &[(u32, Entry)],
    starts: &[usize],
    heads: &[u8],
) -> io::Result<u64> {
    let mut slices = [IoSlice::new(&[]); 3 * RECORDS + 1];
    let mut end = at;
    for (((_, entry), &start), slices) in entries.iter().zip(starts).zip(slices.chunks_mut(3)) {
        let [head, body, padding] = slices else { continue };
        let len = HEADER + entry.meta.tenant.as_str().len();
        *head = IoSlice::new(heads.get(start..start + len).unwrap_or_default());
        *body = IoSlice::new(entry.body());
        let unpadded = len as u64 + u64::from(entry.len);
        *padding = IoSlice::new(PADDING.get(..(entry.size() - unpadded) as usize).unwrap_or_default());
        end += entry.size();
    }
    let marked = (end + HEADER as u64).next_multiple_of(PAGE).min(capacity).max(end);
    if let Some(mark) = slices.get_mut(entries.len() * 3) {
        *mark = IoSlice::new(MARK.get(..(marked - end) as usize).unwrap_or_default());
    }
    let used = slices.get_mut(..=entries.len() * 3).unwrap_or_default();
    write_all(file, used, at)?;
    Ok(end)
}

/// The error that a failed call becomes for appenders.
pub(crate) fn trouble(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Trouble::Full
        }
        kind => Trouble::Failed(kind),
    }
}

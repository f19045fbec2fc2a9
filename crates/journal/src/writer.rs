//! The one who writes: takes all that has arrived, writes and syncs it together, and acknowledges it together.

mod space;

pub(crate) use space::QUARANTINED;

use crate::files::{File, write_all};
use crate::journal::Receipt;
use crate::log::{Head, Outcome, Shared};
use crate::memory::Held;
use crate::meta::Meta;
use crate::queue::Arrival;
use crate::record::{ALIGN, HEADER, Header, size_of_record};
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

    pub(crate) fn size(&self) -> u64 {
        size_of_record(self.meta.tenant.as_str().len(), self.len)
    }
}

/// The segment that is being written.
pub(crate) struct Tail {
    pub(crate) file: Arc<dyn File>,
    /// Where the next record goes. Everything before is durable, or acknowledged by a weaker durability.
    pub(crate) end: u64,
    /// The bytes that are reserved for it.
    pub(crate) capacity: u64,
}

pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tail: Option<Tail>,
    /// The head that the next group starts from.
    head: Head,
    next_tick: u64,
    group: Vec<(u32, Entry)>,
    outcomes: Vec<(u32, Outcome)>,
    wakers: Vec<Waker>,
    /// The headers, tenants and paddings of a group, one behind the other, and where each record's begin.
    heads: Vec<u8>,
    starts: Vec<usize>,
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
            next_tick,
            group: Vec::with_capacity(slots),
            outcomes: Vec::with_capacity(slots),
            wakers: Vec::with_capacity(slots),
            heads: Vec::new(),
            starts: Vec::with_capacity(slots),
        }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        while self.step(Some(Duration::from_nanos(BREATH_NS))) == Arrival::Open {}
        self.finish();
    }

    /// Writes what has arrived, waiting for it as long as `patience` says, and does the upkeep when it is due.
    pub(crate) fn step(&mut self, patience: Option<Duration>) -> Arrival {
        let shared = self.shared.clone();
        let arrival = shared.queue.take(&mut self.group, patience);
        match shared.settings.durability {
            Durability::Memory => {
                self.hold();
                self.release();
            }
            Durability::Fsync | Durability::PageCache => self.write_group(),
        }
        let now = shared.clock.monotonic_ns();
        if now >= self.next_tick || shared.starved.load(Ordering::Relaxed) {
            self.next_tick = now + BREATH_NS;
            self.tick(now);
        }
        arrival
    }

    /// The last things, once nothing more can arrive.
    pub(crate) fn finish(&mut self) {
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

    /// Writes the group, a run for each segment that it touches, and answers all of it.
    fn write_group(&mut self) {
        while let Some((_, first)) = self.group.first() {
            let need = first.size();
            let written = self.make_room(need).and_then(|()| self.write_run());
            if let Err(trouble) = written {
                self.refuse(trouble);
            }
        }
    }

    /// Writes as much of the group as the segment takes, and acknowledges that.
    fn write_run(&mut self) -> Result<(), Trouble> {
        let Some(tail) = &self.tail else { return Ok(()) };
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
        let Some(first) = first.filter(|_| count > 0) else { return Ok(()) };
        match self.write(&*file, offset, count) {
            Ok(end) => {
                self.publish(end, first, count);
                Ok(())
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    /// Writes and syncs the first `count` entries of the group at `offset`, and says where they end.
    fn write(&mut self, file: &dyn File, offset: u64, count: usize) -> io::Result<u64> {
        self.heads.clear();
        self.starts.clear();
        let Head { mut sequence, mut items, .. } = self.head;
        for (_, entry) in self.group.iter().take(count) {
            self.starts.push(self.heads.len());
            let header = Header::new(self.shared.salt, sequence, items, &entry.meta, entry.len, entry.crc);
            self.heads.extend_from_slice(&header.encode());
            self.heads.extend_from_slice(entry.meta.tenant.as_str().as_bytes());
            (sequence, items) = (sequence + 1, header.items_after());
        }
        let mut at = offset;
        let chunks = self.group.get(..count).unwrap_or_default().chunks(RECORDS);
        for (entries, starts) in chunks.zip(self.starts.chunks(RECORDS)) {
            at = write_chunk(file, at, entries, starts, &self.heads)?;
        }
        if self.shared.settings.durability == Durability::Fsync {
            let before = self.shared.clock.monotonic_ns();
            file.sync()?;
            let took = self.shared.clock.monotonic_ns().saturating_sub(before);
            let counters = &mut lock(&self.shared.log).counters;
            counters.syncs += 1;
            counters.sync_ns += took;
            counters.last_sync_ns = took;
        }
        Ok(at)
    }

    /// Lets sinks read the first `count` entries of the group, gives their windows back, and acknowledges
    /// them: in this order, so that the memory is free when a client hears that it may send more.
    fn publish(&mut self, end: u64, first: SegmentHead, count: usize) {
        for (slot, entry) in self.group.drain(..count) {
            let receipt = Receipt { sequence: self.head.sequence, items_before: self.head.items };
            self.head.sequence += 1;
            self.head.items += u64::from(entry.meta.items);
            self.outcomes.push((slot, Ok(receipt)));
        }
        if let Some(tail) = &mut self.tail {
            self.head.bytes += end - tail.end;
            tail.end = end;
        }
        let mut log = lock(&self.shared.log);
        log.grow(end, self.head, first);
        log.wakers(&mut self.wakers);
        drop(log);
        self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
    }

    /// Refuses what is left of the group, and everybody else for a moment.
    fn refuse(&mut self, trouble: Trouble) {
        let now = self.shared.clock.monotonic_ns();
        let retry_after = Duration::from_millis(self.shared.retry_after_ms.load(Ordering::Relaxed));
        let refused = Err(Refused::Disk { trouble, retry_after });
        self.shared.starved.store(trouble == Trouble::Quota, Ordering::Relaxed);
        self.shared.queue.bar(refused, now + BREATH_NS);
        self.outcomes.extend(self.group.drain(..).map(|(slot, _)| (slot, refused)));
        self.shared.queue.complete(&mut self.outcomes, &mut self.wakers);
    }

    /// After a write or a sync that failed, nothing behind the last good end may be believed, nor synced
    /// again and then believed: the segment ends there, and the next append begins another.
    fn fail(&mut self, error: &io::Error) -> Trouble {
        let trouble = trouble(error);
        lock(&self.shared.log).counters.write_errors += 1;
        tracing::warn!(%error, "the journal cannot write: it refuses what comes, and tries again in a second");
        self.seal();
        trouble
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

/// Writes `entries` at `at` with one system call where the kernel takes it all, and says where they end.
/// `starts` says where in `heads` each begins.
fn write_chunk(
    file: &dyn File,
    at: u64,
    entries: &[(u32, Entry)],
    starts: &[usize],
    heads: &[u8],
) -> io::Result<u64> {
    let mut slices = [IoSlice::new(&[]); 3 * RECORDS];
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
    let used = slices.get_mut(..entries.len() * 3).unwrap_or_default();
    write_all(file, used, at)?;
    Ok(end)
}

/// What a failed call means for those who append.
pub(crate) fn trouble(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Trouble::Full
        }
        kind => Trouble::Failed(kind),
    }
}

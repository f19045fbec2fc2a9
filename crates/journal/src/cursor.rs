//! Where a sink is: what it has completed without a gap, and what it has completed beyond.

pub(crate) mod file;

use crate::record::{Encoder, u32_at, u64_at};
use std::collections::VecDeque;

/// How many records a sink may have taken and not completed.
pub const MAX_IN_FLIGHT: usize = 1024;
/// The length of the metadata that a sink keeps with its cursor, in bytes.
pub const CURSOR_METADATA_LEN: usize = 256;
/// The length of a written cursor, in bytes: it fits a 512-byte sector.
pub(crate) const ENCODED_LEN: usize = 456;
const MAGIC: [u8; 4] = [0xF5, b'T', b'C', 1];
const BITMAP: usize = MAX_IN_FLIGHT / 8;
const SECOND_NS: u64 = 1_000_000_000;

/// The sink's own data beside its position, returned to it after a restart. Opaque here.
pub type CursorMetadata = [u8; CURSOR_METADATA_LEN];

/// One sink's progress.
#[derive(Clone)]
pub(crate) struct Cursor {
    /// Every record before this one is completed, dropped or damaged: the low-water mark.
    pub(crate) low: u64,
    /// The items of all records before `low`.
    pub(crate) items: u64,
    /// The place of `low` in the bytes of the journal, counted from when it was opened.
    pub(crate) bytes: u64,
    /// Where the cursor began, in items.
    pub(crate) born: u64,
    /// Items passed over because the quota was full, since it began.
    pub(crate) dropped: u64,
    /// Items passed over because they could not be read, since it began.
    pub(crate) damaged: u64,
    /// The record `low` was received then or later, in nanoseconds since 1970; zero where that is not known.
    received_at_ns: u64,
    pub(crate) metadata: CursorMetadata,
    /// Records handed out, and gaps passed, from `low` on: at most [`MAX_IN_FLIGHT`], and one more where
    /// the last is damaged.
    flight: VecDeque<InFlight>,
    /// Records are completed in order only, so that those in flight need one entry for all of them.
    in_order: bool,
    /// Items of records for this sink alone, of all that were handed out since it was followed; and those of the last one.
    addressed: (u64, u32),
    /// Records beyond `low` that were completed before the last restart and were not met since, or cannot
    /// be read any more: sequence and items, ascending.
    restored: VecDeque<(u64, u64)>,
}

#[derive(Clone, Copy)]
struct InFlight {
    /// Covers the sequences after the entry before it, up to and with this one.
    sequence: u64,
    items: u64,
    items_after: u64,
    bytes_after: u64,
    /// When the first record that the entry stands for was received, or a little before; zero for a gap.
    received_at_ns: u64,
    done: bool,
    /// It could not be read.
    gap: bool,
    /// Of the items those whose records are for this sink alone. Where the quota took some of the items, it is not known how many
    /// of those were among them, so these may be too many.
    addressed: u32,
}

/// The items of records that were completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CompletedItems {
    pub(crate) items: u64,
    /// Those among them that are for this sink alone.
    pub(crate) addressed: u64,
}

impl CompletedItems {
    fn add(&mut self, items: u64, addressed: u32) {
        self.items += items;
        self.addressed += u64::from(addressed).min(items);
    }
}

/// The records skipped by a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SkippedRecords {
    pub(crate) records: u64,
    pub(crate) items: u64,
}

impl Cursor {
    pub(crate) fn new(low: u64, items: u64, bytes: u64) -> Cursor {
        Cursor {
            low,
            items,
            bytes,
            born: items,
            dropped: 0,
            damaged: 0,
            received_at_ns: 0,
            metadata: [0; CURSOR_METADATA_LEN],
            flight: VecDeque::with_capacity(MAX_IN_FLIGHT + 1),
            in_order: false,
            addressed: (0, 0),
            restored: VecDeque::new(),
        }
    }

    /// The most that one takes, in bytes: its flight, and what was completed out of order before a restart
    /// or a rewind.
    pub(crate) fn most_bytes() -> usize {
        size_of::<Cursor>()
            + (MAX_IN_FLIGHT + 1) * size_of::<InFlight>()
            + 2 * MAX_IN_FLIGHT * size_of::<(u64, u64)>()
    }

    /// Whether another record may be handed out.
    pub(crate) fn has_room(&self) -> bool {
        self.flight.len() < MAX_IN_FLIGHT
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.flight.iter().filter(|entry| !entry.done).count()
    }

    /// Has records completed in order only from now on: then any number of them may be in flight.
    pub(crate) fn set_in_order(&mut self, in_order: bool) {
        self.in_order = in_order;
    }

    /// Items of records beyond the low-water mark that are completed. Those that cannot be read count once the
    /// mark is past them.
    pub(crate) fn ahead(&self) -> u64 {
        let done = self.flight.iter().filter(|entry| entry.done && !entry.gap);
        let flight = done.map(|entry| entry.items);
        flight.chain(self.restored.iter().map(|(_, items)| *items)).sum()
    }

    /// Notes that a record is handed out, which is `addressed` to this sink alone or not. True when it is only to be passed: it was completed before the last
    /// restart, or dropped since the sink looked for it.
    pub(crate) fn hand_out(
        &mut self,
        sequence: u64,
        items: u64,
        (items_after, bytes_after): (u64, u64),
        received_at_ns: u64,
        addressed: bool,
    ) -> bool {
        if sequence < self.low {
            return true;
        }
        let known = self.restored.binary_search_by_key(&sequence, |(sequence, _)| *sequence);
        let done = known.is_ok_and(|at| self.restored.remove(at).is_some());
        let addressed = if addressed { u32::try_from(items).unwrap_or(u32::MAX) } else { 0 };
        self.addressed = (self.addressed.0 + u64::from(addressed), addressed);
        let entry = InFlight {
            sequence,
            items,
            items_after,
            bytes_after,
            received_at_ns,
            done,
            gap: false,
            addressed,
        };
        match self.flight.back_mut().filter(|back| self.in_order && !done && !back.done) {
            Some(back) => {
                let (items, received_at_ns) = (back.items + items, back.received_at_ns);
                let addressed = back.addressed.saturating_add(addressed);
                *back = InFlight { items, received_at_ns, addressed, ..entry };
            }
            None => self.flight.push_back(entry),
        }
        self.settle();
        done
    }

    /// Notes that nothing from the record `from` up to the record `next` can be read, `items` items in all.
    /// Returns the items among them that were completed before the last restart: those are no loss. Nothing when the
    /// sink was moved past `from` in the meantime: that is why it cannot be read, and was counted there.
    pub(crate) fn pass(
        &mut self,
        (from, next): (u64, u64),
        items: u64,
        items_after: u64,
        bytes_after: u64,
    ) -> Option<SkippedRecords> {
        if from < self.low {
            return None;
        }
        let delivered = self.restored_between(self.read_to(), next);
        let items = items.saturating_sub(delivered.items);
        let entry = InFlight {
            sequence: next.saturating_sub(1),
            items,
            items_after,
            bytes_after,
            received_at_ns: 0,
            done: true,
            gap: true,
            addressed: 0,
        };
        self.flight.push_back(entry);
        self.settle();
        Some(delivered)
    }

    /// One past the last record that was handed out or passed.
    fn read_to(&self) -> u64 {
        self.flight.back().map_or(self.low, |last| last.sequence + 1)
    }

    /// The records completed before the last restart, in `from..to`.
    fn restored_between(&self, from: u64, to: u64) -> SkippedRecords {
        let within = self.restored.iter().filter(|(sequence, _)| (from..to).contains(sequence));
        within.fold(SkippedRecords::default(), |sum, (_, items)| SkippedRecords {
            records: sum.records + 1,
            items: sum.items + items,
        })
    }

    /// The record that was handed out last turned out to be damaged: `items` items of it, with so many items
    /// and bytes before it.
    pub(crate) fn give_up(&mut self, sequence: u64, items: u64, items_before: u64, bytes_before: u64) {
        let before_it = match self.flight.len().checked_sub(2).and_then(|before| self.flight.get(before)) {
            Some(before) => before.sequence + 1,
            None => self.low,
        };
        let Some(entry) = self.flight.pop_back() else { return };
        if entry.sequence != sequence || entry.done {
            // Dropped in the meantime, and counted there.
            self.flight.push_back(entry);
            return;
        }
        let (handed_out, last) = self.addressed;
        self.addressed = (handed_out.saturating_sub(last.into()), 0);
        if before_it < sequence {
            // The entry stands for others too, which are still to be completed.
            let items = entry.items.saturating_sub(items);
            let others = InFlight {
                sequence: sequence - 1,
                items,
                items_after: items_before,
                addressed: entry.addressed.saturating_sub(last),
                ..entry
            };
            self.flight.push_back(InFlight { bytes_after: bytes_before, ..others });
        }
        self.flight.push_back(InFlight { items, done: true, gap: true, addressed: 0, ..entry });
        self.settle();
    }

    /// The items of records for this sink alone, of all that were handed out.
    pub(crate) fn addressed(&self) -> u64 {
        self.addressed.0
    }

    /// Notes that a record is completed. False when it is not in flight: it was completed before, or it was
    /// dropped in the meantime.
    pub(crate) fn complete(&mut self, sequence: u64) -> bool {
        match self.find(sequence) {
            Some(entry) if !entry.done => entry.done = true,
            _ => return false,
        }
        self.settle();
        true
    }

    /// Notes that each of these records is completed. Returns the items that this completed: those that were
    /// dropped in the meantime are not among them.
    pub(crate) fn complete_each(&mut self, sequences: impl IntoIterator<Item = u64>) -> CompletedItems {
        let mut completed = CompletedItems::default();
        for sequence in sequences {
            if let Some(entry) = self.find(sequence).filter(|entry| !entry.done) {
                entry.done = true;
                completed.add(entry.items, entry.addressed);
            }
        }
        self.settle();
        completed
    }

    /// Notes that every record up to and with `sequence` is completed, behind which there are `items_after`
    /// items and `bytes_after` bytes; it was received at `received_at_ns`, and up to it so many items of what was handed out
    /// were for this sink alone. Returns the items that this completed: fewer than were handed out when some were dropped in the
    /// meantime.
    pub(crate) fn complete_through(
        &mut self,
        sequence: u64,
        (items_after, bytes_after): (u64, u64),
        received_at_ns: u64,
        addressed_after: u64,
    ) -> CompletedItems {
        let mut completed = CompletedItems::default();
        let open = self.flight.iter().position(|entry| entry.sequence > sequence && !entry.done);
        let open = open.filter(|_| self.in_order && sequence >= self.low);
        let later = self.flight.iter().skip(open.map_or(usize::MAX, |at| at + 1));
        let later: u64 = later.map(|entry| u64::from(entry.addressed)).sum();
        for entry in self.flight.iter_mut().take_while(|entry| entry.sequence <= sequence) {
            completed.add(if entry.done { 0 } else { entry.items }, entry.addressed);
            entry.done = true;
        }
        if let Some(entry) = open.and_then(|at| self.flight.get_mut(at)) {
            // One entry for many records: it is completed as far as the sequence.
            let before = entry.items_after - entry.items;
            let items = items_after.saturating_sub(before);
            let rest = self.addressed.0.saturating_sub(addressed_after).saturating_sub(later);
            let rest = entry.addressed.min(u32::try_from(rest).unwrap_or(u32::MAX));
            completed.add(items, entry.addressed - rest);
            entry.items -= items.min(entry.items);
            entry.addressed = rest;
            // The rest arrived after that.
            entry.received_at_ns = entry.received_at_ns.max(received_at_ns);
        }
        self.settle();
        if sequence >= self.low
            && self.flight.front().is_some_and(|entry| entry.sequence > sequence && !entry.done)
        {
            (self.low, self.items, self.bytes) = (sequence + 1, items_after, bytes_after);
        }
        if self.low == sequence + 1 {
            self.received_at_ns = self.received_at_ns.max(received_at_ns);
        }
        completed
    }

    /// Moves past everything before the record `to`, before which there are `items` items and `bytes` bytes.
    pub(crate) fn jump(&mut self, to: u64, items: u64, bytes: u64) -> SkippedRecords {
        if to <= self.low {
            return SkippedRecords::default();
        }
        let mut passed = SkippedRecords { records: to - self.low, items: items.saturating_sub(self.items) };
        let unread = self.read_to();
        // Where the next entry begins.
        let (mut sequence_at, mut items_at) = (self.low, self.items);
        while let Some(entry) = self.flight.front().copied().filter(|entry| entry.sequence < to) {
            if entry.done {
                // Delivered or damaged: either way it is not this jump that loses it.
                passed.records -= (entry.sequence + 1 - sequence_at).min(passed.records);
                passed.items -= (entry.items_after - items_at).min(passed.items);
                self.damaged += if entry.gap { entry.items } else { 0 };
            }
            (sequence_at, items_at) = (entry.sequence + 1, entry.items_after);
            self.flight.pop_front();
        }
        if let Some(entry) = self.flight.front_mut() {
            // One that reaches beyond `to`: only what is behind is left of it, and what is before was not
            // dropped where it was damaged.
            let before = items.saturating_sub(items_at);
            if entry.gap {
                passed.records -= (to - sequence_at).min(passed.records);
                passed.items -= before.min(passed.items);
            } else {
                entry.items -= before.min(entry.items);
            }
        }
        let delivered = self.restored_between(unread, to);
        passed.records -= delivered.records.min(passed.records);
        passed.items -= delivered.items.min(passed.items);
        (self.low, self.items, self.bytes) = (to, items, bytes);
        self.dropped += passed.items;
        self.settle();
        passed
    }

    /// Remembers what was completed beyond the low-water mark before a restart, in ascending order.
    pub(crate) fn restore(&mut self, completed: Vec<(u64, u64)>) {
        self.restored = completed.into();
    }

    /// Forgets what is in flight, so that it is handed out again; what was completed among it is not.
    pub(crate) fn rewind(&mut self) {
        self.received_at_ns = self.received_at_ns();
        let done = self.flight.iter().filter(|entry| entry.done && !entry.gap);
        self.restored.extend(done.map(|entry| (entry.sequence, entry.items)));
        self.restored.make_contiguous().sort_unstable();
        self.flight.clear();
    }

    /// The record `low` was received then or later, in nanoseconds since 1970; zero where that is not known.
    pub(crate) fn received_at_ns(&self) -> u64 {
        self.flight.front().map_or(0, |entry| entry.received_at_ns).max(self.received_at_ns)
    }

    /// Where a record begins that was handed out and is not completed, in the bytes of the journal.
    pub(crate) fn begin_of(&self, sequence: u64) -> Option<u64> {
        let at = self.flight.binary_search_by_key(&sequence, |entry| entry.sequence).ok()?;
        self.flight.get(at).filter(|entry| !entry.done)?;
        match at.checked_sub(1).and_then(|before| self.flight.get(before)) {
            Some(before) => Some(before.bytes_after),
            None => Some(self.bytes),
        }
    }

    fn find(&mut self, sequence: u64) -> Option<&mut InFlight> {
        let at = self.flight.binary_search_by_key(&sequence, |entry| entry.sequence).ok()?;
        self.flight.get_mut(at).filter(|entry| !entry.gap)
    }

    /// Moves the low-water mark over what is done.
    fn settle(&mut self) {
        while let Some(entry) = self.flight.front().copied().filter(|entry| entry.done) {
            self.low = entry.sequence + 1;
            self.items = entry.items_after;
            self.bytes = entry.bytes_after;
            self.received_at_ns = self.received_at_ns.max(entry.received_at_ns);
            self.damaged += if entry.gap { entry.items } else { 0 };
            self.flight.pop_front();
        }
        while self.restored.front().is_some_and(|(sequence, _)| *sequence < self.low) {
            self.restored.pop_front();
        }
    }

    /// Its bytes on disk. `generation` tells the newest of several.
    pub(crate) fn encode(&self, salt: u64, generation: u64) -> [u8; ENCODED_LEN] {
        let mut bytes = [0; ENCODED_LEN];
        let mut out = Encoder { bytes: &mut bytes, at: 0 };
        out.put(&MAGIC);
        // Whole seconds do, and end in 2106.
        let received_at = u32::try_from(self.received_at_ns() / SECOND_NS).unwrap_or_default();
        out.put(&received_at.to_le_bytes());
        for number in [generation, salt, self.low, self.items, self.born, self.dropped, self.damaged] {
            out.put(&number.to_le_bytes());
        }
        out.put(&self.bitmap());
        out.put(&self.metadata);
        let (covered, sum) = bytes.split_at_mut(ENCODED_LEN - 8);
        sum.copy_from_slice(&u64::from(crc32c::crc32c(covered)).to_le_bytes());
        bytes
    }

    /// Bit `i` says that record `low + i` is completed.
    fn bitmap(&self) -> [u8; BITMAP] {
        let mut bitmap = [0; BITMAP];
        let flight = self.flight.iter().filter(|entry| entry.done && !entry.gap).map(|entry| entry.sequence);
        for sequence in flight.chain(self.restored.iter().map(|(sequence, _)| *sequence)) {
            let ahead = sequence.checked_sub(self.low).and_then(|ahead| usize::try_from(ahead).ok());
            let bit = ahead.unwrap_or(usize::MAX);
            if let Some(byte) = bitmap.get_mut(bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
        bitmap
    }
}

/// A cursor as it was read back.
#[derive(Clone)]
pub(crate) struct RestoredCursor {
    pub(crate) generation: u64,
    pub(crate) salt: u64,
    /// Without its flight and its place in bytes, which the caller knows better.
    pub(crate) cursor: Cursor,
    bitmap: [u8; BITMAP],
}

impl RestoredCursor {
    pub(crate) fn decode(bytes: &[u8]) -> Option<RestoredCursor> {
        let bytes: &[u8; ENCODED_LEN] = bytes.first_chunk()?;
        let covered = bytes.get(..ENCODED_LEN - 8)?;
        if !bytes.starts_with(&MAGIC) || u32_at(bytes, ENCODED_LEN - 8) != crc32c::crc32c(covered) {
            return None;
        }
        let mut cursor = Cursor::new(u64_at(bytes, 24), u64_at(bytes, 32), 0);
        cursor.born = u64_at(bytes, 40);
        cursor.dropped = u64_at(bytes, 48);
        cursor.damaged = u64_at(bytes, 56);
        cursor.received_at_ns = u64::from(u32_at(bytes, 4)) * SECOND_NS;
        let bitmap = *bytes.get(64..)?.first_chunk()?;
        cursor.metadata = *bytes.get(64 + BITMAP..)?.first_chunk()?;
        Some(RestoredCursor { generation: u64_at(bytes, 8), salt: u64_at(bytes, 16), cursor, bitmap })
    }

    /// Whether record `sequence` was completed.
    pub(crate) fn completed(&self, sequence: u64) -> bool {
        let Some(ahead) = sequence.checked_sub(self.cursor.low) else { return true };
        let bit = usize::try_from(ahead).unwrap_or(usize::MAX);
        self.bitmap.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0)
    }

    /// One past the last record that it knows of.
    pub(crate) fn known_to(&self) -> u64 {
        let last = (0..MAX_IN_FLIGHT as u64).rev().find(|ahead| self.completed(self.cursor.low + ahead));
        last.map_or(self.cursor.low, |ahead| self.cursor.low + ahead + 1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

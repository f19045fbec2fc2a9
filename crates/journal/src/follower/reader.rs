//! Reading on, segment by segment, and noticing what is missing.
//!
//! Every header says its sequence and the items of all records before it. So whatever was lost between two
//! records that can be read (a flipped bit, a torn page, a whole file) shows as a difference of those
//! numbers, and is counted exactly without knowing what happened.

use super::{Event, Gap, ReadError, Recipient, Record};
use crate::cursor::SkippedRecords;
use crate::cursor_state::CursorState;
use crate::record::{Header, key};
use crate::record_scanner::RecordScanner;
use crate::segment::Segment;
use crate::segment_index::{Head, SegmentView};
use crate::shared::Shared;
use crate::sync::lock;
use std::io;
use tidegate_arena::Window;

pub(super) struct Reader {
    /// The next record's sequence, and the items of all records before it.
    next: u64,
    items: u64,
    walker: Option<RecordScanner>,
    place: Option<ReadPosition>,
    current: Option<CurrentRecord>,
    /// A record that is looked at a second time, and its segment.
    recalled: Option<(CurrentRecord, Option<RecordScanner>)>,
    /// Where the journal ended when no segment was found to read in. Not where it ends a moment later: what comes in between
    /// is in a segment, and not missing.
    head: Head,
    /// A record that was handed out and then found damaged, to be told.
    damaged: Option<Gap>,
}

/// Where in which segment.
struct ReadPosition {
    segment: Segment,
    offset: u64,
    /// The segment's records are before this sequence.
    bound: u64,
    last: bool,
    head: Head,
}

#[derive(Clone, Copy)]
struct CurrentRecord {
    record: Record,
    /// Where it is and what its header says; nothing where the journal is kept in memory.
    stored: Option<(u64, Header)>,
}

impl Reader {
    pub(super) fn new(next: u64, items: u64) -> Reader {
        Reader {
            next,
            items,
            walker: None,
            place: None,
            head: Head::default(),
            current: None,
            recalled: None,
            damaged: None,
        }
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.next
    }

    pub(super) fn current(&self) -> Option<&Record> {
        self.current.as_ref().map(|current| &current.record)
    }

    /// The next event, or nothing for now.
    pub(super) fn next(&mut self, shared: &Shared, cursor: &CursorState) -> io::Result<Option<Event>> {
        if let Some(gap) = self.damaged.take() {
            return Ok(Some(Event::Damaged(gap)));
        }
        loop {
            match cursor.before_next() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err((passed, low, items)) => {
                    if low > self.next {
                        (self.next, self.items) = (low, items);
                        (self.place, self.current) = (None, None);
                    }
                    let gap = Gap { records: passed.records, items: passed.items, bytes: 0 };
                    return Ok(Some(Event::Dropped(gap)));
                }
            }
            if shared.settings.durability == crate::Durability::Memory {
                return Ok(self.next_held(shared, cursor));
            }
            match self.step(shared, cursor)? {
                Step::Event(event) => return Ok(Some(event)),
                Step::Wait => return Ok(None),
                Step::On => {}
            }
        }
    }

    /// One step: to the next record, over a gap, into the next segment, or nowhere for now.
    fn step(&mut self, shared: &Shared, cursor: &CursorState) -> io::Result<Step> {
        if !self.refresh(shared)? {
            return Ok(self.reach_head(shared, cursor));
        }
        let (Some(place), Some(walker)) = (&mut self.place, &mut self.walker) else { return Ok(Step::Wait) };
        let Some((at, header)) = walker.find(place.offset, place.segment.end, self.next..place.bound) else {
            if place.last {
                place.offset = place.segment.end;
                return Ok(self.reach_head(shared, cursor));
            }
            let after = place.segment.first + 1;
            return self.enter(shared, after).map(|()| Step::On);
        };
        let skipped = at - place.offset;
        let segment = place.segment.first;
        let bytes_before = place.segment.start + at;
        place.offset = at;
        if skipped > 0 || header.sequence > self.next {
            let gap = Gap {
                records: header.sequence - self.next,
                items: header.items_before.saturating_sub(self.items),
                bytes: skipped,
            };
            let to = (header.sequence, header.items_before, bytes_before);
            return Ok(self.over((shared, cursor), segment, gap, to));
        }
        place.offset = at + header.size();
        (self.next, self.items) = (header.sequence + 1, header.items_after());
        let bytes_after = bytes_before + header.size();
        let (items, after) = (u64::from(header.items), (self.items, bytes_after));
        // One whose name cannot be read is damaged, and given up below.
        let recipient = recipient(walker, at, &header, cursor);
        let addressed = recipient == Some(Recipient::This);
        let (done, addressed_after) = cursor.with(|cursor| {
            let at = header.received_at_ns;
            (cursor.hand_out(header.sequence, items, after, at, addressed), cursor.addressed())
        });
        if done {
            return Ok(Step::On);
        }
        let meta = walker.tenant(at, &header).and_then(|tenant| header.meta(tenant));
        let Some((meta, recipient)) = meta.zip(recipient) else {
            if cursor.with(|cursor| header.sequence < cursor.low) {
                // As above: the quota took it in the meantime.
                return Ok(Step::On);
            }
            return Ok(Step::Event(Event::Damaged(self.give_up(shared, cursor, &header))));
        };
        let Header { sequence, items_before, body_len, .. } = header;
        let record =
            Record { sequence, items_before, bytes_after, addressed_after, body_len, recipient, meta };
        self.current = Some(CurrentRecord { record, stored: Some((at, header)) });
        Ok(Step::Event(Event::Record(record)))
    }

    /// There is nothing more to be found on disk: waits, or gives up what should have been there.
    fn reach_head(&mut self, shared: &Shared, cursor: &CursorState) -> Step {
        let head = match &self.place {
            Some(place) => place.head,
            None => self.head,
        };
        if self.next >= head.sequence {
            return Step::Wait;
        }
        let records = head.sequence - self.next;
        let gap = Gap { records, items: head.items.saturating_sub(self.items), bytes: 0 };
        let segment = self.place.as_ref().map_or(u64::MAX, |place| place.segment.first);
        self.over((shared, cursor), segment, gap, (head.sequence, head.items, head.bytes))
    }

    /// Passes over what is missing before the record `next`, and counts it as damage of the segment, unless
    /// the quota has just taken it.
    fn over(
        &mut self,
        (shared, cursor): (&Shared, &CursorState),
        segment: u64,
        gap: Gap,
        (next, items, bytes): (u64, u64, u64),
    ) -> Step {
        self.current = None;
        let mut delivered = SkippedRecords::default();
        if gap.records > 0 {
            let between = (self.next, next);
            let passed = cursor.with(|cursor| {
                cursor.pass(between, gap.items, items, bytes).ok_or((cursor.low, cursor.items))
            });
            match passed {
                Ok(known) => delivered = known,
                Err(low) => {
                    (self.next, self.items) = low;
                    self.place = None;
                    return Step::On;
                }
            }
        }
        lock(&shared.index).damaged(segment, gap.records, gap.bytes);
        (self.next, self.items) = (next, items);
        let records = gap.records.saturating_sub(delivered.records);
        if records == 0 {
            return Step::On;
        }
        let items = gap.items.saturating_sub(delivered.items);
        Step::Event(Event::Damaged(Gap { records, items, ..gap }))
    }

    /// Counts a record that was handed out as damaged.
    fn give_up(&mut self, shared: &Shared, cursor: &CursorState, header: &Header) -> Gap {
        self.current = None;
        let gap = Gap { records: 1, items: u64::from(header.items), bytes: header.size() };
        let place = self.place.as_ref();
        let bytes = place.map_or(0, |place| (place.segment.start + place.offset).saturating_sub(gap.bytes));
        cursor.with(|cursor| cursor.give_up(header.sequence, gap.items, header.items_before, bytes));
        let segment = place.map_or(u64::MAX, |place| place.segment.first);
        lock(&shared.index).damaged(segment, 1, gap.bytes);
        gap
    }

    /// Sees to it that the place is up to date and has something to read. False when there is no segment.
    fn refresh(&mut self, shared: &Shared) -> io::Result<bool> {
        match &mut self.place {
            Some(place) if place.offset < place.segment.end && self.next < place.bound => return Ok(true),
            Some(place) => {
                let first = place.segment.first;
                if let Some(view) = lock(&shared.index).view(first, first)
                    && view.segment.first == first
                {
                    place.update(view);
                    if place.last || (self.next < place.bound && place.offset < place.segment.end) {
                        return Ok(true);
                    }
                }
                self.enter(shared, first + 1)?;
            }
            None => self.enter(shared, 0)?,
        }
        Ok(self.place.is_some())
    }

    /// Opens the segment that holds the next record, or the first behind; none before `at_least`.
    fn enter(&mut self, shared: &Shared, mut at_least: u64) -> io::Result<()> {
        self.place = None;
        loop {
            // Opened under the lock, so that its name is not changed in between.
            let index = lock(&shared.index);
            let Some(view) = index.view(self.next, at_least) else {
                self.head = index.head;
                return Ok(());
            };
            let file = match shared.files.open(&view.segment.file_name(), false) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // Somebody deleted it. What it held shows as a gap before the next record.
                    at_least = view.segment.first + 1;
                    continue;
                }
                other => other?,
            };
            drop(index);
            let key = key(shared.salt, view.segment.first);
            let walker = match self.walker.take() {
                Some(mut walker) => {
                    walker.reopen(file, key);
                    walker
                }
                None => RecordScanner::new(file, Some(key)),
            };
            let walker = self.walker.insert(walker);
            let SegmentView { segment, bound, last, head } = view;
            let mut place = ReadPosition { segment, offset: 0, bound, last, head };
            // Past what is completed already: a walk over headers, from the start of one segment.
            while place.segment.first < self.next
                && let Some((at, header)) = walker.find(place.offset, place.segment.end, 0..self.next)
            {
                place.offset = at + header.size();
                if header.sequence + 1 >= self.next {
                    break;
                }
            }
            self.place = Some(place);
            return Ok(());
        }
    }

    pub(super) fn read_into(
        &mut self,
        shared: &Shared,
        cursor: &CursorState,
        window: &mut Window,
    ) -> Result<(), ReadError> {
        let CurrentRecord { record, stored } = self.current.ok_or(ReadError::NoRecord)?;
        let len = record.body_len as usize;
        window.try_reserve(len)?;
        let room = window.spare_mut().get_mut(..len).unwrap_or_default();
        let whole = match (&stored, &mut self.walker) {
            (Some((at, header)), Some(walker)) => walker.body(*at, header, room).unwrap_or(false),
            _ => held_body(shared, record.sequence, room),
        };
        if whole {
            window.advance(len);
            return Ok(());
        }
        if cursor.with(|cursor| record.sequence < cursor.low) {
            // The quota took it in the meantime, and its file was written over. It was counted there.
            self.current = None;
        } else if let Some((_, header)) = stored {
            self.damaged = Some(self.give_up(shared, cursor, &header));
        }
        Err(ReadError::Damaged)
    }

    /// Looks for a record that was handed out before, where it was then.
    pub(super) fn recall(
        &mut self,
        shared: &Shared,
        cursor: &CursorState,
        sequence: u64,
    ) -> io::Result<Option<Record>> {
        let before = self.recalled.take().and_then(|(_, walker)| walker);
        let Some(begin) = cursor.with(|cursor| cursor.begin_of(sequence)) else { return Ok(None) };
        let index = lock(&shared.index);
        if shared.settings.durability == crate::Durability::Memory {
            let held = index.in_memory.front().and_then(|oldest| {
                let ahead = usize::try_from(sequence.checked_sub(oldest.header.sequence)?).ok()?;
                index.in_memory.get(ahead)
            });
            let current = held.map(|held| {
                let Header { sequence, items_before, body_len, .. } = held.header;
                let bytes_after = held.bytes_before + held.header.size();
                let recipient = Recipient::of(held.entry.checkpoints.recipient(), &cursor.name);
                let meta = held.entry.meta;
                Record { sequence, items_before, bytes_after, addressed_after: 0, body_len, recipient, meta }
            });
            self.recalled = current.map(|record| (CurrentRecord { record, stored: None }, None));
            return Ok(current);
        }
        let Some(view) = index.view(sequence, 0) else { return Ok(None) };
        let file = match shared.files.open(&view.segment.file_name(), false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        drop(index);
        let key = key(shared.salt, view.segment.first);
        let mut walker = match before {
            Some(mut walker) => {
                walker.reopen(file, key);
                walker
            }
            None => RecordScanner::new(file, Some(key)),
        };
        // A gap before it may have left the place of something else.
        let from = begin.saturating_sub(view.segment.start);
        let Some((at, header)) = walker.find(from, view.segment.end, sequence..sequence + 1) else {
            return Ok(None);
        };
        let meta = walker.tenant(at, &header).and_then(|tenant| header.meta(tenant));
        let Some((meta, recipient)) = meta.zip(recipient(&mut walker, at, &header, cursor)) else {
            return Ok(None);
        };
        let Header { sequence, items_before, body_len, .. } = header;
        let bytes_after = view.segment.start + at + header.size();
        let record =
            Record { sequence, items_before, bytes_after, addressed_after: 0, body_len, recipient, meta };
        self.recalled = Some((CurrentRecord { record, stored: Some((at, header)) }, Some(walker)));
        Ok(Some(record))
    }

    pub(super) fn read_recalled(
        &mut self,
        shared: &Shared,
        cursor: &CursorState,
        window: &mut Window,
    ) -> Result<(), ReadError> {
        let (CurrentRecord { record, stored }, walker) = self.recalled.as_mut().ok_or(ReadError::NoRecord)?;
        let len = record.body_len as usize;
        window.try_reserve(len)?;
        let room = window.spare_mut().get_mut(..len).unwrap_or_default();
        let whole = match (stored, walker) {
            (Some((at, header)), Some(walker)) => walker.body(*at, header, room).unwrap_or(false),
            _ => held_body(shared, record.sequence, room),
        };
        if whole {
            window.advance(len);
            return Ok(());
        }
        if cursor.with(|cursor| record.sequence < cursor.low) {
            // The quota took it in the meantime, and it was counted there.
            return Err(ReadError::NoRecord);
        }
        Err(ReadError::Damaged)
    }

    /// The next record of a journal that is kept in memory.
    fn next_held(&mut self, shared: &Shared, cursor: &CursorState) -> Option<Event> {
        loop {
            let index = lock(&shared.index);
            let oldest = index.in_memory.front()?.header.sequence;
            let held = index.in_memory.get(usize::try_from(self.next.checked_sub(oldest)?).ok()?)?;
            let (header, meta) = (held.header, held.entry.meta);
            let recipient = Recipient::of(held.entry.checkpoints.recipient(), &cursor.name);
            let bytes_after = held.bytes_before + header.size();
            drop(index);
            (self.next, self.items) = (header.sequence + 1, header.items_after());
            let items = u64::from(header.items);
            let after = (self.items, bytes_after);
            let addressed = recipient == Recipient::This;
            let (done, addressed_after) = cursor.with(|cursor| {
                let at = header.received_at_ns;
                (cursor.hand_out(header.sequence, items, after, at, addressed), cursor.addressed())
            });
            if !done {
                let Header { sequence, items_before, body_len, .. } = header;
                let record = Record {
                    sequence,
                    items_before,
                    bytes_after,
                    addressed_after,
                    body_len,
                    recipient,
                    meta,
                };
                self.current = Some(CurrentRecord { record, stored: None });
                return Some(Event::Record(record));
            }
        }
    }
}

enum Step {
    Event(Event),
    Wait,
    On,
}

impl ReadPosition {
    fn update(&mut self, view: SegmentView) {
        (self.segment, self.bound, self.last, self.head) = (view.segment, view.bound, view.last, view.head);
    }
}

/// The sinks that the record at `at` is for; `None` where its name cannot be read.
fn recipient(
    walker: &mut RecordScanner,
    at: u64,
    header: &Header,
    cursor: &CursorState,
) -> Option<Recipient> {
    match header.recipient_len {
        0 => Some(Recipient::All),
        _ => walker.recipient(at, header).map(|written| Recipient::of(written, &cursor.name)),
    }
}

/// Copies the body of the record `sequence` from the window that it came in.
fn held_body(shared: &Shared, sequence: u64, room: &mut [u8]) -> bool {
    let index = lock(&shared.index);
    let body = index.in_memory.front().and_then(|oldest| {
        let ahead = usize::try_from(sequence.checked_sub(oldest.header.sequence)?).ok()?;
        index.in_memory.get(ahead).map(|held| held.entry.body())
    });
    let Some(body) = body.filter(|body| body.len() == room.len()) else { return false };
    room.copy_from_slice(body);
    true
}

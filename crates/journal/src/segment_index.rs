//! The index of the segments, and how far each may be read. O(segments) and O(sinks), never more.

use crate::append::InMemoryRecord;
use crate::checkpoints::table::CheckpointTable;
use crate::cursor::Cursor;
use crate::cursor_state::CursorState;
use crate::drain_rate::DrainRate;
use crate::receive_times::ReceiveTimes;
use crate::segment::{Segment, SegmentHead};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

pub(crate) struct SegmentIndex {
    pub(crate) segments: VecDeque<Segment>,
    /// The segment that nothing of was published yet. Readers must not see it: when its first group fails
    /// another one gets its name.
    pub(crate) begun: Option<Segment>,
    /// Unacknowledged records, where the journal is kept in memory.
    pub(crate) in_memory: VecDeque<InMemoryRecord>,
    pub(crate) head: Head,
    /// Is told the items of all records whenever the head moves.
    pub(crate) observer: Option<Box<dyn Fn(u64) + Send + Sync>>,
    pub(crate) cursors: Vec<Arc<CursorState>>,
    /// Damaged segments that every sink is past: names and lengths, oldest first.
    pub(crate) quarantined: VecDeque<(String, u64)>,
    /// Consumed segments whose files are to be written over: names and lengths, at most two.
    pub(crate) spares: VecDeque<(String, u64)>,
    pub(crate) drain: DrainRate,
    /// When records were received.
    pub(crate) times: ReceiveTimes,
    /// The checkpoints of all records before the head.
    pub(crate) checkpoints: CheckpointTable,
    pub(crate) counters: Counters,
}

/// How far the journal may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Head {
    /// The next record's sequence: all before it may be read.
    pub(crate) sequence: u64,
    /// The items of all records before it.
    pub(crate) items: u64,
    /// The bytes of all segments, counted from when the journal was opened.
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) syncs: u64,
    pub(crate) sync_ns: u64,
    pub(crate) last_sync_ns: u64,
    pub(crate) write_errors: u64,
    pub(crate) damaged_segments: u64,
    pub(crate) damaged_records: u64,
    pub(crate) damaged_bytes: u64,
}

/// One segment as a reader sees it at one moment.
pub(crate) struct SegmentView {
    pub(crate) segment: Segment,
    /// Its records are before this sequence.
    pub(crate) bound: u64,
    /// It is the last: more may come.
    pub(crate) last: bool,
    pub(crate) head: Head,
}

impl SegmentIndex {
    /// The segment in which to look for the record `sequence`, at `at_least` or behind. Nothing when there
    /// is no such segment.
    pub(crate) fn view(&self, sequence: u64, at_least: u64) -> Option<SegmentView> {
        let behind = self.segments.partition_point(|segment| segment.first <= sequence);
        let from = self.segments.partition_point(|segment| segment.first < at_least);
        let index = behind.saturating_sub(1).max(from);
        let segment = self.segments.get(index)?.clone();
        let next = self.segments.get(index + 1);
        let bound = next.map_or(self.head.sequence, |next| next.first);
        Some(SegmentView { segment, bound, last: next.is_none(), head: self.head })
    }

    /// Everything on disk that counts against the quota, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let segments: u64 = self.segments.iter().chain(&self.begun).map(|segment| segment.len).sum();
        segments + self.quarantined.iter().chain(&self.spares).map(|(_, len)| len).sum::<u64>()
    }

    /// The size of the segments that every sink is past, in bytes.
    pub(crate) fn consumed_bytes(&self) -> u64 {
        let consumed = self.segments.iter().take(self.consumed());
        consumed.map(|segment| segment.len).sum()
    }

    /// How many of the oldest segments every sink is past: none where there is no sink, and never the one that is written.
    fn consumed(&self) -> usize {
        let slowest = self.cursors.iter().map(|cursor| cursor.with(|cursor| cursor.low)).min();
        slowest.map_or(0, |low| self.segments.iter().skip(1).take_while(|next| next.first <= low).count())
    }

    /// Notes what cannot be read, so that the writer renames the segment.
    pub(crate) fn damaged(&mut self, segment: u64, records: u64, bytes: u64) {
        if let Ok(at) = self.segments.binary_search_by_key(&segment, |segment| segment.first)
            && let Some(segment) = self.segments.get_mut(at)
            && !segment.damaged
        {
            segment.damaged = true;
            self.counters.damaged_segments += 1;
        }
        self.counters.damaged_records += records;
        self.counters.damaged_bytes += bytes;
    }

    /// Lets records up to `head` be read, and the observer know, before anybody else does.
    pub(crate) fn advance(&mut self, head: Head) {
        self.head = head;
        if let Some(observer) = &self.observer {
            observer(head.items);
        }
    }

    /// The last segment, when a group was just written to it: up to `end`, beginning with `first`.
    pub(crate) fn grow(&mut self, end: u64, head: Head, first: SegmentHead) {
        self.segments.extend(self.begun.take());
        if let Some(segment) = self.segments.back_mut() {
            segment.end = end;
            segment.head.get_or_insert(first);
        }
        self.times.note(self.head.sequence, first.received_at_ns);
        self.advance(head);
    }

    /// A cursor at the oldest record that is there, but for what every other sink is past and is kept to be sent again.
    pub(crate) fn oldest(&self) -> Cursor {
        match self.in_memory.front() {
            Some(held) => Cursor::new(held.header.sequence, held.header.items_before, held.bytes_before),
            None => {
                let unread = self.segments.get(self.consumed()).or(self.segments.front());
                cursor_at(unread, self.head)
            }
        }
    }

    /// When the oldest record that is there was received, but for what every sink is past and is `kept` to be sent again.
    pub(crate) fn oldest_at_ns(&self, kept: bool) -> Option<u64> {
        let held = || self.in_memory.front().map(|held| held.header.received_at_ns);
        let first = if kept { self.consumed() } else { 0 };
        self.segments.get(first).map_or_else(held, |segment| segment.head.map(|head| head.received_at_ns))
    }

    /// When the record `sequence` was received, or a little before.
    pub(crate) fn received_at_ns(&self, sequence: u64) -> Option<u64> {
        if let Some(oldest) = self.in_memory.front() {
            let ahead = usize::try_from(sequence.saturating_sub(oldest.header.sequence)).ok()?;
            return self.in_memory.get(ahead).map(|held| held.header.received_at_ns);
        }
        // One that was there when the journal was opened is as old as its segment at the most.
        let at = self.segments.partition_point(|segment| segment.first <= sequence).saturating_sub(1);
        let segment = self.segments.get(at).and_then(|segment| segment.head).map(|head| head.received_at_ns);
        self.times.at(sequence).max(segment)
    }

    /// Whether completing everything before `low` can set something free.
    pub(crate) fn is_consumed(&self, low: u64) -> bool {
        let held = self.in_memory.front().is_some_and(|held| held.header.sequence < low);
        let next = self.segments.get(1).map_or(self.head.sequence, |next| next.first);
        held || (!self.segments.is_empty() && next <= low)
    }

    /// Everyone who waits for more to read.
    pub(crate) fn wakers(&self, into: &mut Vec<Waker>) {
        into.extend(self.cursors.iter().filter_map(|cursor| cursor.waker()));
    }
}

/// A cursor at the oldest record on disk.
pub(crate) fn oldest_cursor(segments: &VecDeque<Segment>, head: Head) -> Cursor {
    cursor_at(segments.front(), head)
}

/// A cursor at the first record of a segment, or at the head where there is none.
fn cursor_at(segment: Option<&Segment>, head: Head) -> Cursor {
    match segment {
        // Without its header, the first record behind it says how many items there were.
        Some(segment) => {
            Cursor::new(segment.first, segment.head.map_or(0, |first| first.items_before), segment.start)
        }
        None => Cursor::new(head.sequence, head.items, head.bytes),
    }
}

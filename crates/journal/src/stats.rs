//! The journal in numbers, for `/status` and the meters.

use crate::follower::CursorPosition;
use crate::shared::Shared;
use crate::sync::lock;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The journal at one moment. Counters count since it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// The segments' size on disk, in bytes, including those kept aside, without those [kept](Stats::kept) to be sent again.
    pub bytes: u64,
    /// The size of segments that every sink is past, and that are there only to be sent again: they give way to whatever is
    /// appended.
    pub kept: u64,
    /// The quota, in bytes.
    pub quota: u64,
    /// How many segments there are.
    pub segments: usize,
    /// How long ago the oldest record was received, where there is one.
    pub oldest_age: Option<Duration>,
    /// The sequence of the next record.
    pub head: u64,
    /// The items of all records since the journal was created.
    pub items: u64,
    /// Appends that wait for the disk.
    pub queued: usize,
    /// Whether appends are refused for the quota.
    pub starved: bool,
    /// How many times data was synced.
    pub syncs: u64,
    /// How long all syncs took together.
    pub sync_time: Duration,
    /// How long the last sync took.
    pub last_sync: Duration,
    /// Writes and syncs that failed.
    pub write_errors: u64,
    /// Segments in which damage was found.
    pub damaged_segments: u64,
    /// Records that could not be read, once for each sink that came across them.
    pub damaged_records: u64,
    /// Bytes that were stepped over, once for each sink.
    pub damaged_bytes: u64,
    /// Damaged segments that every sink is past and that are kept for inspection.
    pub quarantined: usize,
    /// Checkpoints of sources.
    pub checkpoints: usize,
    /// Checkpoints of new keys that were forgotten because there were as many as there may be.
    pub forgotten_checkpoints: u64,
    /// Every sink that has a cursor.
    pub sinks: Vec<SinkStats>,
}

/// One sink's cursor at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkStats {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub position: CursorPosition,
    /// Whether it is running.
    pub followed: bool,
    /// The records between it and the head.
    pub lag_records: u64,
    /// The items between it and the head.
    pub lag_items: u64,
    /// The bytes between it and the head.
    pub lag_bytes: u64,
    /// How long ago the first record that it has not completed was received, where it is behind the head: exact
    /// where the sink has taken that record, else known to an eighth.
    pub lag_age: Option<Duration>,
    /// Cursors that could not be written.
    pub write_errors: u64,
}

impl Stats {
    pub(crate) fn of(shared: &Shared) -> Stats {
        let queued = shared.queue.in_use();
        let now = shared.clock.unix_ns();
        let age = |received_at_ns: u64| Duration::from_nanos(now.saturating_sub(received_at_ns));
        let index = lock(&shared.index);
        let (head, counters) = (index.head, index.counters);
        let keeps = !shared.settings.keep.is_zero();
        let kept = if keeps { index.consumed_bytes() } else { 0 };
        let sinks = index.cursors.iter().map(|cursor| {
            let (position, bytes, taken_at) =
                cursor.with(|cursor| (CursorPosition::of(cursor), cursor.bytes, cursor.received_at_ns()));
            let behind = position.sequence < head.sequence;
            // Each of the two is the time itself, or one before it.
            let received = index.received_at_ns(position.sequence).max(Some(taken_at).filter(|at| *at > 0));
            let received = received.filter(|_| behind);
            SinkStats {
                name: cursor.name.clone(),
                position,
                followed: cursor.is_followed(),
                lag_records: head.sequence.saturating_sub(position.sequence),
                lag_items: head.items.saturating_sub(position.items),
                lag_bytes: head.bytes.saturating_sub(bytes),
                lag_age: received.map(age),
                write_errors: cursor.write_errors(),
            }
        });
        Stats {
            sinks: sinks.collect(),
            bytes: index.bytes().saturating_sub(kept),
            kept,
            quota: shared.settings.quota,
            segments: index.segments.len(),
            oldest_age: index.oldest_at_ns(keeps).map(age),
            head: head.sequence,
            items: head.items,
            queued,
            starved: shared.starved.load(Ordering::Relaxed),
            syncs: counters.syncs,
            sync_time: Duration::from_nanos(counters.sync_ns),
            last_sync: Duration::from_nanos(counters.last_sync_ns),
            write_errors: counters.write_errors,
            damaged_segments: counters.damaged_segments,
            damaged_records: counters.damaged_records,
            damaged_bytes: counters.damaged_bytes,
            quarantined: index.quarantined.len(),
            checkpoints: index.checkpoints.len(),
            forgotten_checkpoints: index.checkpoints.forgotten,
        }
    }
}

//! Opening what is there, in whatever state it is.

mod checkpoints;
mod disk;

use crate::checkpoints::file::TableFiles;
use crate::clock::Clock;
use crate::commit_order::CommitOrder;
use crate::drain_rate::DrainRate;
use crate::queue::Queue;
use crate::receive_clock::ReceiveClock;
use crate::record::random;
use crate::segment_index::SegmentIndex;
use crate::settings::{Durability, OpenError, Settings};
use crate::shared::Shared;
use crate::sync::Mutex;
use crate::writer::OpenSegment;
use disk::DiskContents;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use tidegate_files::folder::Files;

/// The result of opening a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Segments that are there to be read.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The sequence of the next record.
    pub head: u64,
    /// The items of all records since the journal was created.
    pub items: u64,
    /// Whole records found in the last segment.
    pub tail_records: u64,
    /// Bytes cut off behind them: a write that was under way, and was not acknowledged.
    pub torn_bytes: u64,
    /// Records of the last segment that cannot be read although later ones can.
    pub damaged_records: u64,
    /// Segments set aside because nothing in them can be read.
    pub unreadable_segments: u64,
    /// Sinks whose cursor could not be read: they begin again at the oldest record.
    pub lost_cursors: Vec<String>,
    /// Checkpoints of sources that are in force.
    pub checkpoints: usize,
    /// The last segment could not be made durable, so the checkpoints in its records do not hold: sources send again what is
    /// behind the earlier ones.
    pub doubtful_checkpoints: bool,
    /// No saved table of checkpoints could be read: these are the ones that the records say which are still there.
    pub lost_checkpoints: bool,
    /// How long it took.
    pub took: Duration,
}

/// Everything that a journal starts from.
pub(crate) fn recover(
    settings: Settings,
    files: Arc<dyn Files>,
    clock: Arc<dyn Clock>,
) -> Result<(Shared, Option<OpenSegment>, TableFiles, Recovery), OpenError> {
    let begun = clock.monotonic_ns();
    let mut found = match settings.durability {
        Durability::Memory => DiskContents::new(&settings),
        Durability::Fsync | Durability::PageCache => {
            let dir = settings.dir.display().to_string();
            let failed = |(doing, source)| OpenError::Io { dir, doing, source };
            DiskContents::on_disk(&settings, &*files).map_err(failed)?
        }
    };
    found.recovery.took = Duration::from_nanos(clock.monotonic_ns().saturating_sub(begun));
    let last_ns = found.times.last().unwrap_or(0);
    let index = SegmentIndex {
        observer: None,
        segments: found.segments,
        begun: None,
        in_memory: VecDeque::new(),
        head: found.head,
        cursors: found.cursors,
        quarantined: found.quarantined,
        spares: VecDeque::new(),
        drain: DrainRate::default(),
        times: found.times,
        checkpoints: found.checkpoints,
        counters: found.counters,
    };
    let shared = Shared {
        queue: Queue::new(settings.queue),
        settings,
        salt: found.salt.unwrap_or_else(random),
        files,
        clock,
        index: Mutex::new(index),
        order: CommitOrder::default(),
        receive_clock: ReceiveClock::new(found.head.sequence, last_ns),
        held_bytes: AtomicU64::new(0),
        closed: AtomicBool::new(false),
        starved: AtomicBool::new(false),
        retry_after_ms: AtomicU64::new(DrainRate::default().time_for(1).as_millis() as u64),
    };
    Ok((shared, found.tail, found.tables, found.recovery))
}

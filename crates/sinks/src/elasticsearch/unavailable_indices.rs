//! Documents that wait for an index which takes none now, while everything else goes on.
//!
//! Nothing of them is kept in memory: their records stay in the journal, unsettled, and are read again when it is time
//! for another attempt. What is known here is which documents of which record wait for which index, and when each
//! index is tried again: by one request at a time, with a wait of its own that doubles.

use super::item_filter::ItemChoice;
use super::outbound_request::{OutboundRequest, PendingWork};
use super::oversize::OversizeRecord;
use super::record_shares::{IndexWait, RecordShare};
use super::{Batch, BulkProtocol};
use crate::backoff::Backoff;
use crate::batch::{BatchLimits, DropReason};
use crate::delivery::Pipeline;
use crate::health::BlockedDestination;
use crate::journal_consumer::Record;
use crate::losses::Losses;
use crate::pipeline_stage::Staged;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tidegate_journal::MAX_IN_FLIGHT;
use tidegate_ledger::Dropped;
use tokio::time::Instant;

/// The most indexes that are told apart. Documents of others wait together.
const MOST_INDEXES: usize = 16;
/// How many are remembered of all records together, of a record and an index each. Records beyond that wait as a whole.
const MOST_WAITS: usize = MAX_IN_FLIGHT + 128;
/// Those that the pages have by name.
const MOST_SHOWN: usize = 3;
/// The longest name of an index that is kept.
const LONGEST: usize = 255;
/// The longest reason that is shown.
const LONGEST_REASON: usize = 128;
/// The shortest wait before another attempt for want of memory.
const CROWDED: Duration = Duration::from_millis(50);

/// Outcome of a waiting record that was read again.
enum Joining {
    /// It is in the batch.
    Joined,
    /// The batch takes no more.
    Full,
    /// It needs more memory than the sink's own part.
    Oversize,
    /// There is no memory for it now.
    Crowded,
    /// It is settled.
    Gone,
}

/// Which documents wait for which index.
pub(super) struct UnavailableIndices {
    indexes: Vec<Index>,
    /// Records of which nothing else is left to be done.
    waiting: BTreeMap<u64, RecordShare>,
    backoff: (Duration, Duration),
    /// A request for one of the indexes is being made, or under way.
    pub(super) is_tried: bool,
}

struct Index {
    name: Arc<str>,
    records: u64,
    documents: u64,
    since: SystemTime,
    reason: String,
    backoff: Backoff,
    /// When it is tried again.
    next: Instant,
    /// It took the last that was sent: everything that waits may follow.
    is_back: bool,
}

impl UnavailableIndices {
    /// Most bytes remembered.
    pub(super) const BYTES: usize =
        MAX_IN_FLIGHT * 2 * size_of::<RecordShare>() + MOST_WAITS * IndexWait::BYTES;

    pub(super) fn new(backoff: (Duration, Duration)) -> UnavailableIndices {
        UnavailableIndices { indexes: Vec::new(), waiting: BTreeMap::new(), backoff, is_tried: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether this record waits, and for nothing else.
    pub(super) fn has(&self, sequence: u64) -> bool {
        self.waiting.contains_key(&sequence)
    }

    /// The name under which documents of `index` wait, which took none now.
    pub(super) fn refused(&mut self, index: &[u8], reason: &str) -> Arc<str> {
        let name = str::from_utf8(index).ok().filter(|name| name.len() <= LONGEST).unwrap_or_default();
        let known = self.indexes.iter().position(|known| *known.name == *name);
        let at = known.unwrap_or_else(|| {
            // Those beyond have no name, and wait as one.
            let name = if self.indexes.len() < MOST_INDEXES { name } else { "" };
            if let Some(at) = self.indexes.iter().position(|known| *known.name == *name) {
                return at;
            }
            self.indexes.push(Index {
                name: Arc::from(name),
                records: 0,
                documents: 0,
                since: SystemTime::now(),
                reason: String::new(),
                backoff: Backoff::new(self.backoff.0, self.backoff.1),
                next: Instant::now(),
                is_back: false,
            });
            self.indexes.len() - 1
        });
        match self.indexes.get_mut(at) {
            Some(index) => {
                index.is_back = false;
                if !reason.is_empty() && index.reason != reason {
                    reason.clone_into(&mut index.reason);
                }
                Arc::clone(&index.name)
            }
            None => Arc::from(""),
        }
    }

    /// An index has answered, and takes nothing: it is left alone for a while.
    pub(super) fn leave(&mut self, name: &str, now: Instant) {
        if let Some(index) = self.indexes.iter_mut().find(|index| *index.name == *name) {
            index.is_back = false;
            // Several requests that were under way together have one answer.
            if index.next <= now {
                index.next = now + index.backoff.wait(None);
            }
        }
    }

    /// An index takes documents again.
    pub(super) fn back(&mut self, name: &str, now: Instant) {
        if let Some(index) = self.indexes.iter_mut().find(|index| *index.name == *name) {
            index.backoff.reset();
            (index.next, index.is_back) = (now, true);
        }
    }

    /// A record of which nothing else is left to be done.
    pub(super) fn enter(&mut self, mut share: RecordShare) {
        let waits: usize = self.waiting.values().map(|share| share.waits.len()).sum();
        if share.waits.len() > 1 && waits + share.waits.len() > MOST_WAITS {
            share.collapse();
        }
        // The name may have been forgotten since, and others known.
        for wait in &mut share.waits {
            wait.index = self.refused(wait.index.as_bytes(), "");
        }
        self.waiting.insert(share.sequence, share);
        self.count();
    }

    /// A record waits no more.
    pub(super) fn forget(&mut self, sequence: u64) {
        if self.waiting.remove(&sequence).is_some() {
            self.count();
        }
    }

    fn count(&mut self) {
        for index in &mut self.indexes {
            (index.records, index.documents) = (0, 0);
        }
        for wait in self.waiting.values().flat_map(|share| &share.waits) {
            if let Some(index) = self.indexes.iter_mut().find(|index| *index.name == *wait.index) {
                index.records += 1;
                index.documents += wait.documents;
            }
        }
        let now = Instant::now();
        self.indexes.retain(|index| index.records > 0 || (index.next > now && !index.is_back));
    }

    /// Which documents of what is sent next are left out: those of indexes that take none.
    pub(super) fn pick(&self) -> ItemChoice {
        let now = Instant::now();
        let is_out = |index: &&Index| {
            !index.is_back && !index.name.is_empty() && (index.records > 0 || index.next > now)
        };
        let names: Arc<[Arc<str>]> =
            self.indexes.iter().filter(is_out).map(|index| Arc::clone(&index.name)).collect();
        if names.is_empty() { ItemChoice::All } else { ItemChoice::Without(names) }
    }

    /// The index that is to be tried, with the next record that waits for it.
    fn due(&self, now: Instant) -> Option<&Index> {
        let due = self.indexes.iter().filter(|index| index.records > 0 && index.next <= now);
        due.min_by_key(|index| index.next).filter(|_| !self.is_tried)
    }

    /// When the next is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let waiting = self.indexes.iter().filter(|index| index.records > 0 && !self.is_tried);
        waiting.map(|index| index.next).min()
    }

    /// The items of a record that wait for an index.
    pub(super) fn wait_of(&self, sequence: u64, name: &str) -> Option<IndexWait> {
        self.waiting.get(&sequence)?.waits_for(name).cloned()
    }

    /// For the pages: those for which most waits by name, the others as one.
    pub(super) fn held_up(&self) -> Vec<BlockedDestination> {
        let mut held: Vec<&Index> = self.indexes.iter().filter(|index| index.records > 0).collect();
        held.sort_by_key(|index| (index.name.is_empty(), std::cmp::Reverse(index.documents)));
        let (shown, others) = held.split_at(held.len().min(MOST_SHOWN));
        let mut all: Vec<BlockedDestination> =
            shown.iter().map(|index| index.held_up(index.name.to_string())).collect();
        if let Some((first, more)) = others.split_first() {
            let mut rest = first.held_up("other indexes".to_owned());
            for index in more {
                rest.records += index.records;
                rest.items += index.documents;
                rest.since = rest.since.min(index.since);
            }
            all.push(rest);
        }
        all
    }
}

impl Index {
    fn held_up(&self, what: String) -> BlockedDestination {
        let end = self.reason.floor_char_boundary(LONGEST_REASON);
        BlockedDestination {
            what: if what.is_empty() { "other indexes".to_owned() } else { what },
            records: self.records,
            items: self.documents,
            since: self.since,
            reason: self.reason.get(..end).unwrap_or_default().to_owned(),
        }
    }
}

impl BulkProtocol {
    /// Reads again what waits for an index that is to be tried, if there is one.
    pub(super) async fn follow_up(&mut self, pipeline: &mut Pipeline<BulkProtocol>) {
        let now = Instant::now();
        let Some(index) = self.unavailable.due(now) else { return };
        let name = Arc::clone(&index.name);
        let limits = pipeline.batch_limits();
        // One record says whether it is back.
        let most = if index.is_back { limits.records } else { 1 };
        let sequences: Vec<u64> = self
            .unavailable
            .waiting
            .range(..self.reached)
            .filter(|(_, share)| share.waits_for(&name).is_some())
            .map(|(sequence, _)| *sequence)
            .take(most)
            .collect();
        let (mut batch, mut waits) = (None::<Batch>, Vec::new());
        for sequence in sequences {
            let Some(mut record) = self.recalled(pipeline, sequence) else { continue };
            let Some(wait) = self.unavailable.wait_of(sequence, &name) else { continue };
            if batch.as_ref().is_some_and(|batch| batch.key != record.meta.tenant) {
                continue;
            }
            let joining = Box::pin(self.join(pipeline, &mut batch, &mut record, limits)).await;
            // The record may not have been read.
            pipeline.consumer.release();
            match joining {
                Joining::Joined => waits.push(wait),
                Joining::Gone => {}
                Joining::Full | Joining::Oversize | Joining::Crowded if batch.is_some() => break,
                Joining::Crowded if !pipeline.is_idle() => {
                    // There will be some when what is under way is done.
                    self.postpone(&name, CROWDED);
                    return;
                }
                Joining::Full | Joining::Oversize | Joining::Crowded => {
                    let oversize = OversizeRecord { record, follows: Some(name) };
                    self.unavailable.is_tried = pipeline.send_alone(oversize);
                    return;
                }
            }
        }
        match batch {
            Some(batch) => {
                self.unavailable.is_tried = true;
                pipeline.prepare(PendingWork::Follow(Box::new(batch), ItemChoice::Only(waits.into()), name));
            }
            // Waiting records are not handed out again yet, or are gone.
            None => self.postpone(&name, CROWDED),
        }
    }

    /// Passes a record that was recalled now through the sink's pipeline, and puts what comes out into the batch.
    async fn join(
        &mut self,
        pipeline: &mut Pipeline<BulkProtocol>,
        batch: &mut Option<Batch>,
        record: &mut Record,
        limits: BatchLimits,
    ) -> Joining {
        let Pipeline { consumer, room, .. } = &mut *pipeline;
        if consumer.staging_bytes(record) > room.part() {
            return Joining::Oversize;
        }
        match consumer.stage(record, room).await {
            Ok(Staged::Ready) => {}
            Ok(Staged::Empty) => {
                pipeline.settle([record.sequence], Losses::NONE);
                self.unavailable.forget(record.sequence);
                return Joining::Gone;
            }
            Err(DropReason::Damaged) => {
                // The number of items that the pipeline dropped is not known any more.
                if let Some(share) = self.unavailable.waiting.get_mut(&record.sequence) {
                    share.items = record.meta.items.into();
                }
                self.lose(pipeline, record.sequence, Dropped::Damaged);
                return Joining::Gone;
            }
            Err(DropReason::Room(_) | DropReason::TooLong) => return Joining::Crowded,
        }
        if self.needed(record) > room.part() {
            return Joining::Oversize;
        }
        let out_len = super::documents::outgoing_len(&record.meta, &self.settings);
        if let Some(batch) = batch {
            let is_in = batch.add(record, out_len, limits, consumer);
            return if is_in { Joining::Joined } else { Joining::Full };
        }
        match Batch::of(record, record.meta.tenant, 0, out_len, 0, room, consumer).await {
            Ok(made) => {
                *batch = Some(made);
                Joining::Joined
            }
            Err(DropReason::Damaged) => {
                self.lose(pipeline, record.sequence, Dropped::Damaged);
                Joining::Gone
            }
            Err(DropReason::Room(_) | DropReason::TooLong) => Joining::Crowded,
        }
    }

    /// Has a record that waits sent when nothing else is under way. Whether that is to be.
    pub(super) fn recall_oversize(
        &mut self,
        pipeline: &mut Pipeline<BulkProtocol>,
        sequence: u64,
        name: Arc<str>,
    ) -> bool {
        if !pipeline.is_flowing() {
            return false;
        }
        let Some(record) = self.recalled(pipeline, sequence) else { return false };
        pipeline.send_alone(OversizeRecord { record, follows: Some(name) })
    }

    fn postpone(&mut self, name: &str, wait: Duration) {
        if let Some(index) = self.unavailable.indexes.iter_mut().find(|index| *index.name == *name) {
            index.next = Instant::now() + wait;
        }
    }

    /// A record that waits, as it is in the journal. One that is not there any more is settled.
    fn recalled(&mut self, pipeline: &mut Pipeline<BulkProtocol>, sequence: u64) -> Option<Record> {
        match pipeline.consumer.recall(sequence) {
            Ok(Some(record)) => Some(record),
            Ok(None) => {
                // Records dropped by the quota were counted there, and are not counted again.
                self.lose(pipeline, sequence, Dropped::Damaged);
                None
            }
            Err(error) => {
                tracing::warn!(sink = pipeline.consumer.name(), %error, "the journal cannot be read now; trying again");
                None
            }
        }
    }

    /// A record that waits is lost.
    pub(super) fn lose(&mut self, pipeline: &mut Pipeline<BulkProtocol>, sequence: u64, why: Dropped) {
        let (items, passed) =
            self.unavailable.waiting.get(&sequence).map_or((0, 0), |share| (share.items, share.passed));
        let lost = Losses::of(why, items.saturating_sub(passed));
        pipeline.settle([sequence], lost.and(Losses::passed_over(passed)));
        self.unavailable.forget(sequence);
        self.show_held_up(pipeline);
    }

    /// Enters what became of a outbound that was sent for an index.
    pub(super) fn settle_follow(
        &mut self,
        pipeline: &mut Pipeline<BulkProtocol>,
        outbound: OutboundRequest,
        name: &str,
    ) {
        let now = Instant::now();
        self.unavailable.is_tried = false;
        let mut is_back = true;
        for share in outbound.shares {
            let Some(known) = self.unavailable.waiting.remove(&share.sequence) else { continue };
            is_back &= share.waits_for(name).is_none();
            // Of other indexes there may be more that waits.
            let mut merged = known;
            merged.take_wait(name);
            merged.rejected += share.rejected;
            merged.too_large += share.too_large;
            for wait in share.waits {
                merged.take_wait(&wait.index);
                merged.waits.push(wait);
            }
            self.settle_share(pipeline, merged);
        }
        if is_back {
            self.unavailable.back(name, now);
        } else {
            self.unavailable.leave(name, now);
        }
        self.unavailable.count();
        self.show_held_up(pipeline);
    }

    /// Enters what became of a record, unless some of it waits.
    pub(super) fn settle_share(&mut self, pipeline: &mut Pipeline<BulkProtocol>, share: RecordShare) {
        if share.waits.is_empty() {
            pipeline.settle([share.sequence], share.losses());
        } else {
            self.unavailable.enter(share);
        }
    }

    /// Shows on the pages what waits.
    pub(super) fn show_held_up(&self, pipeline: &Pipeline<BulkProtocol>) {
        pipeline.report.health().held_up(self.unavailable.held_up());
    }
}

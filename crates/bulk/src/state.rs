//! The state shared by callers and the driver, under one lock: the slots, the batches, and the waiters of each.
//!
//! `caller_side` submits and withdraws, `driver_side` sends and answers. The states and the argument are in
//! `design/bulk.md`.

mod caller_side;
mod driver_side;

pub(crate) use caller_side::hash_of;
#[cfg(feature = "driver")]
pub(crate) use driver_side::BatchRequest;
#[cfg(any(feature = "driver", loom))]
pub(crate) use driver_side::{BatchOutcome, ItemReply};

use crate::batch::{Batch, Id, Stage};
use crate::document::Documents;
use crate::lane::{LANES, Lane};
use crate::meters::LaneCounters;
use crate::outcome::{Failure, FailureKind, Outcome};
use crate::settings::Settings;
use crate::slots::{Phase, SlotKey, Slots};
use crate::throughput::ThroughputEstimate;
use std::collections::VecDeque;
use std::task::Waker;
use std::time::Instant;
use tidegate_arena::{Arena, Window};

pub(crate) struct State {
    settings: Settings,
    arena: Arena,
    slots: Slots,
    documents: Documents,
    /// At most `Lane::COUNT` times `settings.batches`.
    batches: Vec<Batch>,
    lanes: [LaneState; Lane::COUNT],
    /// The driver's, when it sleeps.
    driver: Option<Waker>,
    /// There is something for the driver to do.
    has_driver_work: bool,
    stopping: bool,
}

/// One lane: its batches and counters.
pub(crate) struct LaneState {
    /// The batch that takes items whose documents are nowhere else.
    open: Option<Id>,
    /// The batches that can be sent. At most `settings.batches`.
    ready: VecDeque<Id>,
    in_flight: usize,
    batches: usize,
    /// How long the body of the last request was: what the next one is given room for at once, so that it gets a
    /// window whose pages are there already.
    last_body_len: usize,
    /// Bytes charged for bodies that wait or are in flight.
    pub(crate) charged: u64,
    /// Items that wait, are in flight, or have an answer that was not taken.
    pub(crate) depth: u32,
    throughput: ThroughputEstimate,
    pub(crate) counts: LaneCounters,
}

/// Values released by a caller, to be dropped without the lock.
#[derive(Default)]
pub(crate) struct ReleasedValues {
    pub(crate) phase: Option<Phase>,
    pub(crate) waker: Option<Waker>,
    pub(crate) window: Option<Window>,
    /// Whether the item is in flight, and goes on without its caller.
    pub(crate) in_flight: bool,
}

impl State {
    pub(crate) fn new(settings: Settings, arena: Arena) -> State {
        let lanes = LANES.map(|_| LaneState {
            open: None,
            ready: VecDeque::with_capacity(settings.batches),
            in_flight: 0,
            batches: 0,
            last_body_len: 0,
            charged: 0,
            depth: 0,
            throughput: ThroughputEstimate::default(),
            counts: LaneCounters::default(),
        });
        State {
            slots: Slots::new(settings.slots),
            documents: Documents::new(settings.slots),
            batches: Vec::with_capacity(settings.batches * Lane::COUNT),
            lanes,
            driver: None,
            has_driver_work: false,
            stopping: false,
            settings,
            arena,
        }
    }

    /// The hasher of documents.
    pub(crate) fn seed(&self) -> u64 {
        self.documents.seed()
    }

    /// The driver's waker, when there is something for it to do. To be woken without the lock.
    pub(crate) fn take_driver_waker(&mut self) -> Option<Waker> {
        if !self.has_driver_work {
            return None;
        }
        let waker = self.driver.take();
        self.has_driver_work = waker.is_none();
        waker
    }

    pub(crate) fn lane(&self, lane: Lane) -> &LaneState {
        // Each lane's index is below `Lane::COUNT`.
        &self.lanes[lane.index()]
    }

    fn lane_mut(&mut self, lane: Lane) -> &mut LaneState {
        &mut self.lanes[lane.index()]
    }

    fn batch(&self, id: Id) -> Option<&Batch> {
        self.batches.get(usize::from(id))
    }

    fn batch_mut(&mut self, id: Id) -> Option<&mut Batch> {
        self.batches.get_mut(usize::from(id))
    }

    /// The age of the oldest pending item of `lane`: when its batch was opened.
    pub(crate) fn oldest(&self, lane: Lane) -> Option<Instant> {
        let used = |batch: &&Batch| batch.lane == lane && batch.stage != Stage::Free && batch.items.len > 0;
        self.batches.iter().filter(used).map(|batch| batch.opened).min()
    }

    /// How many items have slots.
    pub(crate) fn used(&self) -> u32 {
        self.slots.used()
    }

    /// Takes the answer of `key` if there is one, and has `waker` woken when there will be.
    pub(crate) fn take(&mut self, key: SlotKey, waker: &Waker) -> Option<Outcome> {
        let Some(slot) = self.slots.get_mut(key) else {
            // Not reached: a slot is given back only with its ticket, or after it.
            return Some(Outcome::Failed(Failure::new(FailureKind::Unanswered, 0)));
        };
        if !matches!(slot.phase, Phase::Answered(_)) {
            if !slot.waker.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
                slot.waker = Some(waker.clone());
            }
            return None;
        }
        match self.release(key.slot).0 {
            Phase::Answered(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Gives a slot back.
    fn release(&mut self, slot: u32) -> (Phase, Option<Waker>) {
        let lane = self.slots.at(slot).and_then(|slot| self.batch_lane(slot.batch));
        if let Some(lane) = lane {
            self.lane_mut(lane).depth -= 1;
        }
        self.slots.free(slot)
    }

    /// The lane of a batch, from its index in the table. A slot outlives its batch when its answer is taken
    /// late, so only the index tells: indices are assigned lane by lane.
    fn batch_lane(&self, id: Id) -> Option<Lane> {
        LANES.get(usize::from(id) % Lane::COUNT).copied()
    }

    /// Ends a batch without items: its window, to be dropped without the lock. What waited for it may go.
    fn complete(&mut self, id: Id) -> Option<Window> {
        let batch = self.batch_mut(id)?;
        let (lane, charged, stage) = (batch.lane, batch.charged, batch.stage);
        (batch.stage, batch.charged) = (Stage::Free, 0);
        let window = batch.window.take();
        let followers = std::mem::take(&mut batch.followers);
        let state = self.lane_mut(lane);
        state.batches -= 1;
        state.charged -= charged;
        if state.open == Some(id) {
            state.open = None;
        }
        if stage == Stage::Ready {
            state.ready.retain(|ready| *ready != id);
        }
        for follower in followers.into_iter().flatten() {
            self.unblock(follower);
        }
        self.has_driver_work = true;
        window
    }

    /// The predecessor of `id` is done.
    fn unblock(&mut self, id: Id) {
        let Some(batch) = self.batch_mut(id) else { return };
        batch.predecessor = None;
        let (lane, stage) = (batch.lane, batch.stage);
        if batch.items.len == 0 {
            // It was emptied while it waited, and has no window.
            self.complete(id);
        } else if stage == Stage::Gathering && self.lane(lane).open.is_none() {
            // It has waited long enough, and may gather on until its lane may start another request.
            batch_due_now(self.batch_mut(id));
            self.lane_mut(lane).open = Some(id);
        } else {
            self.seal(id);
        }
    }

    /// `id` takes no more items.
    fn seal(&mut self, id: Id) {
        let Some(batch) = self.batch_mut(id) else { return };
        let (lane, held) = (batch.lane, batch.predecessor.is_some());
        batch.stage = if held { Stage::Blocked } else { Stage::Ready };
        let state = self.lane_mut(lane);
        if state.open == Some(id) {
            state.open = None;
        }
        if !held {
            state.ready.push_back(id);
        }
        self.has_driver_work = true;
    }

    /// Answers the item in `slot` of batch `id`, and takes it out of the list.
    fn answer(&mut self, id: Id, slot: u32, outcome: Outcome, wakers: &mut Vec<Waker>) {
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return };
        batch.items.remove(&mut self.slots, slot);
        let lane = batch.lane;
        let Some(item) = self.slots.at_mut(slot) else { return };
        batch.dead_bytes += item.len as usize;
        let document = item.document;
        let counts = &mut self.lanes[lane.index()].counts;
        if let Outcome::Failed(_) = outcome {
            counts.failed += 1;
        } else {
            counts.answered += 1;
            self.documents.carried_out(document);
        }
        self.documents.remove(document);
        if matches!(item.phase, Phase::Abandoned) {
            self.release(slot);
            return;
        }
        item.phase = Phase::Answered(outcome);
        wakers.extend(item.waker.take());
    }

    /// Answers the next `count` items from `slot` on with the same failure.
    fn fail(&mut self, id: Id, mut slot: u32, count: u32, failure: &Failure, wakers: &mut Vec<Waker>) {
        for _ in 0..count {
            let Some(item) = self.slots.at(slot) else { return };
            let next = item.next;
            self.answer(id, slot, Outcome::Failed(failure.clone()), wakers);
            slot = next;
        }
    }
}

fn batch_due_now(batch: Option<&mut Batch>) {
    if let Some(batch) = batch {
        batch.due = batch.opened;
    }
}

//! The state shared by callers and the driver, under one lock: the slots, the batches, and the waiters of each.
//!
//! `submit` is a caller's side, `flight` the driver's. The states and the argument are in `design/bulk.md`.

mod flight;
mod submit;

#[cfg(feature = "driver")]
pub(crate) use flight::Takeoff;
pub(crate) use flight::{Reply, Verdict};
pub(crate) use submit::hash_of;

use crate::batch::{Batch, Id, Stage};
use crate::document::Documents;
use crate::drain::Drain;
use crate::lane::{LANES, Lane};
use crate::meters::Counts;
use crate::outcome::{Failure, Kind, Outcome};
use crate::settings::Settings;
use crate::slots::{Key, Phase, Slots};
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
    lanes: [Queues; Lane::COUNT],
    /// The driver's, when it sleeps.
    driver: Option<Waker>,
    /// There is something for the driver to do.
    nudged: bool,
    stopping: bool,
}

/// One lane: its batches, and what was counted.
pub(crate) struct Queues {
    /// The batch that takes items whose documents are nowhere else.
    open: Option<Id>,
    /// The batches that wait for their turn. At most `settings.batches`.
    ready: VecDeque<Id>,
    flying: usize,
    batches: usize,
    /// How long the body of the last request was: what the next one is given room for at once, so that it gets a
    /// window whose pages are there already.
    usual: usize,
    /// Bytes charged for bodies, waiting and under way.
    pub(crate) charged: u64,
    /// Items waiting, under way, or answered and not taken.
    pub(crate) depth: u32,
    drain: Drain,
    pub(crate) counts: Counts,
}

/// Values abandoned by callers, to be dropped outside of the lock.
#[derive(Default)]
pub(crate) struct Left {
    pub(crate) phase: Option<Phase>,
    pub(crate) waker: Option<Waker>,
    pub(crate) window: Option<Window>,
    /// Whether it was in flight, and goes on without its caller.
    pub(crate) in_flight: bool,
}

impl State {
    pub(crate) fn new(settings: Settings, arena: Arena) -> State {
        let lanes = LANES.map(|_| Queues {
            open: None,
            ready: VecDeque::with_capacity(settings.batches),
            flying: 0,
            batches: 0,
            usual: 0,
            charged: 0,
            depth: 0,
            drain: Drain::default(),
            counts: Counts::default(),
        });
        State {
            slots: Slots::new(settings.callers),
            documents: Documents::new(settings.callers),
            batches: Vec::with_capacity(settings.batches * Lane::COUNT),
            lanes,
            driver: None,
            nudged: false,
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
    pub(crate) fn nudge(&mut self) -> Option<Waker> {
        if !self.nudged {
            return None;
        }
        let waker = self.driver.take();
        self.nudged = waker.is_none();
        waker
    }

    pub(crate) fn lane(&self, lane: Lane) -> &Queues {
        // Every lane has an index below their number.
        &self.lanes[lane.index()]
    }

    fn lane_mut(&mut self, lane: Lane) -> &mut Queues {
        &mut self.lanes[lane.index()]
    }

    fn batch(&self, id: Id) -> Option<&Batch> {
        self.batches.get(usize::from(id))
    }

    fn batch_mut(&mut self, id: Id) -> Option<&mut Batch> {
        self.batches.get_mut(usize::from(id))
    }

    /// Since when the oldest item of `lane` has been waiting or under way.
    pub(crate) fn oldest(&self, lane: Lane) -> Option<Instant> {
        let used = |batch: &&Batch| batch.lane == lane && batch.stage != Stage::Free && batch.items.len > 0;
        self.batches.iter().filter(used).map(|batch| batch.opened).min()
    }

    /// How many items have slots.
    pub(crate) fn used(&self) -> u32 {
        self.slots.used()
    }

    /// Takes the answer of `key` if there is one, and has `waker` woken when there will be.
    pub(crate) fn take(&mut self, key: Key, waker: &Waker) -> Option<Outcome> {
        let Some(slot) = self.slots.of(key) else {
            // Not reached: a slot is given back only with its ticket, or after it.
            return Some(Outcome::Failed(Failure::new(Kind::Unanswered, 0)));
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

    /// The lane of a batch's place in the table. A slot outlives its batch when its answer is taken late, so it is
    /// the place that tells: places are dealt out lane by lane.
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
        let queues = self.lane_mut(lane);
        queues.batches -= 1;
        queues.charged -= charged;
        if queues.open == Some(id) {
            queues.open = None;
        }
        if stage == Stage::Ready {
            queues.ready.retain(|ready| *ready != id);
        }
        for follower in followers.into_iter().flatten() {
            self.let_go(follower);
        }
        self.nudged = true;
        window
    }

    /// The predecessor of `id` is done.
    fn let_go(&mut self, id: Id) {
        let Some(batch) = self.batch_mut(id) else { return };
        batch.after = None;
        let (lane, stage) = (batch.lane, batch.stage);
        if batch.items.len == 0 {
            // It was emptied while it waited, and has no window.
            self.complete(id);
        } else if stage == Stage::Gathering && self.lane(lane).open.is_none() {
            // It has waited long enough, and may gather on until there is a flight for it.
            batch_due_now(self.batch_mut(id));
            self.lane_mut(lane).open = Some(id);
        } else {
            self.seal(id);
        }
    }

    /// `id` takes no more items.
    fn seal(&mut self, id: Id) {
        let Some(batch) = self.batch_mut(id) else { return };
        let (lane, held) = (batch.lane, batch.after.is_some());
        batch.stage = if held { Stage::Held } else { Stage::Ready };
        let queues = self.lane_mut(lane);
        if queues.open == Some(id) {
            queues.open = None;
        }
        if !held {
            queues.ready.push_back(id);
        }
        self.nudged = true;
    }

    /// Answers the item in `slot` of batch `id`, and takes it out of the list.
    fn answer(&mut self, id: Id, slot: u32, outcome: Outcome, wakers: &mut Vec<Waker>) {
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return };
        batch.items.remove(&mut self.slots, slot);
        let lane = batch.lane;
        let Some(item) = self.slots.at_mut(slot) else { return };
        batch.dead += item.len as usize;
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

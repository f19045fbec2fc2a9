//! The driver's side: what is sent next, what came back, and what is over.

use super::State;
use crate::backoff;
use crate::batch::{Id, Progress, Stage};
use crate::lane::{LANES, Lane};
use crate::outcome::{Failure, Kind, Outcome};
use crate::slots::Phase;
use std::task::Waker;
use std::time::{Duration, Instant};
use tidegate_arena::Window;

/// A request to be sent.
pub(crate) struct Takeoff {
    pub(crate) id: Id,
    pub(crate) lane: Lane,
    pub(crate) window: Window,
    /// How long the body is, and how many items it has.
    pub(crate) end: usize,
    pub(crate) items: u32,
    /// Some caller wants to know the id that the server chose.
    pub(crate) unnamed: bool,
}

/// The answer to one item.
#[derive(Debug)]
pub(crate) enum Reply {
    Final(Outcome),
    /// There was no room for it: it was not carried out, and may be sent again.
    Rejected(u16),
}

/// How a request ended, as far as its items were not answered one by one.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The rest of what was sent failed in this way; nothing of it, usually.
    Over(Failure),
    /// Nothing was carried out, and all of it may be sent again.
    Again { status: u16, asked: Option<Duration> },
    /// Nothing of the rest was carried out, and fewer at a time may succeed. The failure is for one alone.
    Smaller(Failure),
}

impl State {
    /// The next request that may be sent.
    pub(crate) fn next_flight(&mut self, now: Instant) -> Option<Takeoff> {
        for lane in LANES {
            let (most, stopping) = (self.settings.flights, self.stopping);
            let queues = self.lane(lane);
            if queues.flying >= most {
                continue;
            }
            if let (true, Some(open)) = (queues.ready.is_empty(), queues.open) {
                let due = |open: &crate::batch::Batch| open.items.len > 0 && (stopping || open.due <= now);
                if self.batch(open).is_some_and(due) {
                    self.seal(open);
                }
            }
            if let Some(id) = self.lane_mut(lane).ready.pop_front()
                && let Some(takeoff) = self.take_off(id, now)
            {
                return Some(takeoff);
            }
        }
        None
    }

    fn take_off(&mut self, id: Id, now: Instant) -> Option<Takeoff> {
        let batch = self.batches.get_mut(usize::from(id))?;
        batch.compact(&mut self.slots);
        let (items, end) = batch.close(&self.slots);
        let window = batch.window.take()?;
        batch.stage = Stage::Flying;
        batch.flight = Progress { end, sent: items, cursor: batch.items.head, ..Progress::none(now) };
        let (lane, unnamed) = (batch.lane, batch.unnamed);
        let queues = self.lane_mut(lane);
        (queues.flying, queues.usual) = (queues.flying + 1, end);
        Some(Takeoff { id, lane, window, end, items, unnamed })
    }

    /// Gives the next items of a request under way their answers, in order. More answers than items are ignored.
    pub(crate) fn resolve(&mut self, id: Id, replies: &mut Vec<Reply>, wakers: &mut Vec<Waker>) {
        for reply in replies.drain(..) {
            let Some(batch) = self.batches.get_mut(usize::from(id)) else { return };
            let flight = &mut batch.flight;
            if flight.answered >= flight.sent {
                return;
            }
            let slot = flight.cursor;
            let Some(item) = self.slots.at(slot) else { return };
            flight.cursor = item.next;
            flight.answered += 1;
            match reply {
                Reply::Rejected(status) => {
                    flight.rejected += 1;
                    batch.status = status;
                    self.documents.rejected(item.document);
                }
                Reply::Final(mut outcome) => {
                    if let (Outcome::Written(written), false) = (&mut outcome, item.unnamed) {
                        written.id = None;
                    }
                    self.answer(id, slot, outcome, wakers);
                }
            }
        }
    }

    /// How many items of a batch are not over.
    pub(crate) fn left(&self, id: Id) -> u32 {
        self.batch(id).map_or(0, |batch| batch.items.len)
    }

    /// A request came to its end. Its window is given back, unless the transport still holds it.
    pub(crate) fn land(
        &mut self,
        id: Id,
        window: Option<Window>,
        verdict: Verdict,
        now: Instant,
        wakers: &mut Vec<Waker>,
    ) -> Option<Window> {
        let settings = &self.settings;
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return window };
        batch.window = window;
        batch.reopen();
        let (lane, flight) = (batch.lane, batch.flight);
        let unanswered = flight.sent - flight.answered;
        let mut wait = None;
        let mut failed = None;
        if flight.rejected > 0 {
            batch.rejections += 1;
            wait = Some(backoff::wait(settings.backoff, batch.rejections, None));
        }
        match verdict {
            Verdict::Over(failure) => {
                batch.most = batch.most.saturating_mul(2);
                failed = Some(failure);
            }
            Verdict::Smaller(failure) if unanswered <= 1 => failed = Some(failure),
            Verdict::Smaller(_) if flight.answered > 0 => {}
            Verdict::Smaller(_) => batch.most = flight.sent / 2,
            Verdict::Again { status, asked } => {
                batch.rejections += 1;
                batch.status = status;
                wait = Some(backoff::wait(settings.backoff, batch.rejections, asked));
            }
        }
        let queues = &mut self.lanes[lane.index()];
        queues.flying -= 1;
        if flight.answered > 0 {
            queues.drain.done(flight.end, flight.since, now);
        }
        // Until now it counted as under way, so nobody took anything back.
        batch.stage = Stage::Resting;
        if let Some(failure) = failed {
            self.fail(id, flight.cursor, unanswered, &failure, wakers);
        }
        self.sweep(id, flight.rejected > 0, wakers);
        self.send_again(id, wait, now, wakers)
    }

    /// Lets go of what nobody waits for any more, and of what must not be sent again.
    fn sweep(&mut self, id: Id, rejected: bool, wakers: &mut Vec<Waker>) {
        let status = self.batch(id).map_or(0, |batch| batch.status);
        let mut next = self.batch(id).map_or(crate::slots::NONE, |batch| batch.items.head);
        while let Some(item) = self.slots.at(next) {
            let (slot, document, abandoned) = (next, item.document, matches!(item.phase, Phase::Abandoned));
            next = item.next;
            if rejected && self.documents.is_overtaken(document) {
                let failure = Failure::new(Kind::Rejected, status);
                let failure = failure.because("a later write to the document was carried out meanwhile");
                self.answer(id, slot, Outcome::Failed(failure), wakers);
            } else if abandoned {
                self.drop_item(id, slot);
            }
        }
        if rejected {
            let mut next = self.batch(id).map_or(crate::slots::NONE, |batch| batch.items.head);
            while let Some(item) = self.slots.at(next) {
                next = item.next;
                self.documents.settle(item.document);
            }
        }
    }

    /// Takes out an item that was not carried out and that nobody waits for.
    fn drop_item(&mut self, id: Id, slot: u32) {
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return };
        batch.items.remove(&mut self.slots, slot);
        if let Some(item) = self.slots.at(slot) {
            batch.dead += item.len as usize;
            self.documents.remove(item.document);
        }
        self.release(slot);
    }

    /// The rest of an ended request waits `wait`, or takes its turn.
    fn send_again(
        &mut self,
        id: Id,
        wait: Option<Duration>,
        now: Instant,
        wakers: &mut Vec<Waker>,
    ) -> Option<Window> {
        self.nudged = true;
        let batch = self.batch_mut(id)?;
        let (left, status) = (batch.items.len, batch.status);
        if left == 0 {
            return self.complete(id);
        }
        let again = now + wait.unwrap_or_default();
        let lost = batch.window.is_none();
        if lost || again >= batch.deadline {
            let kind = if lost { Kind::NoRoom } else { in_vain(status) };
            let head = batch.items.head;
            self.fail(id, head, left, &Failure::new(kind, status), wakers);
            return self.complete(id);
        }
        batch.due = again;
        let lane = batch.lane;
        if wait.is_none() {
            batch.stage = Stage::Ready;
            self.lane_mut(lane).ready.push_front(id);
        } else {
            self.lane_mut(lane).counts.retried += u64::from(left);
        }
        None
    }

    /// Does what is due, and says when the next thing will be. `driver` is woken when something comes up before.
    pub(crate) fn tick(
        &mut self,
        driver: &Waker,
        now: Instant,
        wakers: &mut Vec<Waker>,
        windows: &mut Vec<Window>,
    ) -> Option<Instant> {
        self.nudged = false;
        if !self.driver.as_ref().is_some_and(|kept| kept.will_wake(driver)) {
            self.driver = Some(driver.clone());
        }
        let mut next: Option<Instant> = None;
        for at in 0..self.batches.len() {
            let id = Id::try_from(at).unwrap_or(Id::MAX);
            let Some(batch) = self.batches.get(at) else { break };
            let (lane, stage, empty, due) = (batch.lane, batch.stage, batch.items.len == 0, batch.due);
            if matches!(stage, Stage::Free | Stage::Flying) || (empty && batch.after.is_some()) {
                continue;
            }
            if empty && due <= now {
                windows.extend(self.complete(id));
                continue;
            }
            if !empty && batch.deadline <= now {
                windows.extend(self.expire(id, wakers));
                continue;
            }
            let mut wake = batch.deadline;
            match stage {
                Stage::Resting if due <= now => {
                    if let Some(batch) = self.batch_mut(id) {
                        batch.stage = Stage::Ready;
                    }
                    self.lane_mut(lane).ready.push_front(id);
                }
                Stage::Resting => wake = wake.min(due),
                // While all flights are taken, it is the end of one that matters.
                Stage::Gathering if batch.after.is_none() && due > now => wake = wake.min(due),
                _ => {}
            }
            next = Some(next.map_or(wake, |next| next.min(wake)));
        }
        next
    }

    /// The items of batch `id` could not be sent in time.
    fn expire(&mut self, id: Id, wakers: &mut Vec<Waker>) -> Option<Window> {
        let batch = self.batch(id)?;
        let (items, failure) = (batch.items, Failure::new(in_vain(batch.status), batch.status));
        self.fail(id, items.head, items.len, &failure, wakers);
        let stage = self.batch(id)?.stage;
        if stage == Stage::Gathering && self.batch(id)?.after.is_none() {
            return self.complete(id);
        }
        self.emptied(id)
    }

    /// Takes no more items, and sends what there is without waiting for company.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        self.nudged = true;
    }

    /// Whether nothing waits and nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.batches.iter().all(|batch| batch.stage == Stage::Free || batch.items.len == 0)
    }

    /// Answers everybody: there is no driver any more.
    pub(crate) fn end(&mut self, wakers: &mut Vec<Waker>, windows: &mut Vec<Window>) {
        self.stop();
        for at in 0..self.batches.len() {
            let id = Id::try_from(at).unwrap_or(Id::MAX);
            let Some(batch) = self.batches.get_mut(at) else { break };
            if batch.stage == Stage::Free {
                continue;
            }
            let flying = batch.stage == Stage::Flying;
            let kind = if flying { Kind::Unanswered } else { Kind::Stopped };
            let (items, lane) = (batch.items, batch.lane);
            // Its waiters are answered in their turn, so nothing is released.
            batch.followers = Default::default();
            self.fail(id, items.head, items.len, &Failure::new(kind, 0), wakers);
            if flying {
                self.lane_mut(lane).flying -= 1;
            }
            windows.extend(self.complete(id));
        }
        self.driver = None;
    }
}

/// The outcome of an item that was not carried out before the deadline.
fn in_vain(status: u16) -> Kind {
    // Without a status no server was there to reject it.
    if status == 0 { Kind::Timeout } else { Kind::Rejected }
}

//! The driver's side: chooses what to send next, applies replies, and finishes requests.

use super::State;
use crate::backoff;
use crate::batch::{Id, Progress, Stage};
use crate::lane::{LANES, Lane};
use crate::outcome::{Failure, FailureKind, Outcome};
use crate::slots::Phase;
use std::task::Waker;
use std::time::{Duration, Instant};
use tidegate_arena::Window;

/// A request to be sent.
pub(crate) struct BatchRequest {
    pub(crate) id: Id,
    pub(crate) lane: Lane,
    pub(crate) window: Window,
    /// The length of the body, and its number of items.
    pub(crate) end: usize,
    pub(crate) items: u32,
    /// A caller wants to know the id that the server assigns.
    pub(crate) has_auto_ids: bool,
}

/// The answer to one item.
#[derive(Debug)]
pub(crate) enum ItemReply {
    Final(Outcome),
    /// The server was overloaded: the item was not carried out, and may be sent again.
    Rejected(u16),
}

/// How a request ended for the items without a reply of their own.
#[derive(Debug)]
pub(crate) enum BatchOutcome {
    /// The remaining items failed in this way; usually there are none.
    Failed(Failure),
    /// Nothing was carried out, and everything may be sent again.
    Retry { status: u16, retry_after: Option<Duration> },
    /// None of the remaining items was carried out, and fewer at a time may succeed. The failure applies to a
    /// single one.
    Split(Failure),
}

impl State {
    /// The next request that may be sent.
    pub(crate) fn next_request(&mut self, now: Instant) -> Option<BatchRequest> {
        for lane in LANES {
            let (most, stopping) = (self.settings.max_in_flight, self.stopping);
            let state = self.lane(lane);
            if state.in_flight >= most {
                continue;
            }
            if let (true, Some(open)) = (state.ready.is_empty(), state.open) {
                let due = |open: &crate::batch::Batch| open.items.len > 0 && (stopping || open.due <= now);
                if self.batch(open).is_some_and(due) {
                    self.seal(open);
                }
            }
            if let Some(id) = self.lane_mut(lane).ready.pop_front()
                && let Some(request) = self.prepare(id, now)
            {
                return Some(request);
            }
        }
        None
    }

    fn prepare(&mut self, id: Id, now: Instant) -> Option<BatchRequest> {
        let batch = self.batches.get_mut(usize::from(id))?;
        batch.compact(&mut self.slots);
        let (items, end) = batch.close(&self.slots);
        let window = batch.window.take()?;
        batch.stage = Stage::InFlight;
        batch.progress = Progress { end, sent: items, cursor: batch.items.head, ..Progress::none(now) };
        let (lane, has_auto_ids) = (batch.lane, batch.has_auto_ids);
        let state = self.lane_mut(lane);
        (state.in_flight, state.last_body_len) = (state.in_flight + 1, end);
        Some(BatchRequest { id, lane, window, end, items, has_auto_ids })
    }

    /// Gives the next items of a request in flight their answers, in order. Surplus answers are ignored.
    pub(crate) fn apply_replies(&mut self, id: Id, replies: &mut Vec<ItemReply>, wakers: &mut Vec<Waker>) {
        for reply in replies.drain(..) {
            let Some(batch) = self.batches.get_mut(usize::from(id)) else { return };
            let progress = &mut batch.progress;
            if progress.answered >= progress.sent {
                return;
            }
            let slot = progress.cursor;
            let Some(item) = self.slots.at(slot) else { return };
            progress.cursor = item.next;
            progress.answered += 1;
            match reply {
                ItemReply::Rejected(status) => {
                    progress.rejected += 1;
                    batch.status = status;
                    self.documents.rejected(item.document);
                }
                ItemReply::Final(mut outcome) => {
                    if let (Outcome::Written(written), false) = (&mut outcome, item.has_auto_id) {
                        written.id = None;
                    }
                    self.answer(id, slot, outcome, wakers);
                }
            }
        }
    }

    /// How many items of a batch are not over.
    pub(crate) fn unfinished(&self, id: Id) -> u32 {
        self.batch(id).map_or(0, |batch| batch.items.len)
    }

    /// Finishes a request. Its window is returned to the batch, unless the transport still holds it.
    pub(crate) fn finish_request(
        &mut self,
        id: Id,
        window: Option<Window>,
        outcome: BatchOutcome,
        now: Instant,
        wakers: &mut Vec<Waker>,
    ) -> Option<Window> {
        let settings = &self.settings;
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return window };
        batch.window = window;
        batch.reopen();
        let (lane, progress) = (batch.lane, batch.progress);
        let unanswered = progress.sent - progress.answered;
        let mut wait = None;
        let mut failed = None;
        if progress.rejected > 0 {
            batch.rejections += 1;
            wait = Some(backoff::wait(settings.backoff, batch.rejections, None));
        }
        match outcome {
            BatchOutcome::Failed(failure) => {
                batch.max_items = batch.max_items.saturating_mul(2);
                failed = Some(failure);
            }
            BatchOutcome::Split(failure) if unanswered <= 1 => failed = Some(failure),
            BatchOutcome::Split(_) if progress.answered > 0 => {}
            BatchOutcome::Split(_) => batch.max_items = progress.sent / 2,
            BatchOutcome::Retry { status, retry_after } => {
                batch.rejections += 1;
                batch.status = status;
                wait = Some(backoff::wait(settings.backoff, batch.rejections, retry_after));
            }
        }
        let state = &mut self.lanes[lane.index()];
        state.in_flight -= 1;
        if progress.answered > 0 {
            state.throughput.record(progress.end, progress.since, now);
        }
        // Until now it counted as in flight, so no item was withdrawn.
        batch.stage = Stage::BackingOff;
        if let Some(failure) = failed {
            self.fail(id, progress.cursor, unanswered, &failure, wakers);
        }
        self.remove_abandoned(id, progress.rejected > 0, wakers);
        self.send_again(id, wait, now, wakers)
    }

    /// Removes items without a caller, and items that must not be sent again.
    fn remove_abandoned(&mut self, id: Id, rejected: bool, wakers: &mut Vec<Waker>) {
        let status = self.batch(id).map_or(0, |batch| batch.status);
        let mut next = self.batch(id).map_or(crate::slots::NONE, |batch| batch.items.head);
        while let Some(item) = self.slots.at(next) {
            let (slot, document, abandoned) = (next, item.document, matches!(item.phase, Phase::Abandoned));
            next = item.next;
            if rejected && self.documents.is_overtaken(document) {
                let failure = Failure::new(FailureKind::Rejected, status);
                let failure = failure.with_reason("a later write to the document was carried out meanwhile");
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

    /// Removes an item that was not carried out and has no caller.
    fn drop_item(&mut self, id: Id, slot: u32) {
        let Some(batch) = self.batches.get_mut(usize::from(id)) else { return };
        batch.items.remove(&mut self.slots, slot);
        if let Some(item) = self.slots.at(slot) {
            batch.dead_bytes += item.len as usize;
            self.documents.remove(item.document);
        }
        self.release(slot);
    }

    /// Schedules the remaining items of a finished request: after `wait`, or at once.
    fn send_again(
        &mut self,
        id: Id,
        wait: Option<Duration>,
        now: Instant,
        wakers: &mut Vec<Waker>,
    ) -> Option<Window> {
        self.has_driver_work = true;
        let retry_for = self.settings.retry_for;
        let batch = self.batch_mut(id)?;
        let (left, status) = (batch.items.len, batch.status);
        if left == 0 {
            return self.complete(id);
        }
        if wait.is_some() {
            batch.deadline = batch.deadline.min(batch.opened + retry_for);
        }
        let again = now + wait.unwrap_or_default();
        let lost = batch.window.is_none();
        if lost || again >= batch.deadline {
            let kind = if lost { FailureKind::NoRoom } else { expiry_kind(status) };
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

    /// Runs what is due, and returns the time of the next timer. `driver` is woken for anything earlier.
    pub(crate) fn run_timers(
        &mut self,
        driver: &Waker,
        now: Instant,
        wakers: &mut Vec<Waker>,
        windows: &mut Vec<Window>,
    ) -> Option<Instant> {
        self.has_driver_work = false;
        if !self.driver.as_ref().is_some_and(|kept| kept.will_wake(driver)) {
            self.driver = Some(driver.clone());
        }
        let mut next: Option<Instant> = None;
        for at in 0..self.batches.len() {
            let id = Id::try_from(at).unwrap_or(Id::MAX);
            let Some(batch) = self.batches.get(at) else { break };
            let (lane, stage, empty, due) = (batch.lane, batch.stage, batch.items.len == 0, batch.due);
            if matches!(stage, Stage::Free | Stage::InFlight) || (empty && batch.predecessor.is_some()) {
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
                Stage::BackingOff if due <= now => {
                    if let Some(batch) = self.batch_mut(id) {
                        batch.stage = Stage::Ready;
                    }
                    self.lane_mut(lane).ready.push_front(id);
                }
                Stage::BackingOff => wake = wake.min(due),
                // While the lane can start no request, the end of one matters.
                Stage::Gathering if batch.predecessor.is_none() && due > now => wake = wake.min(due),
                _ => {}
            }
            next = Some(next.map_or(wake, |next| next.min(wake)));
        }
        next
    }

    /// The items of batch `id` could not be sent in time.
    fn expire(&mut self, id: Id, wakers: &mut Vec<Waker>) -> Option<Window> {
        let batch = self.batch(id)?;
        let (items, failure) = (batch.items, Failure::new(expiry_kind(batch.status), batch.status));
        self.fail(id, items.head, items.len, &failure, wakers);
        let stage = self.batch(id)?.stage;
        if stage == Stage::Gathering && self.batch(id)?.predecessor.is_none() {
            return self.complete(id);
        }
        self.release_emptied(id)
    }

    /// Accepts no more items, and sends the pending ones without delay.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        self.has_driver_work = true;
    }

    /// Whether no item waits or is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.batches.iter().all(|batch| batch.stage == Stage::Free || batch.items.len == 0)
    }

    /// Answers every caller: the driver ends.
    pub(crate) fn answer_all(&mut self, wakers: &mut Vec<Waker>, windows: &mut Vec<Window>) {
        self.stop();
        for at in 0..self.batches.len() {
            let id = Id::try_from(at).unwrap_or(Id::MAX);
            let Some(batch) = self.batches.get_mut(at) else { break };
            if batch.stage == Stage::Free {
                continue;
            }
            let in_flight = batch.stage == Stage::InFlight;
            let kind = if in_flight { FailureKind::Unanswered } else { FailureKind::Stopped };
            let (items, lane) = (batch.items, batch.lane);
            // Its waiters are answered in their turn, so nothing is released.
            batch.followers = Default::default();
            self.fail(id, items.head, items.len, &Failure::new(kind, 0), wakers);
            if in_flight {
                self.lane_mut(lane).in_flight -= 1;
            }
            windows.extend(self.complete(id));
        }
        self.driver = None;
    }
}

/// The outcome of an item that was not carried out before the deadline.
fn expiry_kind(status: u16) -> FailureKind {
    // Without a status no server was there to reject it.
    if status == 0 { FailureKind::Timeout } else { FailureKind::Rejected }
}

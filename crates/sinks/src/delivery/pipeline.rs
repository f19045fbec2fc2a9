//! The state of a delivery between the journal and the books. Protocols read it, the engine changes it.

use super::state::{DrainAction, MemoryState, ReadMode, RequestSize, SideLane, Suspects};
use super::{
    AnsweredRequest, DeliveryReport, MAX_OPEN_BATCHES, Preparation, Prepared, RequestLane, SinkProtocol,
};
use crate::batch::{self, Batch, joined_most};
use crate::egress_budget::{BorrowTurn, EgressBudget};
use crate::endpoints::{AttemptResult, Endpoints, Reservation};
use crate::journal_consumer::JournalConsumer;
use crate::losses::Losses;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tidegate_journal::MAX_IN_FLIGHT;
use tidegate_ledger::Dropped;
use tokio::time::Instant;

/// How much a delivery holds, and how long it waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PipelineLimits {
    /// The longest request before compression, in bytes.
    pub(crate) max_request_bytes: usize,
    /// The most requests in flight.
    pub(crate) max_in_flight: usize,
    /// How long a batch waits for more records.
    pub(crate) linger: Duration,
    /// How long an answer may take.
    pub(crate) timeout: Duration,
}

/// The state of a delivery.
pub(crate) struct Pipeline<P: SinkProtocol> {
    pub(crate) consumer: JournalConsumer,
    pub(crate) room: EgressBudget,
    pub(crate) endpoints: Endpoints<P::Peer>,
    pub(crate) report: DeliveryReport,
    /// Nothing while a preparation uses them.
    pub(crate) tools: Option<Box<P::Tools>>,
    pub(super) limits: PipelineLimits,
    /// Batches that are being filled, at most [`MAX_OPEN_BATCHES`].
    pub(super) open: Vec<Batch<P::Key>>,
    /// The work to prepare: batches, at most one more than [`MAX_OPEN_BATCHES`], and the rests of requests, at most
    /// as many as may be in flight.
    pub(super) work: VecDeque<Preparation<P>>,
    pub(super) preparing: Option<BoxFuture<'static, Prepared<P>>>,
    /// Requests to be sent: those that failed, at most as many as may be in flight, and what became of batches that were
    /// closed.
    pub(super) ready: VecDeque<P::Request>,
    pub(super) side: SideLane<P::Request>,
    pub(super) flight: FuturesUnordered<BoxFuture<'static, AnsweredRequest<P>>>,
    pub(super) reading: ReadMode,
    pub(super) drain: DrainAction<P::Oversize>,
    pub(super) memory: MemoryState,
    pub(super) suspects: Suspects,
    /// While a record is sent on its own.
    pub(super) turn: BorrowTurn,
    /// Whether something of the request in flight may have to be prepared again.
    pub(super) has_more: bool,
    pub(super) size: RequestSize,
    /// How long the last batch was, in bytes.
    pub(super) usual: usize,
}

impl<P: SinkProtocol> Pipeline<P> {
    /// Whether nothing is being filled, prepared or sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.work.is_empty() && self.is_quiet()
    }

    /// Whether no memory is given back by itself.
    pub(crate) fn is_quiet(&self) -> bool {
        self.preparing.is_none()
            && self.ready.is_empty()
            && !matches!(self.side, SideLane::Ready(_))
            && self.flight.is_empty()
    }

    /// Whether reading goes on, and nothing waits until everything in flight is done.
    pub(crate) fn is_flowing(&self) -> bool {
        self.drain.is_none()
    }

    /// Requests in flight on the main lane.
    pub(super) fn in_flight(&self) -> usize {
        self.flight.len().saturating_sub(usize::from(matches!(self.side, SideLane::InFlight)))
    }

    /// Sends a request behind those that are ready.
    pub(crate) fn send_next(&mut self, request: P::Request) {
        match P::stand(&request).lane {
            RequestLane::Main => self.ready.push_back(request),
            RequestLane::Side => self.side = SideLane::Ready(request),
        }
    }

    /// Sends a request again: before the others, unless it may be at fault itself.
    pub(super) fn send_again(&mut self, request: P::Request) {
        let stand = P::stand(&request);
        match stand.lane {
            RequestLane::Side => self.side = SideLane::Ready(request),
            RequestLane::Main if stand.is_suspect => self.ready.push_back(request),
            RequestLane::Main => self.ready.push_front(request),
        }
    }

    /// Has more of a request prepared before anything else.
    pub(crate) fn prepare_next(&mut self, more: P::More) {
        self.work.push_front(Preparation::More(more));
    }

    /// Has something prepared after everything else.
    pub(crate) fn prepare(&mut self, more: P::More) {
        self.work.push_back(Preparation::More(more));
    }

    /// Has a record sent when nothing else is in flight. False when something else waits for that already.
    pub(crate) fn send_alone(&mut self, oversize: P::Oversize) -> bool {
        let is_taken = self.drain.alone(oversize);
        if is_taken {
            self.close_all();
        }
        is_taken
    }

    /// Has everything unsettled read again once nothing is in flight, and lets go of what is no request yet.
    pub(crate) fn read_again(&mut self) {
        self.drain.rewind();
        self.open.clear();
        self.work.retain(|work| matches!(work, Preparation::More(_)) && !P::ORDERED);
        if P::ORDERED {
            // It is behind what is read again.
            self.ready.clear();
        }
    }

    /// The records up to `last` are sent one by one from now on, to find the one at fault.
    pub(crate) fn suspect(&mut self, last: u64) {
        self.suspects.up_to(last);
        self.read_again();
    }

    /// Sends this record alone, in pieces if needed, once nothing else is in flight.
    pub(crate) fn suspect_size(&mut self, sequence: u64) {
        self.suspects.borrows(sequence);
        self.read_again();
    }

    /// Something that was held was given back without an answer.
    pub(crate) fn released(&mut self) {
        self.memory = MemoryState::Available;
    }

    /// The most bytes of a request before compression: as configured, or as the peer is known to take it.
    pub(crate) fn most(&self) -> usize {
        self.size.most()
    }

    /// The peer found a request of `bytes` bytes too large.
    pub(crate) fn found_too_large(&mut self, bytes: usize) {
        self.size.too_large(bytes);
    }

    /// How large a batch may become now.
    pub(crate) fn batch_limits(&self) -> batch::BatchLimits {
        let part = self.room.part();
        // All that are in flight, and those that are being filled, are in the window of the cursor.
        let filled = if P::ORDERED { 2 } else { MAX_OPEN_BATCHES };
        let records = MAX_IN_FLIGHT / (self.limits.max_in_flight + filled).max(1);
        batch::BatchLimits {
            out: self.most().min(P::longest_batch(part)),
            kept: joined_most(part),
            records: records.max(1),
            items: u64::MAX,
        }
    }

    /// Enters that these records were delivered but for `losses`.
    pub(crate) fn settle(&mut self, sequences: impl IntoIterator<Item = u64>, losses: Losses) {
        self.consumer.settle_each(sequences, losses);
    }

    /// Enters that a record is lost.
    pub(crate) fn lose(&mut self, sequence: u64, why: Dropped, items: u64) {
        self.settle([sequence], Losses::of(why, items));
    }

    /// An endpoint takes nothing now: it is left alone, and `items` items are sent again.
    pub(crate) fn endpoint_failed(
        &mut self,
        reservation: Reservation,
        after: Option<Duration>,
        items: u64,
        error: &str,
    ) {
        let now = Instant::now();
        let uri = self.endpoints.uri(&reservation);
        let newly = self.endpoints.give_back(reservation, AttemptResult::Failed(after), now);
        let retry_at = self.endpoints.all_left_until().map(|at| at.saturating_duration_since(now));
        let retry_at = retry_at.and_then(|wait| SystemTime::now().checked_add(wait));
        self.report.failed(items, error, &uri, newly, retry_at);
    }

    /// Waits until no more than `own` bytes are held: connections may still hold what was sent last.
    pub(crate) async fn let_go_to(&mut self, own: usize) {
        self.endpoints.let_go_to(&self.room, own, self.limits.timeout).await;
    }

    /// Lets others borrow before a record on its own is answered, where what is left of it is within the part.
    pub(crate) fn return_turn(&mut self) {
        if !self.room.is_over() {
            self.turn = BorrowTurn::none();
        }
    }

    /// Sends a request once, with nothing else in flight; returns it when no endpoint accepts one now.
    pub(crate) async fn attempt(
        &mut self,
        mut request: P::Request,
    ) -> Result<AnsweredRequest<P>, P::Request> {
        let now = Instant::now();
        let stand = P::stand(&request);
        if stand.not_before.is_some_and(|at| at > now) {
            return Err(request);
        }
        let Some((reservation, peer)) = self.endpoints.reserve(stand.bytes, now) else { return Err(request) };
        let under_way = self.report.health().under_way(P::requests(&request));
        let answer = P::send(&peer, &mut request).await;
        Ok(AnsweredRequest { request, reservation, answer, _under_way: under_way })
    }

    /// Puts a request in flight.
    pub(super) fn launch(&mut self, mut request: P::Request, reservation: Reservation, peer: Arc<P::Peer>) {
        let under_way = self.report.health().under_way(P::requests(&request));
        self.has_more = P::has_more(&request);
        self.flight.push(Box::pin(async move {
            let answer = P::send(&peer, &mut request).await;
            AnsweredRequest { request, reservation, answer, _under_way: under_way }
        }));
    }
}

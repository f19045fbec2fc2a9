//! The engine: reads, prepares, sends, and enters what became of it, until the order to stop.

use super::state::{DrainAction, MemoryState, ReadMode, RequestSize, SideLane, Suspects};
use super::{
    AnsweredRequest, DeliveryReport, MAX_OPEN_BATCHES, NextStep, Pipeline, PipelineLimits, Preparation,
    Prepared, SHUTDOWN_TIMEOUT, SinkProtocol, UnsentWork,
};
use crate::batch::DropReason;
use crate::egress_budget::{BorrowTurn, EgressBudget};
use crate::endpoints::Endpoints;
use crate::journal_consumer::{JournalConsumer, Record};
use crate::stop::StopSignal;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::VecDeque;
use tidegate_ledger::Dropped;
use tokio::time::Instant;

/// A sink's delivery, ready to run.
pub(crate) struct Delivery<P: SinkProtocol> {
    pub(super) protocol: P,
    pub(super) pipeline: Pipeline<P>,
    stop: StopSignal,
}

/// The events that the engine waits for.
enum EngineEvent<P: SinkProtocol> {
    Answered(AnsweredRequest<P>),
    Prepared(Prepared<P>),
    Record(Option<Record>),
    Time,
}

impl<P: SinkProtocol> Delivery<P> {
    /// The memory of a request in flight besides its payload, in bytes.
    pub(crate) const IN_FLIGHT_BYTES: usize = size_of::<AnsweredRequest<P>>();

    /// A delivery of the records that `consumer` reads.
    pub(crate) fn new(
        protocol: P,
        mut consumer: JournalConsumer,
        (room, endpoints): (EgressBudget, Endpoints<P::Peer>),
        report: DeliveryReport,
        tools: P::Tools,
        limits: PipelineLimits,
        stop: StopSignal,
    ) -> Delivery<P> {
        consumer.any_order();
        let pipeline = Pipeline {
            consumer,
            room,
            endpoints,
            report,
            tools: Some(Box::new(tools)),
            limits,
            open: Vec::with_capacity(MAX_OPEN_BATCHES),
            work: VecDeque::new(),
            preparing: None,
            ready: VecDeque::new(),
            side: SideLane::Free,
            flight: FuturesUnordered::new(),
            reading: ReadMode::Next,
            drain: DrainAction::None,
            memory: MemoryState::Available,
            suspects: Suspects::default(),
            turn: BorrowTurn::none(),
            has_more: false,
            size: RequestSize::new(limits.max_request_bytes),
            usual: 0,
        };
        Delivery { protocol, pipeline, stop }
    }

    /// Sends until the order to stop comes, or the journal is closed and everything was sent.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        loop {
            // A record that is given up halfway has changed nothing: it is unsettled, and its counts are not entered.
            if stop.or(self.protocol.tend(&mut self.pipeline)).await.is_none() {
                break;
            }
            if P::ORDERED && self.pipeline.has_its_turn() {
                // Connections may still hold what was sent last, and what comes may need all of the memory.
                let own = self.pipeline.held();
                if stop.or(Box::pin(self.pipeline.let_go_to(own))).await.is_none() {
                    break;
                }
            }
            self.advance();
            if let Some(record) = self.pipeline.resumed() {
                match stop.or(Box::pin(self.take(record))).await {
                    Some(()) => continue,
                    None => break,
                }
            }
            if self.pipeline.is_idle() {
                if let Some(oversize) = self.pipeline.drain.take_alone() {
                    let mut sending = Box::pin(self.send_alone(oversize));
                    if stop.or(&mut sending).await.is_some() {
                        continue;
                    }
                    // Its request may be answered soon; if not, it is sent again after a restart.
                    drop(tokio::time::timeout(SHUTDOWN_TIMEOUT, sending).await);
                    break;
                }
                if matches!(self.pipeline.reading, ReadMode::Ended) && self.protocol.is_finished() {
                    break;
                }
            }
            match stop.or(Box::pin(self.event())).await {
                Some(EngineEvent::Answered(answered)) => self.land(answered, true),
                Some(EngineEvent::Prepared(prepared)) => self.prepared(prepared),
                Some(EngineEvent::Record(Some(record))) => {
                    if stop.or(Box::pin(self.take(record))).await.is_none() {
                        break;
                    }
                }
                Some(EngineEvent::Record(None)) => {
                    self.pipeline.reading = ReadMode::Ended;
                    self.pipeline.close_all();
                }
                Some(EngineEvent::Time) => self.pipeline.close_old(),
                None => break,
            }
        }
        self.land_rest().await;
        self.pipeline.endpoints.close().await;
    }

    /// Does what can be done without waiting.
    fn advance(&mut self) {
        let Delivery { protocol, pipeline, .. } = self;
        if pipeline.is_idle()
            && let Some(instead_of) = pipeline.drain.take_rewind()
        {
            pipeline.reading = ReadMode::Next;
            protocol.rewound(instead_of);
            pipeline.consumer.rewind();
        }
        while pipeline.memory == MemoryState::Available || pipeline.is_quiet() {
            let work = match pipeline.work.pop_front() {
                Some(Preparation::Batch(batch)) => match protocol.unchanged(batch) {
                    Ok(request) => {
                        pipeline.send_next(request);
                        continue;
                    }
                    Err(batch) => Preparation::Batch(batch),
                },
                Some(more) => more,
                None => break,
            };
            let may = !P::ORDERED || (pipeline.is_quiet() && pipeline.endpoints.is_open(Instant::now()));
            let Some(tools) = pipeline.tools.take_if(|_| may) else {
                pipeline.work.push_front(work);
                break;
            };
            pipeline.preparing = Some(protocol.prepare(pipeline, work, tools));
        }
        pipeline.launch_ready();
    }

    async fn event(&mut self) -> EngineEvent<P> {
        let wake = self.pipeline.wake_at(self.protocol.due());
        let takes = self.pipeline.takes();
        let Pipeline { consumer, flight, preparing, .. } = &mut self.pipeline;
        let time = async {
            match wake {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let prepared = async {
            match preparing {
                Some(preparing) => preparing.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(answered) = flight.next() => EngineEvent::Answered(answered),
            prepared = prepared => EngineEvent::Prepared(prepared),
            () = time => EngineEvent::Time,
            record = consumer.next(), if takes => EngineEvent::Record(record),
        }
    }

    /// Some work has become a request, or has not.
    fn prepared(&mut self, (outcome, tools): Prepared<P>) {
        let Delivery { protocol, pipeline, .. } = self;
        pipeline.preparing = None;
        pipeline.tools = Some(tools);
        let UnsentWork { work, why } = match outcome {
            Ok(request) => return protocol.prepared(pipeline, request),
            Err(unfit) => unfit,
        };
        if matches!(why, DropReason::Room(_)) && !pipeline.is_quiet() {
            pipeline.memory = MemoryState::Exhausted;
            pipeline.work.push_front(work);
            return;
        }
        let batch = match work {
            Preparation::Batch(batch) => batch,
            Preparation::More(more) => return protocol.unprepared(pipeline, more, why),
        };
        pipeline.released();
        match (why, batch.sequences.as_slice()) {
            (DropReason::Room(_) | DropReason::TooLong, [only]) => {
                pipeline.suspects.borrows(*only);
                pipeline.read_again();
            }
            (DropReason::Damaged, [only]) => pipeline.lose(*only, Dropped::Damaged, batch.items),
            _ => pipeline.suspect(batch.last()),
        }
    }

    /// A request has an answer. One that is worth another attempt is held for it only where `patient` says so.
    fn land(&mut self, answered: AnsweredRequest<P>, patient: bool) {
        let Delivery { protocol, pipeline, .. } = self;
        let AnsweredRequest { request, reservation, answer, .. } = answered;
        pipeline.released();
        if P::stand(&request).lane == super::RequestLane::Side {
            pipeline.side = SideLane::Free;
        }
        match protocol.answered(pipeline, request, reservation, answer) {
            NextStep::Settled => {}
            NextStep::Again(request) if patient => pipeline.send_again(request),
            NextStep::Prepare(more) if patient => pipeline.prepare_next(more),
            NextStep::Again(_) | NextStep::Prepare(_) | NextStep::ReadAgain => pipeline.read_again(),
        }
    }

    /// After the order to stop: requests that are answered soon need not be sent again.
    async fn land_rest(&mut self) {
        let deadline = Instant::now() + SHUTDOWN_TIMEOUT;
        while let Ok(Some(answered)) = tokio::time::timeout_at(deadline, self.pipeline.flight.next()).await {
            self.land(answered, false);
        }
        self.pipeline.flight.clear();
    }
}

impl<P: SinkProtocol> Pipeline<P> {
    /// The record that waited for memory, when there may be some now.
    fn resumed(&mut self) -> Option<Record> {
        let ReadMode::Waiting { record, held } = self.reading else { return None };
        let has_come = self.memory == MemoryState::Available && !self.room.holds_more_than(held);
        let may = has_come || self.is_idle();
        (may && self.drain.is_none() && (!P::ORDERED || self.reads_on())).then(|| {
            self.reading = ReadMode::Next;
            record
        })
    }

    /// Whether a record is read. One request in stock is enough: more would only hold memory.
    fn takes(&self) -> bool {
        matches!(self.reading, ReadMode::Next) && self.drain.is_none() && self.reads_on()
    }

    /// Whether there is use for another record beside what was read.
    fn reads_on(&self) -> bool {
        let is_followed =
            P::ORDERED && (self.preparing.is_some() || (self.has_more && !self.flight.is_empty()));
        !is_followed
            && self.work.is_empty()
            // A record that may be the cause does not hold up others.
            && self.ready.len() < self.limits.max_in_flight
            && self.ready.iter().all(|request| P::stand(request).is_suspect)
    }

    /// Whether the first of the work is prepared now, where the order is kept: everything before it is settled, and an
    /// endpoint takes it. So nothing is held for it over a wait.
    fn has_its_turn(&self) -> bool {
        !self.work.is_empty() && self.is_quiet() && self.endpoints.is_open(Instant::now())
    }

    /// The memory of what was read and is no request yet, in bytes.
    fn held(&self) -> usize {
        let open: usize = self.open.iter().map(|batch| batch.window.bytes()).sum();
        let work = self.work.iter().map(|work| match work {
            Preparation::Batch(batch) => batch.window.bytes(),
            Preparation::More(more) => P::held(more),
        });
        open + work.sum::<usize>()
    }

    /// Sends what the endpoints take now.
    fn launch_ready(&mut self) {
        let now = Instant::now();
        let is_due = |request: &P::Request| P::stand(request).not_before.is_none_or(|at| at <= now);
        while self.in_flight() < self.limits.max_in_flight
            && let Some(at) = self.ready.iter().position(is_due)
            && let Some(bytes) = self.ready.get(at).map(|request| P::stand(request).bytes)
            && let Some((reservation, peer)) = self.endpoints.reserve(bytes, now)
            && let Some(request) = self.ready.remove(at)
        {
            self.launch(request, reservation, peer);
        }
        if let SideLane::Ready(request) = &self.side
            && is_due(request)
            && let Some((reservation, peer)) = self.endpoints.reserve(P::stand(request).bytes, now)
            && let SideLane::Ready(request) = std::mem::replace(&mut self.side, SideLane::InFlight)
        {
            self.launch(request, reservation, peer);
        }
    }

    /// When there is something to be done although nothing happens.
    fn wake_at(&self, due: Option<Instant>) -> Option<Instant> {
        let now = Instant::now();
        let full = self.open.iter().map(|batch| batch.opened + self.limits.linger).min();
        let side = match &self.side {
            SideLane::Ready(request) => Some(request),
            SideLane::Free | SideLane::InFlight => None,
        };
        // A request that waits longer than the endpoint's backoff tries no endpoint: it has its own time.
        let is_due = |request: &P::Request| P::stand(request).not_before.is_none_or(|at| at <= now);
        let main = self.in_flight() < self.limits.max_in_flight && self.ready.iter().any(is_due);
        let waits = P::ORDERED && !self.work.is_empty() && self.is_quiet();
        let trial =
            if main || waits || side.is_some_and(is_due) { self.endpoints.next_trial() } else { None };
        let requests = self.ready.iter().chain(side);
        let delayed =
            requests.filter_map(|request| P::stand(request).not_before).filter(|at| *at > now).min();
        let due = due.filter(|_| self.drain.is_none());
        full.into_iter().chain(trial).chain(delayed).chain(due).min()
    }
}

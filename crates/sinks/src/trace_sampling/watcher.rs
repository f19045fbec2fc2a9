//! The watcher: reads the journal ahead of its sink, and takes spans into the sampler.

use super::cursor::{self, Kept};
use super::{SharedSampler, TraceSampling};
use crate::batch::DropReason;
use crate::decoding::state_bytes;
use crate::egress_budget::{BorrowTurn, BudgetError, Charged, EgressBudget};
use crate::journal_consumer::PASSING;
use crate::pipeline_stage::{DecodedBody, PassInput, PipelineStage, decoded, run_passes};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tidegate_arena::Window;
use tidegate_journal::{Committer, Event, Follower, Journal, ReadError, Recipient, Record};
use tidegate_pipeline::{Format, Limits, Pipeline, Workspace};
use tidegate_stage::{PipelineMeters, format_of};

/// How long to wait for records that were begun to be written before it is looked again.
const WRITING: Duration = Duration::from_millis(10);

/// The follower of a watcher, which its sink ends.
#[derive(Clone)]
pub(super) struct JournalReader(Arc<Mutex<Option<Follower>>>);

/// Takes spans into the sampler, as far as the sink wants.
pub(super) struct Watcher {
    sink: Committer,
    journal: Journal,
    reader: JournalReader,
    shared: SharedSampler,
    watch: Arc<Pipeline>,
    meters: PipelineMeters,
    workspace: Workspace,
    room: EgressBudget,
    version: u32,
    /// The longest wait of a trace.
    wait: Duration,
    kept: Kept,
    /// The record that was taken in last.
    last: Option<Record>,
    /// For each checkpoint of the sampler the record before it, oldest first.
    checkpoints: VecDeque<(u64, Record)>,
}

/// The sink is gone, and the follower with it.
struct Ended;

impl JournalReader {
    pub(super) fn new(follower: Follower) -> JournalReader {
        JournalReader(Arc::new(Mutex::new(Some(follower))))
    }

    /// Leaves the journal.
    pub(super) fn end(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Follower>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Follower) -> T) -> Result<T, Ended> {
        self.lock().as_mut().map(ask).ok_or(Ended)
    }

    /// The next event; nothing when the journal was closed.
    async fn next(&self) -> Result<io::Result<Option<Event>>, Ended> {
        std::future::poll_fn(|context| match self.with(|follower| follower.poll_next(context)) {
            Ok(poll) => poll.map(Ok),
            Err(ended) => std::task::Poll::Ready(Err(ended)),
        })
        .await
    }
}

impl Watcher {
    pub(super) fn new(
        sampling: &TraceSampling,
        journal: Journal,
        reader: JournalReader,
        sink: Committer,
        kept: Kept,
    ) -> Watcher {
        let TraceSampling { watch, meters, settings, version, room, shared, .. } = sampling;
        Watcher {
            sink,
            journal,
            reader,
            shared: shared.clone(),
            workspace: watch.workspace(),
            watch: Arc::clone(watch),
            meters: meters.clone(),
            room: room.clone(),
            version: *version,
            wait: Duration::from_millis(settings.wait_ms),
            kept,
            last: None,
            checkpoints: VecDeque::new(),
        }
    }

    /// Runs until the sink is gone.
    pub(super) async fn run(mut self) {
        while self.step().await.is_ok() {}
    }

    async fn step(&mut self) -> Result<(), Ended> {
        let moved = self.pass()?;
        // Records without traces do not wait for the watcher, which goes after them: its cursor would keep them.
        let is_behind =
            self.reader.with(|follower| follower.next_sequence())? < self.sink.position().sequence;
        if !is_behind && self.shared.is_satisfied() {
            self.shared.0.decided.notify_waiters();
            if !moved {
                self.shared.0.moved.notified().await;
            }
            return Ok(());
        }
        if !self.shared.with(|sampler| sampler.has_room()) {
            // Decisions are remembered for what the sink has not passed. If it waits for an undecided trace it does not go on by itself.
            let is_taken_in = self.is_wanted_taken_in();
            let is_decided = is_taken_in && self.shared.with(|sampler| sampler.decide_early());
            if !is_decided {
                self.shared.0.moved.notified().await;
            }
            return Ok(());
        }
        // What is there is read before the time is looked at.
        let due = self.shared.with(|sampler| sampler.due_ms());
        tokio::select! {
            biased;
            event = self.reader.next() => match event? {
                Ok(Some(Event::Record(record))) => self.take_in(record).await?,
                // They are gone for the sink as well.
                Ok(Some(Event::Dropped(_) | Event::Damaged(_))) => {}
                // Everything is read, and nothing comes.
                Ok(None) => self.shared.0.moved.notified().await,
                // The sink says it.
                Err(_) => tokio::time::sleep(PASSING).await,
            },
            () = until(due, self.wait) => {
                if let Some(due_ms) = due {
                    self.decide_at(due_ms).await?;
                }
            }
        }
        Ok(())
    }

    /// Whether the record that the sink waits for was taken in.
    fn is_wanted_taken_in(&self) -> bool {
        let state = self.shared.lock();
        let wanted = state.as_ref().and_then(|state| Some((state.wanted?.0, state.sampler.taken_in())));
        wanted.is_some_and(|(wanted, taken_in)| wanted < taken_in)
    }

    /// Decides by the clock what is due at a time that has come, where no record can come any more that was received before it.
    async fn decide_at(&mut self, due_ms: u64) -> Result<(), Ended> {
        let unwritten = self.journal.advance_clock(due_ms.saturating_mul(1_000_000));
        if self.reader.with(|follower| follower.next_sequence())? < unwritten {
            // Those before it come soon, or are refused.
            tokio::time::sleep(WRITING).await;
            return Ok(());
        }
        // Kept before anything follows from it.
        self.kept.floor_ms = self.kept.floor_ms.max(due_ms);
        let metadata = cursor::write(&self.kept, self.version);
        self.reader.with(|follower| follower.save(&metadata))?;
        while !self.shared.with(|sampler| sampler.advance(due_ms)) {
            tokio::task::yield_now().await;
        }
        self.note_checkpoint();
        Ok(())
    }

    async fn take_in(&mut self, record: Record) -> Result<(), Ended> {
        let received_at_ns = record.meta.received_at_ns;
        while !self.shared.with(|sampler| sampler.begin(record.sequence, received_at_ns)) {
            tokio::task::yield_now().await;
        }
        self.note_checkpoint();
        let format = format_of(&self.watch, record.meta.protocol, record.meta.signal);
        if let Some(format) = format.filter(|_| record.recipient == Recipient::All) {
            self.watch(&record, format).await?;
        }
        self.shared.with(|sampler| sampler.end());
        self.last = Some(record);
        Ok(())
    }

    /// Takes in the spans of a record. One that cannot be read has none: the sink says why.
    async fn watch(&mut self, record: &Record, format: Format) -> Result<(), Ended> {
        let room = self.room.clone();
        let needed = PipelineStage::least(&record.meta, record.body_len as usize);
        let needed = needed.saturating_add(state_bytes(record.meta.encoding)).saturating_add(ROUNDING);
        // Nothing is held meanwhile.
        let _turn = match needed > room.part() {
            true => room.turn().await,
            false => BorrowTurn::none(),
        };
        match self.watch_in(record, format, &room).await? {
            Ok(()) | Err(DropReason::Damaged) => {}
            Err(DropReason::Room(_) | DropReason::TooLong) => tracing::warn!(
                sequence = record.sequence,
                bytes = record.meta.raw_len,
                "a record of traces needs more memory than there is, and its spans have no part in decisions"
            ),
        }
        Ok(())
    }

    async fn watch_in(
        &mut self,
        record: &Record,
        format: Format,
        room: &EgressBudget,
    ) -> Result<Result<(), DropReason>, Ended> {
        let mut body = match room.window(record.body_len as usize).await {
            Ok(body) => body,
            Err(error) => return Ok(Err(error.into())),
        };
        let read = self.reader.with(|follower| {
            let window: &mut Window = &mut body;
            follower.read_into(window)
        })?;
        Ok(match read {
            Ok(()) => self.watch_body(record, format, body, room).await,
            Err(ReadError::Memory(_)) => Err(BudgetError::Never.into()),
            Err(ReadError::Damaged | ReadError::NoRecord) => Err(DropReason::Damaged),
        })
    }

    async fn watch_body(
        &mut self,
        record: &Record,
        format: Format,
        body: Charged<Window>,
        room: &EgressBudget,
    ) -> Result<(), DropReason> {
        let body = match decoded(&record.meta, &body, room).await? {
            DecodedBody::AsItCame => body,
            DecodedBody::Decoded(raw) => raw,
            DecodedBody::Damaged => return Err(DropReason::Damaged),
        };
        let from = PassInput {
            format,
            now_ns: record.meta.received_at_ns,
            limits: Limits::NONE,
            traces: Some(self.shared.clone()),
        };
        let items = record.meta.items.into();
        let steps = (&*self.watch, &self.meters);
        Box::pin(run_passes(steps, &mut self.workspace, from, (body, items), room)).await?;
        self.workspace.take_counts(|step, counts| self.meters.add(step, counts));
        Ok(())
    }

    /// Notes where a new checkpoint of the sampler is: the record before it is known only now.
    fn note_checkpoint(&mut self) {
        let newest = self.shared.with(|sampler| sampler.newest_checkpoint());
        let is_new = newest.is_some_and(|at| self.checkpoints.back().is_none_or(|(known, _)| *known < at));
        if let (true, Some(at), Some(last)) = (is_new, newest, self.last) {
            self.checkpoints.push_back((at, last));
        }
    }

    /// Moves the cursor as far as the sink allows. Returns whether it did.
    fn pass(&mut self) -> Result<bool, Ended> {
        let passed = self.sink.position().sequence;
        let Some((begin, rates)) = self.shared.with(|sampler| sampler.pass(passed)) else {
            return Ok(false);
        };
        let mut last = self.last.filter(|last| last.sequence + 1 == begin);
        while let Some((at, before)) = self.checkpoints.front().copied().filter(|(at, _)| *at <= begin) {
            last = last.or(Some(before).filter(|_| at == begin));
            self.checkpoints.pop_front();
        }
        let Some(last) = last else { return Ok(false) };
        self.kept.rates = rates;
        let metadata = cursor::write(&self.kept, self.version);
        self.reader.with(|follower| follower.commit_through(&last, |_| metadata))?;
        Ok(true)
    }
}

/// Windows come in whole pages, or in steps.
const ROUNDING: usize = 4 * tidegate_arena::GROWTH_STEP;

/// Waits until a time has come, but not longer than `most`: a clock that was set back says nothing about what has passed.
async fn until(due_ms: Option<u64>, most: Duration) {
    let Some(due_ms) = due_ms else { return std::future::pending().await };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(due_ms).saturating_sub(now).min(most)).await;
}

//! The watcher: reads the journal ahead of its sink, and takes spans into the sampler.

use super::cursor::{self, WatcherState};
use super::{SharedSampler, TraceSampling};
use crate::batch::DropReason;
use crate::decoding::state_bytes;
use crate::egress_budget::{BorrowTurn, BudgetError, Charged, EgressBudget};
use crate::journal_consumer::PASSING;
use crate::pipeline_stage::{DecodedBody, PassInput, PipelineStage, decoded, run_passes};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tidegate_arena::{GROWTH_STEP, Window};
use tidegate_journal::{Committer, Event, Follower, Journal, ReadError, Recipient, Record};
use tidegate_pipeline::{Format, Limits, Pipeline, Workspace};
use tidegate_stage::{FailureLog, Owner, PipelineMeters, format_of};
use tidegate_trace_sampling::Rates;

/// How long to wait for records that were begun to be written before it is looked again.
const WRITING: Duration = Duration::from_millis(10);

/// So many steps are made before others have their turn.
const STEPS_AT_ONCE: u32 = 64;
/// So many checkpoints are noted before those are forgotten that the sampler has given up.
const MOST_CHECKPOINTS: usize = 128;
/// Windows come in whole pages, or in steps: so much more than what is in them.
const ROUNDING: usize = 4 * GROWTH_STEP;
const WARN_EVERY: Duration = Duration::from_secs(60);

/// The follower of a watcher, which its sink ends.
#[derive(Clone)]
pub(super) struct JournalReader(Arc<Mutex<Option<Follower>>>);

/// Takes spans into the sampler, as far as the sink wants.
pub(super) struct Watcher {
    /// The sink's name.
    name: String,
    sink: Committer,
    journal: Journal,
    reader: JournalReader,
    shared: SharedSampler,
    watch: Arc<Pipeline>,
    workspace: Workspace,
    /// The steps for records of earlier periods.
    earlier: Vec<(Range<u64>, Arc<Pipeline>, Workspace)>,
    meters: PipelineMeters,
    failures: FailureLog,
    room: EgressBudget,
    version: u32,
    /// The longest wait of a trace.
    wait: Duration,
    kept: WatcherState,
    /// The record that was taken in last.
    last: Option<Record>,
    /// For each checkpoint of the sampler the record before it, oldest first.
    checkpoints: VecDeque<(u64, Record)>,
    /// The newest of them that was ever noted.
    noted: Option<u64>,
    /// When it was said last that there is no room for decisions.
    warned: Option<Instant>,
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
        name: &str,
        journal: Journal,
        reader: JournalReader,
        sink: Committer,
        kept: WatcherState,
    ) -> Watcher {
        let TraceSampling { watch, earlier, meters, settings, version, room, shared, .. } = sampling;
        let earlier =
            earlier.iter().map(|(records, watch)| (records.clone(), Arc::clone(watch), watch.workspace()));
        Watcher {
            name: name.to_owned(),
            sink,
            journal,
            reader,
            shared: shared.clone(),
            workspace: watch.workspace(),
            watch: Arc::clone(watch),
            earlier: earlier.collect(),
            meters: meters.clone(),
            failures: FailureLog::new(meters),
            room: room.clone(),
            version: *version,
            wait: Duration::from_millis(settings.wait_ms),
            kept,
            last: None,
            checkpoints: VecDeque::new(),
            noted: None,
            warned: None,
        }
    }

    /// Runs until the sink is gone.
    pub(super) async fn run(mut self) {
        let mut steps = 0_u32;
        while self.step().await.is_ok() {
            steps = steps.wrapping_add(1);
            // What is there already needs no wait, and others have their turn.
            if steps.is_multiple_of(STEPS_AT_ONCE) {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn step(&mut self) -> Result<(), Ended> {
        let passed = self.sink.completed();
        let mut has_moved = self.pass(passed)?;
        // Records without traces do not wait for the watcher, which goes after them: its cursor would keep them.
        let is_behind = self.reader.with(|follower| follower.next_sequence())? < passed;
        let due = self.shared.with(|sampler| sampler.due_ms());
        if !is_behind && self.shared.is_satisfied() {
            has_moved |= self.rest(passed)?;
            self.shared.0.decided.notify_waiters();
            if !has_moved {
                // Where something is still to be read, it is when the sink wants it.
                let is_at_head =
                    self.reader.with(|follower| follower.next_sequence())? >= self.journal.advance_clock(0);
                let due = due.filter(|_| is_at_head);
                tokio::select! {
                    () = self.shared.0.moved.notified() => {}
                    () = until(due, self.wait) => self.decide_by_clock(due).await?,
                }
            }
            return Ok(());
        }
        if !self.shared.with(|sampler| sampler.has_room()) {
            // Decisions are remembered for what the sink has not passed. If it waits for an undecided trace it does not go on by itself.
            let is_taken_in = self.is_wanted_taken_in();
            if !(is_taken_in && self.shared.with(|sampler| sampler.decide_early())) {
                self.warn_of_room();
                self.shared.0.moved.notified().await;
            }
            return Ok(());
        }
        // What is there is read before the time is looked at.
        tokio::select! {
            biased;
            event = self.reader.next() => match event? {
                Ok(Some(Event::Record(record))) => self.take_in(record).await?,
                // They are gone for the sink as well.
                Ok(Some(Event::Dropped(_) | Event::Damaged(_))) => {
                    let next = self.reader.with(|follower| follower.next_sequence())?;
                    self.shared.with(|sampler| sampler.skip(next));
                }
                // Everything is read, and nothing comes.
                Ok(None) => self.shared.0.moved.notified().await,
                // The sink says it.
                Err(_) => tokio::time::sleep(PASSING).await,
            },
            () = until(due, self.wait) => self.decide_by_clock(due).await?,
        }
        Ok(())
    }

    /// Says now and then that decisions wait for the sink to settle records.
    fn warn_of_room(&mut self) {
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARN_EVERY) {
            self.warned = Some(Instant::now());
            tracing::warn!(
                sink = self.name,
                "decisions about traces wait until the sink has settled the records before them; raise `sample.tail.max_decisions` if it settles late, as a lake does"
            );
        }
    }

    /// Whether the record that the sink waits for was taken in.
    fn is_wanted_taken_in(&self) -> bool {
        let state = self.shared.lock();
        let wanted = state.as_ref().and_then(|state| Some((state.wanted?.0, state.sampler.taken_in())));
        wanted.is_some_and(|(wanted, taken_in)| wanted < taken_in)
    }

    /// Decides by the clock what is due at a time that has come, where no record can come any more that was received before it.
    async fn decide_by_clock(&mut self, due_ms: Option<u64>) -> Result<(), Ended> {
        let Some(due_ms) = due_ms else { return Ok(()) };
        let unwritten = self.journal.advance_clock(due_ms.saturating_mul(1_000_000));
        if self.reader.with(|follower| follower.next_sequence())? < unwritten {
            // Those before it come soon, or are refused.
            tokio::time::sleep(WRITING).await;
            return Ok(());
        }
        // On disk before anything follows from it.
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
        let format = format_of(self.watch_of(record.sequence), record.meta.protocol, record.meta.signal);
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
        let raw_len = record.meta.raw_len as usize;
        let needed = PipelineStage::least(&record.meta, record.body_len as usize);
        // What comes out of a pass before the last.
        let between = self.watch_of(record.sequence).passes(format).saturating_sub(1).min(1) * raw_len;
        let needed = needed.saturating_add(between);
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
            measurements: None,
            is_watched_only: true,
        };
        let items = record.meta.items.into();
        let Watcher { watch, workspace, earlier, meters, .. } = self;
        let of_record = earlier.iter_mut().find(|(records, ..)| records.contains(&record.sequence));
        let (watch, workspace) = match of_record {
            Some((_, watch, workspace)) => (&*watch, workspace),
            None => (&*watch, workspace),
        };
        Box::pin(run_passes((watch, meters), workspace, from, (body, items), room)).await?;
        let mut has_failed = false;
        // The steps that select are counted with those of the sink.
        let last = watch.steps().saturating_sub(1);
        workspace.take_counts(|step, counts| {
            if step == last {
                meters.add(0, counts);
                has_failed |= counts.failures.iter().any(|failures| *failures > 0);
            }
        });
        if has_failed {
            self.failures.log(Owner::Sink(&self.name), &self.meters, &[]);
        }
        Ok(())
    }

    /// Notes where a new checkpoint of the sampler is: the record before it is known only now.
    fn note_checkpoint(&mut self) {
        let newest = self.shared.with(|sampler| sampler.newest_checkpoint());
        let is_new = |at: u64| self.noted.is_none_or(|noted| noted < at);
        if let (Some(at), Some(last)) = (newest.filter(|at| is_new(*at)), self.last) {
            self.noted = Some(at);
            self.checkpoints.push_back((at, last));
            if self.checkpoints.len() > MOST_CHECKPOINTS {
                let checkpoints = &mut self.checkpoints;
                self.shared.with(|sampler| checkpoints.retain(|(at, _)| sampler.has_checkpoint(*at)));
            }
        }
    }

    /// Moves the cursor as far as the sink allows, which has settled all records before `passed`. Returns whether it did.
    fn pass(&mut self, passed: u64) -> Result<bool, Ended> {
        match self.shared.with(|sampler| sampler.pass(passed)) {
            Some(begin) => self.begin_at(begin),
            None => Ok(false),
        }
    }

    /// As [`pass`](Self::pass), where nothing is read for now.
    fn rest(&mut self, passed: u64) -> Result<bool, Ended> {
        match self.shared.with(|sampler| sampler.rest(passed)) {
            Some(begin) => self.begin_at(begin),
            None => Ok(false),
        }
    }

    /// Has a restart begin at a record, with these counters.
    fn begin_at(&mut self, (begin, rates): (u64, Rates)) -> Result<bool, Ended> {
        // Where the last record is before it, nothing but a gap is between.
        let mut last = self.last.filter(|last| last.sequence < begin);
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

    /// The steps for a record.
    fn watch_of(&self, sequence: u64) -> &Pipeline {
        let earlier = self.earlier.iter().find(|(records, ..)| records.contains(&sequence));
        earlier.map_or(&self.watch, |(_, watch, _)| watch)
    }
}

/// Waits until a time has come, but not longer than `most`: a clock that was set back says nothing about what has passed.
async fn until(due_ms: Option<u64>, most: Duration) {
    let Some(due_ms) = due_ms else { return std::future::pending().await };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(due_ms).saturating_sub(now).min(most)).await;
}

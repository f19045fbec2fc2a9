//! A sink's side of the journal and of the books: what comes next, and what became of it.

mod entries;
mod pending_records;
mod record;
mod skipped_records;
mod tap_state;

use crate::batch::DropReason;
use crate::egress_budget::{Charged, EgressBudget};
use crate::health::Health;
use crate::losses::Losses;
use crate::pipeline_stage::{KeptBodies, PipelineStage, SinkPipeline, Staged};
use crate::signals::Signals;
use crate::trace_sampling::Sampling;
use entries::{CursorLosses, completion, enter};
pub(crate) use pending_records::PendingRecords;
pub(crate) use record::Record;
use skipped_records::SkippedRecords;
use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};
use tap_state::TapState;
use tidegate_arena::Window;
use tidegate_journal::dead_letters::DeadLetters;
use tidegate_journal::{
    self as journal, CURSOR_METADATA_LEN, Event, Journal, Meta, OpenError, Protocol, ReadError, Recipient,
    Signal, StartAt, WhenFull,
};
use tidegate_ledger::{Dropped, Ledger, Settlement, SinkAccount, SinkLedger, TooMany, UnknownVersion};
use tidegate_pipeline::Measurements;
use tidegate_tap::Tap;

/// How long to wait when the journal cannot be read for a passing reason (too many open files, say).
pub(crate) const PASSING: Duration = Duration::from_secs(1);

/// So many records are passed over before other tasks run.
const PASSED: u32 = 64;

/// A sink's way through the journal, with its page in the books: neither moves without the other.
pub(crate) struct JournalConsumer {
    follower: TapState,
    page: SinkAccount,
    /// The part of them in the books.
    entered: CursorLosses,
    signals: Signals,
    /// A protocol that the sink does not speak although it takes its signal.
    unspoken: Vec<Protocol>,
    over: SkippedRecords,
    /// The sink's pipeline, if it has one.
    stage: Option<PipelineStage>,
    /// Reads ahead, where the sink takes whole traces.
    sampling: Option<Sampling>,
    /// A record that waits until its traces are decided.
    undecided: Option<Record>,
}

/// Why a sink could not be attached to the journal.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The cursor.
    #[error(transparent)]
    Cursor(#[from] OpenError),
    /// The book beside it.
    #[error(transparent)]
    Book(#[from] UnknownVersion),
    /// The page in the ledger.
    #[error(transparent)]
    Page(#[from] TooMany),
}

/// The services that a sink is attached to, and its limits.
#[derive(Clone, Copy)]
pub struct SinkContext<'a> {
    /// The sink's name.
    pub name: &'a str,
    /// Where it reads.
    pub journal: &'a Journal,
    /// Where it enters what became of what it read.
    pub ledger: &'a Ledger,
    /// The treatment of the sink when it holds up a full journal.
    pub when_full: WhenFull,
    /// Where it says how it is doing.
    pub health: &'a Health,
    /// The signals that it receives; the sink skips everything else.
    pub signals: Signals,
    /// Where it keeps what its peer rejects.
    pub dead_letters: &'a DeadLetters,
    /// Where what it takes can be looked at.
    pub tap: Option<&'a Tap>,
    /// The pipeline that records pass before they are sent.
    pub pipeline: Option<&'a SinkPipeline>,
}

impl SinkContext<'_> {
    /// Attaches the sink, from where it left off, or from the oldest record that is still there: a sink
    /// that was renamed gets what its predecessor still had queued.
    pub(crate) fn attach(&self) -> Result<JournalConsumer, AttachError> {
        let follower = self.journal.follow(self.name, StartAt::Oldest, self.when_full)?;
        let (position, bytes) = (follower.position(), follower.metadata());
        let mut book = match bytes.first_chunk::<{ SinkLedger::LEN }>() {
            Some(kept) if bytes != [0; CURSOR_METADATA_LEN] => SinkLedger::from_bytes(kept)?,
            _ => SinkLedger::new(position.born),
        };
        // The cursor counts these itself: a crash may have come between it and the book.
        book.restore(Dropped::Quota, position.dropped);
        book.restore(Dropped::Damaged, position.damaged);
        let page = self.ledger.attach(self.name, book, position.items, follower.ahead())?;
        let entered = CursorLosses { quota: position.dropped, damaged: position.damaged };
        let sampling = self.pipeline.and_then(|pipeline| pipeline.sampling.as_ref());
        let sink = follower.committer();
        let sampling = sampling
            .map(|sampling| sampling.start(self.name, self.journal, self.when_full, sink))
            .transpose()?;
        let follower = TapState::new(follower, self.tap.cloned());
        Ok(JournalConsumer {
            follower,
            page,
            entered,
            signals: self.signals,
            unspoken: Vec::new(),
            over: SkippedRecords::default(),
            stage: self.pipeline.map(|pipeline| PipelineStage::new(self.name, pipeline)),
            sampling,
            undecided: None,
        })
    }
}

impl JournalConsumer {
    pub(crate) fn name(&self) -> &str {
        self.follower.name()
    }

    /// The next record; nothing when the journal was closed and everything was read. What the quota took
    /// and what cannot be read is entered in the books on the way.
    ///
    /// Of a sink that takes whole traces it comes when they are decided.
    pub(crate) async fn next(&mut self) -> Option<Record> {
        if self.undecided.is_none() {
            let record = self.next_read().await?;
            self.undecided = Some(record);
        }
        if let (Some(sampling), Some(record)) = (&mut self.sampling, &self.undecided)
            && is_sampled(record)
        {
            sampling.decided(record).await;
        }
        self.undecided.take()
    }

    async fn next_read(&mut self) -> Option<Record> {
        let mut passed = 0_u32;
        loop {
            match self.follower.next().await {
                Ok(Some(event)) => {
                    if let Some(record) = self.record(event) {
                        return Some(record);
                    }
                    // A backlog of what the sink does not take is no reason to keep others waiting.
                    passed += 1;
                    if passed.is_multiple_of(PASSED) {
                        tokio::task::yield_now().await;
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    self.unreadable(&error);
                    tokio::time::sleep(PASSING).await;
                }
            }
        }
    }

    /// As [`next`](Self::next) on a thread of its own, for `patience` at most, however many records are passed over; says
    /// whether the journal was closed.
    pub(crate) fn next_blocking(&mut self, patience: Duration) -> Result<Record, IdleReason> {
        if let Some(sampling) = &self.sampling {
            let runtime = sampling.runtime.clone();
            // Made inside the wait: on this thread there is no runtime that could tell the time.
            let next = runtime.block_on(async { tokio::time::timeout(patience, self.next()).await });
            return match next {
                Ok(next) => next.ok_or(IdleReason::Closed),
                Err(_) => Err(IdleReason::Nothing),
            };
        }
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.follower.next_blocking(left) {
                Ok(Some(event)) => {
                    if let Some(record) = self.record(event) {
                        return Ok(record);
                    }
                    if left.is_zero() {
                        return Err(IdleReason::Nothing);
                    }
                }
                Ok(None) if self.follower.is_closed() => return Err(IdleReason::Closed),
                Ok(None) => return Err(IdleReason::Nothing),
                Err(error) => {
                    self.unreadable(&error);
                    std::thread::sleep(PASSING);
                    return Err(IdleReason::Nothing);
                }
            }
        }
    }

    /// The end in the journal of the last record that was passed over and is settled with one before it, in bytes.
    pub(crate) fn passed_end(&self) -> Option<u64> {
        self.over.behind.map(|record| record.bytes_after)
    }

    /// The follower, to read the body of the record that came last.
    pub(crate) fn follower(&mut self) -> &mut TapState {
        &mut self.follower
    }

    /// A record that was taken before and is not settled, to be read a second time. Only for who settles in any order.
    /// Nothing where it is not there any more.
    pub(crate) fn recall(&mut self, sequence: u64) -> io::Result<Option<Record>> {
        let record = self.follower.recall(sequence)?;
        Ok(record.map(|record| Record::new(record, 0, true)))
    }

    /// Passes a record that came last, or was recalled last, through the sink's pipeline. It goes on as `record` says then;
    /// its body is held until it is read or [released](Self::release). What steps dropped is entered when the record is
    /// settled.
    ///
    /// # Errors
    /// When its body cannot be read, or there is no memory for it in `room`.
    pub(crate) async fn stage(
        &mut self,
        record: &mut Record,
        room: &EgressBudget,
    ) -> Result<Staged, DropReason> {
        self.stage_measured(record, room, None).await
    }

    /// As [`stage`](Self::stage), with steps that measure. Where it ends with an error, they have measured nothing; where it is given up, they may have
    /// measured a part.
    pub(crate) async fn stage_measured(
        &mut self,
        record: &mut Record,
        room: &EgressBudget,
        measurements: Option<&mut (dyn Measurements + Send)>,
    ) -> Result<Staged, DropReason> {
        let JournalConsumer { stage: Some(stage), follower, sampling, .. } = self else {
            return Ok(Staged::Ready);
        };
        stage.forget(record.sequence);
        *record = record.as_journalled();
        let Some(format) = stage.format(record.sequence, &record.meta) else { return Ok(Staged::Ready) };
        let mut body = room.window(record.body_len as usize).await?;
        // Past the tap, which shows what goes on.
        match record.recalled {
            true => follower.follower.read_recalled(&mut body)?,
            false => follower.follower.read_into(&mut body)?,
        }
        let numbers = (record.sequence, follower.position().sequence);
        let traces = sampling.as_ref().filter(|_| is_sampled(record)).map(Sampling::sampler);
        match Box::pin(stage.apply(numbers, &record.meta, (format, traces), measurements, body, room)).await?
        {
            Some(form) => {
                record.put(form);
                Ok(Staged::Ready)
            }
            None => Ok(Staged::Empty),
        }
    }

    /// The memory that the sink's pipeline needs for a record at least, in bytes.
    pub(crate) fn staging_bytes(&self, record: &Record) -> usize {
        let applies =
            self.stage.as_ref().is_some_and(|stage| stage.format(record.sequence, &record.meta).is_some());
        if applies { PipelineStage::least(&record.meta, record.body_len as usize) } else { 0 }
    }

    /// Gives back the memory of a body from the pipeline that was not read.
    pub(crate) fn release(&mut self) {
        if let Some(stage) = &mut self.stage {
            stage.release();
        }
    }

    /// Items of a record that the pipeline dropped, for a sink that settles in order and enters them itself.
    pub(crate) fn take_losses(&mut self, record: &Record) -> Losses {
        self.stage.as_mut().map_or(Losses::NONE, |stage| stage.take_losses(record.sequence))
    }

    /// The body of a record that came from the pipeline.
    pub(crate) fn take_body(&mut self, record: &Record) -> Option<Charged<Window>> {
        let body = self.stage.as_mut()?.take_output(record.sequence)?;
        self.show(record, &body);
        Some(body)
    }

    /// Says which records that the pipeline does not change come from it as they came. The others come decoded.
    pub(crate) fn keep(&mut self, kept: KeptBodies) {
        if let Some(stage) = &mut self.stage {
            stage.keep(kept);
        }
    }

    /// Appends the body of the record that was recalled last, as it is in the journal.
    pub(crate) fn read_recalled(&mut self, window: &mut Window) -> Result<(), ReadError> {
        self.follower.read_recalled(window)
    }

    /// Appends the body of a record that came last, or was recalled last.
    pub(crate) fn read_into(&mut self, record: &Record, window: &mut Window) -> Result<(), ReadError> {
        let staged = self.stage.as_ref().and_then(|stage| stage.output(record.sequence));
        let Some(body) = staged else {
            return match record.recalled {
                true => self.read_recalled(window),
                false => self.follower.read_into(window),
            };
        };
        window.append(body)?;
        if !record.recalled {
            self.show(record, body);
        }
        self.release();
        Ok(())
    }

    /// Shows a record with its body to whoever looks.
    pub(crate) fn show(&self, record: &Record, body: &[u8]) {
        self.follower.show(record.sequence, &record.meta, Some(body));
    }

    /// Shows a record whose body is not read to whoever looks.
    pub(crate) fn show_unread(&self, record: &Record) {
        self.follower.show(record.sequence, &record.meta, None);
    }

    /// Reads any number of records before the first is settled.
    pub(crate) fn in_order(&mut self) {
        self.follower.in_order();
    }

    /// Settles records in any order, by [`settle_each`](Self::settle_each) only.
    pub(crate) fn any_order(&mut self) {
        self.over.any_order = true;
    }

    /// Enters that every record taken up to `last` was delivered but for `losses`, and moves the cursor past it.
    pub(crate) fn settle(&mut self, last: &Record, losses: Losses) {
        let JournalConsumer { follower, page, entered, over, sampling, .. } = self;
        let last = over.through(*last);
        let passed = over.settle(&last);
        follower.commit_through(&last.as_journalled(), |completed| {
            let gone = CursorLosses { quota: completed.dropped, damaged: completed.damaged };
            // Records dropped by the quota meanwhile are not in `items`, so fewer may remain to be lost.
            let passed = passed.min(completed.items);
            let (losses, delivered) = losses.within(completed.items - passed);
            let losses = losses.and(entered.catch_up(gone));
            let passed = passed + losses.passed();
            enter(page, Settlement { delivered, passed, ..completion(&completed) }, losses)
        });
        sampling.iter().for_each(Sampling::settled);
    }

    /// Enters that these records were delivered but for `losses`, in whatever order they were taken, and moves
    /// the cursor past what is done without a gap.
    pub(crate) fn settle_each(&mut self, sequences: impl IntoIterator<Item = u64>, losses: Losses) {
        let JournalConsumer { follower, page, entered, stage, sampling, .. } = self;
        let dropped = Cell::new(Losses::NONE);
        let sequences = sequences.into_iter().inspect(|sequence| {
            if let Some(stage) = stage {
                dropped.set(dropped.get().and(stage.take_losses(*sequence)));
            }
        });
        follower.commit_each(sequences, |completed| {
            let losses = losses.and(dropped.get());
            let gone = CursorLosses { quota: completed.dropped, damaged: completed.damaged };
            let (losses, delivered) = losses.within(completed.items);
            let losses = losses.and(entered.catch_up(gone));
            let passed = losses.passed();
            enter(page, Settlement { delivered, passed, ..completion(&completed) }, losses)
        });
        sampling.iter().for_each(Sampling::settled);
    }

    /// Enters that `waiting` items are on disk for members of the sink's ring.
    pub(crate) fn restore_handed_off(&self, waiting: u64) {
        self.page.restore_handed_off(waiting);
    }

    /// Enters what became of items that were on disk for members: delivered, and lost by the reason. It is saved with the next
    /// movement of the cursor.
    pub(crate) fn settle_handed_off(&self, delivered: u64, lost: &[(Dropped, u64)]) {
        self.page.settle_handed_off(delivered, lost);
    }

    /// Goes back to the first record that is not settled.
    pub(crate) fn rewind(&mut self) {
        self.follower.rewind();
        self.over.rewind();
        self.undecided = None;
    }

    /// Passes over records of this protocol, whatever their signal.
    pub(crate) fn pass_over_all_of(&mut self, protocol: Protocol) {
        self.unspoken.push(protocol);
    }

    /// Which items of a record that was taken the sink is to take. The others are to be settled as passed over.
    pub(crate) fn signals_within(&self, meta: &Meta) -> Signals {
        self.signals.within(meta)
    }

    fn takes(&self, record: &journal::Record) -> bool {
        let journal::Record { recipient, meta, .. } = record;
        *recipient != Recipient::Another
            && self.signals.take(meta.protocol, meta.signal)
            && !self.unspoken.contains(&meta.protocol)
    }

    fn record(&mut self, event: Event) -> Option<Record> {
        let (reason, gap) = match event {
            Event::Record(record) if self.takes(&record) => {
                self.over.taken = Some(record.sequence);
                self.over.behind = None;
                return Some(Record::new(record, self.over.items, false));
            }
            Event::Record(record) => {
                self.pass_over(record);
                return None;
            }
            Event::Dropped(gap) => (Dropped::Quota, gap),
            Event::Damaged(gap) => (Dropped::Damaged, gap),
        };
        tracing::warn!(
            sink = self.name(),
            records = gap.records,
            items = gap.items,
            reason = reason.name(),
            "records of the journal are lost for this sink"
        );
        self.catch_up();
        None
    }

    fn pass_over(&mut self, record: journal::Record) {
        let JournalConsumer { follower, page, entered, over, sampling, .. } = self;
        if over.any_order {
            follower.commit_each([record.sequence], |completed| {
                let gone = CursorLosses { quota: completed.dropped, damaged: completed.damaged };
                let settled = Settlement { passed: completed.items, ..completion(&completed) };
                enter(page, settled, entered.catch_up(gone))
            });
            return sampling.iter().for_each(Sampling::settled);
        }
        over.items = over.items.wrapping_add(u64::from(record.meta.items));
        let record = Record::new(record, over.items, false);
        if over.taken.is_some() {
            over.behind = Some(record);
        } else {
            self.settle(&record, Losses::NONE);
        }
    }

    /// Enters what the cursor was moved past without the sink. What lies behind records that are not settled
    /// is entered with them.
    fn catch_up(&mut self) {
        let position = self.follower.position();
        let passed = CursorLosses { quota: position.dropped, damaged: position.damaged };
        let settled = Settlement { position: position.items, ahead: position.ahead, ..Settlement::default() };
        let book = enter(&self.page, settled, self.entered.catch_up(passed));
        self.follower.save(&book);
    }

    /// Logs that the journal cannot be read, and will be tried again after [`PASSING`].
    pub(crate) fn unreadable(&self, error: &io::Error) {
        tracing::warn!(sink = self.name(), %error, "the journal cannot be read now; trying again in a second");
    }
}

/// Whether a record has spans whose traces are decided: not one that is for one sink, which was decided before it was sent
/// again.
fn is_sampled(record: &Record) -> bool {
    record.recipient == Recipient::All
        && record.meta.protocol == Protocol::Otlp
        && record.meta.signal == Signal::Traces
}

/// Why there was no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdleReason {
    /// Nothing came within the time.
    Nothing,
    /// The journal was closed, and everything was read.
    Closed,
}

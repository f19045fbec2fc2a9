//! The sink `lake`: a thread that reads the journal and writes Parquet files.
//!
//! The lake commits many records at once, so the cursor moves when a file is finished; until then the
//! records are in the journal and in the lake's unfinished files. The lake itself knows after which record
//! to go on, so a crash between its commit and the cursor's costs a few records read again, and no row
//! twice.

mod decode;
mod pieces;

use crate::batch::DropReason;
use crate::body_parts::{BodyPosition, DocumentParts, EventParts};
use crate::clock::now_ns;
use crate::egress_budget::{BorrowTurn, BudgetError, Charged, EgressBudget};
use crate::health::Health;
use crate::journal_consumer::{
    AttachError, IdleReason, JournalConsumer, PendingRecords, Record, SinkContext,
};
use crate::losses::Losses;
use crate::need::Need;
use crate::other_events::OtherEvents;
use crate::pipeline_stage::{KeptBodies, Staged};
use crate::signals::Signals;
use crate::stop::StopSignal;
use std::time::{Duration, Instant, SystemTime};
use tidegate_arena::{Charge, GROWTH_STEP, Window};
use tidegate_journal::{Encoding, Follower, Protocol, ReadError, Signal};
use tidegate_lake::{BatchPosition, BatchResult, Commit, Error, Writer, WriterSettings};
use tidegate_ledger::Dropped;
use tidegate_wire::otlp;
use tidegate_wire::remote_write::{Symbols, Version, view};
use tidegate_wire::zstd;
use tokio::runtime::Handle;

/// How long the thread waits for a record before it looks at the clock and at the order to stop.
const PATIENCE: Duration = Duration::from_millis(200);
/// The memory besides a body and an item: windows come in whole steps, and a decoder has its state.
const WORKING: usize = 3 * GROWTH_STEP + zstd::Decoder::BYTES;
/// How often it is logged that items are too large; all of them are counted.
const WARN_EVERY: Duration = Duration::from_secs(10);
/// How long it waits after an error before it tries again.
const AFTER_ERROR: Duration = Duration::from_secs(2);
/// A file is finished when this part of the journal's quota waits for it: one in so many. Files are much smaller than the records in them, so
/// a small journal would be full long before a file is large.
const QUOTA_PART: u64 = 4;

/// The sink, attached to the journal and ready to run.
pub struct Lake {
    consumer: JournalConsumer,
    writer: Writer,
    room: EgressBudget,
    /// The writer's memory.
    _slice: Charge,
    health: Health,
    stop: StopSignal,
    /// Where waiting for memory is done.
    runtime: Handle,
    symbols: Symbols,
    /// The records taken since the last commit.
    taken: PendingRecords,
    /// Whether any of them is in the lake's unfinished files; so whether there will be a commit.
    is_pushed: bool,
    /// How many bytes of the journal may wait for a commit.
    most_pending: u64,
    ticked: Instant,
    /// When items were said to be too large.
    warned: Option<Instant>,
}

/// The lake could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LakeError {
    /// It could not be attached to the journal.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The lake's folder could not be opened.
    #[error(transparent)]
    Lake(#[from] Error),
}

/// Why a record did not become rows.
enum WriteFailure {
    /// Of the record itself: all of its items are lost for this reason.
    Lost(Dropped),
    /// Nothing of the record becomes a row: this is what became of its items.
    Nothing(Losses),
    /// There is no room for it.
    Room(BudgetError),
    /// The journal says so with the next event.
    Damaged,
    /// Of the lake.
    Lake(Error),
    /// No memory came before the order to stop.
    Stopped,
}

/// The signals that the lake has tables for.
#[derive(Clone, Copy)]
enum DecodedBatch {
    RemoteWrite(Version),
    Otlp(otlp::Signal),
    Intake,
    Bulk,
}

impl DecodedBatch {
    fn of(protocol: Protocol, signal: Signal) -> Option<DecodedBatch> {
        match (protocol, signal) {
            (Protocol::RemoteWrite1, _) => Some(DecodedBatch::RemoteWrite(Version::V1)),
            (Protocol::RemoteWrite2, _) => Some(DecodedBatch::RemoteWrite(Version::V2)),
            (Protocol::Otlp, Signal::Traces) => Some(DecodedBatch::Otlp(otlp::Signal::Traces)),
            (Protocol::Otlp, Signal::Logs) => Some(DecodedBatch::Otlp(otlp::Signal::Logs)),
            (Protocol::Otlp, Signal::Metrics) => Some(DecodedBatch::Otlp(otlp::Signal::Metrics)),
            (Protocol::Intake, _) => Some(DecodedBatch::Intake),
            (Protocol::Bulk, _) => Some(DecodedBatch::Bulk),
            _ => None,
        }
    }
}

impl Lake {
    /// The memory for a record of this protocol and signal; `None` if the lake has no table for it.
    ///
    /// Beside the body there is what is said of the largest item in OTLP, where it did not come so. What becomes rows is
    /// in the writer's slice.
    #[must_use]
    pub fn need(protocol: Protocol, signal: Signal) -> Option<Need> {
        let factor = match DecodedBatch::of(protocol, signal)? {
            DecodedBatch::Intake => 10,
            DecodedBatch::Bulk => 6,
            DecodedBatch::Otlp(_) | DecodedBatch::RemoteWrite(_) => 0,
        };
        Some(Need { working: WORKING, factor })
    }

    /// Opens the lake and attaches it to the journal. `slice` pays for what `settings.slice` allows;
    /// `runtime` is where waiting for memory is done.
    ///
    /// # Errors
    /// [`LakeError`].
    pub fn start(
        context: SinkContext<'_>,
        settings: WriterSettings,
        slice: Charge,
        room: EgressBudget,
        runtime: Handle,
        stop: StopSignal,
    ) -> Result<Lake, LakeError> {
        let (writer, _durable) = Writer::open(settings)?;
        let mut consumer = context.attach()?;
        consumer.in_order();
        consumer.keep(KeptBodies::None);
        Ok(Lake {
            consumer,
            writer,
            room,
            _slice: slice,
            health: context.health.clone(),
            stop,
            runtime,
            symbols: Symbols::new(),
            taken: PendingRecords::default(),
            is_pushed: false,
            most_pending: context.journal.stats().quota / QUOTA_PART,
            ticked: Instant::now(),
            warned: None,
        })
    }

    /// Writes until the order to stop comes, or the journal is closed and everything was read; then finishes
    /// what is begun.
    pub fn run(mut self) {
        while !self.stop.is_given() {
            let outcome = match self.consumer.next_blocking(PATIENCE) {
                Ok(record) => self.take(record),
                Err(IdleReason::Nothing) => Ok(()),
                Err(IdleReason::Closed) => break,
            };
            if let Err(error) = outcome.and_then(|()| self.spare_quota()).and_then(|()| self.tick()) {
                self.failed(&error);
            }
        }
        match self.writer.close_files() {
            Ok(commit) => self.committed(commit),
            Err(error) => {
                tracing::error!(sink = self.consumer.name(), %error, "the lake's last files are not finished; their rows are in the journal")
            }
        }
    }

    /// Puts a record into the lake, or into the books.
    fn take(&mut self, mut record: Record) -> Result<(), Error> {
        if self.writer.durable().is_some_and(|durable| record.sequence <= durable) {
            // In the lake already: a crash came before the cursor moved.
            let others = self.with_room(|lake| {
                lake.stage(&mut record)?;
                lake.others(&record)
            });
            let losses = self.let_go(&record);
            match others {
                Ok(others) => self.consumer.settle(&record, losses.and(Losses::passed_over(others))),
                // It is read again, or the journal says that it cannot be.
                Err(WriteFailure::Damaged | WriteFailure::Stopped) => {}
                Err(_) => self.consumer.settle(&record, losses),
            }
            return Ok(());
        }
        let pushed = self.with_room(|lake| {
            lake.stage(&mut record)?;
            lake.push(&record)
        });
        let filtered = self.let_go(&record);
        match pushed {
            Ok((BatchResult { commit, dropped, .. }, others)) => {
                if dropped.too_large > 0 {
                    self.too_large(&record, dropped.too_large);
                }
                let losses = Losses::of(Dropped::TooLarge, dropped.too_large);
                let losses = losses.and(Losses::of(Dropped::Untranslatable, dropped.malformed));
                let losses = losses.and(Losses::passed_over(others)).and(filtered);
                // A commit covers this record, or everything before it (when the hour changed).
                match commit {
                    Some(commit) if commit.through < record.sequence => {
                        self.committed(Some(commit));
                        self.taken.add(record, losses);
                        self.is_pushed = true;
                    }
                    commit => {
                        self.taken.add(record, losses);
                        self.is_pushed = true;
                        self.committed(commit);
                    }
                }
            }
            Err(WriteFailure::Lost(reason)) => {
                let losses = self.lost(&record, reason);
                self.taken.add(record, losses.and(filtered));
            }
            Err(WriteFailure::Nothing(losses)) => {
                let too_large = losses.but(Dropped::Untranslatable).entries().map(|(_, items)| items).sum();
                if too_large > 0 {
                    self.too_large(&record, too_large);
                }
                self.taken.add(record, losses.and(filtered));
            }
            Err(WriteFailure::Room(_)) => {
                let losses = self.lost(&record, Dropped::TooLarge);
                self.taken.add(record, losses.and(filtered));
            }
            Err(WriteFailure::Damaged | WriteFailure::Stopped) => {}
            Err(WriteFailure::Lake(error)) => return Err(error),
        }
        if !self.is_pushed {
            // No commit is to come that would settle it.
            self.settle();
        }
        Ok(())
    }

    /// Passes a record through the sink's pipeline. The turn to borrow that this may need is kept until the record is pushed.
    fn stage(&mut self, record: &mut Record) -> Result<(), WriteFailure> {
        let Lake { consumer, room, runtime, stop, .. } = self;
        match wait(runtime, stop, consumer.stage(record, room))? {
            Ok(Staged::Ready) => Ok(()),
            Ok(Staged::Empty) => Err(WriteFailure::Nothing(Losses::NONE)),
            Err(DropReason::Damaged) => Err(WriteFailure::Damaged),
            Err(DropReason::Room(why)) => Err(WriteFailure::Room(why)),
            Err(DropReason::TooLong) => Err(WriteFailure::Room(BudgetError::Never)),
        }
    }

    /// Gives back what is held of a record from the pipeline. Returns what that dropped of it.
    fn let_go(&mut self, record: &Record) -> Losses {
        self.consumer.release();
        self.consumer.take_losses(record)
    }

    /// Says that items of a record do not fit into the memory that there is.
    fn too_large(&mut self, record: &Record, items: u64) {
        if self.warned.is_some_and(|warned| warned.elapsed() < WARN_EVERY) {
            return;
        }
        self.warned = Some(Instant::now());
        tracing::warn!(
            sink = self.consumer.name(),
            sequence = record.sequence,
            signal = ?record.meta.signal,
            protocol = ?record.meta.protocol,
            items,
            bytes = record.meta.raw_len,
            "items of a record need more memory than there is and are dropped as too large; raise `memory`"
        );
    }

    /// Does something, borrowing where the sink's own part is too small for it.
    fn with_room<T>(
        &mut self,
        mut work: impl FnMut(&mut Lake) -> Result<T, WriteFailure>,
    ) -> Result<T, WriteFailure> {
        match work(self) {
            Err(WriteFailure::Room(BudgetError::WithoutTurn)) => {
                self.consumer.release();
                let room = self.room.clone();
                let _turn: BorrowTurn = self.wait(room.turn())?;
                let outcome = work(self);
                // The turn ends when what was borrowed is given back.
                self.consumer.release();
                outcome
            }
            outcome => outcome,
        }
    }

    /// The losses of a record of which nothing was pushed: without the items that the sink is not configured for, if
    /// they can be told apart.
    fn lost(&mut self, record: &Record, reason: Dropped) -> Losses {
        let others = self.with_room(|lake| lake.others_of_lost(record)).unwrap_or(0);
        let items = u64::from(record.meta.items).saturating_sub(others);
        if reason == Dropped::TooLarge {
            self.too_large(record, items);
        }
        Losses::of(reason, items).and(Losses::passed_over(others))
    }

    fn others_of_lost(&mut self, record: &Record) -> Result<u64, WriteFailure> {
        let taken = self.consumer.signals_within(&record.meta);
        if OtherEvents::of(&record.meta, taken, &[]).is_none() {
            return Ok(0);
        }
        let _decoder = self.wait(self.room.charge(OtherEvents::BYTES))??;
        let mut body = self.wait(self.room.window(record.body_len as usize))??;
        // Past the tap, which was shown it before.
        let follower: &mut Follower = self.consumer.follower();
        let read = follower.read_into(&mut body);
        let events = read.ok().and_then(|()| OtherEvents::of(&record.meta, taken, &body));
        Ok(events.map_or(0, OtherEvents::count_blocking))
    }

    /// How many items of a record the sink is not configured to take.
    fn others(&mut self, record: &Record) -> Result<u64, WriteFailure> {
        match self.consumer.signals_within(&record.meta) {
            Signals::ALL => Ok(0),
            taken => Ok(taken.others_blocking(&self.opened(record)?)),
        }
    }

    /// The decoded body.
    fn opened(&mut self, record: &Record) -> Result<Charged<Window>, WriteFailure> {
        // One that did not decode comes from the pipeline as it is in the journal.
        let body = match self.consumer.take_body(record) {
            Some(body) => body,
            None => self.kept(record)?,
        };
        match record.meta.encoding {
            Encoding::Identity => Ok(body),
            encoding => {
                let len = (record.meta.raw_len as usize).saturating_add(decode::slack(encoding));
                let mut raw = self.wait(self.room.window(len))??;
                let _state = self.wait(self.room.charge(decode::state_bytes(encoding)))??;
                decode::decode(encoding, &body, &mut raw)
                    .map_err(|_| WriteFailure::Lost(Dropped::Damaged))?;
                Ok(raw)
            }
        }
    }

    /// The body as it is in the journal.
    fn kept(&mut self, record: &Record) -> Result<Charged<Window>, WriteFailure> {
        let mut body = self.wait(self.room.window(record.body_len as usize))??;
        match self.consumer.follower().read_into(&mut body) {
            Ok(()) => Ok(body),
            Err(ReadError::Damaged | ReadError::NoRecord) => Err(WriteFailure::Damaged),
            Err(ReadError::Memory(_)) => Err(WriteFailure::Room(BudgetError::Never)),
        }
    }

    /// Pushes a record; and how many of its items the sink is not configured to take.
    fn push(&mut self, record: &Record) -> Result<(BatchResult, u64), WriteFailure> {
        let content = DecodedBatch::of(record.meta.protocol, record.meta.signal);
        let content = content.ok_or(WriteFailure::Lost(Dropped::Untranslatable))?;
        let raw = self.opened(record)?;
        let all = u64::from(record.meta.items);
        let position =
            BatchPosition { sequence: record.sequence, received_at_ns: record.meta.received_at_ns };
        let mut others = 0;
        let pushed = match content {
            DecodedBatch::Otlp(signal) => {
                self.writer.push_otlp(&position, signal, &raw, now_ns()).map_err(WriteFailure::Lake)
            }
            DecodedBatch::Bulk => {
                let documents = DocumentParts::new(&raw, position.received_at_ns, &BodyPosition::default());
                self.push_pieces(&position, documents, (all, others))
            }
            DecodedBatch::Intake => {
                let taken = self.consumer.signals_within(&record.meta);
                others = taken.others_blocking(&raw);
                let events = EventParts::new(&raw, position.received_at_ns, taken, &BodyPosition::default());
                self.push_pieces(&position, events, (all, others))
            }
            DecodedBatch::RemoteWrite(version) => {
                let _scratch = self.wait(self.room.charge(Symbols::bytes_for(&raw)))??;
                let Ok(request) = view(version, &raw, &mut self.symbols) else {
                    return Err(WriteFailure::Lost(Dropped::Damaged));
                };
                let pushed = self.writer.push(&position, &request, now_ns()).map_err(WriteFailure::Lake);
                self.symbols.shrink(0);
                pushed
            }
        };
        pushed.map(|pushed| (pushed, others))
    }

    /// The result of `future`, unless the sink is stopped first.
    fn wait<F: Future>(&self, future: F) -> Result<F::Output, WriteFailure> {
        wait(&self.runtime, &self.stop, future)
    }

    /// Finishes the files when too much of the journal waits for them, with what was passed over meanwhile.
    fn spare_quota(&mut self) -> Result<(), Error> {
        if self.taken.bytes(self.consumer.passed_end()) >= self.most_pending {
            let commit = self.writer.close_files()?;
            self.committed(commit);
        }
        Ok(())
    }

    /// Once a second: finishes files that are old enough, and lets old hours go.
    fn tick(&mut self) -> Result<(), Error> {
        if self.ticked.elapsed() >= Duration::from_secs(1) {
            self.ticked = Instant::now();
            let commit = self.writer.tick(now_ns())?;
            self.committed(commit);
        }
        Ok(())
    }

    /// Moves the cursor behind what the lake has for good.
    fn committed(&mut self, commit: Option<Commit>) {
        let Some(commit) = commit else { return };
        self.settle();
        let bytes = commit.files.iter().map(|file| file.bytes).sum();
        self.health.succeeded(bytes);
        tracing::debug!(sink = self.consumer.name(), through = commit.through, bytes, "files are finished");
    }

    /// Moves the cursor behind what was taken.
    fn settle(&mut self) {
        self.is_pushed = false;
        let PendingRecords { last, losses, .. } = std::mem::take(&mut self.taken);
        if let Some(last) = last {
            self.consumer.settle(&last, losses);
        }
    }

    /// After an error the lake begins again behind its last commit.
    fn failed(&mut self, error: &Error) {
        if self.health.trouble().retry_at.is_none() {
            tracing::warn!(sink = self.consumer.name(), %error, "the lake cannot be written now; trying again");
        }
        (self.taken, self.is_pushed) = (PendingRecords::default(), false);
        let mut said = error.to_string();
        loop {
            self.health.failed(&said, SystemTime::now().checked_add(AFTER_ERROR));
            // Made inside the wait: on this thread there is no runtime that could tell the time.
            if self.wait(async { tokio::time::sleep(AFTER_ERROR).await }).is_err() {
                return;
            }
            match self.writer.recover() {
                Ok(_durable) => return self.consumer.rewind(),
                Err(error) => said = error.to_string(),
            }
        }
    }
}

/// The result of `future`, unless the sink is stopped first.
fn wait<F: Future>(runtime: &Handle, stop: &StopSignal, future: F) -> Result<F::Output, WriteFailure> {
    runtime.block_on(stop.or(future)).ok_or(WriteFailure::Stopped)
}

impl From<BudgetError> for WriteFailure {
    fn from(no_room: BudgetError) -> WriteFailure {
        WriteFailure::Room(no_room)
    }
}

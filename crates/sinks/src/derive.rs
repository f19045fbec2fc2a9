//! The sink `derive`: a thread that measures the items of the journal, and appends the metrics that follow to the journal.
//!
//! It counts exactly, whenever it is killed: what it has counted is kept on disk with the first record that it has not, and a
//! checkpoint in the journal says how much of a flush is appended. The argument is in `design/derived-metrics.md`.

mod metrics_source;
mod state_file;

use crate::batch::DropReason;
use crate::clock::now_ns;
use crate::egress_budget::{BorrowTurn, BudgetError, EgressBudget};
use crate::health::Health;
use crate::journal_consumer::{
    AttachError, IdleReason, JournalConsumer, PendingRecords, Record, SinkContext,
};
use crate::losses::Losses;
use crate::need::Need;
use crate::pipeline_stage::Staged;
use crate::stop::{StopSender, StopSignal};
use metrics_source::{Appended, MetricsSource};
use state_file::StateFile;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tidegate_derived_metrics::{Aggregator, Counts, Settings as TableSettings};
use tidegate_journal::{Follower, Protocol, Signal};
use tidegate_ledger::{Dropped, TooMany};
use tokio::runtime::Handle;

/// How long the thread waits for a record before it looks at the clock and at the order to stop.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long it waits after an error before it tries again.
const AFTER_ERROR: Duration = Duration::from_secs(2);
/// How long it waits for a place in the journal's queue.
const BUSY: Duration = Duration::from_millis(100);
/// How soon a flush is due again that the journal did not take, in milliseconds.
const AGAIN_MS: u64 = 5_000;
/// How long the record that is being counted may take when the order to stop comes.
const LAST_RECORD: Duration = Duration::from_secs(3);
/// How long appending what was counted may take then.
const LAST_FLUSH: Duration = Duration::from_secs(5);
/// The state is kept when this part of the journal's quota waits for it: one in so many.
const QUOTA_PART: u64 = 8;

/// Protocols whose items it does not look at.
const UNREAD: [Protocol; 5] =
    [Protocol::RemoteWrite1, Protocol::RemoteWrite2, Protocol::Intake, Protocol::Bulk, Protocol::Cri];

/// How metrics are derived.
#[derive(Debug, Clone)]
pub struct DeriveSettings {
    /// The folder for what was counted, which the sink has for itself with others of its kind.
    pub folder: PathBuf,
    /// The metrics.
    pub table: TableSettings,
    /// How often they are appended.
    pub interval: Duration,
}

/// The numbers of a sink that derives metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeriveReport {
    /// Series that it has now.
    pub series: u64,
    /// Observations, and what became of them, since its state began.
    pub counts: Counts,
}

/// The sink, attached to the journal and ready to run.
pub struct Derive {
    consumer: JournalConsumer,
    aggregator: Aggregator,
    state: StateFile,
    metrics: MetricsSource,
    room: EgressBudget,
    health: Health,
    stop: StopSignal,
    /// Where waiting is done.
    runtime: Handle,
    interval_ms: u64,
    /// When the next flush is due, in milliseconds since 1970.
    due_ms: Option<u64>,
    /// A time, and the first record that may be received later: it has passed when all before that are read.
    awaited: Option<(u64, u64)>,
    /// The first record that is not counted.
    position: u64,
    /// The records counted since the state was kept.
    taken: PendingRecords,
    /// How many bytes of the journal may wait for the state.
    most_pending: u64,
    /// A record may be counted in part, so the state in memory is not to be kept.
    is_torn: bool,
}

/// The sink could not be started.
#[derive(Debug, thiserror::Error)]
pub enum DeriveError {
    /// It could not be attached to the journal.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// Its page in the ledger.
    #[error(transparent)]
    Page(#[from] TooMany),
    /// Its state could not be read.
    #[error("reading what was counted: {0}")]
    State(#[from] io::Error),
}

/// The order to stop came first.
struct Stopped;

impl Derive {
    /// The memory for a record of this protocol and signal beside that of its pipeline; `None` if nothing is derived from it.
    #[must_use]
    pub fn need(protocol: Protocol, _signal: Signal) -> Option<Need> {
        (protocol == Protocol::Otlp).then_some(Need::default())
    }

    /// Attaches the sink to the journal, and reads what it had counted. `runtime` is where waiting is done.
    ///
    /// # Errors
    /// [`DeriveError`].
    pub fn start(
        context: SinkContext<'_>,
        settings: DeriveSettings,
        room: EgressBudget,
        runtime: Handle,
        stop: StopSignal,
    ) -> Result<Derive, DeriveError> {
        let DeriveSettings { folder, table, interval } = settings;
        let metrics = MetricsSource::new(context.name, context.journal, context.ledger)?;
        let state = StateFile::new(&folder, context.name, context.journal.id())?;
        let mut consumer = context.attach()?;
        consumer.in_order();
        UNREAD.into_iter().for_each(|protocol| consumer.pass_over_all_of(protocol));
        let (aggregator, position) = match state.read(context.name, &table)? {
            // Records that a power cut took from the journal have numbers that are given again.
            Some((aggregator, position)) => (aggregator, position.min(context.journal.advance_clock(0))),
            None => {
                let mut aggregator = Aggregator::new(table);
                // A checkpoint of a state that is gone must not be taken for one of this.
                aggregator.number_flushes_from(metrics.newest_flush().unwrap_or(0));
                (aggregator, 0)
            }
        };
        Ok(Derive {
            consumer,
            aggregator,
            state,
            metrics,
            room,
            health: context.health.clone(),
            stop,
            runtime,
            interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).max(1),
            due_ms: None,
            awaited: None,
            position,
            taken: PendingRecords::default(),
            most_pending: context.journal.stats().quota / QUOTA_PART,
            is_torn: false,
        })
    }

    /// Counts until the order to stop comes, or the journal is closed and everything was read; then appends what was counted, if it can.
    pub fn run(mut self) {
        // Nothing is lost where one of these is stopped: what is not kept is counted again.
        let _stopped = self.count();
        if !self.is_torn {
            let (sender, stop) = StopSender::new();
            self.stop = stop;
            self.runtime.spawn(async move {
                tokio::time::sleep(LAST_FLUSH).await;
                sender.stop();
            });
            let follower: &mut Follower = self.consumer.follower();
            let _stopped = if follower.is_closed() { self.keep(false) } else { self.flush_all() };
        }
        self.health.show_derived(None);
    }

    /// Ends when the order to stop comes, or the journal is closed.
    fn count(&mut self) -> Result<(), Stopped> {
        if self.aggregator.flush().is_some() {
            self.append()?;
        }
        self.show();
        while !self.stop.is_given() {
            match self.consumer.next_blocking(PATIENCE) {
                Ok(record) => {
                    // The time of those that are counted already is over.
                    if record.sequence >= self.position {
                        self.flush_if_due(record.meta.received_at_ns / 1_000_000)?;
                    }
                    self.take(record)?;
                    self.spare_quota()?;
                }
                Err(IdleReason::Nothing) => {
                    if let Some(at_ms) = self.time_read() {
                        self.flush_if_due(at_ms)?;
                    }
                    self.spare_quota()?;
                }
                Err(IdleReason::Closed) => return Ok(()),
            }
        }
        Err(Stopped)
    }

    /// Measures the items of a record.
    fn take(&mut self, mut record: Record) -> Result<(), Stopped> {
        if record.sequence >= self.position {
            let received_at_ms = record.meta.received_at_ns / 1_000_000;
            self.aggregator.begin(record.meta.tenant.as_str().as_bytes(), received_at_ms);
        }
        let before = self.aggregator.counts().observations;
        let staged = match self.stage(&mut record)? {
            Err(DropReason::Room(BudgetError::WithoutTurn)) => {
                let room = self.room.clone();
                let _turn: BorrowTurn = self.wait(room.turn())?;
                let staged = self.stage(&mut record)?;
                // The turn ends when what was borrowed is given back.
                self.consumer.release();
                staged
            }
            staged => staged,
        };
        self.consumer.release();
        let filtered = self.consumer.take_losses(&record);
        let losses = match staged {
            Ok(Staged::Ready) => {
                self.consumer.show_unread(&record);
                filtered
            }
            Ok(Staged::Empty) => filtered,
            // It comes again, as an event that says so.
            Err(DropReason::Damaged) => return Ok(()),
            Err(DropReason::Room(_) | DropReason::TooLong) => {
                tracing::warn!(
                    sink = self.consumer.name(),
                    sequence = record.sequence,
                    bytes = record.meta.raw_len,
                    "a record needs more memory than there is, and is not counted; raise `memory`"
                );
                Losses::of(Dropped::TooLarge, record.meta.items.into())
            }
        };
        self.position = self.position.max(record.sequence + 1);
        if self.taken.last.is_none() && self.aggregator.counts().observations == before {
            // Nothing of it is in the table: it does not wait for the state. Among such are the metrics of this sink.
            self.consumer.settle(&record, losses);
        } else {
            self.taken.add(record, losses);
        }
        Ok(())
    }

    /// Passes a record through the pipeline, of which the last step measures.
    fn stage(&mut self, record: &mut Record) -> Result<Result<Staged, DropReason>, Stopped> {
        let Derive { consumer, aggregator, room, runtime, stop, position, .. } = self;
        // One before the position is counted already: a crash came before the cursor moved.
        let staged = match record.sequence < *position {
            true => consumer.stage_measured(record, room, None),
            false => consumer.stage_measured(record, room, Some(aggregator)),
        };
        let staged = runtime.block_on(async {
            let mut staged = std::pin::pin!(staged);
            match stop.or(&mut staged).await {
                Some(staged) => Some(staged),
                // It ends soon, unless it waits for memory.
                None => tokio::time::timeout(LAST_RECORD, staged).await.ok(),
            }
        });
        self.is_torn |= staged.is_none();
        staged.ok_or(Stopped)
    }

    /// Flushes where that is due at a time, which no record to come was received before.
    fn flush_if_due(&mut self, at_ms: u64) -> Result<(), Stopped> {
        let boundary = at_ms - at_ms % self.interval_ms;
        let next = boundary.saturating_add(self.interval_ms);
        match self.due_ms {
            Some(due) if at_ms >= due => {
                let is_flushed = self.flush(boundary)?;
                self.due_ms = Some(if is_flushed { next } else { at_ms.saturating_add(AGAIN_MS) });
            }
            // The clock may have been set back.
            Some(due) if due <= next.saturating_add(self.interval_ms) => {}
            _ => self.due_ms = Some(next),
        }
        Ok(())
    }

    /// Appends all that was counted before a time, and settles the records that it was counted from. False where the journal takes nothing now.
    fn flush(&mut self, at_ms: u64) -> Result<bool, Stopped> {
        // Series expire although nothing comes, and so do spans that wait for others.
        self.aggregator.begin(&[], at_ms);
        self.flush_counted(at_ms)
    }

    /// The same, but nothing expires by this time: the records before it may not all be read.
    fn flush_counted(&mut self, at_ms: u64) -> Result<bool, Stopped> {
        // A journal that is full may be so because of this cursor: it counts on.
        let is_refused = self.metrics.is_refused();
        if self.aggregator.series() == 0 || is_refused {
            return self.keep(false).map(|()| !is_refused);
        }
        self.aggregator.begin_flush(at_ms);
        self.keep(true)?;
        self.append()
    }

    /// Appends all that was counted, for the last time: a successor may derive other metrics, and could not use what is kept.
    fn flush_all(&mut self) -> Result<(), Stopped> {
        if self.aggregator.flush().is_some() {
            // It may be known in memory alone.
            self.keep(true)?;
            self.append()?;
        }
        match self.aggregator.has_news() {
            true => self.flush_counted(self.aggregator.clock_ms()).map(drop),
            false => self.keep(false),
        }
    }

    /// The time where no records come that are counted: one at which a flush is due, when everything is read that was received before it.
    fn time_read(&mut self) -> Option<u64> {
        let Derive { consumer, metrics, awaited, due_ms, .. } = self;
        let now = now_ns() / 1_000_000;
        if due_ms.is_some_and(|due| now < due) && awaited.is_none() {
            return None;
        }
        let (at_ms, first) = *awaited.get_or_insert_with(|| (now, metrics.first_after(now)));
        let follower: &mut Follower = consumer.follower();
        if follower.next_sequence() < first {
            return None;
        }
        *awaited = None;
        Some(at_ms)
    }

    /// Appends what is left of the flush that is under way. Where the journal does not take it, the rest is left for the next flush, and this is false.
    fn append(&mut self) -> Result<bool, Stopped> {
        let Some(flush) = self.aggregator.flush() else { return Ok(true) };
        let mut from = self.metrics.appended_of(flush.number);
        loop {
            let Derive { aggregator, metrics, room, runtime, stop, .. } = self;
            let piece = runtime.block_on(stop.or(metrics.piece(aggregator, flush.number, from, room)));
            let piece = match piece.ok_or(Stopped)? {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(why) => {
                    self.failed(why, AFTER_ERROR)?;
                    continue;
                }
            };
            // Its outcome is waited for: nobody may look at the checkpoint before.
            match runtime.block_on(metrics.append(piece)) {
                Appended::Durable { next, bytes } => {
                    from = next;
                    self.health.succeeded(bytes);
                }
                Appended::Busy => self.wait(async { tokio::time::sleep(BUSY).await })?,
                Appended::Closed => return Err(Stopped),
                Appended::Refused { why } => {
                    // Its records must not wait for it: the journal may be full because of them.
                    self.aggregator.end_flush_at(from);
                    self.keep(true)?;
                    return self.failed(&why, AFTER_ERROR).map(|()| false);
                }
            }
        }
        self.aggregator.end_flush();
        self.show();
        Ok(true)
    }

    /// Keeps the state when too much of the journal waits for it.
    fn spare_quota(&mut self) -> Result<(), Stopped> {
        let pending = self.taken.bytes(self.consumer.passed_end());
        if pending >= self.most_pending { self.keep(false) } else { Ok(()) }
    }

    /// Writes the state, and then settles the records that are in it. Nothing is written where there are none, unless a flush begins.
    fn keep(&mut self, is_flush: bool) -> Result<(), Stopped> {
        if self.taken.last.is_none() && !is_flush {
            return Ok(());
        }
        let mut has_failed = false;
        while let Err(error) = self.state.write(&self.aggregator, self.position) {
            self.failed(&format!("keeping what was counted: {error}"), AFTER_ERROR)?;
            has_failed = true;
        }
        if has_failed {
            self.health.succeeded(0);
        }
        let PendingRecords { last, losses, .. } = std::mem::take(&mut self.taken);
        if let Some(last) = last {
            self.consumer.settle(&last, losses);
        }
        self.show();
        Ok(())
    }

    /// Says that something failed, and waits until it is worth another try.
    fn failed(&self, why: &str, retry_after: Duration) -> Result<(), Stopped> {
        if self.health.trouble().retry_at.is_none() {
            tracing::warn!(
                sink = self.consumer.name(),
                error = why,
                "derived metrics have to wait; trying again"
            );
        }
        self.health.failed(why, SystemTime::now().checked_add(retry_after));
        // Made inside the wait: on this thread there is no runtime that could tell the time.
        self.wait(async { tokio::time::sleep(retry_after).await })
    }

    /// The result of `future`, unless the sink is stopped first.
    fn wait<F: Future>(&self, future: F) -> Result<F::Output, Stopped> {
        self.runtime.block_on(self.stop.or(future)).ok_or(Stopped)
    }

    fn show(&self) {
        let series = self.aggregator.series() as u64;
        self.health.show_derived(Some(DeriveReport { series, counts: self.aggregator.counts() }));
    }
}

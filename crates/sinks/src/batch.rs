//! Records that go out together: their bodies in one window, as they came.

use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use crate::journal_consumer::{JournalConsumer, Record};
use crate::signals::Signals;
use std::ops::Range;
use tidegate_arena::{GROWTH_STEP, PAGE, Window, rounded};
use tidegate_journal::{Encoding, Meta, Protocol, ReadError, Signal, Tenant};
use tidegate_ledger::Dropped;
use tokio::time::Instant;

/// How large a batch may become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimits {
    /// Bytes as they go out, before compression.
    pub(crate) out: usize,
    /// Bytes as they are kept.
    pub(crate) kept: usize,
    pub(crate) records: usize,
    pub(crate) items: u64,
}

/// The shared properties of a batch's records beyond those of the first.
pub(crate) trait BatchKey: Copy + PartialEq + Send + Sync + 'static {
    /// Has `read` append the body of a record to `window`, where there is room for it, and keeps what a request needs of it.
    fn append(
        &self,
        _meta: &Meta,
        window: &mut Window,
        read: impl FnOnce(&mut Window) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        read(window)
    }
}

impl BatchKey for Tenant {}

/// Records that go out together.
pub(crate) struct Batch<K> {
    /// The shared properties beyond those of the first record.
    pub(crate) key: K,
    /// The metadata of the first record.
    pub(crate) meta: Meta,
    pub(crate) sequences: Vec<u64>,
    pub(crate) items: u64,
    /// About how long it is as it goes out, before compression.
    pub(crate) out_len: usize,
    /// The bodies as they came, behind the room that was asked for.
    pub(crate) window: Charged<Window>,
    pub(crate) bodies: Vec<BatchBody>,
    /// Since when it waits for more.
    pub(crate) opened: Instant,
}

/// One record's body.
#[derive(Debug, Clone)]
pub(crate) struct BatchBody {
    /// Where it is in the window.
    pub(crate) range: Range<usize>,
    pub(crate) sequence: u64,
    pub(crate) signal: Signal,
    pub(crate) protocol: Protocol,
    pub(crate) encoding: Encoding,
    pub(crate) raw_len: usize,
    pub(crate) items: u64,
    pub(crate) received_at_ns: u64,
    /// Which of its items are taken.
    pub(crate) taken: Signals,
}

/// Why a record is in no batch, or a batch became no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DropReason {
    /// There is no room for it beside what is held.
    Room(BudgetError),
    /// The request would be longer than permitted.
    TooLong,
    /// A body is not what its record says; or it cannot be read any more, which the journal's next event says.
    Damaged,
}

impl DropReason {
    /// How the books name it, of a record that had all the room that there is.
    pub(crate) fn reason(self) -> Dropped {
        match self {
            DropReason::Room(_) | DropReason::TooLong => Dropped::TooLarge,
            DropReason::Damaged => Dropped::Damaged,
        }
    }
}

impl From<ReadError> for DropReason {
    fn from(error: ReadError) -> DropReason {
        match error {
            ReadError::Damaged | ReadError::NoRecord => DropReason::Damaged,
            ReadError::Memory(_) => DropReason::Room(BudgetError::WithoutTurn),
        }
    }
}

impl From<BudgetError> for DropReason {
    fn from(no_room: BudgetError) -> DropReason {
        DropReason::Room(no_room)
    }
}

impl<K: BatchKey> Batch<K> {
    /// A batch of the record that came last, which is `out_len` bytes long as it goes out, with room for `before` bytes
    /// before the first body. Others will join it until it is about as long as `usual`.
    ///
    /// # Errors
    /// When its body cannot be had.
    pub(crate) async fn of(
        record: &Record,
        key: K,
        before: usize,
        out_len: usize,
        usual: usize,
        room: &EgressBudget,
        consumer: &mut JournalConsumer,
    ) -> Result<Batch<K>, DropReason> {
        let needed = before + record.body_len as usize;
        // Taken at once, the memory is still mapped from the last batch, as nothing that grows is.
        let wanted = usual.max(needed);
        let mut window = match room.window(wanted).await {
            Err(BudgetError::WithoutTurn) if wanted > needed => room.window(needed).await?,
            window => window?,
        };
        window.skip(before);
        let mut batch = Batch {
            key,
            meta: record.meta,
            sequences: Vec::new(),
            items: 0,
            out_len: 0,
            window,
            bodies: Vec::new(),
            opened: Instant::now(),
        };
        batch.read(record, out_len, consumer)?;
        Ok(batch)
    }

    /// Adds the record that came last, if it fits and memory for it is free now.
    pub(crate) fn add(
        &mut self,
        record: &Record,
        out_len: usize,
        limits: BatchLimits,
        consumer: &mut JournalConsumer,
    ) -> bool {
        let body_len = record.body_len as usize;
        self.sequences.len() < limits.records
            && self.out_len.saturating_add(out_len) <= limits.out
            && self.items.saturating_add(u64::from(record.meta.items)) <= limits.items
            && rounded(self.window.len().saturating_add(body_len)) <= limits.kept
            && self.window.try_reserve(body_len).is_ok()
            && self.read(record, out_len, consumer).is_ok()
    }

    /// Whether it is of no use to wait for more.
    pub(crate) fn is_full(&self, limits: BatchLimits) -> bool {
        // Half full counts: what comes next is likely as large as what came, and would not fit.
        self.sequences.len() >= limits.records
            || self.out_len > limits.out / 2
            || self.items > limits.items / 2
            || self.window.len() > limits.kept / 2
    }

    /// The last record's number.
    pub(crate) fn last(&self) -> u64 {
        self.sequences.last().copied().unwrap_or_default()
    }

    fn read(
        &mut self,
        record: &Record,
        out_len: usize,
        consumer: &mut JournalConsumer,
    ) -> Result<(), DropReason> {
        let start = self.window.len();
        self.key.append(&record.meta, &mut self.window, |window| consumer.read_into(record, window))?;
        let Meta { signal, protocol, encoding, items, raw_len, received_at_ns, .. } = record.meta;
        self.bodies.push(BatchBody {
            range: start..self.window.len(),
            sequence: record.sequence,
            signal,
            protocol,
            encoding,
            raw_len: raw_len as usize,
            items: u64::from(items),
            received_at_ns,
            taken: consumer.signals_within(&record.meta),
        });
        self.sequences.push(record.sequence);
        self.items += u64::from(items);
        self.out_len = self.out_len.saturating_add(out_len);
        Ok(())
    }
}

/// The most bytes of bodies that are joined, for a sink with `part` bytes of its own: some batches are being filled,
/// beside one there is what is made of it, and the rest is for those on their way. In whole steps of the arena, since
/// those are paid for.
pub(crate) const fn joined_most(part: usize) -> usize {
    let most = part / 8;
    let unit = if most < GROWTH_STEP { PAGE } else { GROWTH_STEP };
    most / unit * unit
}

//! Records that go out together: their bodies in one window.

use super::Settings;
use super::exchange::{Request, ResendRange};
use super::snappy_passthrough;
use crate::egress_budget::{BorrowTurn, BudgetError, Charged, EgressBudget};
use crate::journal_consumer::{JournalConsumer, Record};
use std::ops::Range;
use tidegate_arena::{GROWTH_STEP, PAGE, Window, rounded};
use tidegate_journal::{Encoding, Meta, Protocol, ReadError, Signal};
use tidegate_wire::remote_write::Version;

/// The most records of a batch: what is kept about each has a bound too.
const MOST_RECORDS: usize = 256;

/// How records go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchMode {
    /// As they are, joined without decoding: 1.0 as 1.0.
    Pass,
    /// Decoded and encoded again.
    Recode {
        /// The format of the records.
        from: BodyFormat,
        /// The version they go out in.
        to: Version,
    },
    /// Not at all: there is no way to say them in this protocol.
    Alien,
}

/// The format of received records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFormat {
    /// Remote write of this version.
    RemoteWrite(Version),
    /// OTLP metrics.
    Otlp,
}

impl BodyFormat {
    /// The version that it goes out in when nothing else is asked for.
    pub(super) fn version(self) -> Version {
        match self {
            BodyFormat::RemoteWrite(version) => version,
            // Every peer takes that.
            BodyFormat::Otlp => Version::V1,
        }
    }
}

/// Records that go out together.
pub(super) struct Batch {
    mode: BatchMode,
    first: Record,
    last: Record,
    items: u64,
    raw_len: usize,
    bodies: Vec<Body>,
    /// Room for a preamble, then the bodies; those that pass without their own preambles.
    window: Option<Charged<Window>>,
    /// While more than the sink's own part is held.
    turn: BorrowTurn,
    /// It is larger than the sink's own part can take, so it is not to be held while a peer is waited for.
    large: bool,
    /// How large it is likely to become, in bytes.
    usual: usize,
    limits: Limits,
}

/// One record's body.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// Where it is in the window.
    pub(super) range: Range<usize>,
    pub(super) raw_len: usize,
    pub(super) encoding: Encoding,
}

/// Why a record's body cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyError {
    /// It cannot be read any more; the journal's next event says so.
    Damaged,
    /// It is more than this sink can ever hold: it was accepted when there was more memory.
    TooLarge,
}

impl From<ReadError> for BodyError {
    fn from(error: ReadError) -> BodyError {
        match error {
            ReadError::Damaged | ReadError::NoRecord => BodyError::Damaged,
            ReadError::Memory(_) => BodyError::TooLarge,
        }
    }
}

impl From<BudgetError> for BodyError {
    fn from(_: BudgetError) -> BodyError {
        BodyError::TooLarge
    }
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    raw: usize,
    items: u64,
    /// Bytes of the window.
    kept: usize,
}

impl Batch {
    /// A batch of one record, which others will join until it is about as long as `usual`.
    ///
    /// # Errors
    /// When its body cannot be had.
    pub(super) async fn of(
        record: Record,
        mode: BatchMode,
        usual: usize,
        room: &EgressBudget,
        consumer: &mut JournalConsumer,
        settings: &Settings,
    ) -> Result<Batch, BodyError> {
        let part = room.part();
        let raw_len = record.meta.raw_len as usize;
        let kept = snappy_passthrough::PREAMBLE + record.body_len as usize;
        let (limits, large) = match mode {
            BatchMode::Recode { .. } => {
                let raw = settings.max_bytes.min(piece_of(part));
                let limits = Limits { raw, items: settings.max_items, kept: part / 4 };
                (limits, raw_len > raw || rounded(kept) > part / 4)
            }
            _ => {
                let limits = Limits { raw: settings.max_bytes, items: settings.max_items, kept: part };
                (limits, rounded(kept) > part)
            }
        };
        // Recoding holds the body in both forms, and at least one of the pieces made of it.
        let needed = match mode {
            BatchMode::Alien => 0,
            BatchMode::Pass => rounded(kept),
            BatchMode::Recode { .. } if record.meta.encoding == Encoding::Identity => rounded(kept),
            BatchMode::Recode { .. } => rounded(kept) + rounded(raw_len),
        };
        if needed > room.most() {
            return Err(BodyError::TooLarge);
        }
        let mut batch = Batch {
            mode,
            first: record,
            last: record,
            items: u64::from(record.meta.items),
            raw_len,
            bodies: Vec::new(),
            window: None,
            turn: BorrowTurn::none(),
            large,
            usual: usual.min(limits.kept),
            limits,
        };
        if mode != BatchMode::Alien {
            batch.load(room, consumer).await?;
        }
        Ok(batch)
    }

    /// Reads the body of the first record, if it is not there.
    ///
    /// # Errors
    /// When it cannot be had.
    pub(super) async fn load(
        &mut self,
        room: &EgressBudget,
        consumer: &mut JournalConsumer,
    ) -> Result<(), BodyError> {
        if self.window.is_none() {
            if self.large {
                self.borrow(room).await;
            }
            let record = self.first;
            let needed = snappy_passthrough::PREAMBLE + record.body_len as usize;
            // Taken at once, the memory is still mapped from the last batch, as nothing that grows is.
            let wanted = if self.large { needed } else { self.usual.max(needed) };
            let mut window = match room.window(wanted).await {
                Err(BudgetError::WithoutTurn) if wanted > needed => room.window(needed).await?,
                window => window?,
            };
            window.skip(snappy_passthrough::PREAMBLE);
            self.window = Some(window);
            self.bodies.clear();
            self.read(&record, consumer)?;
        }
        Ok(())
    }

    /// Waits for the turn to borrow, if it is not had yet.
    pub(super) async fn borrow(&mut self, room: &EgressBudget) {
        if !self.turn.is_some() {
            self.turn = room.turn().await;
        }
    }

    /// Whether it has the turn to borrow.
    pub(super) fn is_borrowing(&self) -> bool {
        self.turn.is_some()
    }

    /// Gives back what is not to be held while a peer is waited for: the memory of a large batch, which
    /// [`load`](Self::load) brings back, and the turn, if what is left is within the part.
    pub(super) fn unload(&mut self, room: &EgressBudget) {
        if self.large {
            self.window = None;
        }
        if !room.is_over() {
            self.turn = BorrowTurn::none();
        }
    }

    /// Adds a record that goes the same way, if it fits and memory for it is free now.
    pub(super) fn add(&mut self, record: &Record, consumer: &mut JournalConsumer) -> bool {
        let Some(window) = &self.window else { return false };
        let (raw_len, items) = (record.meta.raw_len as usize, u64::from(record.meta.items));
        let fits = self.bodies.len() < MOST_RECORDS
            && record.meta.tenant == self.first.meta.tenant
            && self.raw_len + raw_len <= self.limits.raw
            && self.items + items <= self.limits.items
            && rounded(window.len() + record.body_len as usize) <= self.limits.kept;
        if !fits || self.read(record, consumer).is_err() {
            return false;
        }
        self.last = *record;
        self.items += items;
        self.raw_len += raw_len;
        true
    }

    /// Whether it is of no use to wait for more.
    pub(super) fn is_full(&self) -> bool {
        // Half full counts: what comes next is likely as large as what came, and would not fit.
        self.window.is_none()
            || self.large
            || self.bodies.len() == MOST_RECORDS
            || self.raw_len > self.limits.raw / 2
            || self.items > self.limits.items / 2
    }

    pub(super) fn mode(&self) -> BatchMode {
        self.mode
    }

    /// The metadata of the first record; the others are alike.
    pub(super) fn meta(&self) -> &Meta {
        &self.first.meta
    }

    /// The last record.
    pub(super) fn last(&self) -> Record {
        self.last
    }

    /// Items of all records.
    pub(super) fn items(&self) -> u64 {
        self.items
    }

    /// How many records.
    pub(super) fn records(&self) -> usize {
        self.bodies.len()
    }

    /// How long all bodies are together, with the room before them.
    pub(super) fn len(&self) -> usize {
        self.window.as_ref().map_or(0, |window| window.len())
    }

    /// Bytes of the sink's room that it holds.
    pub(super) fn held(&self) -> usize {
        self.window.as_ref().map_or(0, Charged::bytes)
    }

    /// Whether it must not be held while a peer is waited for.
    pub(super) fn is_large(&self) -> bool {
        self.large
    }

    /// The bodies and the window that they are in.
    pub(super) fn bodies(&self) -> (&[u8], &[Body]) {
        (self.window.as_ref().map_or(&[], AsRef::as_ref), &self.bodies)
    }

    /// The body of a batch of one that needs no decoding, and where it is in its window. [`load`](Self::load) brings it
    /// back.
    pub(super) fn take_plain(&mut self) -> Option<(Charged<Window>, Range<usize>)> {
        let [Body { range, encoding: Encoding::Identity, .. }] = self.bodies.as_slice() else { return None };
        let range = range.clone();
        self.window.take().map(|window| (window, range))
    }

    /// The batch as one request, without decoding, and the turn that its memory needs: nothing when its
    /// bodies are longer together than Snappy can say.
    pub(super) fn into_request(self) -> Option<(Request, BorrowTurn)> {
        let Batch { window, raw_len, items, turn, .. } = self;
        let body = snappy_passthrough::joined(window?, raw_len)?;
        let entries = ResendRange::All(items);
        let request = Request { body, version: Version::V1, histograms: true, points: false, items, entries };
        Some((request, turn))
    }

    fn read(&mut self, record: &Record, consumer: &mut JournalConsumer) -> Result<(), BodyError> {
        let Some(window) = &mut self.window else { return Ok(()) };
        let start = window.len();
        window.try_reserve(record.body_len as usize)?;
        let (raw_len, encoding) = (record.meta.raw_len as usize, record.meta.encoding);
        let follower = consumer.follower();
        if self.mode == BatchMode::Pass {
            snappy_passthrough::append(window, raw_len, |window| follower.read_into(window))?;
        } else {
            follower.read_into(window)?;
        }
        self.bodies.push(Body { range: start..window.len(), raw_len, encoding });
        Ok(())
    }
}

/// The most bytes of one recoded request, for a sink with `part` bytes of its own: what is read takes a
/// quarter; what it decompresses to, two versions of a piece and the piece compressed take the rest, and leave
/// something for tables. In whole steps of the arena, since those are paid for.
pub(super) const fn piece_of(part: usize) -> usize {
    let piece = part / 8;
    if piece < GROWTH_STEP { piece / PAGE * PAGE } else { piece / GROWTH_STEP * GROWTH_STEP }
}

/// The format of a record, if this protocol can express it.
pub(super) fn form_of(record: &Record) -> Option<BodyFormat> {
    match (record.meta.protocol, record.meta.signal) {
        (Protocol::RemoteWrite1, _) => Some(BodyFormat::RemoteWrite(Version::V1)),
        (Protocol::RemoteWrite2, _) => Some(BodyFormat::RemoteWrite(Version::V2)),
        (Protocol::Otlp, Signal::Metrics) => Some(BodyFormat::Otlp),
        _ => None,
    }
}

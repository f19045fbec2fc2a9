//! Records that go out together: their bodies in one window.

use super::peer::PREFIX;
use super::translation::outgoing_len;
use crate::inbox::{Inbox, Record};
use crate::room::{Held, NoRoom, Room};
use std::ops::Range;
use tidegate_arena::{PAGE, STEP, Window, rounded};
use tidegate_journal::{Encoding, Meta, ReadError, Signal, Tenant};
use tidegate_wire::remote_write::Version;
use tokio::time::Instant;

/// What records that go out together have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) signal: Signal,
    pub(super) tenant: Tenant,
    pub(super) way: Way,
}

/// How records go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// As they are: their bytes, one after the other, are a request.
    Join,
    /// Decoded and compressed again, or only one of the two.
    Recode,
    /// Said in OTLP: they came as remote write of this version.
    Translate(Version),
}

/// How large a batch may become.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes once decompressed.
    pub(super) raw: usize,
    /// Bytes as they are kept.
    pub(super) kept: usize,
    pub(super) records: usize,
}

/// Records that go out together.
pub(super) struct Batch {
    pub(super) key: Key,
    /// What is known of the first; the others are alike.
    pub(super) meta: Meta,
    pub(super) sequences: Vec<u64>,
    pub(super) items: u64,
    /// How long it is as it goes out, before compression.
    pub(super) raw_len: usize,
    /// Room for [`PREFIX`], then the bodies as they came.
    pub(super) window: Held<Window>,
    pub(super) bodies: Vec<Body>,
    /// Since when it waits for more.
    pub(super) opened: Instant,
}

/// One record's body.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// Where it is in the window.
    pub(super) range: Range<usize>,
    pub(super) encoding: Encoding,
    pub(super) raw_len: usize,
}

/// Why a record's body cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoBody {
    /// It cannot be read any more; the journal's next event says so.
    Damaged,
    /// There is no room for it.
    Room(NoRoom),
}

impl From<ReadError> for NoBody {
    fn from(error: ReadError) -> NoBody {
        match error {
            ReadError::Damaged | ReadError::NoRecord => NoBody::Damaged,
            ReadError::Memory(_) => NoBody::Room(NoRoom::WithoutTurn),
        }
    }
}

impl From<NoRoom> for NoBody {
    fn from(no_room: NoRoom) -> NoBody {
        NoBody::Room(no_room)
    }
}

impl Batch {
    /// A batch of the record that came last, which others will join until it is about as long as `usual`.
    ///
    /// # Errors
    /// When its body cannot be had.
    pub(super) async fn of(
        record: &Record,
        key: Key,
        usual: usize,
        room: &Room,
        inbox: &mut Inbox,
    ) -> Result<Batch, NoBody> {
        let needed = PREFIX + record.body_len as usize;
        // Taken at once, the memory is still mapped from the last batch, as nothing that grows is.
        let wanted = usual.max(needed);
        let mut window = match room.window(wanted).await {
            Err(NoRoom::WithoutTurn) if wanted > needed => room.window(needed).await?,
            window => window?,
        };
        window.advance(PREFIX);
        let mut batch = Batch {
            key,
            meta: record.meta,
            sequences: Vec::new(),
            items: 0,
            raw_len: 0,
            window,
            bodies: Vec::new(),
            opened: Instant::now(),
        };
        batch.read(record, inbox)?;
        Ok(batch)
    }

    /// Adds the record that came last, if it fits and memory for it is free now.
    pub(super) fn add(&mut self, record: &Record, limits: Limits, inbox: &mut Inbox) -> bool {
        let body_len = record.body_len as usize;
        self.sequences.len() < limits.records
            && self.raw_len.saturating_add(outgoing_len(&record.meta)) <= limits.raw
            && rounded(self.window.len().saturating_add(body_len)) <= limits.kept
            && self.window.try_reserve(body_len).is_ok()
            && self.read(record, inbox).is_ok()
    }

    /// Whether it is of no use to wait for more.
    pub(super) fn is_full(&self, limits: Limits) -> bool {
        // Half full counts: what comes next is likely as large as what came, and would not fit.
        self.sequences.len() >= limits.records
            || self.raw_len > limits.raw / 2
            || self.window.len() > limits.kept / 2
    }

    /// The last record's number.
    pub(super) fn last(&self) -> u64 {
        self.sequences.last().copied().unwrap_or_default()
    }

    fn read(&mut self, record: &Record, inbox: &mut Inbox) -> Result<(), NoBody> {
        let start = self.window.len();
        inbox.follower().read_into(&mut self.window)?;
        let (encoding, raw_len) = (record.meta.encoding, record.meta.raw_len as usize);
        self.bodies.push(Body { range: start..self.window.len(), encoding, raw_len });
        self.sequences.push(record.sequence);
        self.items += u64::from(record.meta.items);
        self.raw_len += outgoing_len(&record.meta);
        Ok(())
    }
}

/// The most bytes of a joined request, for a sink with `part` bytes of its own: a batch of each signal is being
/// filled, one is compressed, and the rest is for those on their way. In whole steps of the arena, since those
/// are paid for.
pub(super) const fn joined_most(part: usize) -> usize {
    let most = part / 8;
    let unit = if most < STEP { PAGE } else { STEP };
    most / unit * unit
}

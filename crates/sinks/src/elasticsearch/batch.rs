//! Records that go out together: their bodies in one window, as they came.

use super::documents::outgoing_len;
use super::settings::Settings;
use crate::inbox::{Inbox, Record};
use crate::room::{Held, NoRoom, Room};
use std::ops::Range;
use tidegate_arena::{PAGE, STEP, Window, rounded};
use tidegate_journal::{Encoding, Meta, Protocol, ReadError, Signal};
use tokio::time::Instant;

/// How large a batch may become.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes as they go out, before compression.
    pub(super) out: usize,
    /// Bytes as they are kept.
    pub(super) kept: usize,
    pub(super) records: usize,
}

/// Records of one tenant that go out together.
pub(super) struct Batch {
    /// What is known of the first.
    pub(super) meta: Meta,
    pub(super) sequences: Vec<u64>,
    pub(super) items: u64,
    /// About how long it is as it goes out, before compression.
    pub(super) out_len: usize,
    /// The bodies as they came.
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
    pub(super) sequence: u64,
    pub(super) signal: Signal,
    pub(super) protocol: Protocol,
    pub(super) encoding: Encoding,
    pub(super) raw_len: usize,
    pub(super) items: u64,
    pub(super) received_at_ns: u64,
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
        usual: usize,
        settings: &Settings,
        room: &Room,
        inbox: &mut Inbox,
    ) -> Result<Batch, NoBody> {
        let needed = record.body_len as usize;
        // Taken at once, the memory is still mapped from the last batch, as nothing that grows is.
        let wanted = usual.max(needed);
        let window = match room.window(wanted).await {
            Err(NoRoom::WithoutTurn) if wanted > needed => room.window(needed).await?,
            window => window?,
        };
        let mut batch = Batch {
            meta: record.meta,
            sequences: Vec::new(),
            items: 0,
            out_len: 0,
            window,
            bodies: Vec::new(),
            opened: Instant::now(),
        };
        batch.read(record, settings, inbox)?;
        Ok(batch)
    }

    /// Adds the record that came last, if it fits and memory for it is free now.
    pub(super) fn add(
        &mut self,
        record: &Record,
        limits: Limits,
        settings: &Settings,
        inbox: &mut Inbox,
    ) -> bool {
        let body_len = record.body_len as usize;
        self.sequences.len() < limits.records
            && self.out_len.saturating_add(outgoing_len(&record.meta, settings)) <= limits.out
            && rounded(self.window.len().saturating_add(body_len)) <= limits.kept
            && self.window.try_reserve(body_len).is_ok()
            && self.read(record, settings, inbox).is_ok()
    }

    /// Whether it is of no use to wait for more.
    pub(super) fn is_full(&self, limits: Limits) -> bool {
        // Half full counts: what comes next is likely as large as what came, and would not fit.
        self.sequences.len() >= limits.records
            || self.out_len > limits.out / 2
            || self.window.len() > limits.kept / 2
    }

    /// The last record's number.
    pub(super) fn last(&self) -> u64 {
        self.sequences.last().copied().unwrap_or_default()
    }

    fn read(&mut self, record: &Record, settings: &Settings, inbox: &mut Inbox) -> Result<(), NoBody> {
        let start = self.window.len();
        inbox.follower().read_into(&mut self.window)?;
        let Meta { signal, protocol, encoding, items, raw_len, received_at_ns, .. } = record.meta;
        self.bodies.push(Body {
            range: start..self.window.len(),
            sequence: record.sequence,
            signal,
            protocol,
            encoding,
            raw_len: raw_len as usize,
            items: u64::from(items),
            received_at_ns,
        });
        self.sequences.push(record.sequence);
        self.items += u64::from(items);
        self.out_len = self.out_len.saturating_add(outgoing_len(&record.meta, settings));
        Ok(())
    }
}

/// The most bytes of bodies that are joined, for a sink with `part` bytes of its own: beside them there is what is
/// made of them, and others are on their way. In whole steps of the arena, since those are paid for.
pub(super) const fn joined_most(part: usize) -> usize {
    let most = part / 8;
    let unit = if most < STEP { PAGE } else { STEP };
    most / unit * unit
}

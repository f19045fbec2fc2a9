//! The records caught by an open tap: cheap filters, and a bounded queue.

use crate::filter::Points;
use crate::tap::OPEN_FOR;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use tidegate_arena::Charge;
use tidegate_journal::Meta;

/// The longest body that is copied, as it is kept; of a longer one is said only what it was.
pub const LONGEST_BODY: usize = 256 << 10;
/// The most records that wait to be shown.
pub(crate) const RECORDS: usize = 64;
/// The most bytes of their bodies.
pub(crate) const BODIES: usize = 1 << 20;
/// Most bytes that a watch holds, without the bodies: their descriptions, with a quarter for the allocator's
/// rounding, and as much for the sinks' names.
pub(crate) const BYTES: usize = BODIES / 4 * 5 + RECORDS * 2 * size_of::<CaughtRecord>() + (4 << 10);
/// How often a queue that somebody else is at is tried, before the record counts as missed: about a microsecond.
const TRIES: usize = 64;

/// Where a record passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapPoint<'a> {
    /// The source of this name has received it and handed it to the journal.
    Source(&'a str),
    /// The sink of this name has taken it from the journal.
    Sink(&'a str),
}

/// A record that was caught.
pub(crate) struct CaughtRecord {
    /// `source` or `sink`, and its name.
    pub(crate) at: (&'static str, Box<str>),
    pub(crate) meta: Meta,
    pub(crate) body: CaughtBody,
}

/// A body, or why there is none.
pub(crate) enum CaughtBody {
    Whole(Box<[u8]>),
    TooLong(usize),
    NotRead,
}

/// An open tap's filter, and what it has caught.
pub(crate) struct Watch {
    id: String,
    points: Points,
    /// Whether there is a reading.
    claimed: AtomicBool,
    /// Ticks until it is forgotten.
    left: AtomicU32,
    /// It was closed, which whoever reads it is to notice.
    ended: AtomicBool,
    /// The connection that its look ends with, where it is bound to one.
    peer: Mutex<Option<SocketAddr>>,
    /// Records that the filter took, to take one of so many.
    seen: AtomicU64,
    /// Records that it would have caught, if there had been room.
    missed: AtomicU64,
    queue: Mutex<Queue>,
    _charge: Charge,
}

/// Invariant: at most [`RECORDS`], whose bodies are `bytes` long together, at most [`BODIES`].
struct Queue {
    records: VecDeque<CaughtRecord>,
    bytes: usize,
}

impl Watch {
    /// A watch over `points`, whose memory `charge` pays for. Its reading is claimed.
    pub(crate) fn claimed(id: String, points: Points, charge: Charge) -> Watch {
        Watch {
            id,
            points,
            claimed: AtomicBool::new(true),
            left: AtomicU32::new(OPEN_FOR),
            ended: AtomicBool::new(false),
            peer: Mutex::new(None),
            seen: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            queue: Mutex::new(Queue { records: VecDeque::with_capacity(RECORDS), bytes: 0 }),
            _charge: charge,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn points(&self) -> &Points {
        &self.points
    }

    /// Whether nobody else reads: then the caller does, until [`release`](Self::release).
    pub(crate) fn claim(&self) -> bool {
        !self.claimed.swap(true, Relaxed)
    }

    pub(crate) fn release(&self) {
        self.claimed.store(false, Relaxed);
    }

    /// Notes that it is read, by whom, where that binds it.
    pub(crate) fn read_by(&self, peer: Option<SocketAddr>) {
        self.left.store(OPEN_FOR, Relaxed);
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = peer;
    }

    pub(crate) fn is_read_by(&self, peer: SocketAddr) -> bool {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner) == Some(peer)
    }

    /// A second has passed.
    pub(crate) fn tick(&self) {
        let left =
            if self.claimed.load(Relaxed) { OPEN_FOR } else { self.left.load(Relaxed).saturating_sub(1) };
        self.left.store(left, Relaxed);
    }

    /// Whether nobody has read it for a while.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.left.load(Relaxed) == 0
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    /// Copies the record if the filter wants it and there is room now.
    pub(crate) fn offer(&self, at: TapPoint<'_>, meta: &Meta, body: Option<&[u8]>) {
        if !self.points.take(at, meta) {
            return;
        }
        let nth = self.seen.fetch_add(1, Relaxed);
        if !nth.is_multiple_of(u64::from(self.points.every)) {
            return;
        }
        let caught = self.try_queue().is_some_and(|mut queue| queue.push(at, meta, body));
        if !caught {
            self.missed.fetch_add(1, Relaxed);
        }
    }

    /// The record that was caught first.
    pub(crate) fn next(&self) -> Option<CaughtRecord> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let caught = queue.records.pop_front()?;
        queue.bytes -= caught.body.len();
        Some(caught)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).records.len()
    }

    /// How many records were missed since this was asked last.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.swap(0, Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn holding(&self, act: impl FnOnce()) {
        let _queue = self.queue.lock().unwrap();
        act();
    }

    fn try_queue(&self) -> Option<MutexGuard<'_, Queue>> {
        for _ in 0..TRIES {
            match self.queue.try_lock() {
                Ok(queue) => return Some(queue),
                Err(TryLockError::Poisoned(queue)) => return Some(queue.into_inner()),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        None
    }
}

impl Queue {
    fn push(&mut self, at: TapPoint<'_>, meta: &Meta, body: Option<&[u8]>) -> bool {
        let copied = body.map_or(0, <[u8]>::len);
        let copied = if copied > LONGEST_BODY { 0 } else { copied };
        if self.records.len() >= RECORDS || self.bytes + copied > BODIES {
            return false;
        }
        let body = match body {
            None => CaughtBody::NotRead,
            Some(body) if body.len() > LONGEST_BODY => CaughtBody::TooLong(body.len()),
            Some(body) => CaughtBody::Whole(body.into()),
        };
        let at = match at {
            TapPoint::Source(name) => ("source", name.into()),
            TapPoint::Sink(name) => ("sink", name.into()),
        };
        self.bytes += copied;
        self.records.push_back(CaughtRecord { at, meta: *meta, body });
        true
    }
}

impl CaughtBody {
    fn len(&self) -> usize {
        match self {
            CaughtBody::Whole(body) => body.len(),
            CaughtBody::TooLong(_) | CaughtBody::NotRead => 0,
        }
    }
}

//! How a member is doing, for `/status` and `/metrics`.

use super::Member;
use super::delay::{DelayCounters, SendDelays};
use crate::spread::protocol::SpreadProtocol;
use crate::spread::verdict::ConflictReason;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tidegate_handoff::Stats;

/// The most bytes of an error's text that are kept.
const LONGEST_ERROR: usize = 512;

/// A member that a sink spreads items over, as the pages show it.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberReport {
    /// Where it is: `host:port`, or a URL without secrets.
    pub address: String,
    /// Whether it gets new items; one that left may have a backlog.
    pub is_in_ring: bool,
    /// Whether requests go to its log, and from there to it.
    pub is_behind: bool,
    /// Its part of the keys of the default tenant, from 0 to 1, where it has one.
    pub share: Option<f64>,
    /// Requests under way.
    pub in_flight: u64,
    /// Copies of items that it took, since the start.
    pub delivered: u64,
    /// Copies that it never takes, since the start.
    pub rejected: u64,
    /// Copies that it did not store because of what it has, by [`ConflictReason`], since the start.
    pub conflicts: [u64; ConflictReason::COUNT],
    /// Attempts that failed, since the start.
    pub failures: u64,
    /// How long requests waited from receipt until they were sent for the first time.
    pub delays: SendDelays,
    /// Bytes of its log.
    pub handed_off_bytes: u64,
    /// Requests in its log.
    pub handed_off_requests: u64,
    /// When the oldest data in its log was received.
    pub oldest: Option<SystemTime>,
    /// The last error, whether it is over or not.
    pub last_error: Option<String>,
    /// When that was.
    pub last_error_at: Option<SystemTime>,
}

impl<P: SpreadProtocol> Member<P> {
    /// How it is doing.
    pub(in crate::spread) fn report(&self, is_in_ring: bool, share: Option<f64>) -> MemberReport {
        let (stats, counters) = (self.log.stats(), &self.counters);
        let (last_error, last_error_at) = counters.last_error().unzip();
        let oldest = stats.oldest_received_at_ns.map(|at| SystemTime::UNIX_EPOCH + Duration::from_nanos(at));
        MemberReport {
            address: self.address.clone().into(),
            is_in_ring,
            share,
            is_behind: counters.is_behind.load(Relaxed),
            in_flight: counters.in_flight.load(Relaxed),
            delivered: counters.delivered.load(Relaxed),
            rejected: counters.rejected.load(Relaxed),
            conflicts: std::array::from_fn(|reason| {
                counters.conflicts.get(reason).map_or(0, |count| count.load(Relaxed))
            }),
            failures: counters.failures.load(Relaxed),
            delays: counters.delays.report(),
            handed_off_bytes: stats.backlog.bytes,
            handed_off_requests: stats.backlog.records,
            oldest,
            last_error,
            last_error_at,
        }
    }
}

/// The numbers of a member.
#[derive(Debug, Default)]
pub(in crate::spread) struct MemberCounters {
    pub(in crate::spread) is_behind: AtomicBool,
    pub(in crate::spread) in_flight: std::sync::Arc<AtomicU64>,
    pub(in crate::spread) delivered: AtomicU64,
    pub(in crate::spread) rejected: AtomicU64,
    pub(in crate::spread) conflicts: [AtomicU64; ConflictReason::COUNT],
    pub(in crate::spread) failures: AtomicU64,
    pub(super) delays: DelayCounters,
    error: Mutex<Option<(String, SystemTime)>>,
    /// Why the log takes nothing, and since when, while it takes nothing.
    refusal: Mutex<Option<(String, SystemTime)>>,
    /// Losses of the log that are in the books.
    entered: Mutex<(u64, u64)>,
}

/// A request under way, until it is dropped.
pub(super) struct UnderWay(std::sync::Arc<AtomicU64>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl MemberCounters {
    /// Counters of a member whose log lost so much before.
    pub(super) fn since(stats: &Stats) -> MemberCounters {
        let entered = Mutex::new((stats.dropped.items, stats.damaged.items));
        MemberCounters { entered, ..MemberCounters::default() }
    }

    pub(super) fn under_way(&self) -> UnderWay {
        self.in_flight.fetch_add(1, Relaxed);
        UnderWay(std::sync::Arc::clone(&self.in_flight))
    }

    pub(super) fn set_behind(&self, is_behind: bool) {
        self.is_behind.store(is_behind, Relaxed);
    }

    pub(super) fn delivered(&self, copies: u64) {
        self.delivered.fetch_add(copies, Relaxed);
    }

    pub(super) fn rejected(&self, copies: u64) {
        self.rejected.fetch_add(copies, Relaxed);
    }

    pub(super) fn conflicts(&self, counts: [u64; ConflictReason::COUNT], unknown: u64) {
        for (sum, count) in self.conflicts.iter().zip(counts) {
            sum.fetch_add(count, Relaxed);
        }
        if let Some(other) = self.conflicts.get(ConflictReason::Other as usize) {
            other.fetch_add(unknown, Relaxed);
        }
    }

    /// An attempt failed, or the member said something.
    pub(super) fn failed(&self, error: &str) {
        self.failures.fetch_add(1, Relaxed);
        let end = error.floor_char_boundary(LONGEST_ERROR);
        let text = error.get(..end).unwrap_or_default().to_owned();
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some((text, SystemTime::now()));
    }

    /// The log takes nothing, or it does again.
    pub(super) fn set_refusal(&self, refusal: Option<&str>) {
        let mut known = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        *known = refusal.map(|text| (text.to_owned(), SystemTime::now()));
    }

    /// A log that takes nothing holds up the sink, so that comes before what the member says.
    pub(in crate::spread) fn last_error(&self) -> Option<(String, SystemTime)> {
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        refusal.or_else(|| self.error.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Items that the log dropped, and items that were damaged in it, since the last call.
    pub(super) fn new_losses(&self, dropped: u64, damaged: u64) -> (u64, u64) {
        let mut entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *entered, (dropped, damaged));
        (dropped.saturating_sub(before.0), damaged.saturating_sub(before.1))
    }
}

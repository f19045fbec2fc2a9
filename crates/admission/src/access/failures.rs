//! Recent authentication failures by address: a table of fixed size, in which addresses that share a slot share its
//! allowance.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_limit::Network;
use tokio::time::Instant;

/// Places of the table: 32 KiB.
const TABLE_SLOTS: usize = 4096;
/// Failures that are answered one after the other, and one more in each [`REFILL_INTERVAL`].
const BURST: u32 = 10;
const REFILL_INTERVAL: Duration = Duration::from_secs(1);
/// Between two lines in the log.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Failures by address, which counts as its [`Network`].
pub(super) struct FailureLimiter {
    began: Instant,
    hasher: RandomState,
    /// For each place a mark of the address and the time, in tenths of a second, until which it has used its allowance.
    places: Box<[AtomicU64]>,
    /// The same for all: when the next line may be logged, and how many failed since the last.
    next_line: AtomicU64,
    unsaid: AtomicU64,
}

/// The consequences of a failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FailureVerdict {
    /// How many failures a line in the log should speak of, where there should be one.
    pub(super) say: Option<u64>,
    /// How long to stay away, for who has failed too often.
    pub(super) wait: Option<Duration>,
}

impl FailureLimiter {
    pub(super) fn new() -> FailureLimiter {
        FailureLimiter {
            began: Instant::now(),
            hasher: RandomState::new(),
            places: (0..TABLE_SLOTS).map(|_| AtomicU64::new(0)).collect(),
            next_line: AtomicU64::new(0),
            unsaid: AtomicU64::new(0),
        }
    }

    /// Notes a failure.
    pub(super) fn note(&self, peer: IpAddr, now: Instant) -> FailureVerdict {
        let tenths = self.tenths(now);
        FailureVerdict { say: self.say(tenths), wait: self.take(peer, tenths) }
    }

    /// Whether a failure now would be one too many.
    pub(super) fn is_over(&self, peer: IpAddr, now: Instant) -> bool {
        let Some((place, mark)) = self.place(peer) else { return false };
        let used = place.load(Relaxed);
        used >> 32 == mark && (used & TIME).saturating_sub(self.tenths(now)) > ALLOWED
    }

    fn take(&self, peer: IpAddr, now: u64) -> Option<Duration> {
        let (place, mark) = self.place(peer)?;
        let mut used = place.load(Relaxed);
        loop {
            // Whoever comes last has the place: the one before is forgiven.
            let until = if used >> 32 == mark { (used & TIME).max(now) } else { now };
            if until - now > ALLOWED {
                return Some(Duration::from_millis((until - now - ALLOWED) * 100));
            }
            let next = mark << 32 | ((until + COST) & TIME);
            match place.compare_exchange_weak(used, next, Relaxed, Relaxed) {
                Ok(_) => return None,
                Err(other) => used = other,
            }
        }
    }

    fn say(&self, now: u64) -> Option<u64> {
        self.unsaid.fetch_add(1, Relaxed);
        let next = self.next_line.load(Relaxed);
        let silence = LOG_INTERVAL.as_secs() * 10;
        let mine =
            now >= next && self.next_line.compare_exchange(next, now + silence, Relaxed, Relaxed).is_ok();
        mine.then(|| self.unsaid.swap(0, Relaxed))
    }

    fn place(&self, peer: IpAddr) -> Option<(&AtomicU64, u64)> {
        let hash = self.hasher.hash_one(Network::of(peer));
        let place = self.places.get(usize::try_from(hash & (TABLE_SLOTS as u64 - 1)).ok()?)?;
        Some((place, hash >> 32))
    }

    /// For 13 years.
    fn tenths(&self, now: Instant) -> u64 {
        u64::try_from(now.duration_since(self.began).as_millis() / 100).unwrap_or(TIME) & TIME
    }
}

const TIME: u64 = u32::MAX as u64;
/// The cost of a failure, in tenths of a second.
const COST: u64 = REFILL_INTERVAL.as_secs() * 10;
/// The burst that is allowed, in tenths of a second.
const ALLOWED: u64 = (BURST as u64 - 1) * COST;

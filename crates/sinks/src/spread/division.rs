//! What dividing a rejected request has in common, whatever the protocol: when it is not tried, and the tally of the parts.

use super::verdict::{ConflictReason, Verdict};
use crate::egress_budget::BudgetError;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// After so many requests, what is rejected is not divided further.
pub(crate) const MOST_REQUESTS: u32 = 64;
/// How long requests are not divided after one of which most was rejected.
const PAUSE: Duration = Duration::from_secs(30);
/// So many times in a row a request is sent again because there is no memory to divide it.
const MOST_ATTEMPTS: u32 = 8;

/// A record of the earlier requests of a member that were divided.
#[derive(Debug, Default)]
pub(crate) struct Division {
    paused_until: Mutex<Option<Instant>>,
    /// Requests in a row that there was no memory to divide.
    short: AtomicU32,
}

impl Division {
    /// Whether requests are not divided now: most of an earlier one was rejected all the same.
    pub(crate) fn is_paused(&self) -> bool {
        let until = self.paused_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// The verdict on a request that was divided.
    pub(crate) fn divided(&self, tally: Tally) -> Verdict {
        self.short.store(0, Relaxed);
        let rejected: u64 = tally.rejected.iter().sum();
        if rejected > tally.taken {
            *self.paused_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + PAUSE);
        }
        match (rejected, tally) {
            (0, _) => Verdict::Accepted,
            (_, Tally { taken: 0, words, .. }) => Verdict::Rejected { words },
            (_, Tally { rejected, words, .. }) => Verdict::Conflict { counts: rejected, words },
        }
    }

    /// Whether a request that cannot be divided for want of memory is tried again.
    pub(crate) fn is_passing(&self, error: BudgetError) -> bool {
        error == BudgetError::WithoutTurn && self.short.fetch_add(1, Relaxed) < MOST_ATTEMPTS
    }
}

/// What a receiver took and what it rejected of a request that goes out in parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    taken: u64,
    rejected: [u64; ConflictReason::COUNT],
    words: String,
}

impl Tally {
    /// Counts items that were taken.
    pub(crate) fn take(&mut self, items: u64) {
        self.taken += items;
    }

    /// Counts items that were rejected with these words.
    pub(crate) fn reject(&mut self, words: String, items: u64) {
        if let Some(count) = self.rejected.get_mut(ConflictReason::of(&words) as usize) {
            *count += items;
        }
        self.words = words;
    }
}

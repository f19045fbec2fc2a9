//! How long to leave a failing peer alone.

use crate::random;
use std::time::{Duration, Instant};

/// A peer that asks for more is asked again after this.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);

pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    pub(super) failures: u32,
    pub(super) until: Option<Instant>,
    /// The peer itself named the time, so nobody may call before.
    pub(super) asked_for: bool,
}

impl Backoff {
    pub(super) fn new((first, longest): (Duration, Duration)) -> Backoff {
        Backoff { first, longest, failures: 0, until: None, asked_for: false }
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.until = None;
        self.asked_for = false;
    }

    pub(super) fn failed(&mut self, now: Instant, asked: Option<Duration>) {
        let doubled = self.first.saturating_mul(1 << self.failures.min(20)).min(self.longest);
        self.failures += 1;
        // Between half and all of it, so that many senders do not come back at once.
        let wait = doubled / 2 + (doubled / 2).mul_f64(random::next() as f64 / u64::MAX as f64);
        let asked = asked.map(|asked| asked.min(LONGEST_ASKED));
        self.asked_for = asked.is_some_and(|asked| asked > Duration::ZERO);
        self.until = Some(now + asked.map_or(wait, |asked| asked.max(wait)));
    }

    pub(super) fn is_waiting(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_with_jitter_and_a_peer_may_ask_for_more() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new((second, 36 * second));
        let mut longest = Vec::new();
        for _ in 0..8 {
            backoff.failed(now, None);
            longest.push(backoff.until.unwrap() - now);
        }
        for (wait, at_most) in longest.iter().zip([1, 2, 4, 8, 16, 32, 36, 36]) {
            assert!(*wait <= at_most * second && *wait >= at_most * second / 2, "{wait:?} of {at_most} s");
        }
        backoff.failed(now, Some(100 * second));
        assert_eq!(backoff.until.unwrap() - now, 100 * second);
        assert!(backoff.asked_for);
        backoff.failed(now, Some(Duration::MAX));
        assert_eq!(backoff.until.unwrap() - now, LONGEST_ASKED);
        backoff.succeeded();
        assert!(!backoff.is_waiting(now));
    }
}

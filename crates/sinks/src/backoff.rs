//! How long to wait before the next attempt.

use std::time::Duration;

/// Exponential backoff with jitter, and a peer's `Retry-After` where that is longer.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    /// Waits from `min`, doubling up to `max`.
    pub(crate) fn new(min: Duration, max: Duration) -> Backoff {
        Backoff { min, max: max.max(min), next: min }
    }

    /// An attempt succeeded: the next failure starts at the shortest wait.
    pub(crate) fn reset(&mut self) {
        self.next = self.min;
    }

    /// The wait after a failed attempt: between half and the whole of the current step, and no less than
    /// what the peer asked for (which gets up to a tenth on top, as it told others the same).
    pub(crate) fn wait(&mut self, retry_after: Option<Duration>) -> Duration {
        let step = self.next;
        self.next = step.saturating_mul(2).min(self.max);
        let own = step / 2 + (step / 2).mul_f64(rand::random::<f64>());
        match retry_after {
            Some(asked) if asked >= own => asked + (asked / 10).mul_f64(rand::random::<f64>()),
            _ => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn waits_double_up_to_the_longest_and_start_again_after_a_success() {
        let mut backoff = Backoff::new(30 * MS, 100 * MS);
        for step in [30, 60, 100, 100] {
            let wait = backoff.wait(None);
            assert!(wait >= step / 2 * MS && wait <= step * MS, "{wait:?} for a step of {step} ms");
        }
        backoff.reset();
        assert!(backoff.wait(None) <= 30 * MS);
    }

    #[test]
    fn a_longer_retry_after_wins() {
        let mut backoff = Backoff::new(30 * MS, 100 * MS);
        let asked = Duration::from_secs(20);
        assert!((asked..=asked.mul_f64(1.1)).contains(&backoff.wait(Some(asked))));
        assert!(backoff.wait(Some(MS)) >= 30 * MS);
    }
}

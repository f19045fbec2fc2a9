//! How long to wait before the next request.

use std::time::Duration;

const MIN: Duration = Duration::from_millis(250);
const MAX: Duration = Duration::from_secs(30);

/// Doubles from a quarter of a second to 30 s. Each wait is between half of the step and the whole, so that the nodes of
/// a cluster do not all come back at the same moment.
#[derive(Debug, Clone)]
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff(MIN)
    }
}

impl Backoff {
    pub(crate) fn reset(&mut self) {
        self.0 = MIN;
    }

    /// The wait after a failure; no less than what the server asked for.
    pub(crate) fn wait(&mut self, retry_after: Option<Duration>) -> Duration {
        let half = self.0 / 2;
        self.0 = self.0.saturating_mul(2).min(MAX);
        let own = half + half.mul_f64(rand::random::<f64>());
        retry_after.map_or(own, |asked| asked.min(4 * MAX).max(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_half_a_minute() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..12).map(|_| backoff.wait(None)).collect();
        for (wait, step) in waits.iter().zip([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
            let step = Duration::from_millis(step);
            assert!(*wait >= step / 2 && *wait <= step, "{wait:?} of {step:?}");
        }
        backoff.reset();
        assert!(backoff.wait(None) <= MIN);
        assert_eq!(backoff.wait(Some(Duration::from_secs(7))), Duration::from_secs(7));
    }
}

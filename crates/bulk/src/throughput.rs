//! Estimates the throughput of requests, and the delay that a refused caller should wait.

use std::time::{Duration, Instant};

/// The shortest and the longest delay.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60);
/// The weight of the last request in the average.
const SMOOTHING: f64 = 0.25;

/// The throughput of one lane.
#[derive(Debug, Default)]
pub(crate) struct ThroughputEstimate {
    /// Bytes a second.
    bytes_per_second: f64,
    /// When the last request got done.
    last: Option<Instant>,
}

impl ThroughputEstimate {
    /// A request of `bytes` that was sent at `since` got done.
    pub(crate) fn record(&mut self, bytes: usize, since: Instant, now: Instant) {
        // Requests overlap: what counts is the time since the last one finished.
        let from = self.last.map_or(since, |last| last.max(since));
        let took = now.saturating_duration_since(from).max(Duration::from_micros(10));
        let pace = bytes as f64 / took.as_secs_f64();
        self.bytes_per_second = if self.last.is_none() {
            pace
        } else {
            self.bytes_per_second + SMOOTHING * (pace - self.bytes_per_second)
        };
        self.last = Some(now);
    }

    /// When `waiting` bytes will be done, judging by the pace; where nothing gets done, no less than it has taken
    /// already since `since`.
    pub(crate) fn delay(&self, waiting: u64, since: Option<Instant>, now: Instant) -> Duration {
        let stalled = match (self.last, since) {
            (Some(last), Some(since)) => now.saturating_duration_since(last.max(since)),
            (None, Some(since)) => now.saturating_duration_since(since),
            (_, None) => Duration::ZERO,
        };
        let paced = if self.bytes_per_second > 0.0 { waiting as f64 / self.bytes_per_second } else { 0.0 };
        let paced = Duration::try_from_secs_f64(paced).unwrap_or(LONGEST);
        paced.max(stalled).clamp(SHORTEST, LONGEST)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The delay is what the bytes that wait will take at the pace of the last requests.
    #[test]
    fn the_delay_follows_the_pace() {
        let start = Instant::now();
        let mut throughput = ThroughputEstimate::default();
        for second in 0..20 {
            throughput.record(1 << 20, start + second * SECOND, start + (second + 1) * SECOND);
        }
        let delay = throughput.delay(10 << 20, Some(start), start + 20 * SECOND);
        assert!((delay.as_secs_f64() - 10.0).abs() < 0.1, "{delay:?}");
    }

    /// While nothing gets done the delay grows, and it has bounds.
    #[test]
    fn a_stalled_server_makes_it_grow() {
        let start = Instant::now();
        let throughput = ThroughputEstimate::default();
        assert_eq!(throughput.delay(1, Some(start), start), SHORTEST);
        assert_eq!(throughput.delay(1, Some(start), start + 7 * SECOND), 7 * SECOND);
        assert_eq!(throughput.delay(1, Some(start), start + 700 * SECOND), LONGEST);
    }
}

//! How long the refused should stay away: from how fast what is full is really being emptied.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bounds of every delay, in seconds. Shorter, and a client returns before anything has changed; longer,
/// and it idles when everything is well again.
const MIN_DELAY: u64 = 1;
const MAX_DELAY: u64 = 60;
/// The delay while nothing is known yet, in seconds.
const DEFAULT_DELAY: u64 = 5;

/// Measures a flow in bytes a second and turns a backlog into a delay.
#[derive(Debug, Default)]
pub struct DrainEstimate {
    passed: AtomicU64,
    /// Bytes a second, smoothed over about four ticks.
    rate: AtomicU64,
    spread: AtomicU64,
}

impl DrainEstimate {
    /// Counts `bytes` that went through.
    pub fn record(&self, bytes: u64) {
        self.passed.fetch_add(bytes, Relaxed);
    }

    /// Ends a measuring interval. To be called once a second.
    pub fn tick(&self) {
        let passed = self.passed.swap(0, Relaxed);
        let rate = self.rate.load(Relaxed);
        self.rate.store((rate * 3).saturating_add(passed) / 4, Relaxed);
    }

    /// Seconds after which `backlog` bytes will have gone through, plus up to half as much again so that
    /// those who are refused together do not return together.
    pub fn delay(&self, backlog: u64) -> u32 {
        let seconds = match self.rate.load(Relaxed) {
            0 => DEFAULT_DELAY,
            rate => backlog.div_ceil(rate).clamp(MIN_DELAY, MAX_DELAY),
        };
        self.spread(seconds)
    }

    /// `seconds` within the bounds, plus up to half as much again.
    pub fn spread(&self, seconds: u64) -> u32 {
        self.jitter(seconds.min(MAX_DELAY))
    }

    /// `seconds`, or the shortest delay, plus up to half as much again, or one: never less than was asked for.
    #[inline]
    pub fn jitter(&self, seconds: u64) -> u32 {
        let seconds = seconds.clamp(MIN_DELAY, u32::MAX.into());
        // A Weyl sequence: successive callers land evenly over the interval, without a random generator. Two at the
        // same time may land on one place, which is cheaper than to keep them apart.
        let step = self.spread.load(Relaxed);
        self.spread.store(step.wrapping_add(0x9E37_79B9_7F4A_7C15), Relaxed);
        let extra = ((step >> 32) * ((seconds / 2).max(1) + 1)) >> 32;
        u32::try_from(seconds + extra).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_is_the_time_that_the_backlog_takes() {
        let pressure = DrainEstimate::default();
        for _ in 0..40 {
            pressure.record(1000);
            pressure.tick();
        }
        let delays: Vec<u32> = (0..100).map(|_| pressure.delay(10_000)).collect();
        assert!(delays.iter().all(|delay| (10..=16).contains(delay)), "{delays:?}");
        assert!(pressure.delay(1) <= 2);
        assert!(pressure.delay(u64::MAX) <= 90);
    }

    #[test]
    fn retry_delays_are_spread() {
        let pressure = DrainEstimate::default();
        let mut delays: Vec<u32> = (0..100).map(|_| pressure.spread(20)).collect();
        delays.sort_unstable();
        delays.dedup();
        assert_eq!(delays, (20..=30).collect::<Vec<_>>());
    }

    #[test]
    fn before_anything_is_known_the_delay_is_short() {
        assert!((DEFAULT_DELAY as u32..=8).contains(&DrainEstimate::default().delay(1 << 40)));
    }
}

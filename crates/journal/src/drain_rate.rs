//! How fast sinks free space, and so when it is worth trying again.

use std::time::Duration;

const BUCKETS: usize = 15;
const BUCKET_NS: u64 = 2_000_000_000;
/// The bounds of the advice, in milliseconds.
const MIN_DELAY_MS: u64 = 1_000;
const MAX_DELAY_MS: u64 = 60_000;

/// Bytes completed by the slowest sink, over the last 30 seconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct DrainRate {
    buckets: [u64; BUCKETS],
    /// The number of the newest bucket since the clock's beginning.
    newest: u64,
    /// Buckets that have been observed, up to all.
    observed: u64,
    /// Where the slowest sink was, in bytes.
    at: Option<u64>,
}

impl DrainRate {
    /// Notes where the slowest sink is.
    pub(crate) fn observe(&mut self, now_ns: u64, slowest: u64) {
        let bucket = now_ns / BUCKET_NS;
        let passed = if self.observed == 0 { 1 } else { bucket.saturating_sub(self.newest) };
        for step in 1..=passed.min(BUCKETS as u64) {
            if let Some(old) = self.buckets.get_mut(((self.newest + step) % BUCKETS as u64) as usize) {
                *old = 0;
            }
        }
        self.observed = (self.observed + passed).min(BUCKETS as u64);
        self.newest = bucket.max(self.newest);
        let moved = self.at.map_or(0, |before| slowest.saturating_sub(before));
        if let Some(now) = self.buckets.get_mut((self.newest % BUCKETS as u64) as usize) {
            *now += moved;
        }
        self.at = Some(slowest);
    }

    /// How long it takes to free `bytes` at this rate: from 1 to 60 seconds.
    pub(crate) fn time_for(&self, bytes: u64) -> Duration {
        let freed: u64 = self.buckets.iter().sum();
        let observed_ms = self.observed * (BUCKET_NS / 1_000_000);
        let ms = bytes.saturating_mul(observed_ms).checked_div(freed).unwrap_or(MAX_DELAY_MS);
        Duration::from_millis(ms.clamp(MIN_DELAY_MS, MAX_DELAY_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_follows_the_rate_and_stays_in_bounds() {
        let mut drain = DrainRate::default();
        assert_eq!(drain.time_for(1), Duration::from_secs(60));
        // 1,000 bytes a second.
        for second in 0..60 {
            drain.observe(second * 1_000_000_000, second * 1000);
        }
        let near = drain.time_for(20_000).as_secs();
        assert!((19..=21).contains(&near), "{near}");
        assert_eq!(drain.time_for(0), Duration::from_secs(1));
        assert_eq!(drain.time_for(u64::MAX), Duration::from_secs(60));
        // A stall is forgotten by nobody: the old rate leaves the window.
        drain.observe(200 * 1_000_000_000, 59_000);
        assert_eq!(drain.time_for(1000), Duration::from_secs(60));
    }
}

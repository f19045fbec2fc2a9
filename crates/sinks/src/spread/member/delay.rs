//! How long requests wait before they are sent to a member for the first time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// Delays of requests to one member, since the start. What was on disk first is not among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SendDelays {
    /// Their sum, in nanoseconds.
    pub sum_ns: u64,
    /// How many there are up to each of [`SendDelays::BOUNDS_NS`] and above the bound before, and how many are longer than all.
    pub counts: [u64; SendDelays::BOUNDS_NS.len() + 1],
}

/// The same while it is counted.
#[derive(Debug, Default)]
pub(super) struct DelayCounters {
    sum_ns: AtomicU64,
    counts: [AtomicU64; SendDelays::BOUNDS_NS.len() + 1],
}

impl SendDelays {
    /// Bounds in nanoseconds, from 1 ms, each twice the one before.
    pub const BOUNDS_NS: [u64; 16] = {
        let mut bounds = [1_000_000; 16];
        let mut index = 1;
        while index < bounds.len() {
            bounds[index] = 2 * bounds[index - 1];
            index += 1;
        }
        bounds
    };

    /// Adds those of another member.
    pub fn add(&mut self, other: &SendDelays) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum += count;
        }
    }
}

impl DelayCounters {
    /// Counts a request whose data was received at `received_at_ns` since 1970, and which is sent now.
    pub(super) fn sent(&self, received_at_ns: u64) {
        let received_at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(received_at_ns));
        let delay = received_at.and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or_default();
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let bucket = SendDelays::BOUNDS_NS.partition_point(|bound| *bound < delay_ns);
        self.sum_ns.fetch_add(delay_ns, Relaxed);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn report(&self) -> SendDelays {
        let mut delays = SendDelays { sum_ns: self.sum_ns.load(Relaxed), ..SendDelays::default() };
        for (count, counted) in delays.counts.iter_mut().zip(&self.counts) {
            *count = counted.load(Relaxed);
        }
        delays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_in_the_bucket_of_their_length() {
        let counters = DelayCounters::default();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let second_ago = now.saturating_sub(Duration::from_millis(1500));
        counters.sent(u64::try_from(second_ago.as_nanos()).unwrap());
        counters.sent(0);
        counters.sent(u64::MAX);
        let SendDelays { counts, sum_ns } = counters.report();
        assert_eq!(counts[0], 1, "a time in the future is no delay");
        assert_eq!(counts[11], 1, "1.5 s are between 1.024 s and 2.048 s");
        assert_eq!(counts[16], 1, "decades are longer than all bounds");
        assert!(sum_ns > 1_500_000_000);
        assert_eq!(SendDelays::BOUNDS_NS[15], 32_768_000_000);
    }
}

//! The time, given from outside so that tests drive it.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where the journal reads the time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some fixed moment, never going back.
    fn monotonic_ns(&self) -> u64;
    /// Nanoseconds since 1970.
    fn unix_ns(&self) -> u64;
}

/// The machine's clock.
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn unix_ns(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

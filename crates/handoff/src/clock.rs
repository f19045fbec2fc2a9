//! The time, given from outside so that tests drive it.

use std::time::Instant;

pub(crate) trait Clock: Send {
    /// Nanoseconds since some fixed moment, never going back.
    fn monotonic_ns(&self) -> u64;
}

/// The machine's clock.
pub(crate) struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock(Instant::now())
    }
}

impl Clock for SystemClock {
    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

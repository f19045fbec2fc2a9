//! The time at which a body was received, and how long ago that is.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime};

/// Now, in nanoseconds since 1970; zero before.
pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A moment in four bytes: every connection's task has room for one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timestamp(u32);

impl Timestamp {
    /// Now.
    pub(crate) fn now() -> Timestamp {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        // Microseconds, which begin again every 71 minutes; only differences count.
        Timestamp(START.elapsed().as_micros() as u32)
    }

    /// Nanoseconds since then, to the microsecond.
    pub(crate) fn elapsed_ns(self) -> u64 {
        u64::from(Timestamp::now().0.wrapping_sub(self.0)) * 1000
    }
}

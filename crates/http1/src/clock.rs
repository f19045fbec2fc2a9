//! The clock that answers are dated by.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the system's monotonic clock, late by some milliseconds: reading it costs a quarter of the exact one.
#[inline]
pub(crate) fn coarse_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or_default())
}

//! The time by which limits are kept.

use rustix::time::{ClockId, clock_gettime};

/// A moment, in nanoseconds of the system's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// Now, or up to four milliseconds ago: the clock that costs a quarter of the exact one. Late by so little,
    /// a limit refuses what it could just let in, and never the other way round.
    #[inline]
    pub fn now() -> Moment {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        let rest = u64::try_from(now.tv_nsec).unwrap_or_default();
        Moment(seconds.saturating_mul(1_000_000_000).saturating_add(rest))
    }
}

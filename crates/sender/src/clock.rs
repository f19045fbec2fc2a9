//! The time of day, for ways in whose events do not bring theirs.

use crate::record::Nanos;
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(any(feature = "tracing", feature = "log"))]
pub(crate) fn now() -> Nanos {
    nanos(SystemTime::now())
}

/// 0 before 1970.
pub(crate) fn nanos(time: SystemTime) -> Nanos {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

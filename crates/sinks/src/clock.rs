//! The time of day.

use std::time::SystemTime;

/// Now, in nanoseconds since 1970; zero before.
pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

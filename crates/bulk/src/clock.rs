//! The clock: tokio's, so that tests can drive it.

use std::time::Instant;

/// The current time.
pub(crate) fn now() -> Instant {
    #[cfg(feature = "driver")]
    return tokio::time::Instant::now().into_std();
    #[cfg(not(feature = "driver"))]
    Instant::now()
}

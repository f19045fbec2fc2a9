use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time between two looks at a condition.
pub const POLL: Duration = Duration::from_millis(20);

/// Waits until `condition` holds.
///
/// # Panics
/// When it does not within `deadline`; the message says `what` was waited for.
#[track_caller]
pub fn until(deadline: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    until_some(deadline, what, || condition().then_some(()));
}

/// Waits until `look` finds something, and returns it.
///
/// # Panics
/// When it does not within `deadline`; the message says `what` was waited for.
#[track_caller]
pub fn until_some<T>(deadline: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < deadline, "waited {deadline:?} for {what}");
        sleep(POLL);
    }
}

//! How much of a thread's time goes to handshakes: half of it at most, so that whoever is let in already is served.

use std::cell::Cell;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Handshakes may be ahead by so much: a few at once need not wait for a timer.
const MAX_AHEAD: Duration = Duration::from_millis(4);

thread_local! {
    /// When the others will have had as much time as handshakes.
    static PAID_OFF_AT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Waits until a handshake may go on.
pub(crate) async fn turn() {
    while let Some(even) = PAID_OFF_AT.get() {
        let Some(at) = even.checked_sub(MAX_AHEAD).filter(|at| *at > Instant::now()) else { return };
        sleep_until(at).await;
    }
}

/// Does a part of a handshake, and notes how long it took.
pub(crate) fn work<T>(part: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let outcome = part();
    let now = Instant::now();
    let even = PAID_OFF_AT.get().map_or(now, |even| even.max(now)) + (now - began);
    PAID_OFF_AT.set(Some(even));
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever comes, handshakes have no more than half of the time.
    #[tokio::test(start_paused = true)]
    async fn handshakes_have_half_of_the_time() {
        let began = Instant::now();
        let mut worked = Duration::ZERO;
        for _ in 0..200 {
            turn().await;
            let part = Duration::from_millis(1);
            worked += part;
            let even = PAID_OFF_AT.get().map_or(Instant::now(), |even| even.max(Instant::now())) + 2 * part;
            // As `work` would, with a clock that stands still meanwhile.
            PAID_OFF_AT.set(Some(even));
        }
        let took = began.elapsed();
        assert!(took >= 2 * worked - 2 * MAX_AHEAD, "{worked:?} of {took:?}");
        assert!(took <= 2 * worked + 2 * MAX_AHEAD, "{worked:?} of {took:?}");
        assert_eq!(work(|| 7), 7);
    }
}

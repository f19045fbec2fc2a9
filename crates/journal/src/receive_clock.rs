//! The receive times of records: in the order of the journal they do not decrease, but where the clock was set back for good.
//!
//! A source takes the time when a body is complete and appends it then, and appends overtake each other: by milliseconds, or by as long as
//! one waits for memory. So a record gets the time of the one before it where its own is earlier. Times are raised as long as the
//! clock itself is not behind them by more than [`SET_BACK_NS`]: to raise them then would make them wrong for as long as the step was.
//!
//! A reader that acts when time passes and nothing comes needs to know that no record comes later with an earlier time. So it may
//! [set a floor](ReceiveClock::advance), and is told which records have a time already: those it has to read before.
//! One lock is held for each: a record that is not among those that the reader is told of gets its time behind the floor.

use crate::sync::{Mutex, lock};

/// A clock that is behind the last record by more than this was set back for good, in nanoseconds.
pub const SET_BACK_NS: u64 = 5_000_000_000;

/// The clock that gives records their times.
pub(crate) struct ReceiveClock(Mutex<State>);

struct State {
    /// The last time that was given, or the floor.
    last_ns: u64,
    /// All records before this one have a time.
    head: u64,
}

impl ReceiveClock {
    /// Of a journal whose next record is `head`, and whose last was received at `last_ns` or a little later.
    pub(crate) fn new(head: u64, last_ns: u64) -> ReceiveClock {
        ReceiveClock(Mutex::new(State { last_ns, head }))
    }

    /// Gives each of these records its time, when it is `now_ns`. The next one is `head` then.
    pub(crate) fn give<'t>(&self, times_ns: impl Iterator<Item = &'t mut u64>, head: u64, now_ns: u64) {
        let mut state = lock(&self.0);
        let is_set_back = state.last_ns > now_ns.saturating_add(SET_BACK_NS);
        if is_set_back {
            state.last_ns = 0;
        }
        // A body that came before the step has a time behind it, and would hide that.
        let most_ns = if is_set_back { now_ns } else { u64::MAX };
        for time_ns in times_ns {
            state.last_ns = state.last_ns.max((*time_ns).min(most_ns));
            *time_ns = state.last_ns;
        }
        state.head = head;
    }

    /// Records from `head` on were given up.
    pub(crate) fn take_back(&self, head: u64) {
        lock(&self.0).head = head;
    }

    /// No record that has no time yet gets one before `floor_ns`, unless the clock is set back for good. Returns the first of those
    /// records.
    pub(crate) fn advance(&self, floor_ns: u64) -> u64 {
        let mut state = lock(&self.0);
        state.last_ns = state.last_ns.max(floor_ns);
        state.head
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    //! Promise: times do not decrease, floors hold, and a clock that is set back for good is believed.

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn given(clock: &ReceiveClock, times: &[u64], head: u64, now: u64) -> Vec<u64> {
        let mut times: Vec<u64> = times.iter().map(|seconds| seconds * SECOND).collect();
        clock.give(times.iter_mut(), head, now * SECOND);
        times.iter().map(|ns| ns / SECOND).collect()
    }

    #[test]
    fn times_do_not_decrease() {
        let clock = ReceiveClock::new(0, 99 * SECOND);
        assert_eq!(given(&clock, &[98, 100, 98, 101, 96], 5, 101), [99, 100, 100, 101, 101]);
        // One that waited for memory for a minute.
        assert_eq!(given(&clock, &[41], 6, 102), [101]);
        // A clock that is set right by some seconds.
        assert_eq!(given(&clock, &[97], 7, 97), [101]);
        // One that is set back by an hour.
        assert_eq!(given(&clock, &[50, 99, 51], 10, 51), [50, 51, 51]);
    }

    #[test]
    fn a_floor_holds_for_records_without_a_time() {
        let clock = ReceiveClock::new(7, 0);
        assert_eq!(clock.advance(103 * SECOND), 7);
        assert_eq!(given(&clock, &[97, 104], 9, 104), [103, 104]);
        assert_eq!(clock.advance(1), 9);
        assert_eq!(given(&clock, &[104], 10, 104), [104]);
        clock.take_back(9);
        assert_eq!(clock.advance(1), 9);
    }
}

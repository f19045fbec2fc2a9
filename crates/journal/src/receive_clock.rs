//! The receive times of records: in the order of the journal they never decrease, but where the clock was set back for good.
//!
//! A source takes the time when a body is complete and appends it then, and appends overtake each other by milliseconds. So a record gets
//! the time of the one before it where its own is earlier. A clock that was set back by more than [`LONGEST_RAISE_NS`] is believed:
//! to raise its times would make them wrong for as long as it was wrong before.
//!
//! A reader that acts when time passes and nothing comes needs to know that no record comes later with an earlier time. So it may
//! [set a floor](ReceiveClock::advance), and is told which records have a time already: those it has to read before.
//! One lock is held for each: a record that is not among those that the reader is told of gets its time behind the floor.

use crate::sync::{Mutex, lock};

/// The most by which a time is raised, in nanoseconds.
pub(crate) const LONGEST_RAISE_NS: u64 = 5_000_000_000;

/// The clock that gives records their times.
pub(crate) struct ReceiveClock(Mutex<State>);

struct State {
    /// The last time that was given, or the floor.
    last_ns: u64,
    /// All records before this one have a time.
    head: u64,
}

impl ReceiveClock {
    /// Of a journal whose next record is `head`.
    pub(crate) fn new(head: u64) -> ReceiveClock {
        ReceiveClock(Mutex::new(State { last_ns: 0, head }))
    }

    /// Gives each of these records its time. The next one is `head` then.
    pub(crate) fn give<'t>(&self, times_ns: impl Iterator<Item = &'t mut u64>, head: u64) {
        let mut state = lock(&self.0);
        for time_ns in times_ns {
            if state.last_ns.saturating_sub(*time_ns) <= LONGEST_RAISE_NS {
                *time_ns = state.last_ns.max(*time_ns);
            }
            state.last_ns = *time_ns;
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
    //! Promise: times never decrease by a little, floors hold, and a clock that is set back for good is believed.

    use super::*;

    fn given(clock: &ReceiveClock, times: &[u64], head: u64) -> Vec<u64> {
        let mut times: Vec<u64> = times.iter().map(|seconds| seconds * 1_000_000_000).collect();
        clock.give(times.iter_mut(), head);
        times.iter().map(|ns| ns / 1_000_000_000).collect()
    }

    #[test]
    fn times_do_not_decrease_by_a_little() {
        let clock = ReceiveClock::new(0);
        assert_eq!(given(&clock, &[100, 98, 101, 96], 4), [100, 100, 101, 101]);
        assert_eq!(given(&clock, &[97], 5), [101]);
        // An hour is not raised.
        assert_eq!(given(&clock, &[50, 49, 51], 8), [50, 50, 51]);
    }

    #[test]
    fn a_floor_holds_for_records_without_a_time() {
        let clock = ReceiveClock::new(7);
        assert_eq!(clock.advance(103_000_000_000), 7);
        assert_eq!(given(&clock, &[100, 104], 9), [103, 104]);
        assert_eq!(clock.advance(1), 9);
        assert_eq!(given(&clock, &[104], 10), [104]);
        clock.take_back(9);
        assert_eq!(clock.advance(1), 9);
    }
}

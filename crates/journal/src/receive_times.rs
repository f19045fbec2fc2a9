//! When records were received, as far as a lag in seconds needs to know: a few marks, the closer together the younger
//! they are.
//!
//! Invariant: for every record behind the first mark, the mark at or before it is older than the record by at most
//! a tenth of a second or an eighth of the record's age, whichever is more, or else nothing was received in between.

use std::collections::VecDeque;

/// So many marks are kept: half of them reach back for more than a year.
pub(crate) const MAX_MARKS: usize = 1024;
/// Marks are at least so far apart.
const MIN_DISTANCE_NS: u64 = 100_000_000;
/// Older ones may be apart by this part of their age. What is left after thinning out is apart by half of it on the
/// average.
const AGE_FRACTION: u64 = 8;

/// The record of this sequence was received at this time, in nanoseconds since 1970.
pub(crate) type Mark = (u64, u64);

/// When records were received.
pub(crate) struct ReceiveTimes {
    marks: VecDeque<Mark>,
}

impl Default for ReceiveTimes {
    fn default() -> ReceiveTimes {
        ReceiveTimes { marks: VecDeque::with_capacity(MAX_MARKS) }
    }
}

impl ReceiveTimes {
    /// Notes that the records from `sequence` on were received at `received_at_ns` or later. Allocates nothing.
    pub(crate) fn note(&mut self, sequence: u64, received_at_ns: u64) {
        let near =
            |(last, at): &Mark| sequence <= *last || received_at_ns.saturating_sub(*at) < MIN_DISTANCE_NS;
        if self.marks.back().is_some_and(near) {
            return;
        }
        if self.marks.len() >= MAX_MARKS {
            self.thin_out(received_at_ns);
        }
        self.marks.push_back((sequence, received_at_ns));
    }

    /// A time at which the last record was received, or a little before; nothing where that is not known.
    pub(crate) fn last(&self) -> Option<u64> {
        self.marks.back().map(|(_, at)| *at)
    }

    /// A time at which the record `sequence` was received, or a little before; nothing where that is not known.
    pub(crate) fn at(&self, sequence: u64) -> Option<u64> {
        let behind = self.marks.partition_point(|(first, _)| *first <= sequence);
        self.marks.get(behind.checked_sub(1)?).map(|(_, at)| *at)
    }

    /// Forgets marks between two others that are close together for their age.
    fn thin_out(&mut self, now_ns: u64) {
        let mut newer: Option<Mark> = None;
        let mut kept = self.marks.len();
        // Newest first; the kept ones move to the end.
        for at in (0..self.marks.len()).rev() {
            let (Some(mark), older) = (self.marks.get(at).copied(), at.checked_sub(1)) else { continue };
            let older = older.and_then(|older| self.marks.get(older)).copied();
            let between = newer.zip(older);
            let close = between.is_some_and(|((_, newer), (_, older))| {
                newer.saturating_sub(older) <= now_ns.saturating_sub(older) / AGE_FRACTION
            });
            if close {
                continue;
            }
            newer = Some(mark);
            kept -= 1;
            if let Some(room) = self.marks.get_mut(kept) {
                *room = mark;
            }
        }
        // A clock that jumps may leave nothing that is close together.
        let least = MAX_MARKS / 4;
        self.marks.drain(..kept.max(least));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    //! Promise: the age of a record is known to an eighth, whatever came before and after it, in a bounded memory.

    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;
    const BEGIN: u64 = 1_700_000_000 * SECOND;

    proptest! {
        #[test]
        fn ages_are_known_to_an_eighth(
            gaps in proptest::collection::vec((0_u64..2000, 1_usize..400), 1..40),
            unit in prop_oneof![Just(SECOND / 1000), Just(SECOND / 20), Just(SECOND), Just(60 * SECOND)],
        ) {
            let mut times = ReceiveTimes::default();
            let mut received = Vec::new();
            let mut now = BEGIN;
            for (gap, count) in gaps {
                for _ in 0..count {
                    now += gap * unit / 100;
                    times.note(received.len() as u64, now);
                    received.push(now);
                    prop_assert!(times.marks.len() <= MAX_MARKS && times.marks.capacity() == MAX_MARKS);
                }
            }
            for (sequence, at) in received.iter().enumerate() {
                let known = times.at(sequence as u64).unwrap();
                let age = now - at;
                prop_assert!(known <= *at);
                // Twice: once for the mark, and once for the time that has passed since marks were dropped.
                let allowed = MIN_DISTANCE_NS.max((now - known) / AGE_FRACTION);
                let before = received.get(sequence.wrapping_sub(1)).copied().unwrap_or(BEGIN);
                prop_assert!(at - known <= allowed || known >= before, "age {age}, off by {}", at - known);
            }
        }
    }

    #[test]
    fn a_year_of_ten_marks_a_second_fits() {
        let mut times = ReceiveTimes::default();
        let (mut now, mut sequence) = (BEGIN, 0);
        while now < BEGIN + 400 * 86_400 * SECOND {
            times.note(sequence, now);
            sequence += 1;
            // Faster and faster, lest the test take a year.
            now += MIN_DISTANCE_NS.max((BEGIN + 400 * 86_400 * SECOND - now) / 1000);
        }
        assert_eq!(times.at(0), Some(BEGIN));
        assert!(times.marks.len() <= MAX_MARKS);
    }

    #[test]
    fn nothing_is_known_before_the_first_mark_and_a_clock_that_jumps_harms_nothing() {
        let mut times = ReceiveTimes::default();
        assert_eq!(times.at(5), None);
        times.note(5, BEGIN);
        assert_eq!((times.at(4), times.at(5), times.at(6)), (None, Some(BEGIN), Some(BEGIN)));
        for sequence in 6..5000 {
            times.note(sequence, if sequence % 2 == 0 { SECOND } else { u64::MAX - SECOND });
        }
        assert!(times.marks.len() <= MAX_MARKS);
    }
}

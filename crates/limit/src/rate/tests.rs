//! Promises: a rate lets through what the plain model of a bucket does, never more than its bound in any stretch of
//! time, and what it says about when to return is true.

use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn rate(rate: u64, burst: u64) -> Rate {
    Rate::new(Some(PerSecond { rate, burst }))
}

#[test]
fn the_burst_passes_at_once_and_then_one_at_a_time() {
    let rate = rate(10, 5);
    let mut now = Moment(SECOND);
    assert_eq!((0..10).filter(|_| rate.take(now, 1).is_ok()).count(), 5);
    for _ in 0..20 {
        now.0 += SECOND / 10;
        assert_eq!((0..10).filter(|_| rate.take(now, 1).is_ok()).count(), 1);
    }
    now.0 += 100 * SECOND;
    assert_eq!((0..10).filter(|_| rate.take(now, 1).is_ok()).count(), 5, "a pause earns the burst, no more");
}

#[test]
fn a_request_larger_than_the_burst_passes_a_full_bucket_and_is_paid_off() {
    let rate = rate(100, 10);
    let mut now = Moment(SECOND);
    assert_eq!(rate.take(now, 1000), Ok(()));
    assert!(rate.take(now, 1).is_err());
    now.0 += 9 * SECOND;
    assert!(rate.take(now, 1).is_err());
    let wait = rate.check(now, 1).unwrap_err();
    now.0 += u64::try_from(wait.as_nanos()).unwrap();
    assert_eq!(rate.take(now, 1), Ok(()));
}

#[test]
fn no_limit_is_none_and_a_change_counts_from_then_on() {
    let rate = Rate::new(None);
    let now = Moment(SECOND);
    assert!((0..1000).all(|_| rate.take(now, u64::MAX).is_ok()));
    rate.set_limit(Some(PerSecond { rate: 1, burst: 1 }));
    assert_eq!(rate.take(now, 1), Ok(()));
    assert!(rate.take(now, 1).is_err());
    rate.set_limit(None);
    assert_eq!(rate.take(now, 1), Ok(()));
}

proptest! {
    /// A bucket with exact arithmetic: `level` is what is owed, in billionths of one.
    #[test]
    fn it_is_the_plain_bucket(
        per_second in 1..1_000_000_u64,
        burst in 1..1000_u64,
        steps in proptest::collection::vec((0..SECOND, 1..2000_u64), 1..100),
    ) {
        let rate = rate(per_second, burst);
        let (mut now, mut level) = (SECOND, 0_u128);
        for (pause, count) in steps {
            now += pause;
            let earned = u128::from(pause) * u128::from(per_second);
            level = level.saturating_sub(earned);
            let whole = u128::from(SECOND);
            let with = level + u128::from(count) * whole;
            let room = u128::from(burst) * whole;
            let passes = level == 0 || with <= room;
            // Within what rounding up has cost so far.
            let slack = u128::from(per_second) * 200 + whole / 100;
            let near = level <= slack || with.abs_diff(room) <= slack;
            let moment = Moment(now);
            let checked = rate.check(moment, count);
            let taken = rate.take(moment, count);
            prop_assert_eq!(checked, taken);
            prop_assert!(taken.is_ok() == passes || near, "owed {level}, burst {room}, and {count} more");
            if taken.is_ok() {
                level = with;
            }
        }
    }

    /// In any stretch of time no more pass than the bound, and after the wait that it names, they do.
    #[test]
    fn the_bound_holds_in_every_stretch_of_time(
        per_second in 1..1_000_000_000_u64,
        burst in 1..100_u64,
        steps in proptest::collection::vec((0..SECOND / 10, 1..200_u64), 1..60),
    ) {
        let rate = rate(per_second, burst);
        let mut now = SECOND;
        let mut passed = Vec::new();
        for (pause, count) in steps {
            now += pause;
            match rate.take(Moment(now), count) {
                Ok(()) => passed.push((now, count)),
                Err(wait) => {
                    let then = now + u64::try_from(wait.as_nanos()).unwrap();
                    prop_assert!(rate.check(Moment(then), count).is_ok());
                    prop_assert!(rate.check(Moment(then - 1), count).is_err(), "and not before");
                }
            }
        }
        for from in 0..passed.len() {
            let (mut sum, mut largest) = (0, burst);
            for (at, count) in &passed[from..] {
                sum += count;
                largest = largest.max(*count);
                let earned = u128::from(at - passed[from].0) * u128::from(per_second) / u128::from(SECOND);
                // One may be under way, and one lies at either end.
                prop_assert!(u128::from(sum) <= u128::from(largest + count) + earned + 1);
            }
        }
    }
}

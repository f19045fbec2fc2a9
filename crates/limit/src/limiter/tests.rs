//! Promises: what is held is given back once, a refusal takes nothing, items are owed once.

use super::*;
use proptest::prelude::*;

const NOW: Moment = Moment(1_000_000_000);

#[test]
fn a_dropped_permit_returns_its_share() {
    let limiter = Limiter::new(&LimiterSettings {
        concurrency: Some(2),
        in_flight: Some(100),
        ..LimiterSettings::default()
    });
    let first = limiter.acquire(NOW, 60).unwrap();
    assert_eq!(limiter.acquire(NOW, 60).unwrap_err().limit, Limit::InFlight);
    let second = limiter.acquire(NOW, 40).unwrap();
    assert_eq!(limiter.acquire(NOW, 0).unwrap_err().limit, Limit::Concurrency);
    drop(first);
    assert_eq!((limiter.concurrency(), limiter.in_flight()), (1, 40));
    drop(second);
    assert_eq!((limiter.concurrency(), limiter.in_flight()), (0, 0));
    let large = limiter.acquire(NOW, 1000).expect("what is larger than all the room passes alone");
    assert!(limiter.acquire(NOW, 1).is_err());
    drop(large);
}

#[test]
fn a_change_of_limits_keeps_current_permits() {
    let limiter = Limiter::new(&LimiterSettings::default());
    let entries: Vec<_> = (0..10).map(|_| limiter.acquire(NOW, 10).unwrap()).collect();
    limiter.set_limits(&LimiterSettings { concurrency: Some(5), ..LimiterSettings::default() });
    assert!(limiter.acquire(NOW, 0).is_err());
    drop(entries);
    assert_eq!((limiter.concurrency(), limiter.in_flight()), (0, 0));
    assert!(limiter.acquire(NOW, 0).is_ok());
}

#[test]
fn items_are_charged_once() {
    let items = Some(PerSecond { rate: 10, burst: 10 });
    let limiter = Limiter::new(&LimiterSettings { items, ..LimiterSettings::default() });
    assert!(limiter.acquire(NOW, 0).is_ok());
    for _ in 0..5 {
        limiter.charge_items(NOW, 30);
    }
    let reached = limiter.check(NOW, 0).unwrap_err();
    assert_eq!(reached.limit, Limit::Items);
    // Thirty are owed, and of a burst of ten one more has to fit.
    let wait = reached.wait.unwrap();
    assert!(wait.as_millis().abs_diff(2100) <= 1, "{wait:?}");
}

proptest! {
    /// Against counts kept plainly: the limits hold, and all comes back.
    #[test]
    fn concurrency_equals_that_of_a_plain_counter(
        most in 1..8_u64,
        room in 1..1000_u64,
        steps in proptest::collection::vec((any::<bool>(), 0..400_u64, 0..64_usize), 1..200),
    ) {
        let limiter = Limiter::new(&LimiterSettings {
            concurrency: Some(most),
            in_flight: Some(room),
            ..LimiterSettings::default()
        });
        let mut held = Vec::new();
        for (enters, bytes, which) in steps {
            if enters {
                let used: u64 = held.iter().map(|(_, bytes)| bytes).sum();
                let fits = (held.len() as u64) < most && (used == 0 || used + bytes <= room);
                let entered = limiter.acquire(NOW, bytes);
                prop_assert_eq!(entered.is_ok(), fits);
                held.extend(entered.ok().map(|entry| (entry, bytes)));
            } else if !held.is_empty() {
                drop(held.swap_remove(which % held.len()));
            }
            prop_assert_eq!(limiter.concurrency(), held.len() as u64);
            prop_assert_eq!(limiter.in_flight(), held.iter().map(|(_, bytes)| bytes).sum::<u64>());
        }
    }
}

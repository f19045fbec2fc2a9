//! The budget's arithmetic against its three invariants.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]
use super::*;
use proptest::prelude::*;
use std::task::Waker;

const FLOORS: Floors = Floors::NONE
    .with(Share::Ingest, 10)
    .with(Share::Decode, 10)
    .with(Share::Lake, 20)
    .with(Share::Egress, 10);

fn budget() -> Budget {
    Budget::new(100, FLOORS, 8)
}

#[test]
fn a_floor_is_reachable_despite_borrowing() {
    let mut budget = budget();
    assert!(budget.try_take(Share::Ingest, 60));
    assert!(!budget.try_take(Share::Ingest, 1));
    assert!(budget.try_take(Share::Decode, 10) && budget.try_take(Share::Lake, 20));
    assert!(budget.try_take(Share::Egress, 10));
    assert_eq!(budget.used_by_all(), 100);
}

#[test]
fn nobody_borrows_past_a_waiter_downstream() {
    let mut budget = budget();
    assert!(budget.try_take(Share::Decode, 60));
    let waker = Waker::noop();
    let key = budget.wait(Share::Egress, 30, waker.clone()).unwrap();
    budget.release(Share::Decode, 10);
    assert!(!budget.try_take(Share::Ingest, 20), "egress waits to borrow, so ingest must not");
    assert!(budget.try_take(Share::Ingest, 10), "but its floor is its own");
    budget.release(Share::Decode, 10);
    assert!(budget.claim(key, waker));
}

#[test]
fn a_waiter_that_leaves_lets_those_behind_it_go_on() {
    let mut budget = budget();
    assert!(budget.try_take(Share::Ingest, 50));
    let waker = Waker::noop();
    let large = budget.wait(Share::Ingest, 40, waker.clone()).unwrap();
    let small = budget.wait(Share::Ingest, 10, waker.clone()).unwrap();
    assert!(!budget.claim(small, waker), "it queues behind the large one");
    budget.forget(large);
    assert!(budget.claim(small, waker));
}

#[test]
fn waiters_are_bounded() {
    let mut budget = budget();
    assert!(budget.try_take(Share::Ingest, 60));
    for _ in 0..8 {
        assert!(budget.wait(Share::Ingest, 10, Waker::noop().clone()).is_some());
    }
    assert!(budget.wait(Share::Ingest, 10, Waker::noop().clone()).is_none());
}

#[derive(Debug, Clone)]
enum Step {
    Take(usize, u64),
    Wait(usize, u64),
    Release(usize),
    Forget(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..Share::COUNT, 1..60u64).prop_map(|(share, bytes)| Step::Take(share, bytes)),
        (0..Share::COUNT, 1..60u64).prop_map(|(share, bytes)| Step::Wait(share, bytes)),
        (0..64usize).prop_map(Step::Release),
        (0..64usize).prop_map(Step::Forget),
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    /// Whatever is taken, awaited, released and abandoned: the floors stay reachable, nothing is granted
    /// beyond the total, nobody sleeps while their bytes are free, and all comes back.
    #[test]
    fn the_invariants_hold(steps in steps()) {
        let mut budget = budget();
        let waker = Waker::noop();
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Take(share, bytes) => {
                    let share = Share::ALL[share];
                    if budget.try_take(share, bytes) {
                        held.push((share, bytes));
                    }
                }
                Step::Wait(share, bytes) => {
                    let share = Share::ALL[share];
                    if bytes <= budget.ceiling(share) {
                        if budget.try_take(share, bytes) {
                            held.push((share, bytes));
                        } else if let Some(key) = budget.wait(share, bytes, waker.clone()) {
                            waiting.push((key, share, bytes));
                        }
                    }
                }
                Step::Release(at) if !held.is_empty() => {
                    let (share, bytes) = held.swap_remove(at % held.len());
                    budget.release(share, bytes);
                }
                Step::Forget(at) if !waiting.is_empty() => {
                    let (key, ..) = waiting.swap_remove(at % waiting.len());
                    budget.forget(key);
                }
                _ => {}
            }
            waiting.retain(|(key, share, bytes)| {
                let granted = budget.claim(*key, waker);
                if granted { held.push((*share, *bytes)); }
                !granted
            });
            let committed: u64 = Share::ALL.iter().map(|s| budget.used(*s).max(FLOORS.of(*s))).sum();
            prop_assert!(committed <= 100);
            for share in Share::ALL {
                let mine: u64 = held.iter().filter(|(s, _)| *s == share).map(|(_, b)| b).sum();
                prop_assert_eq!(budget.used(share), mine);
            }
            if let Some((_, share, bytes)) = waiting.iter().find(|(_, s, b)| budget.within_floor(*s, *b)) {
                prop_assert!(false, "{share:?} waits for {bytes} bytes within its floor");
            }
            if held.is_empty() {
                prop_assert!(waiting.is_empty(), "nothing is held, yet somebody waits");
            }
        }
        for (share, bytes) in held.drain(..) {
            budget.release(share, bytes);
        }
        for (key, ..) in waiting {
            budget.forget(key);
        }
        prop_assert_eq!(budget.used_by_all(), 0);
    }
}

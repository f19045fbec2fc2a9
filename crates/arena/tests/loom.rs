//! Every order of charges, releases and abandoned waits between threads: nobody sleeps for ever, nothing
//! leaks, and the total holds. Run with `RUSTFLAGS="--cfg loom" cargo test -p tidegate-arena --test loom`.

#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use loom::future::block_on;
use loom::thread;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use tidegate_arena::{Arena, ChargeError, Floors, PAGE, Share};

const TOTAL: u64 = 4 * PAGE as u64;

fn arena() -> Arena {
    Arena::new(TOTAL, Floors::NONE.with(Share::Egress, PAGE as u64), 64 << 10, 3, 3).unwrap()
}

fn nothing_is_held(arena: &Arena) {
    assert!(arena.usage().shares.iter().all(|share| share.used == 0 && share.waiting == 0));
}

#[test]
fn a_waiter_is_woken() {
    loom::model(|| {
        let arena = arena();
        let others = arena.clone();
        let thread = thread::spawn(move || {
            drop(block_on(others.charge(Share::Ingest, TOTAL / 2)).unwrap());
        });
        drop(block_on(arena.charge(Share::Ingest, TOTAL / 2)).unwrap());
        thread.join().unwrap();
        nothing_is_held(&arena);
    });
}

#[test]
fn a_wait_abandoned_while_it_is_granted_leaks_nothing() {
    loom::model(|| {
        let arena = arena();
        let held = arena.try_charge(Share::Ingest, TOTAL / 2).unwrap();
        let others = arena.clone();
        let thread = thread::spawn(move || {
            let mut charging = pin!(others.charge(Share::Decode, TOTAL / 2));
            // Granted or not, it is dropped here.
            let _ = charging.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        });
        drop(held);
        thread.join().unwrap();
        nothing_is_held(&arena);
        assert!(arena.try_charge(Share::Ingest, TOTAL - PAGE as u64).is_ok());
    });
}

#[test]
fn windows_move_between_threads_with_their_charges() {
    loom::model(|| {
        let arena = arena();
        let others = arena.clone();
        let thread = thread::spawn(move || match others.try_window(Share::Ingest, 2 * PAGE) {
            Ok(mut window) => {
                window.append(&[1; PAGE]).unwrap();
                assert!(window.iter().all(|byte| *byte == 1), "somebody else wrote into this window");
            }
            Err(refused) => assert_eq!(refused, ChargeError::Short),
        });
        if let Ok(mut window) = arena.try_window(Share::Decode, 2 * PAGE) {
            window.append(&[2; PAGE]).unwrap();
            assert!(window.iter().all(|byte| *byte == 2), "somebody else wrote into this window");
        }
        thread.join().unwrap();
        nothing_is_held(&arena);
        assert!(arena.usage().idle <= TOTAL);
    });
}

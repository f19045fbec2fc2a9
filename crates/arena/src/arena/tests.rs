//! Windows and charges on real memory.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]
use super::*;
use std::task::Waker;

const MIB: usize = 1 << 20;

fn arena(total: usize) -> Arena {
    let floors = Floors::default().with(Share::Egress, 64 << 10);
    Arena::new(total as u64, floors, 8 * MIB, 64, 16).unwrap()
}

fn fill(window: &mut Window, bytes: usize, with: u8) {
    window.try_reserve(bytes).unwrap();
    window.spare_mut()[..bytes].fill(with);
    window.advance(bytes);
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn growing_does_not_move_the_filled_part() {
    let arena = arena(4 * MIB);
    let mut window = arena.try_window(Share::Ingest, 10).unwrap();
    window.append(b"0123456789").unwrap();
    let before = window.as_ptr();
    fill(&mut window, MIB, 7);
    assert_eq!(window.as_ptr(), before);
    assert_eq!(&window[..12], b"0123456789\x07\x07");
    assert_eq!(window.len(), MIB + 10);
}

#[test]
fn a_window_does_not_grow_beyond_its_share() {
    let arena = arena(MIB);
    let mut window = arena.try_window(Share::Ingest, 4096).unwrap();
    let held = arena.try_charge(Share::Ingest, 256 << 10).unwrap();
    assert_eq!(window.try_reserve(MIB - (128 << 10)), Err(ChargeError::Short));
    drop(held);
    assert_eq!(
        window.try_reserve(9 * MIB),
        Err(ChargeError::Never { wanted: 9 * MIB as u64, most: 8 * MIB as u64 })
    );
    assert!(matches!(arena.try_charge(Share::Ingest, MIB as u64), Err(ChargeError::Never { .. })));
    drop(window);
    assert!(arena.try_window(Share::Ingest, MIB - (64 << 10)).is_ok());
}

#[test]
fn hot_pages_of_idle_windows_yield_to_any_charge() {
    let arena = arena(2 * MIB);
    let mut window = arena.try_window(Share::Ingest, 1).unwrap();
    fill(&mut window, MIB, 3);
    drop(window);
    assert_eq!(arena.usage().idle, MIB as u64);
    let charge = arena.try_charge(Share::Lake, 3 * MIB as u64 / 2).unwrap();
    assert_eq!(arena.usage().idle, 0);
    assert_eq!(charge.bytes(), 3 * MIB as u64 / 2);
}

#[test]
fn resident_pages_of_an_idle_window_are_charged_or_released() {
    let arena = arena(8 * MIB);
    let mut window = arena.try_window(Share::Ingest, 1).unwrap();
    fill(&mut window, MIB, 3);
    drop(window);
    let again = arena.try_window(Share::Ingest, MIB - 1).unwrap();
    assert_eq!((again.charged(), arena.usage().idle), (MIB, 0));
    drop(again);
    // A sink's charges stay within its share: what it takes is trimmed, so it leaves much hotter windows to others.
    let exact = arena.try_window(Share::Egress, MIB / 2).unwrap();
    assert_eq!((exact.charged(), arena.usage().idle), (MIB / 2, MIB as u64));
    drop(exact);
    let exact = arena.try_window(Share::Egress, MIB - GROWTH_STEP).unwrap();
    assert_eq!((exact.charged(), arena.usage().idle), (MIB - GROWTH_STEP, MIB as u64 / 2));
    drop(exact);
    let small: Vec<Window> = (0..64).map(|_| arena.try_window(Share::Ingest, 1).unwrap()).collect();
    assert_eq!(arena.usage().shares[0].used, 64 * PAGE as u64);
    assert!(matches!(arena.try_window(Share::Ingest, 1), Err(ChargeError::Crowded)));
    drop(small);
    assert_eq!(arena.usage().shares[0].used, 0);
}

#[test]
fn waiters_are_woken_in_order_and_may_leave() {
    let arena = arena(MIB);
    let held = arena.try_charge(Share::Ingest, 900 << 10).unwrap();
    let mut first = Box::pin(arena.charge(Share::Ingest, 800 << 10));
    let mut second = Box::pin(arena.charge(Share::Ingest, 200 << 10));
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    drop(held);
    let Poll::Ready(Ok(first)) = poll(first.as_mut()) else { panic!("the first is next") };
    assert!(poll(second.as_mut()).is_pending(), "the second does not fit beside the first");
    drop(first);
    // Granted, but nobody takes it: dropping the future gives it back.
    drop(second);
    assert_eq!(arena.usage().shares.iter().map(|share| share.used).sum::<u64>(), 0);
}

#[test]
fn a_window_waits_for_its_memory() {
    let arena = arena(MIB);
    let held = arena.try_window(Share::Decode, 900 << 10).unwrap();
    let mut waiting = Box::pin(arena.window(Share::Decode, 512 << 10));
    assert!(poll(waiting.as_mut()).is_pending());
    drop(held);
    let Poll::Ready(Ok(window)) = poll(waiting.as_mut()) else { panic!("there is room now") };
    assert_eq!(window.charged(), 512 << 10);
}

#[test]
fn a_new_plan_takes_effect_if_current_use_fits_it() {
    let arena = arena(4 * MIB);
    let held = arena.try_charge(Share::Ingest, 3 * MIB as u64).unwrap();
    let smaller = Floors::NONE.with(Share::Lake, MIB as u64);
    assert_eq!(arena.replan(2 * MIB as u64, smaller), Err(ChargeError::Short));
    assert_eq!(arena.ceiling(Share::Lake), 4 * MIB as u64 - (64 << 10));
    drop(held);
    arena.replan(2 * MIB as u64, smaller).unwrap();
    assert_eq!((arena.ceiling(Share::Ingest), arena.ceiling(Share::Lake)), (MIB as u64, 2 * MIB as u64));
    assert!(arena.try_charge(Share::Ingest, MIB as u64 + 1).is_err());
    assert!(arena.try_charge(Share::Ingest, MIB as u64).is_ok());
}

/// The most that could ever be charged is not what is free now.
#[test]
fn floors_of_others_are_not_to_be_had() {
    let arena = arena(MIB);
    let of = |ingest: usize, decode: usize| {
        arena.could_hold(&[(Share::Ingest, ingest as u64), (Share::Decode, decode as u64)])
    };
    let all = MIB - (64 << 10);
    assert!(of(all, 0) && of(all / 2, all / 2) && of(0, all));
    assert!(!of(all + 1, 0) && !of(all / 2, all / 2 + 1) && !of(usize::MAX, usize::MAX));
    assert!(arena.could_hold(&[(Share::Ingest, all as u64), (Share::Egress, 64 << 10)]));
    assert!(!arena.could_hold(&[(Share::Ingest, all as u64 / 2), (Share::Ingest, all as u64 / 2 + 1)]));
    let _held = arena.try_charge(Share::Ingest, all as u64).unwrap();
    assert!(of(all, 0), "whoever holds it now");
}

/// Bytes that were skipped are zeros, whoever had the pages before.
#[test]
fn no_window_shows_bytes_of_another() {
    let arena = arena(4 * MIB);
    let mut window = arena.try_window(Share::Ingest, 1).unwrap();
    fill(&mut window, 64 << 10, 7);
    drop(window);
    let mut again = arena.try_window(Share::Ingest, 64 << 10).unwrap();
    assert_eq!(again.spare_mut()[0], 7, "the pages are hot: else this test shows nothing");
    drop(again);
    let mut again = arena.try_window(Share::Ingest, 64 << 10).unwrap();
    again.advance(5);
    assert_eq!(&again[..], &[0; 5], "nobody was given them to write to");
    again.spare_mut()[..3].copy_from_slice(b"abc");
    again.advance(3);
    again.skip(4);
    again.append(b"d").unwrap();
    assert_eq!(&again[..], b"\0\0\0\0\0abc\0\0\0\0d");
}

/// Pages that the kernel keeps stay paid for, so that what is resident is never more than the total; it is counted, and
/// nothing is handed out for them.
#[test]
fn pages_that_the_kernel_keeps_are_charged_for_good() {
    let arena = arena(4 * MIB);
    let mut window = arena.try_window(Share::Ingest, 1).unwrap();
    fill(&mut window, 2 * MIB, 7);
    arena.inner.map.keeps_pages.store(true, Ordering::Relaxed);
    drop(window);
    let usage = arena.usage();
    assert_eq!((usage.kept_times, usage.kept_bytes), (1, 2 * MIB as u64));
    assert_eq!((usage.shares[0].used, usage.idle), (2 * MIB as u64, 0));

    // A window that stays hot when it is dropped is charged when its pages should go.
    let mut window = arena.try_window(Share::Ingest, 1).unwrap();
    fill(&mut window, MIB / 2, 7);
    drop(window);
    assert_eq!(arena.usage().idle, MIB as u64 / 2);
    (0..=COLD_AFTER).for_each(|_| arena.tick());
    let usage = arena.usage();
    assert_eq!((usage.kept_times, usage.kept_bytes, usage.idle), (2, 5 * MIB as u64 / 2, 0));
    assert_eq!(usage.shares[0].used, 5 * MIB as u64 / 2);

    // The rest can be charged, but no more; and nothing hangs.
    let rest = 4 * MIB as u64 - usage.kept_bytes - (64 << 10);
    let charge = arena.try_charge(Share::Ingest, rest).unwrap();
    assert_eq!(arena.try_charge(Share::Ingest, PAGE as u64).map(drop), Err(ChargeError::Short));
    drop(charge);
    arena.inner.map.keeps_pages.store(false, Ordering::Relaxed);
    drop(arena.try_window(Share::Ingest, MIB).unwrap());
}

#[test]
fn a_window_gives_back_what_it_did_not_need() {
    let arena = arena(4 * MIB);
    let used = || arena.usage().shares.iter().map(|share| share.used).sum::<u64>() as usize;
    let mut window = arena.try_window(Share::Egress, MIB).unwrap();
    window.spare_mut().fill(5);
    window.advance(3 * PAGE - 1);
    window.shrink();
    assert_eq!((used(), window.charged(), window.len()), (3 * PAGE, 3 * PAGE, 3 * PAGE - 1));
    assert!(window.iter().all(|byte| *byte == 5));
    // Others have the memory, and the window grows as any other.
    let other = arena.try_charge(Share::Egress, 3 * MIB as u64).unwrap();
    assert_eq!(window.try_reserve(2 * MIB), Err(ChargeError::Short));
    drop(other);
    window.try_reserve(MIB / 2).unwrap();
    let len = window.len();
    window.advance(MIB / 2);
    assert!(window[len + 1..].iter().all(|byte| *byte == 0), "the pages are new");
    window.shrink();
    drop(window);
    assert_eq!(used(), 0);
}

#[test]
fn what_the_kernel_keeps_stays_charged_to_its_window() {
    let arena = arena(4 * MIB);
    let mut window = arena.try_window(Share::Egress, MIB).unwrap();
    arena.inner.map.keeps_pages.store(true, Ordering::Relaxed);
    window.shrink();
    assert_eq!((window.charged(), arena.usage().kept_times), (MIB, 1));
    arena.inner.map.keeps_pages.store(false, Ordering::Relaxed);
    window.shrink();
    assert_eq!(window.charged(), PAGE);
}

//! Threads that acquire and release in every order: never more than the maximum or the burst, and everything
//! is released. Run with `RUSTFLAGS="--cfg loom" cargo test -p tidegate-limit --test loom`.

#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use tidegate_limit::{Limiter, LimiterSettings, Moment, PerSecond};

/// Every order with at most two preemptions: more have found nothing, and take a minute.
fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(check);
}

const NOW: Moment = Moment(1_000_000_000);

#[test]
fn a_maximum_holds_and_comes_back() {
    model(|| {
        let limits =
            LimiterSettings { concurrency: Some(1), in_flight: Some(10), ..LimiterSettings::default() };
        let limiter = Arc::new(Limiter::new(&limits));
        let other = Arc::clone(&limiter);
        let thread = thread::spawn(move || {
            if let Ok(entry) = other.acquire(NOW, 10) {
                assert_eq!(other.concurrency(), 1);
                drop(entry);
            }
        });
        if let Ok(entry) = limiter.acquire(NOW, 5) {
            assert_eq!(limiter.concurrency(), 1);
            drop(entry);
        }
        assert!(thread.join().is_ok());
        assert_eq!((limiter.concurrency(), limiter.in_flight()), (0, 0));
        assert!(limiter.acquire(NOW, 10).is_ok(), "nothing is lost");
    });
}

#[test]
fn a_burst_is_taken_once() {
    model(|| {
        let requests = Some(PerSecond { rate: 1, burst: 2 });
        let limiter = Arc::new(Limiter::new(&LimiterSettings { requests, ..LimiterSettings::default() }));
        let other = Arc::clone(&limiter);
        // Its clock is behind, which makes it stricter.
        let before = Moment(NOW.0 - 1_000_000);
        let thread = thread::spawn(move || (0..2).filter(|_| other.acquire(before, 0).is_ok()).count());
        let own = (0..2).filter(|_| limiter.acquire(NOW, 0).is_ok()).count();
        let theirs = thread.join().unwrap_or(9);
        assert!(own + theirs <= 2, "{own} and {theirs}");
        assert!(own + theirs >= 1);
    });
}

#[test]
fn items_of_the_books_are_charged_once() {
    model(|| {
        let items = Some(PerSecond { rate: 1, burst: 1 });
        let limiter = Arc::new(Limiter::new(&LimiterSettings { items, ..LimiterSettings::default() }));
        let other = Arc::clone(&limiter);
        let thread = thread::spawn(move || other.charge_items(NOW, 3));
        limiter.charge_items(NOW, 5);
        assert!(thread.join().is_ok());
        let wait = limiter.check(NOW, 0).err().and_then(|reached| reached.wait);
        assert_eq!(wait.map(|wait| wait.as_secs()), Some(5), "five are charged, in either order");
    });
}

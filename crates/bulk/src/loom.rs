//! Interleavings of callers that withdraw and the driver: `--cfg loom`.

use crate::engine::Bulk;
use crate::outcome::{BulkSubmitError, Failure, FailureKind, Outcome, WriteResponse};
use crate::settings::Settings;
use crate::state::{BatchOutcome, ItemReply};
use crate::sync::lock;
use crate::target::Target;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tidegate_arena::{Arena, Floors, Share};

fn engine() -> (Bulk, Arena) {
    let arena = Arena::new(1 << 20, Floors::NONE, 64 << 10, 2, 1).unwrap();
    let settings = Settings {
        slots: 2,
        batch_items: 2,
        batches: 2,
        max_in_flight: 1,
        ..Settings::new(Share::Forward, 1 << 20)
    };
    (Bulk::without_driver(settings, arena.clone()), arena)
}

/// One pass of the driver: starts requests, answers all, finishes them. Returns the number of items sent.
fn flush(bulk: &Bulk) -> u32 {
    let written = || ItemReply::Final(Outcome::Written(WriteResponse::default()));
    send(bulk, Instant::now() + Duration::from_secs(1), written)
}

/// A pass at `late` in which the server answers each item with `reply`.
fn send(bulk: &Bulk, late: Instant, reply: impl Fn() -> ItemReply) -> u32 {
    let (mut wakers, mut windows) = (Vec::new(), Vec::new());
    let request = {
        let mut state = lock(&bulk.shared.state);
        state.run_timers(Waker::noop(), late, &mut wakers, &mut windows);
        state.next_request(late)
    };
    drop(windows);
    let Some(request) = request else { return 0 };
    let mut replies: Vec<_> = (0..request.items).map(|_| reply()).collect();
    lock(&bulk.shared.state).apply_replies(request.id, &mut replies, &mut wakers);
    let outcome = BatchOutcome::Failed(Failure::new(FailureKind::Server, 0));
    let window =
        lock(&bulk.shared.state).finish_request(request.id, Some(request.window), outcome, late, &mut wakers);
    drop(window);
    wakers.into_iter().for_each(Waker::wake);
    request.items
}

fn nothing_is_left(bulk: &Bulk, arena: &Arena) {
    flush(bulk);
    // An emptied batch is released when it is due.
    flush(bulk);
    assert_eq!(bulk.depth(), 0);
    assert!(arena.usage().shares.iter().all(|share| share.used == 0));
}

/// A caller withdraws while the driver sends: the item is not sent, or its answer is discarded. The other item
/// is answered.
#[test]
fn leaving_while_it_is_sent() {
    loom::model(|| {
        let (bulk, arena) = engine();
        let stays = bulk.index(Target::new("i", "1"), b"{}").unwrap();
        let other = bulk.clone();
        let leaver = loom::thread::spawn(move || {
            if let Ok(ticket) = other.index(Target::new("i", "2"), b"{}") {
                drop(ticket);
            }
        });
        let sent = flush(&bulk);
        assert!((1..=2).contains(&sent));
        leaver.join().unwrap();
        let mut stays = pin!(stays);
        assert!(matches!(stays.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(_))));
        nothing_is_left(&bulk, &arena);
    });
}

/// One who awaits an answer is woken, whenever it comes.
#[test]
fn a_caller_that_stays_is_woken() {
    loom::model(|| {
        let (bulk, arena) = engine();
        let other = bulk.clone();
        let caller = loom::thread::spawn(move || {
            let ticket = other.index(Target::new("i", "1"), b"{}").unwrap();
            loom::future::block_on(ticket).unwrap();
        });
        while flush(&bulk) == 0 {
            loom::thread::yield_now();
        }
        caller.join().unwrap();
        nothing_is_left(&bulk, &arena);
    });
}

/// Two writers of one document, one of whom withdraws: the other item is answered, and the document's entry is
/// removed.
#[test]
fn leaving_beside_a_writer_of_the_same_document() {
    loom::model(|| {
        let (bulk, arena) = engine();
        let first = bulk.index(Target::new("i", "1"), b"{}").unwrap();
        let other = bulk.clone();
        let leaver = loom::thread::spawn(move || drop(other.index(Target::new("i", "1"), b"{}")));
        flush(&bulk);
        leaver.join().unwrap();
        let mut first = pin!(first);
        assert!(matches!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(_))));
        nothing_is_left(&bulk, &arena);
    });
}

/// A caller withdraws while the request is rejected: its item is dropped, and the other one is sent again
/// alone.
#[test]
fn leaving_while_it_is_rejected() {
    loom::model(|| {
        let (bulk, arena) = engine();
        let stays = bulk.index(Target::new("i", "1"), b"{}").unwrap();
        let goes = bulk.index(Target::new("i", "2"), b"{}").unwrap();
        let start = Instant::now();
        let rejected = bulk.clone();
        let driver = loom::thread::spawn(move || {
            send(&rejected, start + Duration::from_secs(1), || ItemReply::Rejected(429))
        });
        drop(goes);
        assert!((1..=2).contains(&driver.join().unwrap()));
        let written = || ItemReply::Final(Outcome::Written(WriteResponse::default()));
        assert_eq!(send(&bulk, start + Duration::from_secs(30), written), 1);
        let mut stays = pin!(stays);
        assert!(matches!(stays.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(_))));
        nothing_is_left(&bulk, &arena);
    });
}

/// The driver ends while a caller submits: the caller is refused, or answered.
#[test]
fn coming_while_the_driver_goes() {
    loom::model(|| {
        let (bulk, arena) = engine();
        let other = bulk.clone();
        let caller = loom::thread::spawn(move || match other.index(Target::new("i", "1"), b"{}") {
            Ok(ticket) => {
                assert_eq!(loom::future::block_on(ticket).unwrap_err().kind, FailureKind::Stopped);
            }
            Err(error) => assert_eq!(error, BulkSubmitError::Stopping),
        });
        let (mut wakers, mut windows) = (Vec::new(), Vec::new());
        lock(&bulk.shared.state).answer_all(&mut wakers, &mut windows);
        drop(windows);
        wakers.into_iter().for_each(Waker::wake);
        caller.join().unwrap();
        nothing_is_left(&bulk, &arena);
    });
}

//! Beginning and end: flushing, shutting down, being dropped, and what is wrong with the settings.

use crate::peer::{Behaviour, Peer};
use crate::{LONG, balances, numbered, quick, wait_for};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use tidegate_sender::{Builder, Class, Reason, RefusedEvent, Sender, Span, Value};

#[test]
fn events_go_out_by_time_without_being_flushed() {
    let peer = Peer::new();
    let sender = quick(&peer).flush_interval(Duration::from_millis(20)).start().unwrap();
    sender.span(&numbered(1)).unwrap();
    wait_for("the span", || peer.spans().len() == 1);
}

#[test]
fn events_go_out_by_size_before_their_time() {
    let peer = Peer::new();
    let sender = quick(&peer).batch_bytes(20_000).start().unwrap();
    for number in 0..1_000 {
        sender.span(&numbered(number)).unwrap();
    }
    wait_for("a request", || !peer.spans().is_empty());
}

#[test]
fn a_flush_ends_while_others_go_on_writing() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    sender.span(&numbered(1)).unwrap();
                    // With few cores the threads that send have a turn, too.
                    std::thread::yield_now();
                }
            });
        }
        for _ in 0..20 {
            let left = sender.flush(LONG);
            if !left.is_nothing() {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            assert!(left.is_nothing(), "{left:?}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    balances(&sender);
}

#[test]
fn shutdown_sends_the_rest_and_refuses_new_events() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    for number in 0..100 {
        sender.span(&numbered(number)).unwrap();
    }
    assert!(sender.shutdown(LONG).is_nothing());
    assert_eq!(peer.spans().len(), 100);
    let refused = RefusedEvent { class: Class::Span, reason: Reason::Shutdown };
    assert_eq!(sender.span(&numbered(1)), Err(refused));
    assert!(sender.shutdown(LONG).is_nothing());
    balances(&sender);
}

#[test]
fn shutdown_reports_undelivered_events_in_time() {
    let barrier = Arc::new(Barrier::new(2));
    let peer = Peer::scripted([Behaviour::Hold(Arc::clone(&barrier))]);
    let sender = quick(&peer).timeout(LONG).start().unwrap();
    for number in 0..10 {
        sender.span(&numbered(number)).unwrap();
    }
    let _held = sender.flush(Duration::ZERO);
    wait_for("the request", || sender.stats().wire_bytes > 0);
    let start = Instant::now();
    let left = sender.shutdown(Duration::from_millis(200));
    assert!(start.elapsed() < LONG, "as long as the request");
    assert_eq!(left.events, 10);
    assert!(left.bytes > 10 * 40);
    wait_for("the end of the thread", || sender.stats().queued == 0);
    assert_eq!(sender.stats().dropped(Class::Span, Reason::Shutdown), 10);
    balances(&sender);
    barrier.wait();
}

#[test]
fn dropping_the_last_handle_sends_the_rest_without_waiting() {
    let peer = Peer::new();
    let sender = quick(&peer).start().unwrap();
    let other = sender.clone();
    sender.span(&numbered(1)).unwrap();
    drop(sender);
    other.span(&numbered(2)).unwrap();
    drop(other);
    wait_for("both spans", || peer.spans().len() == 2);
}

#[test]
fn an_event_above_its_limit_is_refused_at_the_call() {
    let peer = Peer::new();
    let sender = quick(&peer).event_bytes(10_000).start().unwrap();
    let text = "x".repeat(10_000);
    let attributes = [("text", Value::Str(&text))];
    let refused = sender.span(&Span { attributes: &attributes, ..numbered(0) }).unwrap_err();
    assert_eq!(refused.reason, Reason::TooLarge);
    assert!(refused.to_string().contains("event_bytes"));
    balances(&sender);
}

#[test]
fn a_disabled_sender_refuses_events() {
    let sender = Builder::from_variables(|name| (name == "OTEL_SDK_DISABLED").then(|| "true".to_owned()))
        .start()
        .unwrap();
    assert_eq!(sender.span(&numbered(1)).unwrap_err().reason, Reason::Shutdown);
    assert!(sender.flush(LONG).is_nothing());
    assert!(sender.shutdown(LONG).is_nothing());
    balances(&sender);
}

#[test]
fn all_mistakes_are_named_at_once() {
    let error = Sender::builder()
        .endpoint("ftp://host")
        .ring_bytes(5)
        .header("two words", "value")
        .start()
        .unwrap_err();
    let text = error.to_string();
    for word in ["ftp://host", "5 bytes", "two words"] {
        assert!(text.contains(word), "{text}");
    }
}

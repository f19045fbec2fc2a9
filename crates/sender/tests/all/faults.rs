//! A failed request's events are retried, whatever the failure; events that the endpoint rejects permanently are
//! counted.

use crate::peer::{Behaviour, Peer};
use crate::{LONG, balances, number_of, numbered, quick, wait_for};
use std::time::{Duration, Instant};
use tidegate_sender::{Class, Compression, Reason, Sender, Span};

/// Where only these tests listen, so that a port at which nobody does is not given to anybody else.
const ALONE: &str = "127.0.0.77";

fn send(sender: &Sender, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| sender.span(&numbered(number)).unwrap());
}

fn arrived(peer: &Peer) -> Vec<u64> {
    let mut numbers: Vec<_> = peer.spans().iter().map(number_of).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn a_connection_cut_at_any_byte_loses_nothing() {
    for cut in [0, 1, 50, 500, 5_000, 20_000] {
        let peer = Peer::scripted([Behaviour::CutAfter(cut), Behaviour::CutAfter(cut / 2)]);
        let sender = quick(&peer).compression(Compression::None).start().unwrap();
        send(&sender, 0..400);
        assert!(sender.flush(LONG).is_nothing());
        assert_eq!(arrived(&peer), (0..400).collect::<Vec<_>>(), "cut after {cut}");
        assert!(sender.stats().retries >= 2);
        balances(&sender);
    }
}

#[test]
fn no_answer_half_an_answer_and_nonsense_are_tried_again() {
    let peer = Peer::scripted([Behaviour::HalfAnAnswer, Behaviour::Garbage]);
    let sender = quick(&peer).start().unwrap();
    send(&sender, 0..50);
    assert!(sender.flush(LONG).is_nothing());
    assert_eq!(arrived(&peer), (0..50).collect::<Vec<_>>());
    assert_eq!(sender.stats().retries, 2);
    balances(&sender);
}

#[test]
fn retryable_statuses_are_tried_again_and_others_are_not() {
    for status in [429, 502, 503, 504] {
        let peer = Peer::scripted([Behaviour::Answer(status, String::new(), Vec::new())]);
        let sender = quick(&peer).start().unwrap();
        send(&sender, 0..10);
        assert!(sender.flush(LONG).is_nothing());
        assert_eq!(arrived(&peer).len(), 10, "{status}");
        balances(&sender);
    }
    for status in [301, 400, 401, 404, 500, 501] {
        let peer = Peer::scripted([Behaviour::Answer(status, String::new(), b"no".to_vec())]);
        let sender = quick(&peer).start().unwrap();
        send(&sender, 0..10);
        assert!(sender.flush(LONG).is_nothing());
        assert_eq!(sender.stats().dropped(Class::Span, Reason::Rejected), 10, "{status}");
        send(&sender, 10..20);
        assert!(sender.flush(LONG).is_nothing());
        assert_eq!(arrived(&peer), (10..20).collect::<Vec<_>>());
        balances(&sender);
    }
}

#[test]
fn a_failed_request_is_tried_again_when_its_wait_is_over_and_not_when_the_next_is_due() {
    let peer = Peer::scripted([Behaviour::Answer(503, String::new(), Vec::new())]);
    let sender = quick(&peer).flush_interval(LONG).batch_bytes(8 << 10).start().unwrap();
    send(&sender, 0..500);
    wait_for("the second try", || sender.stats().sent_total() > 0);
    assert_eq!(sender.stats().retries, 1);
}

#[test]
fn retry_after_is_waited_for_and_not_shortened_by_a_flush() {
    let peer = Peer::scripted([Behaviour::Answer(503, "Retry-After: 1\r\n".to_owned(), Vec::new())]);
    let sender = quick(&peer).start().unwrap();
    let start = Instant::now();
    send(&sender, 0..1);
    assert!(!sender.flush(Duration::from_millis(100)).is_nothing());
    assert!(sender.flush(LONG).is_nothing());
    assert!(start.elapsed() >= Duration::from_secs(1));
    balances(&sender);
}

#[test]
fn a_rejected_part_is_counted_and_not_sent_again() {
    let partial = vec![0x0a, 2, 0x08, 3];
    let peer = Peer::scripted([Behaviour::Answer(200, String::new(), partial)]);
    let sender = quick(&peer).start().unwrap();
    send(&sender, 0..10);
    assert!(sender.flush(LONG).is_nothing());
    let stats = sender.stats();
    assert_eq!((stats.sent_total(), stats.dropped(Class::Span, Reason::Rejected)), (7, 3));
    assert_eq!(peer.requests().len(), 1);
    balances(&sender);
}

#[test]
fn a_request_that_is_too_large_is_halved_until_it_is_not() {
    let too_large = Behaviour::Answer(413, String::new(), Vec::new());
    let peer = Peer::scripted([too_large.clone(), too_large]);
    let sender = quick(&peer).flush_interval(LONG).start().unwrap();
    send(&sender, 0..400);
    assert!(sender.flush(LONG).is_nothing());
    assert_eq!(arrived(&peer), (0..400).collect::<Vec<_>>());
    assert!(peer.taken().len() > 2);
    balances(&sender);
}

#[test]
fn a_peer_that_answers_in_the_middle_of_the_body_is_understood() {
    // 1 MiB does not fit into the buffers between, so the sender is still writing when it is answered.
    let peer = Peer::scripted([
        Behaviour::AnswerEarly(100, 429, "Retry-After: 0\r\n".to_owned()),
        Behaviour::AnswerEarly(100, 400, String::new()),
    ]);
    let sender = quick(&peer)
        .compression(Compression::None)
        .ring_bytes(16 << 20)
        .batch_bytes(8 << 20)
        .flush_interval(LONG)
        .start()
        .unwrap();
    let text = "x".repeat(4_000);
    let attributes = [("text", tidegate_sender::Value::Str(&text))];
    for number in 0..1_000 {
        sender.span(&Span { attributes: &attributes, ..numbered(number) }).unwrap();
    }
    assert!(sender.flush(LONG).is_nothing());
    // The second answer says no; or a reset swallowed it, and the third request took all.
    let rejected = sender.stats().dropped(Class::Span, Reason::Rejected);
    assert_eq!(rejected + arrived(&peer).len() as u64, 1_000);
    balances(&sender);
}

#[test]
fn a_connection_closed_while_idle_costs_one_more_try_and_no_wait() {
    let peer = Peer::scripted([Behaviour::TakeAndClose]);
    let sender = quick(&peer).backoff(LONG, LONG).start().unwrap();
    send(&sender, 0..5);
    assert!(sender.flush(LONG).is_nothing());
    peer.cut();
    send(&sender, 5..10);
    assert!(sender.flush(LONG).is_nothing());
    assert_eq!(arrived(&peer), (0..10).collect::<Vec<_>>());
    balances(&sender);
}

#[test]
fn a_slow_reader_gets_everything() {
    let peer = Peer::scripted([Behaviour::Slow]);
    let sender = quick(&peer)
        .compression(Compression::None)
        .ring_bytes(16 << 20)
        .batch_bytes(8 << 20)
        .flush_interval(LONG)
        .timeout(LONG)
        .start()
        .unwrap();
    // More than the buffers between take, so that writes are partial and wait.
    let text = "x".repeat(3_500);
    let attributes = [("text", tidegate_sender::Value::Str(&text))];
    for number in 0..2_000 {
        sender.span(&Span { attributes: &attributes, ..numbered(number) }).unwrap();
    }
    assert!(sender.flush(LONG).is_nothing());
    assert_eq!(arrived(&peer).len(), 2_000);
    balances(&sender);
}

#[test]
fn a_peer_that_never_answers_is_given_up_and_asked_again() {
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(2));
    let peer = Peer::scripted([Behaviour::Hold(std::sync::Arc::clone(&barrier))]);
    let sender = quick(&peer).timeout(Duration::from_millis(300)).start().unwrap();
    send(&sender, 0..5);
    assert!(sender.flush(LONG).is_nothing());
    // On a busy machine the second answer may be late as well, and so they arrive more than once.
    let mut got = arrived(&peer);
    got.dedup();
    assert_eq!(got, (0..5).collect::<Vec<_>>());
    assert!(sender.stats().retries >= 1);
    barrier.wait();
    balances(&sender);
}

#[test]
fn a_long_outage_at_a_low_rate_does_not_fill_the_ring_with_blocks_that_are_nearly_empty() {
    let away = std::net::TcpListener::bind((ALONE, 0)).unwrap().local_addr().unwrap();
    let sender = Sender::builder()
        .endpoint(format!("http://{away}"))
        .ring_bytes(128 << 10)
        .flush_interval(Duration::from_millis(1))
        .backoff(Duration::from_micros(100), Duration::from_micros(100))
        .start()
        .unwrap();
    // Twice as many tries as there are blocks, with one span between each.
    for number in 0..512 {
        let retries = sender.stats().retries;
        sender.span(&numbered(number)).unwrap();
        wait_for("the next try", || sender.stats().retries > retries);
    }
    assert_eq!(sender.stats().queued, 512);
    assert_eq!(sender.stats().dropped_total(), 0);
    let _ = sender.shutdown(Duration::ZERO);
    balances(&sender);
}

#[test]
fn while_the_peer_is_away_callers_never_fail_and_the_newest_arrive_afterwards() {
    // A port where nobody listens, until somebody does.
    let away = std::net::TcpListener::bind((ALONE, 0)).unwrap().local_addr().unwrap();
    let peer = std::sync::Arc::new(Peer::new());
    let behind = std::sync::Arc::clone(&peer);
    let sender = quick(&peer)
        .endpoint(format!("http://{away}"))
        .ring_bytes(128 << 10)
        .flush_interval(Duration::from_millis(20))
        // One try before, none meanwhile: what a request holds is not evicted, and would leave a gap.
        .backoff(LONG, LONG)
        .start()
        .unwrap();
    sender.span(&numbered(0)).unwrap();
    wait_for("a failure", || sender.stats().retries > 0);
    send(&sender, 1..5_000);
    let stats = sender.stats();
    assert!(stats.dropped(Class::Span, Reason::Evicted) > 0);
    assert!(stats.queued_bytes > (128 << 10) * 3 / 4, "{stats:?}");
    balances(&sender);

    let listener = std::net::TcpListener::bind(away).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            crate::peer::serve_any(&behind, stream.try_clone().unwrap(), stream);
        }
    });
    assert!(sender.flush(LONG).is_nothing());
    let stats = sender.stats();
    // The newest: as many as the ring held, without a gap.
    let got = stats.sent_total();
    assert_eq!(stats.dropped(Class::Span, Reason::Evicted), 5_000 - got);
    assert_eq!(arrived(&peer), (5_000 - got..5_000).collect::<Vec<_>>());
    balances(&sender);
}

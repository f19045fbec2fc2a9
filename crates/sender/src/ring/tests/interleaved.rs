//! Every interleaving of producers, eviction and the sending thread, with a ring of two blocks.

use super::*;
use loom::sync::Arc;
use loom::thread;

/// Blocks of 64 bytes hold one event of 40.
fn ring() -> Arc<Ring> {
    Arc::new(Ring::new(128, 40, 1))
}

fn event(id: u8) -> [u8; 40] {
    [id; 40]
}

fn all_whole(events: &[Vec<u8>]) {
    for event in events {
        assert_eq!(event.len(), 40);
        assert!(event.iter().all(|byte| *byte == event[0]), "two events in one");
    }
}

#[test]
fn two_producers_and_eviction_keep_the_books() {
    loom::model(|| {
        let ring = ring();
        let other = Arc::clone(&ring);
        let thread = thread::spawn(move || {
            let _ = other.push(Kind::Span, 0, event(1).as_slice());
            let _ = other.push(Kind::Span, 0, event(2).as_slice());
        });
        let _ = ring.push(Kind::Span, 0, event(3).as_slice());
        let _ = ring.push(Kind::Span, 0, event(4).as_slice());
        thread.join().unwrap();
        all_whole(&drain(&ring));
        assert_eq!(balance(&ring), 0);
    });
}

#[test]
fn events_lost_by_a_failed_request_during_eviction_are_counted() {
    loom::model(|| {
        let ring = ring();
        ring.push(Kind::Span, 0, event(1).as_slice()).unwrap();
        ring.seal_open();
        let other = Arc::clone(&ring);
        let thread = thread::spawn(move || {
            let _ = other.push(Kind::Log, 0, event(2).as_slice());
            let _ = other.push(Kind::Log, 0, event(3).as_slice());
        });
        let mut batch = Batch::new(&ring, 128);
        ring.gather(None, &mut batch);
        all_whole(&bytes_of(&ring, &batch));
        ring.put_back(&mut batch);
        thread.join().unwrap();
        all_whole(&drain(&ring));
        assert_eq!(balance(&ring), 0);
    });
}

#[test]
fn concurrent_sealing_and_sending_shows_whole_events_only() {
    loom::model(|| {
        let ring = ring();
        let other = Arc::clone(&ring);
        let thread = thread::spawn(move || {
            let _ = other.push(Kind::Span, 0, event(1).as_slice());
            let _ = other.push(Kind::Span, 0, event(2).as_slice());
        });
        ring.seal_open();
        let mut batch = Batch::new(&ring, 128);
        ring.gather(None, &mut batch);
        all_whole(&bytes_of(&ring, &batch));
        for (class, filled) in Class::ALL.into_iter().zip(ring.classes(&batch)) {
            ring.counters.sent(class, filled.events, filled.bytes);
        }
        ring.release_all(&mut batch);
        thread.join().unwrap();
        all_whole(&drain(&ring));
        assert_eq!(balance(&ring), 0);
    });
}

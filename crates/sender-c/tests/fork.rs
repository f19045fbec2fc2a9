//! Forks in the middle of everything: each child sends its own spans and no one else's, the parent its own.
//!
//! Here, because `fork` is a foreign call, which this crate may make.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

#[path = "../../sender/tests/all/oracle.rs"]
mod oracle;
#[path = "../../sender/tests/all/peer.rs"]
#[allow(dead_code, reason = "others use the rest of it")]
mod peer;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegate_sender::{Place, Sender, Span};

const LONG: Duration = Duration::from_secs(30);
const CHILDREN: u64 = 8;

fn span(number: u64) -> Span<'static> {
    let place = Place { trace_id: [7; 16], span_id: (number + 1).to_be_bytes(), flags: 1 };
    Span { place, parent: Some([1; 8]), name: "forked", ..Span::default() }
}

#[test]
fn children_send_what_they_made_and_nothing_of_their_parent() {
    let peer = peer::Peer::new();
    let sender = Sender::builder()
        .endpoint(peer.url())
        .ring_bytes(16 << 20)
        .flush_interval(Duration::from_millis(5))
        // A request that is sent twice would be taken for one of two processes.
        .timeout(LONG)
        .start()
        .unwrap();
    let (made, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut children = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) && made.load(Ordering::Relaxed) < 50_000 {
                    sender.span(&span(made.fetch_add(1, Ordering::Relaxed))).unwrap();
                }
            });
        }
        for child in 1..=CHILDREN {
            // SAFETY: the child uses the sender, which says that it may be used there, and leaves by `_exit`.
            let id = unsafe { libc::fork() };
            if id == 0 {
                let taken = (0..5).all(|number| sender.span(&span(child * 1_000_000 + number)).is_ok());
                let left = sender.flush(LONG).events;
                let stats = sender.stats();
                let well = taken && left == 0 && stats.sent_total() == 5 && stats.balance() == 0;
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(i32::from(!well)) };
            }
            children.push(id);
        }
        for id in &children {
            let mut status = -1;
            // SAFETY: `status` outlives the call, and the child is this process's own.
            assert_eq!(unsafe { libc::waitpid(*id, &raw mut status, 0) }, *id);
            assert_eq!(status, 0, "a child did not see all its spans sent");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(sender.flush(LONG).is_nothing());
    assert_eq!(sender.stats().balance(), 0);
    assert_eq!(sender.stats().dropped_total(), 0);

    let spans = peer.spans();
    let numbers: HashSet<_> = spans.iter().map(|span| span.span_id.clone()).collect();
    assert_eq!(numbers.len(), spans.len(), "nothing is sent by two processes");
    assert_eq!(spans.len() as u64, made.load(Ordering::Relaxed) + 5 * CHILDREN);
}

//! A sender among peers: those that answer well, badly, slowly, and not at all.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

#[path = "all/oracle.rs"]
mod oracle;
#[path = "all/peer.rs"]
mod peer;
#[path = "all/secure.rs"]
mod secure;

#[path = "all/delivery.rs"]
mod delivery;
#[path = "all/examples.rs"]
mod examples;
#[path = "all/faults.rs"]
mod faults;
#[path = "all/intake.rs"]
mod intake;
#[path = "all/integrations.rs"]
mod integrations;
#[path = "all/isolation.rs"]
mod isolation;
#[path = "all/lifetime.rs"]
mod lifetime;
#[path = "all/transport.rs"]
mod transport;

use std::time::Duration;
use tidegate_sender::{Builder, Sender, Span, SpanContext};

/// Longer than anything takes that comes about at all.
const LONG: Duration = Duration::from_secs(30);

/// A sender that loses no time once it is told to send. By itself it does not: on a busy machine, what a test sends in
/// one go would be one request or several.
fn quick(peer: &peer::Peer) -> Builder {
    Sender::builder()
        .endpoint(peer.url())
        .service("tests")
        .flush_interval(LONG)
        .timeout(LONG)
        .backoff(Duration::from_millis(5), Duration::from_millis(20))
}

/// A span that can be told from all others by its number.
fn numbered(number: u64) -> Span<'static> {
    Span {
        context: SpanContext { trace_id: [7; 16], span_id: (number + 1).to_be_bytes(), flags: 1 },
        parent: Some([9; 8]),
        name: "GET /things/{id}",
        start: 1_700_000_000_000_000_000 + number,
        end: 1_700_000_000_001_000_000 + number,
        ..Span::default()
    }
}

fn number_of(span: &oracle::Span) -> u64 {
    u64::from_be_bytes(span.span_id.as_slice().try_into().unwrap()) - 1
}

/// The books balance when nobody is in the middle of a call.
fn balances(sender: &Sender) {
    let stats = sender.stats();
    assert_eq!(stats.balance(), 0, "{stats:?}");
}

fn wait_for(what: &str, come_about: impl Fn() -> bool) {
    let until = std::time::Instant::now() + LONG;
    while !come_about() {
        assert!(std::time::Instant::now() < until, "{what} did not come about");
        std::thread::yield_now();
    }
}

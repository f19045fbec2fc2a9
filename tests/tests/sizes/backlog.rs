//! Less memory after a restart: what is queued is delivered, or the gateway says what it needs and does not start.

use crate::receiver::Receiver;
use crate::requests::{Shape, requests};
use crate::{DELIVERED, accepts, nothing_is_lost};
use serde_json::{Value, json};
use tidegate_tests::{Gateway, free_address};

fn settings(memory: &str, sink: std::net::SocketAddr) -> Value {
    json!({"memory": memory, "sinks": {"otlp": {
        "type": "otlp", "endpoints": [format!("http://{sink}")], "protocol": "http",
        "backoff": {"min": "100ms", "max": "200ms"},
    }}})
}

/// A body that fits no sink any more keeps the gateway from starting; with as much memory as the message names, it
/// starts and delivers it.
#[test]
fn less_memory_loses_no_queued_record() {
    let sink = free_address();
    let mut gateway = Gateway::started(settings("96MiB", sink));
    let many = requests().into_iter().find(|kind| kind.shape == Shape::Many).unwrap();
    for size in [1_000, 400_000, 24_000_000, 1_000] {
        assert!(accepts(&gateway, &many.of(size)), "{size}");
    }
    assert_eq!(gateway.term(), 0);

    gateway.configure(settings("40MiB", sink));
    let refused = gateway.refuses_to_start();
    assert_ne!(refused.code, Some(0));
    let words = &refused.stderr;
    assert!(words.contains("the journal holds a request"), "{words}");
    let enough = words.split("Start with `memory: ").nth(1).and_then(|rest| rest.split('`').next());
    let enough = enough.unwrap_or_else(|| panic!("no memory is named in {words}")).replace(' ', "");

    gateway.configure(settings(&enough, sink));
    gateway.start();
    let _receiver = Receiver::at(sink);
    gateway.at_rest(DELIVERED);
    gateway.books_close();
    nothing_is_lost(&gateway, &["otlp"], "the backlog");
    assert_eq!(gateway.term(), 0);

    // Nothing is queued now, so the smaller memory is enough.
    gateway.configure(settings("40MiB", sink));
    gateway.start();
}

/// A backlog that fits is delivered with less memory than it was accepted with.
#[test]
fn a_backlog_that_fits_is_delivered_with_less_memory() {
    let sink = free_address();
    let mut gateway = Gateway::started(settings("96MiB", sink));
    let kinds = requests();
    let sent: u64 = kinds.iter().map(|kind| u64::from(accepts(&gateway, &kind.of(30_000)))).sum();
    assert!(sent > 10, "{sent}");
    assert_eq!(gateway.term(), 0);
    gateway.configure(settings("40MiB", sink));
    gateway.start();
    let _receiver = Receiver::at(sink);
    gateway.at_rest(DELIVERED);
    gateway.books_close();
    nothing_is_lost(&gateway, &["otlp"], "the backlog");
}

//! Memory is what was said at the start, whatever is sent and whatever fails; nothing is allocated on the way.
//!
//! One test, because the counting allocator sees the whole process: callers, sending thread and the peer,
//! which therefore allocates nothing either. `TIDEGATE_LONG=1` runs the outage for its ten minutes.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test says what it measured")]

#[path = "memory/sink.rs"]
mod sink;

use sink::Sink;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::time::{Duration, Instant};
use tidegate_sender::{
    Class, Compression, Layer, Logger, Protocol, Reason, Sender, Span, SpanContext, SpanKind, Value,
};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LONG: Duration = Duration::from_secs(30);

#[test]
fn memory_is_fixed_at_the_start() {
    the_stated_memory_is_what_is_taken();
    for protocol in [Protocol::Otlp, Protocol::ElasticApm] {
        for compression in [Compression::Gzip, Compression::None] {
            batches_of_any_size_allocate_nothing(protocol, compression);
        }
    }
    tracing_and_log_allocate_nothing();
    a_batch_of_large_events_leaves_nothing_behind();
    an_outage_costs_no_memory_and_callers_do_not_wait();
}

fn the_stated_memory_is_what_is_taken() {
    let sink = Sink::new();
    // Whatever the standard library allocates once per process is not the sender's.
    let first = sink.sender(Protocol::Otlp, Compression::Gzip);
    let region = Region::new(GLOBAL);
    let sender = sink.sender(Protocol::Otlp, Compression::Gzip);
    send(&sender, 50);
    assert!(sender.flush(LONG).is_nothing());
    let stats = region.change();
    let taken = stats.bytes_allocated - stats.bytes_deallocated;
    let stated = sender.memory().total();
    println!("stated {stated}, taken {taken}: {:?}", sender.memory());
    assert!(taken <= stated, "it took {taken} bytes and states {stated}");
    assert!(stated < taken + taken / 10, "it took {taken} bytes, far from the stated {stated}");
    drop(first);
}

fn batches_of_any_size_allocate_nothing(protocol: Protocol, compression: Compression) {
    let sink = Sink::new();
    let sender = sink.sender(protocol, compression);
    for warm in [5, 20, 50] {
        send(&sender, warm);
        assert!(sender.flush(LONG).is_nothing());
    }
    for batch in [5, 20, 50] {
        let region = Region::new(GLOBAL);
        for _ in 0..20 {
            send(&sender, batch);
            assert!(sender.flush(LONG).is_nothing());
        }
        let stats = region.change();
        assert_eq!(
            (stats.allocations, stats.reallocations, stats.bytes_allocated),
            (0, 0, 0),
            "in batches of {batch} spans, {protocol:?}, {compression:?}"
        );
    }
    assert_eq!(sender.stats().balance(), 0);
    assert_eq!(sender.stats().dropped_total(), 0);
}

fn tracing_and_log_allocate_nothing() {
    use tracing_subscriber::prelude::*;
    let sink = Sink::new();
    let sender = sink.sender(Protocol::Otlp, Compression::Gzip);
    let layer = Layer::new(sender.clone());
    let logger = Logger::new(sender.clone());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        let round = || {
            for number in 0..50 {
                let span = tracing::info_span!(
                    "query",
                    a = "text",
                    b = number,
                    c = 0.5,
                    d = true,
                    e = ?Some(7),
                    f = %number,
                    g = "more",
                    h = 1_u64,
                );
                span.in_scope(|| tracing::warn!(number, "slow {}", "query"));
                let mut record = log::Record::builder();
                log::Log::log(&logger, &record.args(format_args!("number {number}")).build());
            }
            assert!(sender.flush(LONG).is_nothing());
        };
        (0..5).for_each(|_| round());
        let region = Region::new(GLOBAL);
        (0..20).for_each(|_| round());
        let stats = region.change();
        assert_eq!((stats.allocations, stats.bytes_allocated), (0, 0), "by tracing and log");
    });
    assert_eq!(sender.stats().sent_total(), 25 * 50 * 3);
}

fn a_batch_of_large_events_leaves_nothing_behind() {
    let sink = Sink::new();
    let sender = sink.sender(Protocol::Otlp, Compression::Gzip);
    let large = "large ".repeat(10_000);
    let attributes = [("text", Value::Str(&large))];
    let round = |batches: usize| {
        for _ in 0..batches {
            send(&sender, 50);
            assert!(sender.flush(LONG).is_nothing());
        }
    };
    round(1_000);
    let (before, region) = (resident(), Region::new(GLOBAL));
    for number in 0..5_000 {
        let span = Span { attributes: &attributes, ..span(number) };
        sender.span(&span).unwrap();
    }
    assert!(sender.flush(LONG).is_nothing());
    round(1_000);
    let (stats, after) = (region.change(), resident());
    println!("resident before {before}, after {after}");
    assert_eq!((stats.allocations, stats.bytes_allocated), (0, 0));
    // The ring was touched in full before, or is now: that much, and what the kernel rounds, may come.
    assert!(after <= before + (1 << 20) + (256 << 10), "resident {before} before, {after} after");
    assert_eq!(sender.stats().balance(), 0);
}

fn an_outage_costs_no_memory_and_callers_do_not_wait() {
    let minutes = std::env::var_os("TIDEGATE_LONG").map_or(0, |_| 10);
    let outage = Duration::from_secs(minutes * 60).max(Duration::from_secs(2));
    // Nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let sender = Sender::builder()
        .endpoint(format!("http://127.0.0.1:{port}"))
        .backoff(Duration::from_millis(50), Duration::from_secs(1))
        .start()
        .unwrap();
    send(&sender, 20_000);
    let region = Region::new(GLOBAL);
    let start = Instant::now();
    let (mut sent, mut longest) = (0_u64, Duration::ZERO);
    while start.elapsed() < outage {
        // 10,000 spans a second, in bursts of a hundredth.
        let burst = Instant::now();
        send(&sender, 100);
        longest = longest.max(burst.elapsed());
        sent += 100;
        std::thread::park_timeout(
            (start + Duration::from_micros(sent * 100)).saturating_duration_since(Instant::now()),
        );
    }
    let stats = region.change();
    let grown = stats.bytes_allocated as i64 - stats.bytes_deallocated as i64;
    let books = sender.stats();
    println!(
        "{sent} spans into an outage; the slowest hundred took {longest:?}; {grown} bytes more in the end"
    );
    // A request that is being tried while this is measured holds a few hundred for an address.
    assert!(grown < 4096, "{grown} bytes more");
    assert!(books.dropped(Class::Span, Reason::Evicted) > 0);
    assert!(books.retries > 1);
    assert_eq!(books.balance(), 0);

    Sink::at(port);
    assert!(sender.flush(LONG).is_nothing());
    let books = sender.stats();
    assert_eq!(books.balance(), 0);
    assert!(books.sent_bytes > 900_000, "the newest megabyte arrives: {books:?}");
}

fn send(sender: &Sender, spans: u64) {
    for number in 0..spans {
        sender.span(&span(number)).unwrap();
    }
}

fn span(number: u64) -> Span<'static> {
    Span {
        context: SpanContext { trace_id: [7; 16], span_id: (number + 1).to_be_bytes(), flags: 1 },
        parent: Some([9; 8]),
        name: "SELECT things",
        kind: SpanKind::Client,
        start: 1_700_000_000_000_000_000 + number * 1_000,
        end: 1_700_000_000_001_000_000 + number * 1_000,
        attributes: &[
            ("db.system.name", Value::Str("postgresql")),
            ("db.query.text", Value::Str("SELECT * FROM things WHERE id = $1")),
            ("db.namespace", Value::Str("shop")),
            ("server.address", Value::Str("db-1.internal")),
            ("server.port", Value::Int(5432)),
            ("db.response.returned_rows", Value::Int(17)),
            ("cached", Value::Bool(false)),
            ("ratio", Value::Double(0.75)),
        ],
        ..Span::default()
    }
}

/// Resident memory in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

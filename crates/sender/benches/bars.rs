//! The cost of the sender, against its targets: `cargo bench -p tidegate-sender`.
//!
//! Allocations and CPU time are of the whole process, sending thread included; the peer is another process.
//! `crates/sender-bench` runs the same batches through the OpenTelemetry SDK and compares.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench, which says what it measures")]

#[path = "bars/measure.rs"]
mod measure;
#[path = "../tests/memory/sink.rs"]
#[allow(dead_code, reason = "a bench")]
mod sink;

use measure::{cpu, peer_in_a_process, span};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::time::{Duration, Instant};
use tidegate_sender::{Compression, Sender};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const LONG: Duration = Duration::from_secs(60);

fn main() {
    if measure::is_peer() {
        return;
    }
    let peer = peer_in_a_process();
    let sender = || {
        Sender::builder()
            .endpoint(&peer.url)
            .compression(Compression::Gzip)
            .flush_interval(LONG)
            .start()
            .unwrap()
    };
    batches(&sender());
    caller(&sender());
    threads();
    println!("memory, fixed at the start: {:?}", sender().memory());
}

fn batches(sender: &Sender) {
    for batch in [5, 20, 50] {
        let run = |batches: u64| {
            for _ in 0..batches {
                (0..batch).for_each(|number| sender.span(&span(number)).unwrap());
                assert!(sender.flush(LONG).is_nothing());
            }
        };
        run(100);
        let (region, before, wire) = (Region::new(GLOBAL), cpu(), sender.stats().wire_bytes);
        run(2_000);
        let (spent, stats) = (cpu() - before, region.change());
        println!(
            "batch of {batch:2} spans: {} bytes in {} allocations, {:.1} µs CPU (encode, gzip, send, flush), {} bytes on the wire",
            stats.bytes_allocated / 2_000,
            stats.allocations / 2_000,
            spent.as_secs_f64() * 1e6 / 2_000.0,
            (sender.stats().wire_bytes - wire) / 2_000,
        );
    }
}

/// The caller's side alone, in bursts that fit into the ring, while the sending thread does its work.
fn caller(sender: &Sender) {
    let (mut spent, mut spans) = (Duration::ZERO, 0);
    for _ in 0..400 {
        let start = Instant::now();
        (0..500).for_each(|number| sender.span(&span(number)).unwrap());
        spent += start.elapsed();
        spans += 500;
        assert!(sender.flush(LONG).is_nothing());
    }
    println!("ending a span with 8 attributes: {} ns on the caller's thread", spent.as_nanos() / spans);
}

/// With the peer gone and the ring full, so that every block is taken from the oldest: the worst case.
fn threads() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut one = 0.0;
    for threads in [1, 2, 4, 8, 16] {
        let sender = Sender::builder().endpoint("http://127.0.0.1:9").stripes(16).start().unwrap();
        (0..20_000).for_each(|number| sender.span(&span(number)).unwrap());
        let each = 400_000;
        let start = Instant::now();
        let before = cpu();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..each).for_each(|number| sender.span(&span(number)).unwrap()));
            }
        });
        let rate = (threads * each) as f64 / start.elapsed().as_secs_f64();
        let cpu_ns = (cpu() - before).as_nanos() as f64 / (threads * each) as f64;
        if threads == 1 {
            one = rate;
        }
        println!(
            "{threads:2} threads on {cores} cores, ring full: {:.2} M spans/s, {:.1} times one thread, {cpu_ns:.0} ns CPU each",
            rate / 1e6,
            rate / one,
        );
        assert_eq!(sender.stats().balance(), 0);
    }
}

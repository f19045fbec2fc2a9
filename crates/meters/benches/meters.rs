//! The cost of one observation. `cargo bench -p tidegate-meters`
#![allow(missing_docs, reason = "a bench")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tidegate_meters::{Buckets, Counter, Histogram};

fn meters(c: &mut Criterion) {
    // Durations as they come: spread over the buckets, so that no branch and no cache line is always right.
    let values: Vec<u64> =
        (0..1024u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (28 + n % 20)).collect();
    let mut bench = |name: &str, observe: &dyn Fn(u64)| {
        let mut next = values.iter().cycle();
        c.bench_function(name, |b| b.iter(|| observe(*black_box(next.next().unwrap_or(&0)))));
    };
    let own = Histogram::new(Buckets::durations(), 64);
    bench("histogram, own stripe, computed bucket", &|v| own.observe(v));
    let listed = Histogram::new(Buckets::listed(&[1_000, 10_000, 100_000, 1_000_000, 10_000_000]), 64);
    bench("histogram, own stripe, listed bucket", &|v| listed.observe(v));
    let shared = Histogram::new(Buckets::durations(), 0);
    bench("histogram, shared stripe, computed bucket", &|v| shared.observe(v));
    let counter = Counter::default();
    bench("counter", &|v| counter.add(v));
    bench("nothing (the loop itself)", &|v| {
        black_box(v);
    });
}

criterion_group!(benches, meters);
criterion_main!(benches);

//! The cost of a lookup: `cargo bench -p tidegate-ring`.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tidegate_ring::{
    Algorithm, Endpoint, MultiRing, RingConfig, RingSettings, SeriesHasher, ShuffleSharding,
};

/// Labels of an ordinary series; a ninth is its pod.
const LABELS: [(&[u8], &[u8]); 8] = [
    (b"__name__", b"http_server_request_duration_seconds_bucket"),
    (b"cluster", b"eu-central-1"),
    (b"code", b"200"),
    (b"handler", b"/api/v1/orders/:id"),
    (b"instance", b"10.42.17.203:8080"),
    (b"job", b"checkout"),
    (b"le", b"0.25"),
    (b"namespace", b"production"),
];

fn rings(algorithm: Algorithm, zones: usize, shard_size: i64) -> MultiRing {
    let zone = |number: usize| if zones == 0 { String::new() } else { format!("zone-{}", number % zones) };
    let address = |number| format!("receive-{number}.receive.monitoring.svc.cluster.local:10901");
    let endpoints = (0..100).map(|number| Endpoint::new(address(number)).in_zone(zone(number)));
    let shuffle_sharding = ShuffleSharding { shard_size, ..ShuffleSharding::default() };
    let config = RingConfig { endpoints: endpoints.collect(), shuffle_sharding, ..RingConfig::default() };
    let settings = RingSettings { algorithm, replication: 3, ..RingSettings::default() };
    MultiRing::new(&[config], &settings).unwrap_or_else(|error| panic!("{error}"))
}

/// Hashes a series whose pod is new, so that keys fall all over the ring.
fn hash(hasher: &mut SeriesHasher, number: u64) -> u64 {
    LABELS.iter().for_each(|&(name, value)| hasher.label(black_box(name), black_box(value)));
    let mut pod = *b"checkout-6d4cf56db6-x2x7k";
    pod.iter_mut().zip(number.to_le_bytes()).for_each(|(byte, digit)| *byte ^= digit);
    hasher.label(b"pod", &pod);
    hasher.finish()
}

fn lookups(criterion: &mut Criterion) {
    let mut hasher = SeriesHasher::for_tenant(b"team-checkout");
    let mut number = 0_u64;
    let mut next = move || {
        number += 1;
        hash(&mut hasher, number)
    };
    criterion.bench_function("hash of 9 labels", |bencher| bencher.iter(&mut next));
    for (name, rings) in [
        ("hashmod, 100 members", rings(Algorithm::Hashmod, 0, 0)),
        ("ketama, 100 members (bar: 150 ns)", rings(Algorithm::Ketama, 3, 0)),
        ("ketama, shard of 12 of 100 members", rings(Algorithm::Ketama, 3, 12)),
    ] {
        let ring = rings.for_tenant("team-checkout").unwrap_or_else(|error| panic!("{error}"));
        let mut key = 0_u64;
        criterion.bench_function(&format!("{name}: lookup only"), |bencher| {
            bencher.iter(|| {
                key = key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ring.members(key)
            });
        });
        criterion.bench_function(name, |bencher| bencher.iter(|| ring.members(next())));
        criterion.bench_function(&format!("{name}: tenant in the cache"), |bencher| {
            bencher.iter(|| rings.for_tenant(black_box("team-checkout")));
        });
        let mut tenant = 0_u64;
        criterion.bench_function(&format!("{name}: tenant not seen before"), |bencher| {
            bencher.iter(|| {
                tenant += 1;
                rings.for_tenant(&format!("tenant-{tenant}"))
            });
        });
    }
    criterion.bench_function("build: ketama, 100 members", |bencher| {
        bencher.iter(|| rings(Algorithm::Ketama, 3, 0));
    });
}

criterion_group!(benches, lookups);
criterion_main!(benches);

use std::ops::Range;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::remote_write::{encoded_labels, key_of};

/// N series with labels as a cluster of services has them: nine each, about 300 bytes of request per
/// series with its sample. The same seed makes the same series.
#[derive(Clone, Debug)]
pub struct Model {
    series: Vec<Series>,
    timeline: Timeline,
}

/// One series: its labels, sorted by name, and what its samples are.
#[derive(Clone, Debug)]
pub struct Series {
    /// Names and values.
    pub labels: Box<[(&'static str, Box<str>)]>,
    /// What its samples are.
    pub kind: Kind,
    /// Identifies the label set, here and in a [`CheckingSink`](crate::CheckingSink).
    pub key: u64,
    pub(crate) encoded_labels: Box<[u8]>,
}

impl Series {
    /// A series with these labels, which must be sorted by name; the first is `__name__`.
    pub(crate) fn new(labels: Box<[(&'static str, Box<str>)]>, kind: Kind) -> Self {
        let key = key_of(labels.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        let encoded_labels = encoded_labels(&labels);
        Self { labels, kind, key, encoded_labels }
    }
}

/// What a series' samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sample `k` has the value `k`.
    Float,
    /// Sample `k` is a native histogram with the sum `k`.
    Histogram,
}

/// When samples were taken: number `k` at `base_ms + k * interval_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// When sample 0 was taken, in milliseconds since 1970.
    pub base_ms: i64,
    /// Time between samples.
    pub interval_ms: i64,
}

impl Timeline {
    /// When sample `number` was taken.
    pub fn at(&self, number: u64) -> i64 {
        self.base_ms.wrapping_add(self.interval_ms.wrapping_mul(number.cast_signed()))
    }
}

const METRICS: [&str; 12] = [
    "http_server_request_duration_seconds_bucket",
    "container_cpu_usage_seconds_total",
    "container_memory_working_set_bytes",
    "kube_pod_container_status_restarts_total",
    "node_network_transmit_packets_dropped_total",
    "grpc_server_handled_total",
    "process_resident_memory_bytes",
    "go_memstats_heap_inuse_bytes",
    "apiserver_request_duration_seconds_sum",
    "jvm_gc_collection_seconds_count",
    "rabbitmq_queue_messages_ready",
    "etcd_disk_wal_fsync_duration_seconds_count",
];
const SERVICES: [&str; 8] = [
    "checkout-service",
    "payment-gateway",
    "inventory-worker",
    "recommendation-api",
    "session-store",
    "notification-sender",
    "search-indexer",
    "frontend-web",
];
const NAMESPACES: [&str; 4] = ["production-europe", "production-america", "staging-europe", "monitoring"];

impl Model {
    /// `count` float series.
    pub fn new(seed: u64, count: usize, timeline: Timeline) -> Self {
        Self::with_histograms(seed, count, timeline, usize::MAX)
    }

    /// `count` series of which every `every`th (the first among them) has native histograms.
    pub fn with_histograms(seed: u64, count: usize, timeline: Timeline, every: usize) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let kind = |n: usize| {
            let histogram = every != usize::MAX && n.is_multiple_of(every.max(1));
            if histogram { Kind::Histogram } else { Kind::Float }
        };
        Self { series: (0..count).map(|n| series(&mut random, n, kind(n))).collect(), timeline }
    }

    /// How many series there are.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// All series.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// The series with these numbers, as far as there are any.
    pub fn range(&self, range: Range<usize>) -> &[Series] {
        let end = range.end.min(self.len());
        &self.series[range.start.min(end)..end]
    }

    /// When samples were taken.
    pub fn timeline(&self) -> Timeline {
        self.timeline
    }
}

fn series(random: &mut SmallRng, number: usize, kind: Kind) -> Series {
    fn pick<'a>(random: &mut SmallRng, from: &[&'a str]) -> &'a str {
        from[random.random_range(0..from.len())]
    }
    let service = pick(random, &SERVICES);
    let (replica_set, pod): (u32, u32) = (random.random(), random.random());
    let [a, b, c]: [u8; 3] = random.random();
    let mut labels: Vec<(&'static str, Box<str>)> = vec![
        ("__name__", pick(random, &METRICS).into()),
        ("cluster", format!("eu-central-{}", random.random_range(1..4)).into()),
        ("container", service.into()),
        ("instance", format!("10.{a}.{b}.{c}:{}", random.random_range(8_000..10_000)).into()),
        ("job", format!("pods/{service}").into()),
        ("le", format!("{}.5", random.random_range(0..30)).into()),
        ("namespace", pick(random, &NAMESPACES).into()),
        ("node", format!("ip-10-{a}-{b}-7.eu-central-1").into()),
        // The number makes the label set unique.
        ("pod", format!("{service}-{replica_set:08x}-{:05x}-{number:06}", pod >> 12).into()),
    ];
    if kind == Kind::Histogram {
        labels[0].1 = "http_server_request_duration_seconds".into();
        labels.retain(|(name, _)| *name != "le");
    }
    Series::new(labels.into(), kind)
}

use std::ops::Range;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::remote_write::{encoded_labels, key_of};

/// N series with labels as a cluster of services has them: nine each, about 300 bytes of request per
/// series with its sample. The same seed makes the same series.
#[derive(Clone, Debug)]
pub struct SeriesModel {
    series: Vec<Series>,
    timeline: Timeline,
}

/// One series: its labels, sorted by name, and what its samples are.
#[derive(Clone, Debug)]
pub struct Series {
    /// Names and values.
    pub labels: Box<[(&'static str, Box<str>)]>,
    /// The type of its samples.
    pub kind: SampleKind,
    /// Identifies the label set, here and in a [`VerifyingReceiver`](crate::sink::VerifyingReceiver).
    pub key: u64,
    pub(crate) encoded_labels: Box<[u8]>,
}

impl Series {
    /// A series with these labels, which must be sorted by name; the first is `__name__`.
    pub(crate) fn new(labels: Box<[(&'static str, Box<str>)]>, kind: SampleKind) -> Self {
        let pairs = labels.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let key = key_of(pairs, &mut Vec::new());
        let encoded_labels = encoded_labels(&labels);
        Self { labels, kind, key, encoded_labels }
    }
}

/// The type of a series' samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
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

impl SeriesModel {
    /// `count` float series.
    pub fn new(seed: u64, count: usize, timeline: Timeline) -> Self {
        Self::with_histograms(seed, count, timeline, usize::MAX)
    }

    /// `count` series of which every `every`th (the first among them) has native histograms.
    pub fn with_histograms(seed: u64, count: usize, timeline: Timeline, every: usize) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let kind = |n: usize| {
            let histogram = every != usize::MAX && n.is_multiple_of(every.max(1));
            if histogram { SampleKind::Histogram } else { SampleKind::Float }
        };
        let pods: Vec<Pod> =
            (0..count.div_ceil(SERIES_PER_POD)).map(|pod| Pod::random(&mut random, pod)).collect();
        let series = |n: usize| pods[n / SERIES_PER_POD].series(n % SERIES_PER_POD, kind(n));
        Self { series: (0..count).map(series).collect(), timeline }
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

/// The labels that all series of one scraped pod share.
struct Pod {
    service: &'static str,
    namespace: &'static str,
    cluster: String,
    instance: String,
    node: String,
    name: String,
    /// The metric that its first series are of.
    offset: usize,
}

/// As in a real scrape, and so in a real request: neighbours come from one pod and differ in the metric
/// and one more label. With this many from each pod, bodies compress as those of a real fleet: ten to one.
const SERIES_PER_POD: usize = 16;

const BUCKETS: [&str; 8] = ["0.005", "0.025", "0.1", "0.25", "0.5", "1", "5", "+Inf"];

impl Pod {
    fn random(random: &mut SmallRng, number: usize) -> Self {
        let service = SERVICES[random.random_range(0..SERVICES.len())];
        let [a, b, c]: [u8; 3] = random.random();
        let (replica_set, suffix): (u32, u16) = (random.random(), random.random());
        Self {
            service,
            namespace: NAMESPACES[random.random_range(0..NAMESPACES.len())],
            cluster: format!("eu-central-{}", random.random_range(1..4)),
            instance: format!("10.{a}.{b}.{c}:{}", random.random_range(8_000..10_000)),
            node: format!("ip-10-{a}-{b}-7.eu-central-1"),
            // The number makes it unique.
            name: format!("{service}-{replica_set:08x}-{suffix:04x}{number:04}"),
            offset: random.random_range(0..METRICS.len()),
        }
    }

    fn series(&self, number: usize, kind: SampleKind) -> Series {
        let metric = METRICS[(self.offset + number / BUCKETS.len()) % METRICS.len()];
        let bucket = BUCKETS[number % BUCKETS.len()];
        let (name, handler) = match kind {
            SampleKind::Float => (metric, None),
            SampleKind::Histogram => {
                ("http_server_request_duration_seconds", Some(format!("/api/v1/{number}")))
            }
        };
        let labels = [
            ("__name__", Some(name)),
            ("cluster", Some(&*self.cluster)),
            ("container", Some(self.service)),
            ("handler", handler.as_deref()),
            ("instance", Some(&*self.instance)),
            ("job", Some(&*format!("pods/{}", self.service))),
            ("le", (kind == SampleKind::Float).then_some(bucket)),
            ("namespace", Some(self.namespace)),
            ("node", Some(&*self.node)),
            ("pod", Some(&*self.name)),
        ];
        let labels = labels.into_iter().filter_map(|(name, value)| Some((name, value?.into())));
        Series::new(labels.collect(), kind)
    }
}

//! The metrics of Thanos Receive about its requests, by the names and labels of Thanos 0.42, for alerts and dashboards that were
//! made for it.
//!
//! Reference: `pkg/extprom/http` and `pkg/receive/handler.go` of Thanos, and the queries in its `mixin`. Tenants are bounded: the
//! first [`TENANTS`] have series of their own, and all others share those of `other`. Counting allocates nothing after the first
//! request of a tenant.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tidegate_meters::{Kind, MAX_LABEL_BYTES, Name, OTHER, Registry, Summary, Value};

use crate::clock::Timestamp;

/// The tenants with series of their own. All series of so many with the longest names fit the answer of the console beside
/// those of the gateway.
pub(crate) const TENANTS: usize = 16;

/// The endpoint that a request is for: a value of the label `handler`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handler {
    Receive,
    Otlp,
}

/// The statuses that are counted by themselves. Others are counted as the first of their class.
const CODES: [u16; 12] = [200, 400, 401, 403, 405, 408, 413, 415, 429, 431, 500, 503];
/// The label `code` of each.
const CODE_LABELS: [&str; CODES.len()] =
    ["200", "400", "401", "403", "405", "408", "413", "415", "429", "431", "500", "503"];
/// The label `code` of histograms of written series, where a code each would be too many series.
const CLASSES: [&str; 3] = ["200", "4xx", "5xx"];

/// Nanoseconds. The alert of Thanos is about 10 s.
const DURATIONS: [u64; 10] = [
    10_000_000,
    100_000_000,
    300_000_000,
    600_000_000,
    1_000_000_000,
    3_000_000_000,
    6_000_000_000,
    9_000_000_000,
    20_000_000_000,
    60_000_000_000,
];
const SIZES: [u64; 3] = [1 << 10, 32 << 10, 1 << 20];
const COUNTS: [u64; 3] = [100, 1000, 10_000];

const REQUESTS: Name = Name::plain("http_requests", "Tracks the number of HTTP requests").exact();
const DURATION: Name =
    Name::seconds("http_request_duration", "Tracks the latencies for HTTP requests").exact();
const SIZE: Name = Name::bytes("http_request_size", "Tracks the size of HTTP requests").exact();
const IN_FLIGHT: Name = Name::plain("http_inflight_requests", "Current number of HTTP requests").exact();
const SERIES: Name =
    Name::plain("thanos_receive_write_timeseries", "Series of the write requests that were answered").exact();
const SAMPLES: Name =
    Name::plain("thanos_receive_write_samples", "Samples of the write requests that were answered").exact();

/// The meters. Clones are the same meters.
#[derive(Clone)]
pub struct ThanosMeters(Arc<Cells>);

struct Cells {
    /// The last is that of the others.
    tenants: [TenantCells; TENANTS + 1],
    /// Locked while a name is added.
    adding: Mutex<usize>,
    in_flight: [AtomicI64; 2],
}

#[derive(Default)]
struct TenantCells {
    name: OnceLock<Box<str>>,
    handlers: [HandlerCells; 2],
    series: [Distribution<4>; CLASSES.len()],
    samples: [Distribution<4>; CLASSES.len()],
}

#[derive(Default)]
struct HandlerCells {
    requests: [AtomicU64; CODES.len()],
    nanoseconds: Distribution<11>,
    bytes: Distribution<4>,
}

/// A sum, and counts of `N` buckets, the last without a bound.
struct Distribution<const N: usize> {
    sum: AtomicU64,
    buckets: [AtomicU64; N],
}

/// A request that is being answered.
pub(crate) struct MeasuredRequest {
    meters: ThanosMeters,
    handler: Handler,
    tenant: usize,
    since: Timestamp,
    /// What is to be written of it, once that is known; `u32::MAX` series before.
    series: AtomicU32,
    samples: AtomicU32,
}

impl Handler {
    const ALL: [Handler; 2] = [Handler::Receive, Handler::Otlp];

    const fn name(self) -> &'static str {
        match self {
            Handler::Receive => "receive",
            Handler::Otlp => "otlp",
        }
    }
}

impl ThanosMeters {
    /// Heap bytes of the meters: a line of the memory plan.
    pub const BYTES: usize = size_of::<Cells>() + (TENANTS + 1) * MAX_LABEL_BYTES;

    /// Meters that are published in `registry`.
    pub fn new(registry: &Registry) -> ThanosMeters {
        let meters = ThanosMeters(Arc::new(Cells {
            tenants: std::array::from_fn(|_| TenantCells::default()),
            adding: Mutex::new(0),
            in_flight: [AtomicI64::new(0), AtomicI64::new(0)],
        }));
        meters.publish(registry);
        meters
    }

    /// A request of this tenant, if one is known, that came at `since`.
    pub(crate) fn begin(&self, handler: Handler, tenant: Option<&str>, since: Timestamp) -> MeasuredRequest {
        self.0.in_flight[handler as usize].fetch_add(1, Relaxed);
        MeasuredRequest {
            meters: self.clone(),
            handler,
            tenant: tenant.map_or(TENANTS, |name| self.0.index(name)),
            since,
            series: AtomicU32::new(u32::MAX),
            samples: AtomicU32::new(0),
        }
    }

    fn publish(&self, registry: &Registry) {
        const REQUEST: [&str; 3] = ["handler", "method", "tenant"];
        let all = (TENANTS + 1) * Handler::ALL.len();
        let cells = Arc::clone(&self.0);
        let labels = ["code", "handler", "method", "tenant"];
        registry.computed(REQUESTS, Kind::Counter, labels, all * CODES.len(), move |emit| {
            cells.each_handler(|tenant, handler, cells| {
                for (code, count) in CODE_LABELS.iter().zip(&cells.requests) {
                    let count = count.load(Relaxed);
                    if count > 0 {
                        emit([code, handler.name(), "post", tenant], Value::Counter(count));
                    }
                }
            });
        });
        let cells = Arc::clone(&self.0);
        registry.computed(DURATION, Kind::Histogram, REQUEST, all, move |emit| {
            cells.each_handler(|tenant, handler, cells| {
                if let Some(summary) = cells.nanoseconds.summary(&DURATIONS) {
                    emit([handler.name(), "post", tenant], Value::Histogram(summary));
                }
            });
        });
        let cells = Arc::clone(&self.0);
        registry.computed(SIZE, Kind::Histogram, REQUEST, all, move |emit| {
            cells.each_handler(|tenant, handler, cells| {
                if let Some(summary) = cells.bytes.summary(&SIZES) {
                    emit([handler.name(), "post", tenant], Value::Histogram(summary));
                }
            });
        });
        let cells = Arc::clone(&self.0);
        registry.computed(IN_FLIGHT, Kind::Gauge, ["handler", "method"], 2, move |emit| {
            for (handler, count) in Handler::ALL.into_iter().zip(&cells.in_flight) {
                emit([handler.name(), "POST"], Value::Gauge(count.load(Relaxed)));
            }
        });
        self.publish_written(registry, SERIES, |cells| &cells.series);
        self.publish_written(registry, SAMPLES, |cells| &cells.samples);
    }

    fn publish_written(
        &self,
        registry: &Registry,
        name: Name,
        of: fn(&TenantCells) -> &[Distribution<4>; CLASSES.len()],
    ) {
        let cells = Arc::clone(&self.0);
        let max = (TENANTS + 1) * CLASSES.len();
        registry.computed(name, Kind::Histogram, ["code", "tenant"], max, move |emit| {
            for cells in &cells.tenants {
                for (code, distribution) in CLASSES.iter().zip(of(cells)) {
                    if let Some(summary) = distribution.summary(&COUNTS) {
                        emit([code, cells.label()], Value::Histogram(summary));
                    }
                }
            }
        });
    }
}

impl Cells {
    /// The index of this tenant's cells.
    fn index(&self, name: &str) -> usize {
        let name = name.get(..name.floor_char_boundary(MAX_LABEL_BYTES)).unwrap_or(OTHER);
        if let Some(found) = self.find(name) {
            return found;
        }
        let mut used = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = self.find(name) {
            return found;
        }
        let slot = if name == OTHER { None } else { self.tenants.get(*used).filter(|_| *used < TENANTS) };
        let Some(slot) = slot else { return TENANTS };
        // Only the holder of the lock adds names, and each cell gets one.
        let _added = slot.name.set(name.into());
        *used += 1;
        *used - 1
    }

    fn find(&self, name: &str) -> Option<usize> {
        let mut known = self.tenants.iter().map_while(|cells| cells.name.get());
        known.position(|known| **known == *name)
    }

    fn each_handler(&self, mut visit: impl FnMut(&str, Handler, &HandlerCells)) {
        for tenant in &self.tenants {
            for (handler, cells) in Handler::ALL.into_iter().zip(&tenant.handlers) {
                visit(tenant.label(), handler, cells);
            }
        }
    }
}

impl TenantCells {
    fn label(&self) -> &str {
        self.name.get().map_or(OTHER, |name| name)
    }
}

impl<const N: usize> Default for Distribution<N> {
    fn default() -> Self {
        Distribution { sum: AtomicU64::new(0), buckets: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl<const N: usize> Distribution<N> {
    fn observe(&self, bounds: &[u64], value: u64) {
        self.sum.fetch_add(value, Relaxed);
        let at = bounds.partition_point(|bound| *bound < value);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Relaxed);
        }
    }

    /// As it is now; nothing where nothing was observed.
    fn summary(&self, bounds: &[u64]) -> Option<Summary> {
        let bounds = bounds.iter().copied().map(Some).chain([None]);
        let buckets = bounds.zip(self.buckets.iter().map(|count| count.load(Relaxed))).collect();
        let summary = Summary { sum: self.sum.load(Relaxed), buckets };
        (summary.count() > 0).then_some(summary)
    }
}

impl MeasuredRequest {
    /// Notes how much the request wants to write.
    pub(crate) fn writes(&self, series: u64, samples: u64) {
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX - 1);
        self.samples.store(count(samples), Relaxed);
        self.series.store(count(series), Relaxed);
    }

    /// Counts the request, whose answer has this status and whose body had so many bytes. To be called once.
    pub(crate) fn answered(&self, status: u16, bytes: usize) {
        let Some(cells) = self.meters.0.tenants.get(self.tenant) else { return };
        let class = match status {
            ..400 => 0,
            400..500 => 1,
            _ => 2,
        };
        // The first of its class, where it is not listed.
        let first = [200, 400, 500][class];
        let code =
            [status, first].into_iter().find_map(|status| CODES.iter().position(|code| *code == status));
        let handler = &cells.handlers[self.handler as usize];
        if let Some(requests) = code.and_then(|code| handler.requests.get(code)) {
            requests.fetch_add(1, Relaxed);
        }
        handler.nanoseconds.observe(&DURATIONS, self.since.elapsed_ns());
        handler.bytes.observe(&SIZES, bytes as u64);
        let series = self.series.load(Relaxed);
        if series < u32::MAX {
            cells.series[class].observe(&COUNTS, series.into());
            cells.samples[class].observe(&COUNTS, self.samples.load(Relaxed).into());
        }
    }
}

impl Drop for MeasuredRequest {
    fn drop(&mut self) {
        self.meters.0.in_flight[self.handler as usize].fetch_sub(1, Relaxed);
    }
}

impl fmt::Debug for ThanosMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThanosMeters")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        registry.encode(&mut text).unwrap();
        text
    }

    /// The lines that Thanos' alerts and dashboards select have the names and labels of Thanos.
    #[test]
    fn names_and_labels_are_those_of_thanos() {
        let registry = Registry::new(1);
        let meters = ThanosMeters::new(&registry);
        let request = meters.begin(Handler::Receive, Some("a"), Timestamp::now());
        request.writes(7, 70);
        request.answered(200, 100);
        drop(request);
        meters.begin(Handler::Otlp, None, Timestamp::now()).answered(502, 0);
        let open = meters.begin(Handler::Receive, Some("a"), Timestamp::now());
        let text = text(&registry);
        for line in [
            r#"http_requests_total{code="200",handler="receive",method="post",tenant="a"} 1"#,
            r#"http_requests_total{code="500",handler="otlp",method="post",tenant="other"} 1"#,
            r#"http_request_duration_seconds_bucket{le="9.0",handler="receive",method="post",tenant="a"} 1"#,
            r#"http_request_duration_seconds_count{handler="receive",method="post",tenant="a"} 1"#,
            r#"http_request_size_bytes_sum{handler="receive",method="post",tenant="a"} 100"#,
            r#"http_inflight_requests{handler="receive",method="POST"} 1"#,
            r#"http_inflight_requests{handler="otlp",method="POST"} 0"#,
            r#"thanos_receive_write_timeseries_sum{code="200",tenant="a"} 7"#,
            r#"thanos_receive_write_samples_sum{code="200",tenant="a"} 70"#,
        ] {
            assert!(text.lines().any(|have| have.trim_end_matches(".0") == line), "{line}\n{text}");
        }
        drop(open);
    }

    /// Invented names end up in one series, and what they can fill is bounded.
    #[test]
    fn tenants_are_bounded() {
        let registry = Registry::new(1);
        let meters = ThanosMeters::new(&registry);
        for tenant in 0..1000 {
            for handler in Handler::ALL {
                for status in CODES {
                    let name = format!("{tenant:0>100}").chars().rev().collect::<String>();
                    let request = meters.begin(handler, Some(&name), Timestamp::now());
                    request.writes(1_000_000, 1_000_000);
                    request.answered(status, 1 << 30);
                }
            }
        }
        let text = text(&registry);
        assert!(text.len() < 256 << 10, "{} bytes", text.len());
        let others = r#"http_requests_total{code="200",handler="receive",method="post",tenant="other"} 984"#;
        assert!(text.contains(others), "{text}");
        const { assert!(ThanosMeters::BYTES < 64 << 10) };
    }
}

//! The engine's counters, and their publication.

use crate::clock;
use crate::engine::Shared;
use crate::lane::{LANES, Lane};
use crate::state::LaneState;
use crate::sync::{Arc, lock};
use std::time::Duration;
use tidegate_meters::{Buckets, Histogram, Kind, Name, Registry, Value};

/// Counted under the engine's lock, so plain numbers.
#[derive(Debug, Default)]
pub(crate) struct LaneCounters {
    pub(crate) submitted: u64,
    pub(crate) refused: u64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    pub(crate) withdrawn: u64,
    pub(crate) abandoned: u64,
    pub(crate) retried: u64,
}

/// Distributions, by lane.
#[derive(Debug)]
pub(crate) struct RequestHistograms {
    items: [Histogram; Lane::COUNT],
    latency: [Histogram; Lane::COUNT],
}

impl RequestHistograms {
    pub(crate) fn new() -> RequestHistograms {
        // One stripe, added to atomically: once a request.
        let items = LANES.map(|_| Histogram::new(Buckets::counts(), 0));
        let latency = LANES.map(|_| Histogram::new(Buckets::durations(), 0));
        RequestHistograms { items, latency }
    }

    /// A request with `items` items was answered, or failed, after `latency`.
    pub(crate) fn observe_request(&self, lane: Lane, items: u32, latency: Duration) {
        if let (Some(sizes), Some(latencies)) = (self.items.get(lane.index()), self.latency.get(lane.index()))
        {
            sizes.observe(u64::from(items));
            latencies.observe_duration(latency);
        }
    }

    pub(crate) fn publish(&self, shared: &Arc<Shared>, registry: &Registry) {
        let gauge = |name, read: fn(&Shared, Lane) -> i64| {
            let shared = Arc::clone(shared);
            registry.computed(name, Kind::Gauge, ["kind"], Lane::COUNT, move |emit| {
                for lane in LANES {
                    emit([lane.name()], Value::Gauge(read(&shared, lane)));
                }
            });
        };
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        gauge(DEPTH, |shared, lane| i64::from(lock(&shared.state).lane(lane).depth));
        gauge(BYTES, |shared, lane| {
            i64::try_from(lock(&shared.state).lane(lane).charged).unwrap_or(i64::MAX)
        });
        let oldest = Arc::clone(shared);
        registry.computed(AGE, Kind::Gauge, ["kind"], Lane::COUNT, move |emit| {
            for lane in LANES {
                let oldest = lock(&oldest.state).oldest(lane);
                let age = oldest.map(|oldest| clock::now().saturating_duration_since(oldest));
                let nanoseconds = u64::try_from(age.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
                emit([lane.name()], Value::Gauge(signed(nanoseconds)));
            }
        });
        let items = Arc::clone(shared);
        registry.computed(ITEMS, Kind::Counter, ["kind", "fate"], Lane::COUNT * FATES.len(), move |emit| {
            for lane in LANES {
                let read = FATES.map(|(_, read)| read(lock(&items.state).lane(lane)));
                for ((fate, _), count) in FATES.iter().zip(read) {
                    emit([lane.name(), fate], Value::Counter(count));
                }
            }
        });
        for (name, histograms) in [(BATCH, &self.items), (LATENCY, &self.latency)] {
            let histograms = histograms.clone();
            registry.computed(name, Kind::Histogram, ["kind"], Lane::COUNT, move |emit| {
                for (lane, histogram) in LANES.iter().zip(&histograms) {
                    emit([lane.name()], Value::Histogram(histogram.summary()));
                }
            });
        }
    }
}

const DEPTH: Name = Name::plain("bulk_depth", "Items of the bulk engine, waiting or in flight");
const BYTES: Name = Name::bytes("bulk_waiting", "Memory of bodies of the bulk engine, waiting or in flight");
const AGE: Name = Name::seconds("bulk_oldest", "How long the oldest item of the bulk engine has been there");
const ITEMS: Name = Name::plain("bulk_items", "Items of the bulk engine, by outcome");
const BATCH: Name = Name::plain("bulk_batch_items", "Items in one request of the bulk engine");
const LATENCY: Name = Name::seconds("bulk_flush", "How long one request of the bulk engine took");

type Fate = (&'static str, fn(&LaneState) -> u64);

/// Every submitted item is answered, failed or withdrawn in the end. An abandoned item is in flight without a
/// caller; it is answered or failed later, unless it is rejected. A retried item is counted each time.
const FATES: [Fate; 7] = [
    ("submitted", |state| state.counts.submitted),
    ("refused", |state| state.counts.refused),
    ("answered", |state| state.counts.answered),
    ("failed", |state| state.counts.failed),
    ("withdrawn", |state| state.counts.withdrawn),
    ("abandoned", |state| state.counts.abandoned),
    ("retried", |state| state.counts.retried),
];

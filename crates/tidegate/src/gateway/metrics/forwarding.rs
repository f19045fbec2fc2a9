//! Forwarding to Thanos' ingestors, by the names of Thanos Receive 0.42 (`pkg/receive/handler.go` and `config.go`).
//!
//! The names know no sinks: where several sinks send to ingestors, counters are sums over all of them.

use super::{level, span};
use crate::gateway::status::StatusView;
use crate::gateway::thanos_receive;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;
use tidegate_meters::{Kind, Name, Summary, Value};
use tidegate_sinks::{ForwardingReport, HashringFileReport, HashringReport, SendDelays};

const REQUESTS: Name = Name::plain(
    "thanos_receive_forward_requests",
    "Requests that ingestors took, and attempts that failed; those with conflicts are neither",
)
.exact();
const REPLICATIONS: Name = Name::plain(
    "thanos_receive_replications",
    "The same: each request has one replica of its series, as in a router of Thanos",
)
.exact();
const FACTOR: Name =
    Name::plain("thanos_receive_replication_factor", "On how many ingestors each series is stored").exact();
const NODES: Name = Name::plain("thanos_receive_hashring_nodes", "Endpoints of each hashring").exact();
const TENANTS: Name =
    Name::plain("thanos_receive_hashring_tenants", "Tenants that each hashring lists").exact();
const CHANGES: Name =
    Name::plain("thanos_receive_hashrings_file_changes", "Changes of the file of hashrings").exact();
const ERRORS: Name = Name::plain(
    "thanos_receive_hashrings_file_errors",
    "Looks at the file of hashrings that found it unusable",
)
.exact();
const REFRESHES: Name =
    Name::plain("thanos_receive_hashrings_file_refreshes", "Looks at the file of hashrings").exact();
const HASH: Name =
    Name::plain("thanos_receive_config_hash", "Hash of the file of hashrings that is in use").exact();
const IS_LOADED: Name = Name::plain(
    "thanos_receive_config_last_reload_successful",
    "1 while the file of hashrings is in use, 0 while it cannot be used",
)
.exact();
const LOADED_AT: Name = Name::seconds(
    "thanos_receive_config_last_reload_success_timestamp",
    "When the file of hashrings that is in use was read, since 1970",
)
.exact();
const DELAY: Name = Name::seconds(
    "thanos_receive_forward_delay",
    "Time from receipt until a request was sent to its ingestor for the first time, without what was on disk first",
)
.exact();

/// The most hashrings that have series.
const MOST_HASHRINGS: usize = 64;
/// The ingestors that have series of their own; the others share one.
const WORKERS: usize = 16;
/// The worker of all other ingestors.
const OTHER: &str = "other";

/// Publishes them where the configuration asks for the metrics of Thanos.
pub(super) fn publish(view: &Arc<StatusView>) {
    let is_on = thanos_receive::has_metrics(&view.config.read().unwrap_or_else(PoisonError::into_inner));
    if !is_on {
        return;
    }
    for name in [REQUESTS, REPLICATIONS] {
        let parts = Arc::downgrade(view);
        view.registry.computed(name, Kind::Counter, ["result"], 2, move |emit| {
            let reports = parts.upgrade().map(|view| reports(&view)).unwrap_or_default();
            if !reports.is_empty() {
                emit(["success"], Value::Counter(reports.iter().map(|report| report.succeeded).sum()));
                emit(["error"], Value::Counter(reports.iter().map(|report| report.failed).sum()));
            }
        });
    }
    let parts = Arc::downgrade(view);
    view.registry.computed(FACTOR, Kind::Gauge, [], 1, move |emit| {
        let reports = parts.upgrade().map(|view| reports(&view)).unwrap_or_default();
        if let Some(most) = reports.iter().map(|report| report.replication).max() {
            emit([], level(most as u64));
        }
    });
    of_hashrings(view, NODES, |ring| ring.endpoints);
    of_hashrings(view, TENANTS, |ring| ring.tenants);
    type Counted = fn(&HashringFileReport) -> u64;
    let counters: [(Name, Counted); 3] =
        [(CHANGES, |file| file.changes), (ERRORS, |file| file.errors), (REFRESHES, |file| file.refreshes)];
    for (name, read) in counters {
        of_file(view, name, Kind::Counter, move |files| Value::Counter(files.iter().map(read).sum()));
    }
    of_file(view, HASH, Kind::Gauge, |files| level(files.first().map_or(0, |file| file.hash)));
    of_file(view, IS_LOADED, Kind::Gauge, |files| {
        Value::Gauge(i64::from(files.iter().all(|file| file.is_in_use)))
    });
    of_file(view, LOADED_AT, Kind::Gauge, |files| {
        let last = files.iter().map(|file| file.loaded_at).max().unwrap_or(SystemTime::UNIX_EPOCH);
        span(last.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
    });
    let parts = Arc::downgrade(view);
    view.registry.computed(DELAY, Kind::Histogram, ["worker"], WORKERS + 1, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        let (workers, others) = delays(&view);
        for (address, delays) in &workers {
            emit([address], summary(delays));
        }
        if let Some(delays) = others {
            emit([OTHER], summary(&delays));
        }
    });
}

fn of_hashrings(view: &Arc<StatusView>, name: Name, read: fn(&HashringReport) -> usize) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, Kind::Gauge, ["name"], MOST_HASHRINGS, move |emit| {
        let reports = parts.upgrade().map(|view| reports(&view)).unwrap_or_default();
        let rings = reports.iter().flat_map(|report| &report.hashrings);
        // As in Thanos, the last of several with one name.
        let rings: BTreeMap<&str, usize> = rings.map(|ring| (ring.name.as_str(), read(ring))).collect();
        for (name, value) in rings.into_iter().take(MOST_HASHRINGS) {
            emit([name], level(value as u64));
        }
    });
}

fn of_file(
    view: &Arc<StatusView>,
    name: Name,
    kind: Kind,
    read: impl Fn(&[HashringFileReport]) -> Value + Send + Sync + 'static,
) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, kind, [], 1, move |emit| {
        let reports = parts.upgrade().map(|view| reports(&view)).unwrap_or_default();
        let files: Vec<_> = reports.iter().filter_map(|report| report.file).collect();
        if !files.is_empty() {
            emit([], read(&files));
        }
    });
}

/// The reports of all sinks that send to ingestors.
fn reports(view: &StatusView) -> Vec<ForwardingReport> {
    let sinks = view.sinks.shown();
    sinks.iter().filter_map(|sink| sink.health.forwarding()).collect()
}

/// The delays of the first ingestors, and those of all others together.
fn delays(view: &StatusView) -> (BTreeMap<String, SendDelays>, Option<SendDelays>) {
    let sinks = view.sinks.shown();
    let members =
        sinks.iter().filter(|sink| sink.health.has_forwarding()).flat_map(|sink| sink.health.members());
    let (mut workers, mut others) = (BTreeMap::<String, SendDelays>::new(), None::<SendDelays>);
    for member in members {
        if workers.len() < WORKERS || workers.contains_key(&member.address) {
            workers.entry(member.address).or_default().add(&member.delays);
        } else {
            others.get_or_insert_default().add(&member.delays);
        }
    }
    (workers, others)
}

fn summary(delays: &SendDelays) -> Value {
    let bounds = SendDelays::BOUNDS_NS.into_iter().map(Some).chain([None]);
    Value::Histogram(Summary { sum: delays.sum_ns, buckets: bounds.zip(delays.counts).collect() })
}

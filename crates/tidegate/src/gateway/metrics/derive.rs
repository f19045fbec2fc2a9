//! The series of sinks that derive metrics.

use super::{StatusView, level};
use std::sync::Arc;
use tidegate_ledger::MAX_SINKS;
use tidegate_meters::{Kind, Name, Value};
use tidegate_sinks::DeriveReport;

const SERIES: Name = Name::plain("sink_derived_series", "Series of derived metrics that the sink has");
const MEASURED: Name = Name::plain("sink_derived_observations", "Observations that series were made of");
const OVERFLOWED: Name = Name::plain(
    "sink_derived_observations_overflowed",
    "Observations counted in a series with `otel.metric.overflow`: raise `max_series`",
);
const LOST: Name = Name::plain(
    "sink_derived_observations_lost",
    "Observations without a series, because too many tenants had too many of them",
);
const EXPIRED_EDGES: Name = Name::plain(
    "sink_derived_edges_expired",
    "Edges of service graphs of which only one span came in time; those to a virtual node among them",
);
const DROPPED_SPANS: Name = Name::plain(
    "sink_derived_spans_dropped",
    "Spans that were left out of service graphs, because as many as `store.max_items` waited",
);
const EXPIRED: Name =
    Name::plain("sink_derived_series_expired", "Series that got nothing any more, and ended");

/// Publishes what sinks derive.
pub(super) fn publish(view: &Arc<StatusView>) {
    each(view, SERIES, Kind::Gauge, |report| level(report.series));
    each(view, MEASURED, Kind::Counter, |report| Value::Counter(report.counts.observations));
    each(view, OVERFLOWED, Kind::Counter, |report| Value::Counter(report.counts.overflowed));
    each(view, LOST, Kind::Counter, |report| Value::Counter(report.counts.lost));
    each(view, EXPIRED_EDGES, Kind::Counter, |report| Value::Counter(report.counts.expired_edges));
    each(view, DROPPED_SPANS, Kind::Counter, |report| Value::Counter(report.counts.dropped_spans));
    each(view, EXPIRED, Kind::Counter, |report| Value::Counter(report.counts.expired));
}

fn each(view: &Arc<StatusView>, name: Name, kind: Kind, read: fn(&DeriveReport) -> Value) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, kind, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for sink in view.sinks.shown() {
            if let Some(report) = sink.health.derived() {
                emit([&sink.name], read(&report));
            }
        }
    });
}

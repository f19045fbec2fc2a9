//! The books as series, computed from the pages whenever they are read.

use tidegate_meters::{Kind, Name, Registry, Value};

use crate::balance::SinkBalance;
use crate::forwarded::Fate;
use crate::ledger::{Ledger, MAX_SINKS, MAX_SOURCES, MAX_TENANTS};
use crate::reason::{Dropped, Refusal};
use crate::signal::Signal;
use crate::source::SourceTotals;
use crate::tenant::TenantTotals;

pub(crate) fn publish(registry: &Registry, ledger: &Ledger) {
    per_source(registry, ledger, Kind::Counter, RECEIVED, |book| book.received);
    per_source(registry, ledger, Kind::Counter, ACCEPTED, |book| book.accepted);
    per_source(registry, ledger, Kind::Gauge, OPEN, |book| book.open);
    per_source(registry, ledger, Kind::Counter, BYTES, |book| book.bytes);
    refused(registry, REFUSED, ledger.clone(), |book| book.refused);
    refused(registry, ITEMS_REFUSED, ledger.clone(), |book| book.items_refused);
    items(registry, ledger.clone());
    per_source(registry, ledger, Kind::Counter, FILTERED, |book| book.pipeline.filtered);
    per_source(registry, ledger, Kind::Counter, SAMPLED_OUT, |book| book.pipeline.sampled_out);
    per_source(registry, ledger, Kind::Counter, FORWARDED, |book| book.forwarded.received);
    per_source(registry, ledger, Kind::Gauge, FORWARDED_OPEN, |book| book.forwarded.open);
    forwarded(registry, ledger.clone());
    per_sink(registry, ledger, Kind::Counter, DELIVERED, |sink| sink.delivered);
    per_sink(registry, ledger, Kind::Counter, PASSED, |sink| sink.passed);
    per_sink(registry, ledger, Kind::Counter, REPLAYED, |sink| sink.replayed);
    per_sink(registry, ledger, Kind::Gauge, QUEUED, |sink| sink.queued);
    dropped(registry, ledger.clone());
    per_tenant(registry, ledger, TENANT_RECEIVED, |book| book.received);
    per_tenant(registry, ledger, TENANT_ACCEPTED, |book| book.accepted);
    per_tenant(registry, ledger, TENANT_BYTES, |book| book.bytes);
    per_tenant(registry, ledger, TENANT_ITEMS, |book| book.items.iter().sum());
    per_tenant(registry, ledger, TENANT_DROPPED, |book| book.dropped);
    per_tenant(registry, ledger, TENANT_REFUSED, |book| book.refused.iter().sum());
    let ledger = ledger.clone();
    registry.computed(DIFFERENCE, Kind::Gauge, [], 1, move |emit| {
        emit([], value(Kind::Gauge, ledger.balance().difference()));
    });
}

const RECEIVED: Name = Name::plain("requests_received", "Requests received");
const ACCEPTED: Name = Name::plain("requests_accepted", "Requests accepted");
const REFUSED: Name = Name::plain("requests_refused", "Requests refused, by reason");
const OPEN: Name = Name::plain("requests_open", "Requests received and not yet answered");
const BYTES: Name = Name::bytes("accepted", "Bytes of accepted bodies, as received");
const ITEMS: Name = Name::plain("items_accepted", "Items accepted (samples, log records, spans, events)");
const ITEMS_REFUSED: Name = Name::plain(
    "items_refused",
    "Refused items of requests that were otherwise accepted, and items lost before there was a request, by reason",
);
const FILTERED: Name =
    Name::plain("items_filtered", "Items that the source's pipeline dropped before the journal");
const SAMPLED_OUT: Name = Name::plain(
    "items_sampled_out",
    "Items that the source's pipeline left out of the sample before the journal",
);
const FORWARDED: Name =
    Name::plain("items_forwarded", "Items received to be forwarded to a destination, not journalled");
const FORWARDED_OPEN: Name = Name::plain("items_forwarded_open", "Forwarded items without an answer yet");
const FORWARDED_FATES: Name = Name::plain("items_forwarded_fates", "Forwarded items, by outcome");
const DELIVERED: Name = Name::plain("sink_items_delivered", "Items that the sink's peer took, over restarts");
const PASSED: Name = Name::plain(
    "sink_items_passed",
    "Items of signals that the sink is not configured to take, or sent again to another sink, over restarts",
);
const REPLAYED: Name = Name::plain(
    "sink_items_replayed",
    "Items sent again to this sink alone that have left its queue, over restarts",
);
const QUEUED: Name = Name::plain("sink_items_queued", "Items in the journal that the sink has not settled");
const DROPPED: Name = Name::plain("sink_items_dropped", "Items dropped by reason, over restarts");
const TENANT_RECEIVED: Name = Name::plain("tenant_requests_received", "Requests received, by tenant");
const TENANT_ACCEPTED: Name = Name::plain("tenant_requests_accepted", "Requests accepted, by tenant");
const TENANT_REFUSED: Name = Name::plain("tenant_requests_refused", "Requests refused, by tenant");
const TENANT_BYTES: Name = Name::bytes("tenant_accepted", "Bytes of accepted bodies, as received, by tenant");
const TENANT_DROPPED: Name =
    Name::plain("tenant_items_dropped", "Items that the pipelines of sources dropped, by tenant");
const TENANT_ITEMS: Name = Name::plain("tenant_items_accepted", "Items accepted, by tenant");
const DIFFERENCE: Name = Name::plain("books_difference", "Difference in the books; anything but 0 is a bug");

fn per_source(
    registry: &Registry,
    ledger: &Ledger,
    kind: Kind,
    name: Name,
    column: fn(&SourceTotals) -> u64,
) {
    let ledger = ledger.clone();
    registry.computed(name, kind, ["source"], MAX_SOURCES, move |emit| {
        ledger.each_source(|source| {
            let count = column(&source.book());
            emit([source.name()], value(kind, count));
        });
    });
}

fn per_tenant(registry: &Registry, ledger: &Ledger, name: Name, column: fn(&TenantTotals) -> u64) {
    let ledger = ledger.clone();
    registry.computed(name, Kind::Counter, ["tenant"], MAX_TENANTS, move |emit| {
        ledger.each_tenant(|tenant| emit([tenant.title()], Value::Counter(column(&tenant.book()))));
    });
}

fn per_sink(registry: &Registry, ledger: &Ledger, kind: Kind, name: Name, column: fn(&SinkBalance) -> u64) {
    let ledger = ledger.clone();
    registry.computed(name, kind, ["sink"], MAX_SINKS, move |emit| {
        for sink in &ledger.balance().sinks {
            emit([&sink.name], value(kind, column(sink)));
        }
    });
}

fn refused(
    registry: &Registry,
    name: Name,
    ledger: Ledger,
    column: fn(&SourceTotals) -> [u64; Refusal::COUNT],
) {
    let max = MAX_SOURCES * Refusal::COUNT;
    registry.computed(name, Kind::Counter, ["source", "reason"], max, move |emit| {
        ledger.each_source(|source| {
            let counts = column(&source.book());
            for (reason, count) in Refusal::ALL.iter().zip(counts) {
                emit([source.name(), reason.name()], Value::Counter(count));
            }
        });
    });
}

fn items(registry: &Registry, ledger: Ledger) {
    let max = MAX_SOURCES * Signal::ALL.len();
    registry.computed(ITEMS, Kind::Counter, ["source", "signal"], max, move |emit| {
        ledger.each_source(|source| {
            let counts = source.book().items;
            for (signal, count) in Signal::ALL.iter().zip(counts) {
                emit([source.name(), signal.name()], Value::Counter(count));
            }
        });
    });
}

fn forwarded(registry: &Registry, ledger: Ledger) {
    let max = MAX_SOURCES * Fate::ALL.len();
    registry.computed(FORWARDED_FATES, Kind::Counter, ["source", "fate"], max, move |emit| {
        ledger.each_source(|source| {
            let fates = source.book().forwarded.fates;
            for (fate, count) in Fate::ALL.iter().zip(fates) {
                emit([source.name(), fate.name()], Value::Counter(count));
            }
        });
    });
}

fn dropped(registry: &Registry, ledger: Ledger) {
    let max = MAX_SINKS * Dropped::COUNT;
    registry.computed(DROPPED, Kind::Counter, ["sink", "reason"], max, move |emit| {
        ledger.each_sink(|sink| {
            let book = sink.book();
            for reason in Dropped::ALL {
                emit([sink.name(), reason.name()], Value::Counter(book.dropped(*reason)));
            }
        });
    });
}

fn value(kind: Kind, count: u64) -> Value {
    match kind {
        Kind::Gauge => Value::Gauge(i64::try_from(count).unwrap_or(i64::MAX)),
        Kind::Counter | Kind::Histogram => Value::Counter(count),
    }
}

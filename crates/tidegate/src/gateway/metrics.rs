//! The meters that are read from the parts when somebody asks: memory, journal, sinks, connections.

use super::status::View;
use std::sync::{Arc, PoisonError};
use tidegate_arena::{Share, heap};
use tidegate_console::Resident;
use tidegate_ledger::MAX_SINKS;
use tidegate_meters::{Kind, Name, Value};
use tidegate_sinks::Activity;
use tidegate_tls::Reason;

pub(crate) const REQUEST_DURATION: Name =
    Name::seconds("request_duration", "Time from the last byte of a request to its answer");
const LIMIT: Name = Name::bytes("memory_limit", "The bound on resident memory");
const RESIDENT: Name = Name::bytes("memory_resident", "Resident memory of the process");
const PEAK: Name = Name::bytes("memory_resident_peak", "The most that was ever resident");
const HEAP: Name = Name::bytes("memory_heap_live", "Heap that is allocated and not freed");
const ALLOCATIONS: Name = Name::plain("heap_allocations", "Times that heap was allocated");
const DECLARED: Name = Name::bytes("memory_declared", "What everything but payload may take");
const IDLE: Name = Name::bytes("memory_idle", "Resident pages of idle windows, which yield to any charge");
const SHARE: Name = Name::bytes("memory_share_used", "Payload charged to each share");
const SHARE_WAITING: Name = Name::plain("memory_share_waiting", "Charges that wait, by share");
const CONNECTIONS: Name = Name::plain("connections_open", "Open connections to the sources");
const HANDSHAKES: Name = Name::plain("tls_handshakes", "TLS handshakes that became connections");
const HANDSHAKES_FAILED: Name =
    Name::plain("tls_handshakes_failed", "TLS handshakes that came to nothing, by reason");
const JOURNAL_BYTES: Name = Name::bytes("journal_size", "What the journal takes on disk");
const JOURNAL_QUOTA: Name = Name::bytes("journal_quota", "What the journal may take on disk");
const JOURNAL_SYNCS: Name = Name::plain("journal_syncs", "Times that data was synced");
const JOURNAL_SYNC_TIME: Name = Name::seconds("journal_sync", "Time that syncs took");
const JOURNAL_ERRORS: Name = Name::plain("journal_write_errors", "Writes and syncs that failed");
const JOURNAL_DAMAGED: Name =
    Name::plain("journal_damaged_records", "Records that could not be read, by sinks");
const LAG: Name = Name::bytes("sink_lag", "Bytes of the journal that a sink has not settled");
const REQUESTS: Name = Name::plain("sink_requests", "Requests or files finished with success");
const FAILURES: Name = Name::plain("sink_failures", "Attempts that failed");
const SENT: Name = Name::bytes("sink_sent", "Bytes sent with success");
const RESENT: Name = Name::plain("sink_items_resent", "Items of requests that had to be sent again");
const RESTARTS: Name =
    Name::plain("sink_restarts", "Times that a sink ended unexpectedly and was started again");

/// Publishes what `view` can see.
pub(crate) fn publish(view: &Arc<View>) {
    memory(view);
    gauge(view, CONNECTIONS, |view| view.door.open() as u64);
    if view.doorway.is_some() {
        handshakes(view);
    }
    gauge(view, JOURNAL_BYTES, |view| view.journal.stats().bytes);
    gauge(view, JOURNAL_QUOTA, |view| view.journal.stats().quota);
    counter(view, JOURNAL_SYNCS, |view| view.journal.stats().syncs);
    counter(view, JOURNAL_SYNC_TIME, |view| {
        u64::try_from(view.journal.stats().sync_time.as_nanos()).unwrap_or(u64::MAX)
    });
    counter(view, JOURNAL_ERRORS, |view| view.journal.stats().write_errors);
    counter(view, JOURNAL_DAMAGED, |view| view.journal.stats().damaged_records);
    let parts = Arc::downgrade(view);
    view.registry.computed(LAG, Kind::Gauge, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for sink in &view.journal.stats().sinks {
            emit([&sink.name], level(sink.lag_bytes));
        }
    });
    of_sinks(view, REQUESTS, |activity| activity.requests);
    of_sinks(view, FAILURES, |activity| activity.failures);
    of_sinks(view, SENT, |activity| activity.bytes);
    of_sinks(view, RESENT, |activity| activity.resent);
    of_sinks(view, RESTARTS, |activity| activity.restarts);
}

fn handshakes(view: &Arc<View>) {
    counter(view, HANDSHAKES, |view| view.doorway.as_ref().map_or(0, |doorway| doorway.tally().done()));
    let parts = Arc::downgrade(view);
    view.registry.computed(HANDSHAKES_FAILED, Kind::Counter, ["reason"], Reason::COUNT, move |emit| {
        let Some(doorway) = parts.upgrade().and_then(|view| view.doorway.clone()) else { return };
        for reason in Reason::ALL {
            emit([reason.name()], Value::Counter(doorway.tally().failed(reason)));
        }
    });
}

fn memory(view: &Arc<View>) {
    gauge(view, LIMIT, |view| view.plan().memory());
    gauge(view, RESIDENT, |_| Resident::read().unwrap_or_default().now);
    gauge(view, PEAK, |_| Resident::read().unwrap_or_default().peak);
    gauge(view, HEAP, |_| heap::heap().live);
    counter(view, ALLOCATIONS, |_| heap::heap().allocations);
    gauge(view, DECLARED, |view| view.plan().overhead());
    gauge(view, IDLE, |view| view.arena.usage().idle);
    for (name, column) in [(SHARE, 0), (SHARE_WAITING, 1)] {
        let parts = Arc::downgrade(view);
        view.registry.computed(name, Kind::Gauge, ["share"], Share::COUNT, move |emit| {
            let Some(view) = parts.upgrade() else { return };
            for share in view.arena.usage().shares {
                let value = if column == 0 { share.used } else { share.waiting as u64 };
                emit([share.share.name()], level(value));
            }
        });
    }
}

fn gauge(view: &Arc<View>, name: Name, read: fn(&View) -> u64) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, Kind::Gauge, [], 1, move |emit| {
        if let Some(view) = parts.upgrade() {
            emit([], level(read(&view)));
        }
    });
}

fn counter(view: &Arc<View>, name: Name, read: fn(&View) -> u64) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, Kind::Counter, [], 1, move |emit| {
        if let Some(view) = parts.upgrade() {
            emit([], Value::Counter(read(&view)));
        }
    });
}

fn of_sinks(view: &Arc<View>, name: Name, read: fn(Activity) -> u64) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, Kind::Counter, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for sink in view.sinks.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            emit([&sink.name], Value::Counter(read(sink.health.activity())));
        }
    });
}

fn level(value: u64) -> Value {
    Value::Gauge(i64::try_from(value).unwrap_or(i64::MAX))
}

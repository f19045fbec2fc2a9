//! The meters that are read from the parts when somebody asks: memory, journal, sinks, connections.

mod derive;
pub(super) mod fleet;
mod forwarding;
mod members;
pub(super) mod opamp;
mod source_pipelines;
mod trace_sampling;

use super::status::StatusView;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tidegate_arena::{Share, heap};
use tidegate_console::{Resident, State, StateReport};
use tidegate_ledger::MAX_SINKS;
use tidegate_meters::{Kind, Name, Value};
use tidegate_sinks::{Activity, Cluster, PipelineMeters, StepMeters, StepTotals, TraceSampling};
use tidegate_tls::HandshakeFailure;

pub(crate) const REQUEST_DURATION: Name =
    Name::seconds("request_duration", "Time from the last byte of a request to its answer");
const LIMIT: Name = Name::bytes("memory_limit", "The bound on resident memory");
const RESIDENT: Name = Name::bytes("memory_resident", "Resident memory of the process");
const PEAK: Name = Name::bytes("memory_resident_peak", "The most that was ever resident");
const HEAP: Name = Name::bytes("memory_heap_live", "Heap that is allocated and not freed");
const ALLOCATIONS: Name = Name::plain("heap_allocations", "Times that heap was allocated");
const DECLARED: Name = Name::bytes("memory_declared", "Limit on everything but payload");
const KEPT: Name = Name::bytes(
    "memory_kept_by_kernel",
    "Pages that the kernel did not take back: charged for good, and 0 on a kernel that is well",
);
const IDLE: Name = Name::bytes("memory_idle", "Resident pages of idle windows, which yield to any charge");
const SHARE: Name = Name::bytes("memory_share_used", "Payload charged to each share");
const SHARE_WAITING: Name = Name::plain("memory_share_waiting", "Charges that wait, by share");
const CONNECTIONS: Name = Name::plain("connections_open", "Open connections to the sources");
const HANDSHAKES: Name = Name::plain("tls_handshakes", "TLS handshakes that became connections");
const HANDSHAKES_FAILED: Name = Name::plain("tls_handshakes_failed", "Failed TLS handshakes, by reason");
const JOURNAL_BYTES: Name = Name::bytes("journal_size", "Size of the journal on disk");
const JOURNAL_KEPT: Name = Name::bytes(
    "journal_kept",
    "Size of what every sink of the journal has had and is kept to be sent again",
);
const JOURNAL_QUOTA: Name = Name::bytes("journal_quota", "Quota of the journal on disk");
const JOURNAL_SYNCS: Name = Name::plain("journal_syncs", "Times that data was synced");
const JOURNAL_SYNC_TIME: Name = Name::seconds("journal_sync", "Time that syncs took");
const JOURNAL_CHECKPOINTS: Name = Name::plain("journal_checkpoints", "Checkpoints of sources in the journal");
const JOURNAL_FORGOTTEN: Name = Name::plain(
    "journal_forgotten_checkpoints",
    "Checkpoints for which the journal had no room: after a restart their sources read again",
);
const JOURNAL_ERRORS: Name = Name::plain("journal_write_errors", "Writes and syncs that failed");
const JOURNAL_DAMAGED: Name =
    Name::plain("journal_damaged_records", "Records that could not be read, by sinks");
const BUILD: Name = Name::plain("build_info", "Always 1; the labels say which program this is");
const STATE: Name =
    Name::plain("state", "How the data flows: 1 for the state that it is in, 0 for the others");
const FULL_IN: Name = Name::seconds(
    "journal_time_until_full",
    "When the journal is full, should it go on filling as lately; absent while it does not fill",
);
const LAG: Name = Name::bytes("sink_lag", "Bytes of the journal that a sink has not settled");
const AGE: Name = Name::seconds("sink_lag", "The age of the oldest record that a sink has not settled, or 0");
const LAST_SUCCESS: Name =
    Name::seconds("sink_last_success_timestamp", "When a request or file was finished last, since 1970");
const FAILING: Name = Name::plain("sink_failing", "1 while a sink fails and waits to try again, else 0");
const REQUESTS: Name = Name::plain("sink_requests", "Requests or files finished with success");
const FAILURES: Name = Name::plain("sink_failures", "Attempts that failed");
const SENT: Name = Name::bytes("sink_sent", "Bytes sent with success");
const RESENT: Name = Name::plain("sink_items_resent", "Items of requests that had to be sent again");
const RESTARTS: Name =
    Name::plain("sink_restarts", "Times that a sink ended unexpectedly and was started again");
const STEP_ITEMS: Name = Name::plain("pipeline_items", "Items that reached a step of a sink's pipeline");
const STEP_FILTERED: Name =
    Name::plain("pipeline_items_filtered", "Items that a step of a sink's pipeline dropped");
const STEP_SAMPLED_OUT: Name = Name::plain(
    "pipeline_items_sampled_out",
    "Items that a step of a sink's pipeline left out of the sample",
);
const STEP_FAILURES: Name = Name::plain(
    "pipeline_failures",
    "Items on which a statement or condition failed, by its position in the step",
);
const PIPELINE_TIME: Name = Name::seconds("pipeline_run", "Time that a sink's pipeline took");
/// The most series of each name about steps: those of the first sinks by their names.
const MOST_STEPS: usize = 256;
const DESTINATION_FAILING: Name = Name::plain(
    "destination_failing",
    "1 while requests to the cluster that answers a `_bulk` itself fail, else 0",
);
const DESTINATION_REQUESTS: Name =
    Name::plain("destination_requests", "Requests that the cluster that answers a `_bulk` itself answered");
const DESTINATION_FAILURES: Name = Name::plain(
    "destination_failures",
    "Requests to the cluster that answers a `_bulk` itself that failed, or whose items were all rejected",
);
const DESTINATION_LAST_SUCCESS: Name = Name::seconds(
    "destination_last_success_timestamp",
    "When the cluster that answers a `_bulk` itself last answered, since 1970",
);

/// Publishes what `view` can see.
pub(crate) fn publish(view: &Arc<StatusView>) {
    memory(view);
    gauge(view, CONNECTIONS, |view| view.door.open() as u64);
    if view.acceptor.is_some() {
        handshakes(view);
    }
    gauge(view, JOURNAL_BYTES, |view| view.journal.stats().bytes);
    gauge(view, JOURNAL_KEPT, |view| view.journal.stats().kept);
    gauge(view, JOURNAL_QUOTA, |view| view.journal.stats().quota);
    counter(view, JOURNAL_SYNCS, |view| view.journal.stats().syncs);
    counter(view, JOURNAL_SYNC_TIME, |view| {
        u64::try_from(view.journal.stats().sync_time.as_nanos()).unwrap_or(u64::MAX)
    });
    counter(view, JOURNAL_ERRORS, |view| view.journal.stats().write_errors);
    counter(view, JOURNAL_DAMAGED, |view| view.journal.stats().damaged_records);
    gauge(view, JOURNAL_CHECKPOINTS, |view| view.journal.stats().checkpoints as u64);
    counter(view, JOURNAL_FORGOTTEN, |view| view.journal.stats().forgotten_checkpoints);
    let parts = Arc::downgrade(view);
    view.registry.computed(LAG, Kind::Gauge, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for sink in
            view.journal.stats().sinks.iter().filter(|sink| TraceSampling::sink_of(&sink.name).is_none())
        {
            emit([&sink.name], level(sink.lag_bytes));
        }
    });
    let parts = Arc::downgrade(view);
    view.registry.computed(AGE, Kind::Gauge, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for sink in
            view.journal.stats().sinks.iter().filter(|sink| TraceSampling::sink_of(&sink.name).is_none())
        {
            emit([&sink.name], span(sink.lag_age.unwrap_or_default()));
        }
    });
    let parts = Arc::downgrade(view);
    view.registry.computed(FULL_IN, Kind::Gauge, [], 1, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        if let Some(time) = view.rates.full_in(view.journal.stats().quota) {
            emit([], span(time));
        }
    });
    state(view);
    destination(view);
    of_sinks(view, REQUESTS, |activity| activity.requests);
    of_sinks(view, FAILURES, |activity| activity.failures);
    of_sinks(view, SENT, |activity| activity.bytes);
    of_sinks(view, RESENT, |activity| activity.resent);
    of_sinks(view, RESTARTS, |activity| activity.restarts);
    pipelines(view);
    members::publish(view);
    forwarding::publish(view);
    source_pipelines::publish(view);
    trace_sampling::publish(view);
    derive::publish(view);
}

/// The program's version, and the data flow's state.
fn state(view: &Arc<StatusView>) {
    view.registry.computed(BUILD, Kind::Gauge, ["version", "commit"], 1, |emit| {
        emit([env!("CARGO_PKG_VERSION"), env!("TIDEGATE_COMMIT")], Value::Gauge(1));
    });
    let parts = Arc::downgrade(view);
    view.registry.computed(STATE, Kind::Gauge, ["state"], State::ALL.len(), move |emit| {
        let Some(view) = parts.upgrade() else { return };
        let now = StateReport::of(&view.brief()).state;
        for state in State::ALL {
            emit([&state.word().replace(' ', "_")], Value::Gauge(i64::from(state == now)));
        }
    });
    let parts = Arc::downgrade(view);
    view.registry.computed(LAST_SUCCESS, Kind::Gauge, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for sink in view.sinks.shown() {
            let at = sink.health.last_success().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
            if let Some(at) = at {
                emit([&sink.name], span(at));
            }
        }
    });
    let parts = Arc::downgrade(view);
    view.registry.computed(FAILING, Kind::Gauge, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for sink in view.sinks.shown() {
            let trouble = sink.health.trouble();
            emit([&sink.name], Value::Gauge(i64::from(trouble.broken || trouble.retry_at.is_some())));
        }
    });
}

/// The cluster that answers a `_bulk` itself, by its sink's name.
fn destination(view: &Arc<StatusView>) {
    type Read = fn(&Cluster) -> Option<Value>;
    let meters: [(Name, Kind, Read); 4] = [
        (DESTINATION_FAILING, Kind::Gauge, |cluster| {
            Some(Value::Gauge(i64::from(cluster.failing_since().is_some())))
        }),
        (DESTINATION_REQUESTS, Kind::Counter, |cluster| {
            Some(Value::Counter(cluster.health().activity().requests))
        }),
        (DESTINATION_FAILURES, Kind::Counter, |cluster| {
            Some(Value::Counter(cluster.health().activity().failures))
        }),
        (DESTINATION_LAST_SUCCESS, Kind::Gauge, |cluster| {
            Some(span(cluster.health().last_success()?.duration_since(SystemTime::UNIX_EPOCH).ok()?))
        }),
    ];
    if view.destination.is_none() {
        return;
    }
    for (name, kind, read) in meters {
        let parts = Arc::downgrade(view);
        view.registry.computed(name, kind, ["sink"], 1, move |emit| {
            let Some(view) = parts.upgrade() else { return };
            let Some((name, cluster)) = &view.destination else { return };
            if let Some(value) = read(cluster) {
                emit([name], value);
            }
        });
    }
}

/// The two that every process has by the same names, whatever it is: dashboards look for those.
pub(super) fn of_the_process(started: Instant, out: &mut dyn fmt::Write) -> fmt::Result {
    let start = SystemTime::now() - started.elapsed();
    let start = start.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    write!(
        out,
        "# HELP process_start_time_seconds When the process started, since 1970\n\
         # TYPE process_start_time_seconds gauge\n\
         # UNIT process_start_time_seconds seconds\n\
         process_start_time_seconds {:.3}\n\
         # HELP process_cpu_seconds The processor time that the process has used, and the system for it\n\
         # TYPE process_cpu_seconds counter\n\
         # UNIT process_cpu_seconds seconds\n\
         process_cpu_seconds_total {}.{:06}\n",
        start.as_secs_f64(),
        cpu.tv_sec,
        cpu.tv_nsec / 1000,
    )
}

fn handshakes(view: &Arc<StatusView>) {
    counter(view, HANDSHAKES, |view| view.acceptor.as_ref().map_or(0, |acceptor| acceptor.tally().done()));
    let parts = Arc::downgrade(view);
    view.registry.computed(
        HANDSHAKES_FAILED,
        Kind::Counter,
        ["reason"],
        HandshakeFailure::COUNT,
        move |emit| {
            let Some(acceptor) = parts.upgrade().and_then(|view| view.acceptor.clone()) else { return };
            for reason in HandshakeFailure::ALL {
                emit([reason.name()], Value::Counter(acceptor.tally().failed(reason)));
            }
        },
    );
}

fn memory(view: &Arc<StatusView>) {
    gauge(view, LIMIT, |view| view.plan().memory());
    gauge(view, RESIDENT, |_| Resident::read().unwrap_or_default().now);
    gauge(view, PEAK, |_| Resident::read().unwrap_or_default().peak);
    gauge(view, HEAP, |_| heap::heap().live);
    counter(view, ALLOCATIONS, |_| heap::heap().allocations);
    gauge(view, DECLARED, |view| view.plan().overhead());
    gauge(view, IDLE, |view| view.arena.usage().idle);
    gauge(view, KEPT, |view| view.arena.usage().kept_bytes);
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

fn gauge(view: &Arc<StatusView>, name: Name, read: fn(&StatusView) -> u64) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, Kind::Gauge, [], 1, move |emit| {
        if let Some(view) = parts.upgrade() {
            emit([], level(read(&view)));
        }
    });
}

fn counter(view: &Arc<StatusView>, name: Name, read: fn(&StatusView) -> u64) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, Kind::Counter, [], 1, move |emit| {
        if let Some(view) = parts.upgrade() {
            emit([], Value::Counter(read(&view)));
        }
    });
}

fn of_sinks(view: &Arc<StatusView>, name: Name, read: fn(Activity) -> u64) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, Kind::Counter, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for sink in view.sinks.shown() {
            emit([&sink.name], Value::Counter(read(sink.health.activity())));
        }
    });
}

/// Meters of the steps of pipelines.
fn pipelines(view: &Arc<StatusView>) {
    of_steps(view, STEP_ITEMS, |step| step.items);
    of_steps(view, STEP_FILTERED, |step| step.filtered);
    of_steps(view, STEP_SAMPLED_OUT, |step| step.sampled_out);
    let parts = Arc::downgrade(view);
    let labels = ["sink", "pipeline", "step", "statement"];
    view.registry.computed(STEP_FAILURES, Kind::Counter, labels, MOST_STEPS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        let mut left = MOST_STEPS;
        each_step(&view, |sink, step| {
            for (position, (_, failures)) in step.failures().enumerate().take(left) {
                left -= 1;
                let statement = (position + 1).to_string();
                emit([sink, &step.pipeline, &step.step, &statement], Value::Counter(failures));
            }
        });
    });
    let parts = Arc::downgrade(view);
    view.registry.computed(PIPELINE_TIME, Kind::Counter, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for sink in view.sinks.shown() {
            let Some(pipeline) = &sink.pipeline else { continue };
            let time = u64::try_from(pipeline.time().as_nanos()).unwrap_or(u64::MAX);
            emit([&sink.name], Value::Counter(time));
        }
    });
}

fn of_steps(view: &Arc<StatusView>, name: Name, read: fn(StepTotals) -> u64) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, Kind::Counter, ["sink", "pipeline", "step"], MOST_STEPS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        let mut left = MOST_STEPS;
        each_step(&view, |sink, step| {
            if left > 0 {
                left -= 1;
                emit([sink, &step.pipeline, &step.step], Value::Counter(read(step.totals())));
            }
        });
    });
}

fn each_step(view: &StatusView, mut visit: impl FnMut(&str, &StepMeters)) {
    for sink in view.sinks.shown() {
        let watched = sink.sampling.as_ref().map(|sampling| &sampling.meters);
        let steps = sink.pipeline.iter().chain(watched).flat_map(PipelineMeters::steps);
        steps.for_each(|step| visit(&sink.name, step));
    }
}

fn span(time: Duration) -> Value {
    level(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn level(value: u64) -> Value {
    Value::Gauge(i64::try_from(value).unwrap_or(i64::MAX))
}

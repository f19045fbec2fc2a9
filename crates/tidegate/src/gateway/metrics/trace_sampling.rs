//! The series of sinks that sample traces.

use super::{StatusView, level};
use crate::gateway::sinks::pipelines::CompiledSampling;
use std::sync::Arc;
use tidegate_ledger::MAX_SINKS;
use tidegate_meters::{Kind, Name, Value};
use tidegate_sinks::{SamplingReport, TraceSampling};
use tidegate_trace_sampling::PolicyCounts;

/// The most policies that have series, over all sinks.
const MOST_POLICIES: usize = 256;

const UNDECIDED: Name = Name::plain("sink_traces_undecided", "Traces that wait for their decision");
const REMEMBERED: Name =
    Name::plain("sink_decisions_remembered", "Decisions about traces that are remembered");
const TRACES: Name = Name::plain(
    "sink_traces_decided",
    "Traces decided, by the policy that decided; without one where none kept it",
);
const SPANS: Name = Name::plain("sink_spans_decided", "Spans of traces when they were decided, by policy");
const EARLY: Name = Name::plain(
    "sink_traces_decided_early",
    "Traces decided before their time, because the table was full or the clock was set back",
);
const LATE: Name =
    Name::plain("sink_late_spans", "Spans that came when their trace was decided, and follow the decision");
const FORGOTTEN: Name = Name::plain(
    "sink_decisions_forgotten",
    "Decisions forgotten before all spans of their traces were sent: raise `max_decisions`",
);
const UNKNOWN: Name =
    Name::plain("sink_undecided_spans_kept", "Spans sent because no decision about their trace was known");
const HELD_BACK: Name = Name::bytes(
    "sink_held_back",
    "Bytes of the journal that are kept to decide about traces again after a restart",
);

/// Publishes what samplers decide.
pub(super) fn publish(view: &Arc<StatusView>) {
    each(view, UNDECIDED, Kind::Gauge, |report| level(report.undecided));
    each(view, REMEMBERED, Kind::Gauge, |report| level(report.remembered));
    each(view, EARLY, Kind::Counter, |report| Value::Counter(report.counts.early));
    each(view, FORGOTTEN, Kind::Counter, |report| Value::Counter(report.counts.forgotten));
    each(view, UNKNOWN, Kind::Counter, |report| Value::Counter(report.counts.unknown));
    by_policy(view, TRACES, |counts| counts.traces);
    by_policy(view, SPANS, |counts| counts.spans);
    let parts = Arc::downgrade(view);
    view.registry.computed(LATE, Kind::Counter, ["sink", "decision"], 2 * MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        samplers(&view, |sink, _, report| {
            for (decision, spans) in ["kept", "dropped"].into_iter().zip(report.counts.late) {
                emit([sink, decision], Value::Counter(spans));
            }
        });
    });
    let parts = Arc::downgrade(view);
    view.registry.computed(HELD_BACK, Kind::Gauge, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for cursor in &view.journal.stats().sinks {
            if let Some(sink) = TraceSampling::sink_of(&cursor.name) {
                emit([sink], level(cursor.lag_bytes));
            }
        }
    });
}

fn each(view: &Arc<StatusView>, name: Name, kind: Kind, read: fn(&SamplingReport) -> Value) {
    let parts = Arc::downgrade(view);
    view.registry.computed(name, kind, ["sink"], MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        samplers(&view, |sink, _, report| emit([sink], read(report)));
    });
}

fn by_policy(view: &Arc<StatusView>, name: Name, read: fn(&PolicyCounts) -> u64) {
    let parts = Arc::downgrade(view);
    let labels = ["sink", "policy", "decision"];
    view.registry.computed(name, Kind::Counter, labels, MOST_POLICIES + MAX_SINKS, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        let mut left = MOST_POLICIES;
        samplers(&view, |sink, sampling, report| {
            for (policy, counts) in sampling.policies.iter().zip(&report.counts.policies).take(left) {
                emit([sink, &policy.name, policy.decision()], Value::Counter(read(counts)));
            }
            left = left.saturating_sub(sampling.policies.len());
            emit([sink, "", "dropped"], Value::Counter(read(&report.counts.unkept)));
        });
    });
}

/// Visits the sinks whose samplers run.
fn samplers(view: &StatusView, mut visit: impl FnMut(&str, &CompiledSampling, &SamplingReport)) {
    for sink in view.sinks.shown() {
        let Some(sampling) = &sink.sampling else { continue };
        if let Some(report) = sampling.shared.report() {
            visit(&sink.name, sampling, &report);
        }
    }
}

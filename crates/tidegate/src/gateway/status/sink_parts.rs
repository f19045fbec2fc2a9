//! The parts of a sink's status, from its counters.

use crate::gateway::sinks::ShownSink;
use tidegate_console::{
    BlockedIndex, DerivedMetrics, LastError, PipelineStep, PolicyDecisions, RingMember, TraceDecisions,
};
use tidegate_journal::Stats;
use tidegate_sinks::{
    BlockedDestination, ConflictReason, DeriveReport, MemberReport, SamplingReport, StepMeters, StepTotals,
    TraceSampling,
};

pub(super) fn last_error(trouble: tidegate_sinks::LastError) -> Option<LastError> {
    trouble.last_error.zip(trouble.last_error_at).map(|(message, at)| LastError { message, at })
}

/// The decisions of a sink about traces, if it takes a part of them.
pub(super) fn decisions(sink: &ShownSink, stats: &Stats) -> Option<TraceDecisions> {
    let sampling = sink.sampling.as_ref()?;
    let SamplingReport { counts, undecided, remembered } = sampling.shared.report()?;
    let cursor = TraceSampling::cursor_of(&sink.name);
    let held_back = stats.sinks.iter().find(|known| known.name == cursor).map_or(0, |known| known.lag_bytes);
    let decided = || sampling.policies.iter().zip(&counts.policies);
    let kept = decided().filter(|(policy, _)| !policy.drops).map(|(_, counts)| counts.traces).sum();
    let policies = decided().map(|(policy, counts)| PolicyDecisions {
        policy: policy.name.clone(),
        decision: policy.decision(),
        traces: counts.traces,
        spans: counts.spans,
    });
    let [late_kept, late_dropped] = counts.late;
    Some(TraceDecisions {
        undecided,
        most_undecided: sampling.settings.max_traces.into(),
        remembered,
        held_back_bytes: held_back,
        early: counts.early,
        late_kept,
        late_dropped,
        forgotten: counts.forgotten,
        unknown: counts.unknown,
        kept_traces: kept,
        unkept_traces: counts.unkept.traces,
        unkept_spans: counts.unkept.spans,
        policies: policies.collect(),
        policies_left_out: 0,
    })
}

/// The numbers of the metrics that a sink derives.
pub(super) fn derived(sink: &ShownSink) -> Option<DerivedMetrics> {
    let DeriveReport { series, counts } = sink.health.derived()?;
    Some(DerivedMetrics {
        series,
        observations: counts.observations,
        overflowed: counts.overflowed,
        lost: counts.lost,
        expired: counts.expired,
        expired_edges: counts.expired_edges,
        dropped_spans: counts.dropped_spans,
    })
}

pub(super) fn pipeline_step(step: &StepMeters) -> PipelineStep {
    let StepTotals { items, filtered, sampled_out, failures } = step.totals();
    let (pipeline, step) = (step.pipeline.clone(), step.step.clone());
    PipelineStep { pipeline, step, items, filtered, sampled_out, failures }
}

pub(super) fn member(report: MemberReport) -> RingMember {
    let conflicts = ConflictReason::ALL.iter().zip(report.conflicts).filter(|(_, count)| *count > 0);
    RingMember {
        address: report.address,
        in_ring: report.is_in_ring,
        behind: report.is_behind,
        share: report.share,
        in_flight: report.in_flight,
        delivered: report.delivered,
        rejected: report.rejected,
        conflicts: conflicts.map(|(reason, count)| (reason.name(), count)).collect(),
        failures: report.failures,
        handed_off_bytes: report.handed_off_bytes,
        handed_off_requests: report.handed_off_requests,
        oldest: report.oldest,
        last_error: report
            .last_error
            .zip(report.last_error_at)
            .map(|(message, at)| LastError { message, at }),
    }
}

pub(super) fn waiting(held: BlockedDestination) -> BlockedIndex {
    let BlockedDestination { what, records, items, since, reason } = held;
    BlockedIndex { index: what, records, documents: items, since, reason }
}

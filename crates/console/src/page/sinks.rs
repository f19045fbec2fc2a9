//! The sinks, one after the other.

use super::books::by_reason;
use super::{Block, Section, TableCell, Tone};
use crate::human::{HumanCount, HumanDuration, Plural, moment};
use crate::status::{DerivedMetrics, PipelineStep, RingMember, Sink, TraceDecisions};
use std::time::SystemTime;
use tidegate_arena::Bytes;

pub(super) fn section(sinks: &[Sink], now: SystemTime) -> Section {
    let mut blocks = Vec::new();
    if sinks.is_empty() {
        blocks.push(Block::Say(TableCell::new("No sink is configured.").tone(Tone::Dim)));
    }
    for sink in sinks {
        blocks.push(Block::About(format!("{} ({})", sink.name, sink.kind)));
        blocks.push(Block::Facts(facts(sink, now)));
    }
    Section { title: "Sinks", blocks }
}

fn facts(sink: &Sink, now: SystemTime) -> Vec<(&'static str, TableCell)> {
    let mut facts = vec![
        ("target", TableCell::new(&*sink.target)),
        ("lag", lag(sink)),
        ("delivered", delivered(sink)),
        (
            "dropped",
            by_reason(sink.dropped.iter().map(|(reason, count)| (reason.name(), *count)))
                .bad_if(sink.dropped.iter().any(|(reason, _)| !reason.is_intended())),
        ),
        ("requests", requests(sink)),
        (
            "last success",
            sink.last_success.map_or_else(TableCell::none, |at| TableCell::new(moment(at, now))),
        ),
        ("cursor", TableCell::count(sink.cursor)),
    ];
    if sink.broken || sink.restarts > 0 {
        facts.insert(0, state(sink));
    }
    if let Some(error) = &sink.last_error {
        let text = format!("{}: {}", moment(error.at, now), error.message);
        facts.push((
            "last error",
            TableCell::new(text).tone(if sink.retry_at.is_some() { Tone::Bad } else { Tone::Dim }),
        ));
    }
    for waiting in &sink.waiting {
        let held = Plural(waiting.documents, "document");
        let records = Plural(waiting.records, "record");
        let since = moment(waiting.since, now);
        let text = format!("{}: {held} of {records}, since {since}: {}", waiting.index, waiting.reason);
        facts.push(("unavailable index", TableCell::new(text).tone(Tone::Bad)));
    }
    facts.extend(sink.members.iter().map(|member| ("member", self::member(member, now))));
    if sink.members_left_out > 0 {
        let text = format!("and {} more: /metrics has them", HumanCount(sink.members_left_out));
        facts.push(("member", TableCell::new(text)));
    }
    facts.extend(sink.pipeline.iter().map(|step| ("pipeline step", pipeline_step(step))));
    if sink.pipeline_left_out > 0 {
        let text = format!("and {} more: /metrics has them", HumanCount(sink.pipeline_left_out));
        facts.push(("pipeline step", TableCell::new(text)));
    }
    facts.extend(sink.sampling.iter().map(|sampling| ("sampling", decisions(sampling))));
    facts.extend(sink.derived.iter().map(|metrics| ("derived metrics", derived(metrics))));
    if let Some(at) = sink.retry_at {
        facts.push(("next attempt", TableCell::new(moment(at, now))));
    }
    facts
}

fn state(sink: &Sink) -> (&'static str, TableCell) {
    let times = Plural(sink.restarts, "time");
    let now = if sink.broken { "failed, and is started again" } else { "running" };
    let text = format!("{now}; it has failed {times} since the start of the process");
    ("state", TableCell::new(text).bad_if(sink.broken))
}

fn member(member: &RingMember, now: SystemTime) -> TableCell {
    let mut text = member.address.clone();
    if let Some(share) = member.share {
        text.push_str(&format!(", {:.1} % of the keys", 100.0 * share));
    }
    if !member.in_ring {
        text.push_str(", left the ring");
    }
    text.push_str(&format!(", {} copies delivered", HumanCount(member.delivered)));
    if member.handed_off_requests > 0 {
        let (requests, bytes) =
            (Plural(member.handed_off_requests, "request"), Bytes(member.handed_off_bytes));
        text.push_str(&format!(", {requests} on disk ({bytes}"));
        if let Some(oldest) = member.oldest {
            text.push_str(&format!(", since {}", moment(oldest, now)));
        }
        text.push(')');
    }
    for (reason, count) in member.conflicts.iter().chain(&[("rejected", member.rejected)]) {
        if *count > 0 {
            text.push_str(&format!(", {} {}", HumanCount(*count), reason.replace('_', " ")));
        }
    }
    if let Some(error) = member.last_error.as_ref().filter(|_| member.behind) {
        text.push_str(&format!("; {}: {}", moment(error.at, now), error.message));
    }
    TableCell::new(text).bad_if(member.behind)
}

/// The decisions of a sink about traces, in one line: the console and the metrics have them by policy.
fn decisions(sampling: &TraceDecisions) -> TableCell {
    let TraceDecisions {
        undecided, most_undecided, early, late_kept, late_dropped, forgotten, unknown, ..
    } = sampling;
    let mut text = format!(
        "{} kept, {} dropped by default, {} of {} wait",
        Plural(sampling.kept_traces, "trace"),
        HumanCount(sampling.unkept_traces),
        HumanCount(*undecided),
        HumanCount(*most_undecided)
    );
    let counts = [
        (*early, "decided early"),
        (late_kept + late_dropped, "late spans"),
        (*forgotten, "decisions forgotten"),
        (*unknown, "spans sent undecided"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {} {what}", HumanCount(count)));
    }
    TableCell::new(text).bad_if(*early > 0 || *forgotten > 0)
}

fn derived(metrics: &DerivedMetrics) -> TableCell {
    let DerivedMetrics { series, observations, overflowed, lost, expired, expired_edges, dropped_spans } =
        *metrics;
    let observed = Plural(observations, "observation");
    let mut text = format!("{} series of {observed}", HumanCount(series));
    let counts = [
        (overflowed, "in overflow series"),
        (lost, "without a series"),
        (expired, "series expired"),
        (expired_edges, "edges of one span"),
        (dropped_spans, "spans left out of service graphs"),
    ];
    for (count, what) in counts {
        if count > 0 {
            text.push_str(&format!(", {} {what}", HumanCount(count)));
        }
    }
    TableCell::new(text).bad_if(overflowed > 0 || lost > 0 || dropped_spans > 0)
}

pub(super) fn pipeline_step(step: &PipelineStep) -> TableCell {
    let between = if step.pipeline.is_empty() { "" } else { " " };
    let mut text = format!("{}{between}{}: {}", step.pipeline, step.step, Plural(step.items, "item"));
    let counts = [(step.filtered, "filtered"), (step.sampled_out, "sampled out"), (step.failures, "failed")];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {} {what}", HumanCount(count)));
    }
    TableCell::new(text).bad_if(step.failures > 0)
}

fn lag(sink: &Sink) -> TableCell {
    let Some(age) = sink.lag.age else { return TableCell::new("none").tone(Tone::Good) };
    let text =
        format!("{}: {}, {}", HumanDuration(age), Plural(sink.lag.items, "item"), Bytes(sink.lag.bytes));
    TableCell::new(text).bad_if(sink.late().is_some())
}

fn delivered(sink: &Sink) -> TableCell {
    let mut text = Plural(sink.delivered, "item").to_string();
    if sink.resent > 0 {
        text.push_str(&format!(", {} sent again after failures", HumanCount(sink.resent)));
    }
    if let Some(rate) = sink.items_per_second {
        text.push_str(&format!(", lately {} a second", HumanCount(rate.round() as u64)));
    }
    TableCell::new(text)
}

fn requests(sink: &Sink) -> TableCell {
    TableCell::new(format!(
        "{} done with {}, {} failed, {} in flight",
        HumanCount(sink.requests),
        Bytes(sink.bytes),
        HumanCount(sink.failures),
        HumanCount(sink.in_flight)
    ))
}

//! A trace, the word of each policy, and the decision, as text and as JSON.

use super::reading::{Found, FoundSpan, FoundSpans};
use crate::Failure;
use crate::commands::journal::time;
use crate::gateway::sinks::pipelines::CompiledSampling;
use serde_json::{Value, json};
use std::fmt;
use std::time::SystemTime;
use tidegate_pipeline::TraceId;
use tidegate_trace_sampling::{Explanation, Trace, Vote};

/// A trace, and the decision on it.
pub(super) struct TraceReport {
    sink: String,
    trace_id: String,
    first_ns: u64,
    due_ns: u64,
    /// The record with its first span, and the last before the decision.
    records: (u64, u64),
    /// Whether it is decided as far as the journal goes; if not, the decision is what it would be now.
    is_due: bool,
    is_after_root: bool,
    trace: Trace,
    /// Spans that came behind the decision.
    late: usize,
    explanation: Explanation,
    policies: Vec<String>,
    /// The journal may have had older spans.
    may_lack: bool,
    limits_rates: bool,
}

impl TraceReport {
    /// The report on the trace with these spans.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn of(
        sink: String,
        sampling: &CompiledSampling,
        trace_id: &TraceId,
        found: &FoundSpans,
    ) -> Result<TraceReport, Failure> {
        let Some(first) = found.spans.first() else {
            let since = found.oldest.map_or_else(
                || "the journal has no record".to_owned(),
                |(_, oldest)| format!("the journal goes back to {}", time(oldest)),
            );
            return Err(Failure(format!(
                "no span of the trace is in the journal that the sink takes; {since}, and what every sink has had leaves it: keep \
                 it longer with `journal.keep`"
            )));
        };
        let due_ns = due_ns(sampling, first, &found.spans);
        let is_root = |span: &&FoundSpan| matches!(span.found, Found::Span(span) if span.is_root);
        let ms = |ns: u64| ns / 1_000_000;
        let in_time = found.spans.iter().take_while(|span| ms(span.clock_ns) < ms(due_ns)).count();
        let (taken, late) = found.spans.split_at(in_time);
        let mut trace = Trace::default();
        for span in taken {
            match &span.found {
                Found::Span(span) => trace.fold(span),
                Found::Event(fulfilled) => trace.fulfil(*fulfilled),
            }
        }
        Ok(TraceReport {
            sink,
            trace_id: trace_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            first_ns: first.clock_ns,
            due_ns,
            records: (first.sequence, taken.last().map_or(first.sequence, |last| last.sequence)),
            // The clock decides where nothing comes.
            is_due: ms(found.clock_ns.max(now_ns())) >= ms(due_ns),
            is_after_root: due_ns < first.clock_ns + sampling.settings.wait_ms * 1_000_000
                && taken.iter().any(|span| is_root(&span)),
            trace,
            late: late.iter().filter(|span| matches!(span.found, Found::Span(_))).count(),
            explanation: trace.explain(&sampling.settings.policies),
            policies: sampling.policies.iter().map(|policy| policy.name.clone()).collect(),
            // The first record of all has none before it.
            may_lack: found.oldest.is_none_or(|(sequence, oldest_ns)| {
                sequence > 0 && oldest_ns + sampling.settings.wait_ms * 1_000_000 > first.clock_ns
            }),
            limits_rates: sampling.settings.policies.limit_rates(),
        })
    }

    fn verdict(&self) -> &'static str {
        if self.explanation.is_kept { "kept" } else { "not kept" }
    }

    fn decided_by(&self) -> Option<&str> {
        self.explanation.policy.and_then(|policy| self.policies.get(policy)).map(String::as_str)
    }

    pub(super) fn json(&self) -> Value {
        let votes = self.policies.iter().zip(&self.explanation.votes);
        json!({
            "sink": self.sink,
            "trace_id": self.trace_id,
            "first_received": time(self.first_ns),
            "due": time(self.due_ns),
            "decided": self.is_due,
            "kept": self.explanation.is_kept,
            "policy": self.decided_by(),
            "facts": {
                "spans": self.trace.spans(),
                "late_spans": self.late,
                "duration_ms": self.trace.duration_ms(),
                "first_record": self.records.0,
                "last_record": self.records.1,
            },
            "policies": votes
                .map(|(name, vote)| json!({"name": name, "says": says(*vote)}))
                .collect::<Vec<_>>(),
            "older_spans_may_be_missing": self.may_lack,
        })
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// When the trace is decided: after the wait, or after its root.
fn due_ns(sampling: &CompiledSampling, first: &FoundSpan, spans: &[FoundSpan]) -> u64 {
    let after = |clock_ns: u64, ms: u64| clock_ns.saturating_add(ms.saturating_mul(1_000_000));
    let due_ns = after(first.clock_ns, sampling.settings.wait_ms);
    let root = spans.iter().find(|span| matches!(span.found, Found::Span(span) if span.is_root));
    let of_root = root.zip(sampling.settings.after_root_ms).map(|(root, ms)| after(root.clock_ns, ms));
    of_root.map_or(due_ns, |of_root| of_root.min(due_ns))
}

/// The word of a policy.
fn says(vote: Vote) -> &'static str {
    match vote {
        Vote::Kept => "keeps it",
        Vote::NotKept => "does not keep it",
        Vote::Dropped => "drops it",
    }
}

impl fmt::Display for TraceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceReport { sink, trace_id, first_ns, due_ns, records, trace, late, .. } = self;
        writeln!(f, "sink       {sink}")?;
        writeln!(f, "trace      {trace_id}")?;
        writeln!(f, "received   {}, in records {} to {}", time(*first_ns), records.0, records.1)?;
        let why = if self.is_after_root { "after its root" } else { "after the wait" };
        let when = if self.is_due { "decided" } else { "not due" };
        writeln!(f, "{when:<11}{}, {why}", time(*due_ns))?;
        let late = if *late > 0 { format!(", and {late} later ones follow") } else { String::new() };
        writeln!(f, "facts      {} spans in {} ms{late}", trace.spans(), trace.duration_ms())?;
        for (place, (name, vote)) in self.policies.iter().zip(&self.explanation.votes).enumerate() {
            let what = if place == 0 { "policies" } else { "" };
            writeln!(f, "{what:<11}{name}: {}", says(*vote))?;
        }
        let would = if self.is_due { "" } else { ", if nothing more comes" };
        match self.decided_by() {
            Some(policy) => writeln!(f, "decision   {} by `{policy}`{would}", self.verdict())?,
            None => writeln!(f, "decision   {}: no policy keeps it{would}", self.verdict())?,
        }
        if self.may_lack {
            writeln!(f, "           older spans may have been in the journal: it was decided with them")?;
        }
        if self.limits_rates {
            writeln!(f, "           rates are taken as of a second in which nothing else was kept")?;
        }
        Ok(())
    }
}

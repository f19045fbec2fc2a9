//! The spans of one trace in a journal, in the order in which a sampler takes them in.

use crate::Failure;
use crate::gateway::sinks::pipelines::CompiledSampling;
use crate::gateway::sinks::routing::RoutingHistory;
use std::path::Path;
use tidegate_journal::inspect::inspect;
use tidegate_journal::{Encoding, Meta, SET_BACK_NS};
use tidegate_pipeline::{Format, Outcome, Pipeline, Run, SpanFacts, TraceId, TraceSampler};
use tidegate_stage::decoding::{DamagedBody, END_SLACK, decode};
use tidegate_stage::format_of;

/// A span of the trace, or an event of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundSpan {
    /// The record that it is in, and when that was received, in nanoseconds since 1970: or the record before it, where that came later.
    pub(super) sequence: u64,
    pub(super) clock_ns: u64,
    /// The tests that it fulfils, of an event.
    pub(super) found: Found,
}

/// A span or an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found {
    Span(SpanFacts),
    /// An event of a span, with the tests that it fulfils.
    Event(u64),
}

/// The spans of a trace in a journal.
#[derive(Debug, Default)]
pub(super) struct FoundSpans {
    pub(super) spans: Vec<FoundSpan>,
    /// The oldest record that was read, and when it was received.
    pub(super) oldest: Option<(u64, u64)>,
    /// The clock behind the last one.
    pub(super) clock_ns: u64,
}

/// Reads the journal in `folder`.
///
/// # Errors
/// When it cannot be read.
pub(super) fn spans_of(
    folder: &Path,
    (sampling, history): (&CompiledSampling, &RoutingHistory),
    trace_id: &TraceId,
) -> Result<FoundSpans, Failure> {
    let journal =
        inspect(folder).map_err(|error| format!("reading the journal in {}: {error}", folder.display()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    // Queued records of other periods were watched by what the sink took then.
    let earlier = sampling.earlier(history);
    let mut found = FoundSpans::default();
    for segment in &journal.segments {
        let mut bodies = match journal.bodies(segment) {
            Ok(bodies) => bodies,
            // It went out of the journal of a running gateway.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Failure(format!("reading {}: {error}", segment.name))),
        };
        while let Some((sequence, meta)) = bodies.next_head() {
            let Some(meta) = meta else { continue };
            found.oldest.get_or_insert((sequence, meta.received_at_ns));
            // As the sampler: a clock that was set back is believed.
            let is_set_back = meta.received_at_ns.saturating_add(SET_BACK_NS) < found.clock_ns;
            found.clock_ns =
                if is_set_back { meta.received_at_ns } else { found.clock_ns.max(meta.received_at_ns) };
            let of_record = earlier.iter().find(|(records, _)| records.contains(&sequence));
            let pipeline = of_record.map_or(&sampling.watch, |(_, pipeline)| pipeline);
            let format = format_of(pipeline, meta.protocol, meta.signal);
            let Some(format) = format.filter(|_| bodies.recipient().is_none()) else { continue };
            let mut body = vec![0; bodies.body_len()];
            if !bodies.read_body(&mut body)? {
                continue;
            }
            let Ok(body) = runtime.block_on(decoded(&meta, body)) else { continue };
            let clock_ns = found.clock_ns;
            let mut reader = Reader { trace_id, sequence, clock_ns, spans: &mut found.spans };
            watch(pipeline, (format, meta.received_at_ns), body, &mut reader);
        }
    }
    Ok(found)
}

async fn decoded(meta: &Meta, body: Vec<u8>) -> Result<Vec<u8>, DamagedBody> {
    if meta.encoding == Encoding::Identity {
        return Ok(body);
    }
    let mut raw = vec![0; meta.raw_len as usize + END_SLACK];
    let len = decode(meta.encoding, &body, &mut raw).await?;
    raw.truncate(len);
    Ok(raw)
}

/// Runs all passes over a body, as the sampler does.
fn watch(
    pipeline: &Pipeline,
    (format, received_at_ns): (Format, u64),
    mut body: Vec<u8>,
    reader: &mut Reader<'_>,
) {
    let mut workspace = pipeline.workspace();
    let now_ns = i64::try_from(received_at_ns).unwrap_or(i64::MAX);
    for pass in 0..pipeline.passes(format) {
        let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
        let run = Run::new(pipeline, pass, &mut workspace, format, &body, &mut scratch, now_ns);
        let mut run = run.with_traces(reader);
        let outcome = loop {
            if let tidegate_pipeline::Progress::Done(outcome) = run.advance() {
                break outcome;
            }
        };
        match outcome {
            Outcome::Unchanged => {}
            Outcome::Empty => return,
            Outcome::Changed { len, .. } => {
                let mut out = vec![0; len];
                run.write(&mut out);
                body = out;
            }
        }
    }
}

/// Picks the spans of one trace.
struct Reader<'a> {
    trace_id: &'a TraceId,
    sequence: u64,
    clock_ns: u64,
    spans: &'a mut Vec<FoundSpan>,
}

impl Reader<'_> {
    fn add(&mut self, trace_id: &TraceId, found: Found) {
        if trace_id == self.trace_id {
            self.spans.push(FoundSpan { sequence: self.sequence, clock_ns: self.clock_ns, found });
        }
    }
}

impl TraceSampler for Reader<'_> {
    fn watch(&mut self, span: &SpanFacts) {
        self.add(&span.trace_id, Found::Span(*span));
    }

    fn watch_event(&mut self, trace_id: &TraceId, fulfilled: u64) {
        self.add(trace_id, Found::Event(fulfilled));
    }

    fn keeps(&mut self, _: &TraceId) -> bool {
        true
    }
}

//! Passes records through a sink's pipeline, before they are batched.
//!
//! A record whose format the pipeline applies to is read and decoded, each pass of the pipeline runs over it in bounded steps,
//! and what comes out is held as the record's body until it is taken from here. An unchanged record goes on as it came,
//! compressed. What steps dropped is remembered until the record is settled, so the books count it once, however often
//! the record is read.
//!
//! All of it is deterministic: `Now()` is the time of receipt, so a record that is read again for another attempt becomes the
//! same bytes, and positions within it stay valid.

mod capacity;
mod passes;

use crate::batch::DropReason;
use crate::decoding::{self, END_SLACK, decode, state_bytes};
use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use crate::losses::Losses;
use crate::need::Need;
use crate::trace_sampling::{SharedSampler, TraceSampling};
pub use capacity::SinkCapacity;
pub(crate) use passes::{PassInput, PassedBody, run_passes};
use std::ops::Range;
use std::sync::Arc;
use tidegate_arena::Window;
use tidegate_journal::{Encoding, MAX_IN_FLIGHT, Meta, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_pipeline::{Format, Measurements, Pipeline, StepCounts, Workspace};
use tidegate_stage::{FailureLog, Owner, PipelineMeters, format_of};
use tidegate_wire::remote_write::Version;

/// The pipeline of a sink. Clones share it.
#[derive(Debug, Clone)]
pub struct SinkPipeline {
    /// The steps.
    pub pipeline: Arc<Pipeline>,
    /// So many of the first steps select what the sink takes: what they drop was never the sink's.
    pub routing: usize,
    /// The steps whose failures are not logged.
    pub silent: Vec<usize>,
    /// Counters of the steps.
    pub meters: PipelineMeters,
    /// The largest output that the sink can deliver, by protocol and signal. Those without an entry are unlimited.
    pub capacities: Vec<(Protocol, Signal, SinkCapacity)>,
    /// Those for records of earlier periods, oldest first.
    pub earlier: Vec<EarlierPipeline>,
    /// How traces are sampled, where a step asks.
    pub sampling: Option<TraceSampling>,
}

/// The pipeline for the records that were journalled while the sink took other items: it differs in the steps that select.
#[derive(Debug, Clone)]
pub struct EarlierPipeline {
    /// The sequences of these records.
    pub records: Range<u64>,
    /// The steps.
    pub pipeline: Arc<Pipeline>,
    /// So many of the first steps select what the sink takes.
    pub routing: usize,
}

impl SinkPipeline {
    /// Fixed memory to pass a record through.
    pub const WORKING: usize = tidegate_stage::WORKING;

    /// The records of OTLP and remote write: those that pipelines read.
    pub const RECORDS: [(Protocol, Signal); 5] = [
        (Protocol::Otlp, Signal::Traces),
        (Protocol::Otlp, Signal::Metrics),
        (Protocol::Otlp, Signal::Logs),
        (Protocol::RemoteWrite1, Signal::Metrics),
        (Protocol::RemoteWrite2, Signal::Metrics),
    ];

    /// How many bytes beyond twice its length a record or an item may have behind the pipeline, whatever its length. A change
    /// that makes one longer than its sink can deliver is undone, and counts as a failure.
    pub const GROWTH: usize = tidegate_stage::GROWTH;

    /// How many times its decoded length a record of this protocol and signal takes while it passes through, as long as it
    /// does not become more than twice as long: as it came and decoded, the scratch buffer of about twice that length, and
    /// what comes out. A second pass begins with twice the length. `None` where the pipeline does not apply.
    #[must_use]
    pub fn copies(&self, protocol: Protocol, signal: Signal) -> Option<usize> {
        Some(tidegate_stage::copies(&self.pipeline, self.format(protocol, signal)?))
    }

    /// The need of a sink for remote write that relabels what it translates: at its largest, a piece is held with the scratch buffer and
    /// with what comes out, seven times; and what comes out is twice as long.
    #[must_use]
    pub fn relabeled(&self, need: Need) -> Need {
        match self.pipeline.passes(Format::RemoteWrite(Version::V1)) {
            0 => need,
            _ => Need { working: need.working + Self::WORKING, factor: 4 * need.factor },
        }
    }

    /// The working memory of a sink for it, besides the pipeline itself and what is charged for each record, in bytes.
    #[must_use]
    pub fn working_bytes(pipeline: &Pipeline) -> usize {
        // A sink for remote write has one workspace for records, and one for what OTLP is translated to.
        let relabels = pipeline.passes(Format::RemoteWrite(Version::V1)) > 0;
        let workspaces = if relabels { 2 } else { 1 };
        workspaces * pipeline.workspace_bytes() + MAX_IN_FLIGHT * size_of::<OpenRecord>()
    }

    /// Whether it reads records of this protocol and signal.
    #[must_use]
    pub fn applies(&self, protocol: Protocol, signal: Signal) -> bool {
        self.format(protocol, signal).is_some()
    }

    /// The pipeline for records of an earlier period.
    fn before(&self, earlier: &EarlierPipeline) -> EarlierStage {
        let EarlierPipeline { records, pipeline, routing } = earlier.clone();
        let workspace = pipeline.workspace();
        let pipeline = SinkPipeline { pipeline, routing, earlier: Vec::new(), ..self.clone() };
        EarlierStage { records, pipeline, workspace }
    }

    /// The largest output of this protocol and signal that the sink can deliver.
    fn capacity(&self, protocol: Protocol, signal: Signal) -> SinkCapacity {
        let known = self.capacities.iter().find(|known| (known.0, known.1) == (protocol, signal));
        known.map_or(SinkCapacity::UNLIMITED, |(.., capacity)| *capacity)
    }

    /// The format of a decoded body, if the pipeline applies to it.
    fn format(&self, protocol: Protocol, signal: Signal) -> Option<Format> {
        format_of(&self.pipeline, protocol, signal)
    }
}

/// Outcome of a record in the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Staged {
    /// It goes on, perhaps changed.
    Ready,
    /// No item of it is left.
    Empty,
}

/// The compressed records that go on as they came where nothing changes in them. The others go on decoded, since their sink would
/// decode them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptBodies {
    /// All.
    All,
    /// Those of this encoding.
    Only(Encoding),
    /// None.
    None,
}

impl KeptBodies {
    fn has(self, encoding: Encoding) -> bool {
        match self {
            KeptBodies::All => true,
            KeptBodies::Only(kept) => kept == encoding,
            KeptBodies::None => false,
        }
    }
}

/// A record's body behind its decoder.
pub(crate) enum DecodedBody {
    /// It was not encoded.
    AsItCame,
    /// It is this.
    Decoded(Charged<Window>),
    /// It cannot be decoded.
    Damaged,
}

/// Decodes the body of a record, and gives others their turn meanwhile.
///
/// # Errors
/// When there is no memory for it in `room`.
pub(crate) async fn decoded(
    meta: &Meta,
    body: &[u8],
    room: &EgressBudget,
) -> Result<DecodedBody, BudgetError> {
    if meta.encoding == Encoding::Identity {
        return Ok(DecodedBody::AsItCame);
    }
    let mut raw = room.window(meta.raw_len as usize + END_SLACK).await?;
    let _state = room.charge(state_bytes(meta.encoding)).await?;
    Ok(match decode(meta.encoding, body, raw.spare_mut()).await {
        Ok(len) => {
            raw.advance(len);
            DecodedBody::Decoded(raw)
        }
        Err(decoding::DamagedBody) => DecodedBody::Damaged,
    })
}

/// The pipeline of a sink at work.
pub(crate) struct PipelineStage {
    sink: String,
    pipeline: SinkPipeline,
    workspace: Workspace,
    /// The pipelines for records of earlier periods.
    earlier: Vec<EarlierStage>,
    kept: KeptBodies,
    output: Option<StagedBody>,
    /// Open records of which steps dropped something, by number.
    open: Vec<OpenRecord>,
    /// The last record that the meters have counted.
    counted: Option<u64>,
    failures: FailureLog,
}

/// The pipeline for records of an earlier period at work.
struct EarlierStage {
    records: Range<u64>,
    pipeline: SinkPipeline,
    workspace: Workspace,
}

/// A body that replaces a record's body in the journal.
struct StagedBody {
    sequence: u64,
    body: Charged<Window>,
}

/// Items that steps dropped of a record that is not settled.
#[derive(Debug, Clone, Copy)]
struct OpenRecord {
    sequence: u64,
    passed: u32,
    filtered: u32,
    sampled_out: u32,
}

/// The form in which a record goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StagedForm {
    pub(crate) encoding: Encoding,
    pub(crate) len: u32,
    pub(crate) raw_len: u32,
    pub(crate) items: u32,
}

impl PipelineStage {
    pub(crate) fn new(sink: &str, pipeline: &SinkPipeline) -> PipelineStage {
        PipelineStage {
            sink: sink.to_owned(),
            workspace: pipeline.pipeline.workspace(),
            earlier: pipeline.earlier.iter().map(|earlier| pipeline.before(earlier)).collect(),
            pipeline: pipeline.clone(),
            kept: KeptBodies::All,
            output: None,
            open: Vec::with_capacity(MAX_IN_FLIGHT),
            counted: None,
            failures: FailureLog::new(&pipeline.meters),
        }
    }

    /// Says which unchanged records go on as they came.
    pub(crate) fn keep(&mut self, kept: KeptBodies) {
        self.kept = kept;
    }

    /// The format of a record's decoded body, if the pipeline applies to it.
    pub(crate) fn format(&self, sequence: u64, meta: &Meta) -> Option<Format> {
        let earlier = self.earlier_of(sequence).and_then(|at| self.earlier.get(at));
        let pipeline = earlier.map_or(&self.pipeline, |earlier| &earlier.pipeline);
        pipeline.format(meta.protocol, meta.signal)
    }

    /// The position of the earlier pipeline for this record; none for one of the current period.
    fn earlier_of(&self, sequence: u64) -> Option<usize> {
        self.earlier.iter().position(|earlier| earlier.records.contains(&sequence))
    }

    /// The pipeline for this record, and its workspace.
    fn of_record(&mut self, sequence: u64) -> (&SinkPipeline, &mut Workspace) {
        match self.earlier_of(sequence).and_then(|at| self.earlier.get_mut(at)) {
            Some(EarlierStage { pipeline, workspace, .. }) => (pipeline, workspace),
            None => (&self.pipeline, &mut self.workspace),
        }
    }

    /// The least memory that passing a record through takes, in bytes.
    pub(crate) fn least(meta: &Meta, body_len: usize) -> usize {
        let raw_len = meta.raw_len as usize;
        let kept = if meta.encoding == Encoding::Identity { 0 } else { body_len };
        kept.saturating_add(raw_len).saturating_add(Pipeline::scratch_bytes(raw_len))
    }

    /// Forgets a record that is read again.
    pub(crate) fn forget(&mut self, sequence: u64) {
        self.release();
        self.take_losses(sequence);
    }

    /// Gives back the memory of a body that was not taken.
    pub(crate) fn release(&mut self) {
        self.output = None;
    }

    /// Takes the items that steps dropped of a record: the second call finds none.
    pub(crate) fn take_losses(&mut self, sequence: u64) -> Losses {
        match self.open.binary_search_by_key(&sequence, |open| open.sequence) {
            Ok(at) => self.open.remove(at).losses(),
            Err(_) => Losses::NONE,
        }
    }

    /// The body that goes on instead of the record's own.
    pub(crate) fn output(&self, sequence: u64) -> Option<&[u8]> {
        let staged = self.output.as_ref().filter(|staged| staged.sequence == sequence)?;
        Some(&staged.body)
    }

    /// The same, handed over.
    pub(crate) fn take_output(&mut self, sequence: u64) -> Option<Charged<Window>> {
        self.output.take_if(|staged| staged.sequence == sequence).map(|staged| staged.body)
    }

    /// Passes `body`, as it is in the journal, through the pipeline. `low` is the first record that is not settled.
    /// Returns the form in which it goes on; `None` when no item is left. `traces` decides about its traces. With `measurements` that is all
    /// that is wanted of it: it goes on as it came.
    ///
    /// # Errors
    /// When there is no memory for it. Nothing is held or remembered then.
    pub(crate) async fn apply(
        &mut self,
        (sequence, low): (u64, u64),
        meta: &Meta,
        (format, traces): (Format, Option<SharedSampler>),
        measurements: Option<&mut (dyn Measurements + Send)>,
        body: Charged<Window>,
        room: &EgressBudget,
    ) -> Result<Option<StagedForm>, DropReason> {
        let (came, decoded) = match decoded(meta, &body, room).await? {
            DecodedBody::AsItCame => (None, body),
            DecodedBody::Decoded(raw) => (Some(body), raw),
            DecodedBody::Damaged => return Ok(Some(self.goes_on(sequence, meta, body))),
        };
        let kept = came.as_ref().map_or(0, |body| body.len());
        let (pipeline, workspace) = self.of_record(sequence);
        let capacity = pipeline.capacity(meta.protocol, meta.signal);
        let limits = capacity.limits(kept, decoded.len(), pipeline.pipeline.passes(format));
        let is_watched_only = measurements.is_some();
        let now_ns = meta.received_at_ns;
        let from = PassInput { format, now_ns, limits, traces, measurements, is_watched_only };
        let passed = Box::pin(run_passes(
            (&pipeline.pipeline, &pipeline.meters),
            workspace,
            from,
            (decoded, meta.items.into()),
            room,
        ))
        .await?;
        let PassedBody { body: current, items, is_changed } = passed;
        self.count(sequence, low);
        if items == 0 && meta.items > 0 {
            return Ok(None);
        }
        Ok(Some(match came {
            Some(body) if !is_changed && self.kept.has(meta.encoding) => self.goes_on(sequence, meta, body),
            _ => {
                let form = Meta {
                    encoding: Encoding::Identity,
                    raw_len: u32::try_from(current.len()).unwrap_or(u32::MAX),
                    items: u32::try_from(items).unwrap_or(u32::MAX),
                    ..*meta
                };
                self.goes_on(sequence, &form, current)
            }
        }))
    }

    fn goes_on(&mut self, sequence: u64, form: &Meta, body: Charged<Window>) -> StagedForm {
        let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
        self.output = Some(StagedBody { sequence, body });
        StagedForm { encoding: form.encoding, len, raw_len: form.raw_len, items: form.items }
    }

    /// Enters the counts of a record that passed: in the meters where it passed for the first time.
    fn count(&mut self, sequence: u64, low: u64) {
        let at = self.earlier_of(sequence);
        let PipelineStage { pipeline, workspace, earlier, counted, .. } = self;
        let earlier = at.and_then(|at| earlier.get_mut(at));
        let (routing, workspace) = match earlier {
            Some(EarlierStage { pipeline, workspace, .. }) => (pipeline.routing, workspace),
            None => (pipeline.routing, workspace),
        };
        let is_new = counted.is_none_or(|counted| sequence > counted);
        let mut open = OpenRecord { sequence, passed: 0, filtered: 0, sampled_out: 0 };
        let mut has_failed = false;
        workspace.take_counts(|step, counts: &StepCounts| {
            open.add(counts, step < routing);
            has_failed |= counts.failures.iter().any(|failures| *failures > 0);
            // The steps behind those that select are the same in all periods.
            let shown = match step.checked_sub(routing) {
                Some(behind) => Some(behind + pipeline.routing),
                None => (routing == pipeline.routing).then_some(step),
            };
            if let Some(step) = shown.filter(|_| is_new) {
                pipeline.meters.add(step, counts);
            }
        });
        if is_new {
            *counted = Some(sequence);
        }
        if has_failed && is_new {
            let SinkPipeline { meters, silent, .. } = pipeline;
            self.failures.log(Owner::Sink(&self.sink), meters, silent);
        }
        if open.losses() == Losses::NONE {
            return;
        }
        if self.open.len() >= MAX_IN_FLIGHT {
            // Records settled without this sink, as by the quota.
            self.open.retain(|open| open.sequence >= low);
        }
        if let Err(at) = self.open.binary_search_by_key(&sequence, |open| open.sequence) {
            self.open.insert(at, open);
        }
    }
}

impl OpenRecord {
    fn add(&mut self, counts: &StepCounts, is_routing: bool) {
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let (filtered, sampled_out) = (number(counts.filtered), number(counts.sampled_out));
        if is_routing {
            self.passed = self.passed.saturating_add(filtered).saturating_add(sampled_out);
        } else {
            self.filtered = self.filtered.saturating_add(filtered);
            self.sampled_out = self.sampled_out.saturating_add(sampled_out);
        }
    }

    fn losses(&self) -> Losses {
        Losses::passed_over(self.passed.into())
            .and(Losses::of(Dropped::Filtered, self.filtered.into()))
            .and(Losses::of(Dropped::SampledOut, self.sampled_out.into()))
    }
}

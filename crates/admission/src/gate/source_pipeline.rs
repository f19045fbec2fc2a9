//! Passes a checked request through the pipeline of its source, before the journal.
//!
//! The request waits for its turn to run while it holds nothing but its body, then for all the memory that a pass takes,
//! at once; both waits have an end. From there on it does not wait for memory: what is not free is a refusal. So whatever is
//! short, nothing reaches the journal that has not passed.

use super::Gate;
use super::append::{PendingAppend, refuse};
use super::decode_buffer::DecodeBuffer;
use crate::deliverable::Size;
use crate::gate::TranslationCharge;
use crate::permit::Permit;
use crate::rejection::Rejection;
use crate::source_pipelines::SourcePipeline;
use std::sync::Arc;
use tidegate_arena::{Charge, Share, Window};
use tidegate_journal::{Batch, Checkpoints, Encoding, Meta, Protocol, Signal};
use tidegate_ledger::{Counts, OpenRequest, PipelineItems, Refusal};
use tidegate_pipeline::{Format, Outcome, Pipeline, Run, Workspace};
use tidegate_stage::decoding::{END_SLACK, decode, state_bytes};
use tidegate_wire::otlp;
use tidegate_wire::remote_write::{self, Limits, Symbols, Version};

/// Heap of a request that waits for its turn, in bytes: mostly its batch.
pub(super) const WAITING_BYTES: u64 = 2 << 10;
/// Bodies that are larger than this leave a turn to smaller ones.
const LARGE: usize = 1 << 20;
/// Bodies of this length and more stay as they are in the engine, so they are refused here.
const MOST: usize = 1 << 30;

/// A request behind the pipeline.
pub(super) struct PipelineResult {
    /// The rest of the batch; if all of it was dropped, the checkpoints that it would have carried.
    batch: Result<Batch, Checkpoints>,
    items: PipelineItems,
    /// The tenant's account of what is left, until that is journalled.
    account: TranslationCharge,
}

/// Input of a pass over one body.
#[derive(Clone, Copy)]
struct PassInput<'a> {
    pipeline: &'a SourcePipeline,
    number: usize,
    /// Its literals are in the body: they need not be searched again.
    may_change: bool,
    format: Format,
    now_ns: i64,
    /// Bytes that the request holds of the `ingest` and of the `decode` share.
    held: (usize, usize),
}

/// The pass with which to begin: those before it change nothing.
#[derive(Clone, Copy)]
pub(super) struct FirstPass {
    pub(super) number: usize,
    /// It is known to find what it needs in the body.
    pub(super) may_change: bool,
}

/// Output of a pass that changed a body.
enum PassResult {
    Nothing,
    Body { window: Window, items: u64 },
}

impl Gate {
    /// The pipeline that a request has to pass before the journal, and the format of its body.
    pub(super) fn pipeline_of(
        &self,
        open: &OpenRequest,
        meta: &Meta,
    ) -> Option<(Arc<SourcePipeline>, Format)> {
        self.0.rules.pipelines.of(open.source()?.name(), meta.protocol, meta.signal)
    }

    /// Charges a wait for the turn to run, if there is memory for it.
    pub(super) fn charge_turn(&self) -> Option<Charge> {
        self.0.arena.try_charge(Share::Ingest, WAITING_BYTES).ok()
    }

    /// Appends what the pipeline leaves of a request.
    pub(super) async fn append_through_pipeline(
        &self,
        waiting_charge: Charge,
        (pipeline, format): (Arc<SourcePipeline>, Format),
        permit: &Permit,
        open: OpenRequest,
        counts: Counts,
        batch: Batch,
    ) -> Result<(), Rejection> {
        let PipelineResult { batch, items, account } =
            match self.run_pipeline(&pipeline, format, permit, batch).await {
                Ok(result) => result,
                Err(refused) => return Err(refuse(open, refused)),
            };
        let batch = match batch {
            Ok(batch) => batch,
            Err(checkpoints) => {
                // Nobody will append them, and their source has nothing left to send.
                self.0.journal.set_checkpoints(&checkpoints);
                open.submit_from_pipeline(counts.reduced_to(0), items).accept();
                return Ok(());
            }
        };
        let counts = counts.reduced_to(batch.meta.items);
        self.show(&open, &batch);
        let Some(slot) = self.append_slot().await else {
            return Err(refuse(open, self.no_memory()));
        };
        let appended = PendingAppend::begin(slot, open, counts, Some(items), batch)?;
        let outcome = appended.outcome().await;
        // A waiting request is paid for, and its tenant charged, to the end.
        drop((waiting_charge, account));
        outcome
    }

    async fn run_pipeline(
        &self,
        pipeline: &SourcePipeline,
        format: Format,
        permit: &Permit,
        batch: Batch,
    ) -> Result<PipelineResult, Rejection> {
        let Batch { meta, window, from, len, .. } = &batch;
        let raw_len = meta.raw_len as usize;
        if raw_len >= MOST {
            return Err(Rejection::too_large(MOST - 1));
        }
        let body = body_of(window, *from, *len);
        let mut first = FirstPass { number: 0, may_change: false };
        if meta.encoding == Encoding::Identity {
            match first_pass(pipeline.pipeline(), format, body).await {
                Some(number) => first = FirstPass { number, may_change: true },
                None => return Ok(unchanged(batch, self.translation_charge(permit))),
            }
        }
        let turn = self.0.rules.pipelines.turn(raw_len > LARGE);
        let turn = tokio::time::timeout(self.0.memory_wait, turn).await;
        let _turn = turn.ok().flatten().ok_or_else(|| self.no_memory())?;
        // On the heap now, and not while it waits: there is memory for those that run.
        Box::pin(self.run_in_turn((pipeline, format), first, permit, batch)).await
    }

    pub(super) async fn run_in_turn(
        &self,
        (pipeline, format): (&SourcePipeline, Format),
        first: FirstPass,
        permit: &Permit,
        batch: Batch,
    ) -> Result<PipelineResult, Rejection> {
        let mut workspace = self.0.rules.pipelines.workspace(pipeline);
        let Batch { meta, window, from, len, .. } = &batch;
        let (received, held_ingest) = (body_of(window, *from, *len), window.charged());
        let (raw_len, encoding) = (meta.raw_len as usize, meta.encoding);
        let decoded = if encoding == Encoding::Identity { 0 } else { raw_len + END_SLACK };
        let needed = decoded.saturating_add(Pipeline::scratch_bytes(raw_len));
        let beside = u32::try_from(held_ingest).unwrap_or(u32::MAX);
        let mut room = self.decode_buffer_beside(permit, beside, needed, false).await?;
        if decoded > 0 {
            let _state = room.beside(self, state_bytes(encoding))?;
            let out = room.spare_mut().get_mut(..decoded).unwrap_or_default();
            if decode(encoding, received, out).await != Ok(raw_len) {
                return Err(INTERNAL);
            }
        }
        let mut account = self.translation_charge(permit);
        let mut edited: Option<(Window, u64)> = None;
        let now_ns = i64::try_from(meta.received_at_ns).unwrap_or(i64::MAX);
        for number in first.number..pipeline.pipeline().passes(format) {
            let edited_bytes = edited.as_ref().map_or(0, |(window, _)| window.charged());
            let held = (held_ingest + edited_bytes, room.charged());
            let may_change = first.may_change && number == first.number;
            let pass = PassInput { pipeline, number, may_change, format, now_ns, held };
            let result = match &edited {
                None => {
                    let (front, scratch) = room.spare_mut().split_at_mut_checked(decoded).ok_or(INTERNAL)?;
                    let body = if decoded > 0 { front.get(..raw_len).unwrap_or_default() } else { received };
                    Box::pin(self.run_pass(pass, workspace.get(), body, scratch, &mut account)).await?
                }
                Some((body, _)) => {
                    let scratch = Pipeline::scratch_bytes(body.len());
                    if room.spare() < scratch && !room.grow_beside(self, held.0, scratch)? {
                        return Err(Rejection::too_large(raw_len / 2));
                    }
                    Box::pin(self.run_pass(pass, workspace.get(), body, room.spare_mut(), &mut account))
                        .await?
                }
            };
            match result {
                None => {}
                Some(PassResult::Nothing) => {
                    let items = count(pipeline, workspace.get(), meta);
                    let (batch, account) = (Err(batch.checkpoints), TranslationCharge::default());
                    return Ok(PipelineResult { batch, items, account });
                }
                Some(PassResult::Body { window, items }) => edited = Some((window, items)),
            }
        }
        let Some((window, items)) = edited else {
            let items = count(pipeline, workspace.get(), meta);
            return Ok(PipelineResult { batch: Ok(batch), items, account });
        };
        let window = self.check_edited(format, meta, window, &mut room).await?;
        let (Ok(raw_len), Ok(items)) = (u32::try_from(window.len()), u32::try_from(items)) else {
            return Err(Rejection::too_large(MOST - 1));
        };
        let counted = count(pipeline, workspace.get(), meta);
        // The body as it came is gone, and its tenant charged for it still.
        account.shrink(window.charged().saturating_sub(*len));
        let meta = Meta { encoding: Encoding::Identity, raw_len, items, ..*meta };
        let len = window.len();
        let batch = Batch { meta, window, from: 0, len, checkpoints: batch.checkpoints };
        Ok(PipelineResult { batch: Ok(batch), items: counted, account })
    }

    /// Runs one pass over `body`; `None` when it changes nothing.
    async fn run_pass(
        &self,
        pass: PassInput<'_>,
        workspace: &mut Workspace,
        body: &[u8],
        scratch: &mut [u8],
        account: &mut TranslationCharge,
    ) -> Result<Option<PassResult>, Rejection> {
        let PassInput { pipeline, number, may_change, format, now_ns, held } = pass;
        let (program, meters) = (pipeline.pipeline(), pipeline.meters());
        if !may_change && !tidegate_stage::may_change(program, number, format, body).await {
            return Ok(None);
        }
        let scratch = scratch.get_mut(..Pipeline::scratch_bytes(body.len())).ok_or(INTERNAL)?;
        let mut run = Run::new(program, number, workspace, format, body, scratch, now_ns);
        match tidegate_stage::run(&mut run, meters).await {
            Outcome::Unchanged => Ok(None),
            Outcome::Empty => Ok(Some(PassResult::Nothing)),
            Outcome::Changed { len, items } => {
                account.grow(self, len)?;
                let window = self.0.arena.try_window(Share::Ingest, len.max(1));
                let ingest = held.0.saturating_add(len);
                let mut window = window
                    .map_err(|refused| self.memory_rejection(refused, ingest, held.1, body.len() / 2))?;
                let out = window.spare_mut().get_mut(..len).ok_or(INTERNAL)?;
                tidegate_stage::write(&mut run, out).await;
                window.advance(len);
                Ok(Some(PassResult::Body { window, items }))
            }
        }
    }

    /// Whether every sink can deliver what the pipeline made of a body.
    async fn check_edited(
        &self,
        format: Format,
        meta: &Meta,
        window: Window,
        room: &mut DecodeBuffer,
    ) -> Result<Window, Rejection> {
        let (protocol, signal): (Protocol, Signal) = (meta.protocol, meta.signal);
        let size = |item| Size { kept: window.len(), decoded: 0, item };
        // Where an item as long as the whole could be delivered, it need not be looked for.
        if self.check_deliverable(protocol, signal, size(window.len())).is_ok() {
            return Ok(window);
        }
        self.check_deliverable(protocol, signal, size(0))?;
        let _symbols = match format {
            Format::RemoteWrite(Version::V2) => Some(room.beside(self, Symbols::bytes_for(&window))?),
            _ => None,
        };
        let len = window.len();
        let look = move || (largest_item(format, &window), window);
        let (item, window) = match self.0.rules.pipelines.pool().filter(|_| len > LARGE) {
            Some(pool) => pool.run(look).await.map_err(|_| INTERNAL.retry_after(self.memory_delay()))?,
            None => look(),
        };
        let size = Size { kept: window.len(), decoded: 0, item: item.ok_or(INTERNAL)? };
        self.check_deliverable(protocol, signal, size)?;
        Ok(window)
    }
}

/// The output of a pipeline is valid where the body was, so none of these happens.
const INTERNAL: Rejection = Rejection::new(Refusal::Internal, "running the source's pipeline failed\n");

fn body_of(window: &Window, from: usize, len: usize) -> &[u8] {
    from.checked_add(len).and_then(|end| window.get(from..end)).unwrap_or_default()
}

/// The first pass that may change `body`.
async fn first_pass(pipeline: &Pipeline, format: Format, body: &[u8]) -> Option<usize> {
    for pass in 0..pipeline.passes(format) {
        if tidegate_stage::may_change(pipeline, pass, format, body).await {
            return Some(pass);
        }
    }
    None
}

fn unchanged(batch: Batch, account: TranslationCharge) -> PipelineResult {
    let items = PipelineItems { received: batch.meta.items, ..PipelineItems::default() };
    PipelineResult { batch: Ok(batch), items, account }
}

/// Enters what the steps did.
fn count(pipeline: &SourcePipeline, workspace: &mut Workspace, meta: &Meta) -> PipelineItems {
    let (filtered, sampled_out) = pipeline.count(workspace);
    // As many as a body can have.
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    PipelineItems { received: meta.items, filtered: number(filtered), sampled_out: number(sampled_out) }
}

/// The length of the largest item with its envelope; `None` for a body that is not valid.
fn largest_item(format: Format, body: &[u8]) -> Option<usize> {
    match format {
        Format::Otlp(signal) => otlp::check(signal, body).ok().map(|counts| counts.largest_item),
        Format::RemoteWrite(version) => {
            let inspected =
                remote_write::inspect(version, body, &Limits::default(), &mut Symbols::new()).ok()?;
            Some(inspected.largest_item)
        }
    }
}

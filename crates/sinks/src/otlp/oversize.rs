//! Sends records when nothing else is in flight: those that need more memory than the sink's own part, and those that go
//! out in pieces because the peer refuses them whole or because they are translated to OTLP.
//!
//! No memory is held over a wait: before another attempt it is all released, and the record is read from the journal
//! again. Progress is kept as a number of items, so that delivered ones are not sent again (except after a restart).
//! While another sink waits for the turn to borrow, the record gives it up between requests in the same way.
//!
//! The body is decoded once; beside it there is one piece at a time, and its compressed form. So an item is sent if it
//! fits beside the body; one that does not is dropped alone.

use super::answer::RejectionCause;
use super::batching::{BodyTreatment, Key, wire_signal};
use super::json::{self, Written};
use super::outbound_request::{self, Frame, OutboundRequest};
use super::peer::PREFIX;
use super::responses::{RequestOutcome, answered, heard, keep};
use super::settings::Compression;
use super::translation::{outgoing_len, version_of};
use super::{Batch, OtlpProtocol};
use crate::batch::DropReason;
use crate::body_parts::{
    BodyPart, BodyParts, BodyPosition, BodySplitter, DocumentParts, EventParts, SampleParts,
};
use crate::delivery::{AnsweredRequest, MIN_REQUEST_SIZE, NextStep, OversizeOutcome, Pipeline};
use crate::egress_budget::BorrowSlice;
use crate::journal_consumer::Record;
use crate::losses::Losses;
use tidegate_arena::{GROWTH_STEP, PAGE};
use tidegate_journal::{Meta, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_wire::otlp::prometheus::pieces_of_remote_write;
use tidegate_wire::otlp::split;
use tidegate_wire::output::Full;
use tidegate_wire::remote_write::{Symbols, view};

/// The progress of a record that goes out in pieces.
#[derive(Debug)]
pub(super) struct SplitRequest {
    pub(super) sequence: u64,
    /// The longest piece, in bytes.
    most: usize,
    /// Items were refused, which made pieces short: each accepted piece makes the next one longer. Where all are refused, each
    /// is sent about once.
    is_growing: bool,
    /// The position, the number of items before it as the ledger counts them, and how many of those were lost.
    place: BodyPosition,
    booked: u64,
    losses: Losses,
    /// Something was done in this turn to borrow.
    has_moved: bool,
}

/// A record that goes out in pieces.
#[derive(Clone, Copy)]
struct OversizeRecord {
    key: Key,
    meta: Meta,
}

/// The contents of a part: another form with the OTLP that it was made from, or OTLP.
struct Body {
    frame: Frame,
    /// How long it is before compression, in bytes.
    len: usize,
    original: Option<Frame>,
}

/// The rest is sent later.
struct DeferredPart;

impl SplitRequest {
    /// Counts a piece that is done.
    fn done(&mut self, portion: &BodyPart, place: BodyPosition) {
        self.place = place;
        self.has_moved = true;
        self.booked += portion.booked;
        self.losses.add(Dropped::Untranslatable, portion.untranslatable);
    }
}

/// The context for sending a record: the protocol and the pipeline.
struct OversizeSender<'a> {
    protocol: &'a mut OtlpProtocol,
    pipeline: &'a mut Pipeline<OtlpProtocol>,
    slice: BorrowSlice,
}

impl OtlpProtocol {
    /// Sends a record once, whole or in pieces, with nothing else in flight.
    pub(super) async fn send_oversize(
        &mut self,
        pipeline: &mut Pipeline<OtlpProtocol>,
        record: &Record,
    ) -> OversizeOutcome {
        let mut sending = OversizeSender { protocol: self, pipeline, slice: BorrowSlice::begin() };
        Box::pin(sending.read_and_send(record)).await.unwrap_or_else(OversizeOutcome::Lost)
    }
}

impl OversizeSender<'_> {
    /// Sends a record once, whole or in pieces. An error says why it is lost.
    async fn read_and_send(&mut self, record: &Record) -> Result<OversizeOutcome, Dropped> {
        let OversizeSender { protocol, pipeline, .. } = self;
        let Some(way) = protocol.way(&record.meta) else { return Err(Dropped::Untranslatable) };
        let is_rewritten = protocol.settings.is_rewritten();
        let is_cut = is_rewritten
            || protocol.is_cut(record, pipeline.most())
            || matches!(way, BodyTreatment::Translate(_));
        let way = if is_cut { BodyTreatment::Recode } else { way };
        let key = Key { signal: record.meta.signal, tenant: record.meta.tenant, way };
        let out_len = outgoing_len(&record.meta);
        let Pipeline { room, consumer, tools, .. } = &mut **pipeline;
        let batch = match Batch::of(record, key, PREFIX, out_len, 0, room, consumer).await {
            Ok(batch) => batch,
            Err(DropReason::Damaged) => return Err(Dropped::Damaged),
            // It was accepted with more memory.
            Err(DropReason::Room(_) | DropReason::TooLong) => return Err(Dropped::TooLarge),
        };
        if protocol.shown.replace(record.sequence) != Some(record.sequence) {
            consumer.show(record, batch.window.get(PREFIX..).unwrap_or_default());
        }
        if is_cut {
            return Box::pin(self.send_pieces(record.sequence, batch)).await;
        }
        let outbound = match (way, tools) {
            (BodyTreatment::Join, _) => OutboundRequest::joined(batch),
            (_, Some(compressor)) => {
                let packed = Box::pin(outbound_request::alone(batch, compressor, room)).await;
                packed.map_err(DropReason::reason)?
            }
            (_, None) => return Ok(OversizeOutcome::Later),
        };
        let Ok(AnsweredRequest { request, reservation, answer, .. }) = pipeline.attempt(outbound).await
        else {
            return Ok(OversizeOutcome::Later);
        };
        Ok(match answered(pipeline, request, reservation, answer) {
            NextStep::Settled => OversizeOutcome::Settled,
            NextStep::Again(_) | NextStep::Prepare(_) | NextStep::ReadAgain => OversizeOutcome::Later,
        })
    }

    /// Sends the pieces of the one record in `batch`.
    async fn send_pieces(&mut self, sequence: u64, batch: Batch) -> Result<OversizeOutcome, Dropped> {
        let whole = OversizeRecord { key: batch.key, meta: batch.meta };
        let meta = whole.meta;
        let taken = self.pipeline.consumer.signals_within(&meta);
        let Pipeline { room, tools, .. } = &mut *self.pipeline;
        let Some(compressor) = tools.as_mut() else { return Ok(OversizeOutcome::Later) };
        let raw = outbound_request::opened(batch, compressor, room).await.map_err(DropReason::reason)?;
        let body = raw.get(PREFIX..).unwrap_or_default();
        let known = self.protocol.cut.take().filter(|cut| cut.sequence == sequence);
        let mut cut = known.unwrap_or_else(|| SplitRequest {
            sequence,
            most: self.pipeline.most(),
            is_growing: false,
            place: BodyPosition::default(),
            booked: 0,
            losses: Losses::NONE,
            has_moved: false,
        });
        cut.has_moved = false;
        let from = cut.place;
        let outcome = match (meta.protocol, version_of(&meta)) {
            (_, Some(version)) => {
                let _charge = self
                    .pipeline
                    .room
                    .charge(Symbols::bytes_for(body))
                    .await
                    .map_err(|_| Dropped::TooLarge)?;
                let mut symbols = Symbols::new();
                let request = view(version, body, &mut symbols).map_err(|_| Dropped::Damaged)?;
                let pieces = SampleParts::new(pieces_of_remote_write(request), outgoing_len(&meta), &from);
                Box::pin(self.send_all(pieces, whole, &mut cut)).await
            }
            (Protocol::Intake, _) => {
                let pieces = EventParts::new(body, meta.received_at_ns, taken, &from);
                Box::pin(self.send_all(pieces, whole, &mut cut)).await
            }
            (Protocol::Bulk, _) => {
                let pieces = DocumentParts::new(body, meta.received_at_ns, &from);
                Box::pin(self.send_all(pieces, whole, &mut cut)).await
            }
            _ => match wire_signal(meta.signal) {
                Some(signal) => {
                    let pieces = BodySplitter::new(meta.signal, split(signal, body, cut.most), &from);
                    Box::pin(self.send_all(pieces, whole, &mut cut)).await
                }
                None => Ok(()),
            },
        };
        if outcome.is_err() {
            self.protocol.cut = Some(cut);
            return Ok(OversizeOutcome::Later);
        }
        if matches!(meta.protocol, Protocol::Intake | Protocol::Bulk) {
            // Items of the record that are none of those.
            let others = taken.others(body).await;
            let unsaid = u64::from(meta.items).saturating_sub(cut.booked.saturating_add(others));
            cut.losses = cut
                .losses
                .but(Dropped::Untranslatable)
                .and(Losses::of(Dropped::Untranslatable, unsaid))
                .and(Losses::passed_over(others));
        }
        self.pipeline.settle([sequence], cut.losses);
        Ok(OversizeOutcome::Settled)
    }

    /// Sends all that is left of a body, piece by piece.
    async fn send_all(
        &mut self,
        mut pieces: impl BodyParts,
        whole: OversizeRecord,
        cut: &mut SplitRequest,
    ) -> Result<(), DeferredPart> {
        // A tighter bound for the next piece, after one that did not fit.
        let mut narrow = usize::MAX;
        self.slice.sends();
        loop {
            if cut.has_moved && self.slice.is_over(&self.pipeline.room) {
                return Err(DeferredPart);
            }
            // Without room, or with nothing to be sent, nothing below waits.
            tokio::task::yield_now().await;
            let most = cut.most.min(self.most_of_a_piece(pieces.signal())).min(narrow);
            let before = pieces.clone();
            let Some(wanted) = pieces.wanted(most) else { return Ok(()) };
            let Some((frame, portion)) = self.written(&mut pieces, wanted, most).await else {
                if pieces.is_divisible() {
                    (pieces, narrow) = (before, most.min(wanted) / 2);
                    continue;
                }
                let lost = pieces.pass_over();
                self.pipeline.report.too_large(cut.sequence, &whole.meta, lost.booked, wanted);
                cut.losses.add(Dropped::TooLarge, lost.booked);
                cut.done(&lost, pieces.place());
                continue;
            };
            if portion.items == 0 {
                cut.done(&portion, pieces.place());
                continue;
            }
            let signal = pieces.signal();
            let key = Key { signal, ..whole.key };
            let whole = OversizeRecord { key, meta: Meta { signal, ..whole.meta } };
            let Ok(body) = self.body(frame, signal, portion.items).await else {
                if portion.items > 1 {
                    (pieces, narrow) = (before, most.min(portion.bytes) / 2);
                    continue;
                }
                self.pipeline.report.too_large(cut.sequence, &whole.meta, portion.booked, portion.bytes);
                cut.losses.add(Dropped::TooLarge, portion.booked.max(1));
                cut.done(&portion, pieces.place());
                continue;
            };
            narrow = narrow.max(PAGE).saturating_mul(4);
            let Some(outbound) = self.piece(body, &portion, whole).await else { return Err(DeferredPart) };
            let Ok(answered) = self.pipeline.attempt(outbound).await else { return Err(DeferredPart) };
            let AnsweredRequest { request, reservation, answer, .. } = answered;
            match heard(self.pipeline, &request, reservation, answer) {
                RequestOutcome::Accepted(rejected) => {
                    cut.losses.add(Dropped::Rejected, rejected);
                    if cut.is_growing {
                        cut.most = cut.most.max(PAGE).saturating_mul(2).min(self.pipeline.most());
                    }
                }
                RequestOutcome::Retry => return Err(DeferredPart),
                RequestOutcome::Refused(reason, RejectionCause::Size | RejectionCause::Item)
                    if self.is_cuttable(&portion) =>
                {
                    self.pipeline.report.refused_in_part(&reason.to_string());
                    cut.most = cut.most.min(portion.bytes) / 2;
                    pieces = before;
                    continue;
                }
                RequestOutcome::Refused(reason, fault) => {
                    keep(self.pipeline, &request, &reason);
                    // An event that ends in a later piece has lost something, too.
                    cut.losses.add(fault.reason(), portion.booked.max(1));
                    // Items after the one at fault need not be as short.
                    if fault == RejectionCause::Size {
                        cut.most = self.pipeline.most();
                    }
                    cut.is_growing = fault == RejectionCause::Item;
                }
            }
            cut.done(&portion, pieces.place());
        }
    }

    /// Whether a piece that was found too large is sent in shorter ones.
    fn is_cuttable(&self, portion: &BodyPart) -> bool {
        if self.protocol.settings.is_rewritten() {
            portion.items > 1
        } else {
            portion.is_cuttable(MIN_REQUEST_SIZE)
        }
    }

    /// The longest piece that fits in every form that it is held in.
    fn most_of_a_piece(&self, signal: Signal) -> usize {
        let left = self.pipeline.room.longest_window().saturating_sub(2 * GROWTH_STEP);
        if self.protocol.settings.is_rewritten() {
            return self.protocol.growth.shorter(signal, self.pipeline.most().min(left / 2)).max(PAGE);
        }
        let each = if self.protocol.settings.compression == Compression::None { left } else { left / 2 };
        each.max(PAGE)
    }

    /// The next piece in a window of its own, which grows until one item fits. `None` when there is no such room.
    async fn written<P: BodyParts>(
        &mut self,
        pieces: &mut P,
        wanted: usize,
        most: usize,
    ) -> Option<(Frame, BodyPart)> {
        let mut wanted = wanted.saturating_add(PREFIX);
        loop {
            let left = self.pipeline.room.longest_window();
            if P::IS_EXACT && wanted > left {
                return None;
            }
            let mut frame = self.pipeline.room.window(wanted.min(left)).await.ok()?;
            frame.skip(PREFIX);
            match pieces.write(frame.spare_mut(), most) {
                Ok(portion) => {
                    frame.advance(portion.bytes);
                    return Some((frame, portion));
                }
                Err(Full) if wanted >= left => return None,
                Err(Full) => wanted = wanted.saturating_mul(2),
            }
        }
    }

    /// The contents of a part, in its format for sending.
    async fn body(&mut self, frame: Frame, signal: Signal, items: u64) -> Result<Body, DropReason> {
        let message = frame.get(PREFIX..).unwrap_or_default();
        let most = if items > 1 { self.pipeline.most() } else { usize::MAX };
        let Some(form) = self.protocol.form(signal, message.len(), most) else {
            let len = message.len();
            return Ok(Body { frame, len, original: None });
        };
        let written = json::written(message, signal, form, &self.pipeline.room).await?;
        let Written { frame: rewritten, len } = written;
        self.protocol.growth.learn(signal, message.len(), len);
        Ok(Body { frame: rewritten, len, original: Some(frame) })
    }

    /// A piece as it goes out: compressed if there is room for that.
    async fn piece(
        &mut self,
        body: Body,
        portion: &BodyPart,
        whole: OversizeRecord,
    ) -> Option<OutboundRequest> {
        let Pipeline { room, tools, .. } = &mut *self.pipeline;
        let compressor = tools.as_mut()?;
        let Body { frame, len, original } = body;
        let (frame, encoding) = outbound_request::encoded(frame, compressor, room).await;
        let piece = OutboundRequest::piece(frame, encoding, whole.key, whole.meta, portion.items, len);
        Some(piece.instead_of(original))
    }
}

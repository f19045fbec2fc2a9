//! Converts a batch to a request: decoded and compressed where needed, framed, and ready to be sent.

use super::Batch;
use super::batching::{BodyTreatment, Key, wire_signal};
use super::json::{self, OutputForm, Written};
use super::peer::{PREFIX, Request};
use super::translation::{TranslatedBody, translated, version_of};
use crate::batch::DropReason;
use crate::decoding::END_SLACK;
use crate::delivery::MIN_REQUEST_SIZE;
use crate::delivery::compressor::Compressor;
use crate::egress_budget::{Charged, EgressBudget};
use bytes::Bytes;
use tidegate_arena::Window;
use tidegate_journal::{Encoding, Meta};
use tidegate_wire::otlp::joinable;

/// Room for [`PREFIX`], and a message behind it.
pub(super) type Frame = Charged<Window>;

/// A request with the records that are in it.
pub(super) struct OutboundRequest {
    /// The metadata of the first record; the others are alike.
    pub(super) meta: Meta,
    pub(super) sequences: Vec<u64>,
    pub(super) items: u64,
    pub(super) raw_len: usize,
    /// Items that are not in the request, since it has no form for them.
    pub(super) untranslatable: u64,
    /// The OTLP that a request in another form was written from, for dead letters.
    pub(super) original: Option<Frame>,
    pub(super) request: Request,
}

impl OutboundRequest {
    /// A batch whose bytes are a request as they are.
    pub(super) fn joined(batch: Batch) -> OutboundRequest {
        let encoding = batch.meta.encoding;
        outbound(batch, PreparedRequest::default(), encoding)
    }

    /// The same request, with the OTLP that it was written from.
    pub(super) fn instead_of(self, original: Option<Frame>) -> OutboundRequest {
        OutboundRequest { original, ..self }
    }

    /// A piece of one record, which is settled with the others.
    pub(super) fn piece(
        mut frame: Frame,
        encoding: Encoding,
        key: Key,
        meta: Meta,
        items: u64,
        raw_len: usize,
    ) -> OutboundRequest {
        write_prefix(&mut frame, encoding);
        let request =
            Request { signal: key.signal, tenant: key.tenant, encoding, frame: Bytes::from_owner(frame) };
        let (sequences, untranslatable, original) = (Vec::new(), 0, None);
        OutboundRequest { meta, sequences, items, raw_len, untranslatable, original, request }
    }

    /// Whether it can be sent in pieces, where it is found too large.
    pub(super) fn is_cuttable(&self) -> bool {
        let is_long = if self.original.is_some() { self.items > 1 } else { self.raw_len > MIN_REQUEST_SIZE };
        is_long && wire_signal(self.request.signal).is_some_and(joinable)
    }
}

/// Makes a request of `batch`, or returns it.
pub(super) async fn pack(
    batch: Batch,
    form: Option<OutputForm>,
    compressor: &mut Compressor,
    room: &EgressBudget,
) -> Result<OutboundRequest, (Batch, DropReason)> {
    match made(&batch, form, compressor, room).await {
        Ok(made) => Ok(outbound(batch, made, compressor.encoding())),
        Err(why) => Err((batch, why)),
    }
}

/// A batch prepared for sending.
#[derive(Default)]
struct PreparedRequest {
    /// Nothing where that is its own window.
    frame: Option<Frame>,
    untranslatable: u64,
    rewritten: Option<Rewritten>,
}

/// The metadata of a request that was written in another form.
struct Rewritten {
    /// Its length before compression.
    len: usize,
    /// Its source; `None` if that is the batch's own window.
    original: Option<Frame>,
}

async fn made(
    batch: &Batch,
    form: Option<OutputForm>,
    compressor: &mut Compressor,
    room: &EgressBudget,
) -> Result<PreparedRequest, DropReason> {
    if batch.key.way == BodyTreatment::Join {
        return Ok(PreparedRequest::default());
    }
    let mut made = decoded(batch, compressor, room).await?;
    if let Some(form) = form {
        let message = made.frame.as_ref().unwrap_or(&batch.window).get(PREFIX..).unwrap_or_default();
        let Written { frame, len } = json::written(message, batch.key.signal, form, room).await?;
        made.rewritten = Some(Rewritten { len, original: made.frame.replace(frame) });
    }
    if compressor.encoding() != Encoding::Identity {
        let frame = compressed(made.frame.as_ref().unwrap_or(&batch.window), compressor, room).await?;
        made.frame = Some(frame);
    }
    Ok(made)
}

/// A frame that is not compressed, as it goes out: compressed, unless there is no room for that beside it.
pub(super) async fn encoded(
    raw: Frame,
    compressor: &mut Compressor,
    room: &EgressBudget,
) -> (Frame, Encoding) {
    let encoding = compressor.encoding();
    if encoding == Encoding::Identity {
        return (raw, encoding);
    }
    match compressed(&raw, compressor, room).await {
        Ok(frame) => (frame, encoding),
        Err(_) => (raw, Encoding::Identity),
    }
}

/// Makes a request of the one record in `batch`, of which no more is held at a time than must be.
pub(super) async fn alone(
    batch: Batch,
    compressor: &mut Compressor,
    room: &EgressBudget,
) -> Result<OutboundRequest, DropReason> {
    let Batch { key, meta, items, out_len: raw_len, .. } = batch;
    let sequences = batch.sequences.clone();
    let raw = opened(batch, compressor, room).await?;
    let (frame, encoding) = encoded(raw, compressor, room).await;
    let piece = OutboundRequest::piece(frame, encoding, key, meta, items, raw_len);
    Ok(OutboundRequest { sequences, ..piece })
}

/// The one body of `batch`, decoded. What it came as is given back.
pub(super) async fn opened(
    batch: Batch,
    compressor: &mut Compressor,
    room: &EgressBudget,
) -> Result<Frame, DropReason> {
    let [body] = batch.bodies.as_slice() else { return Err(DropReason::Damaged) };
    if body.encoding == Encoding::Identity {
        return Ok(batch.window);
    }
    let mut raw = room.window(PREFIX + body.raw_len + END_SLACK).await?;
    raw.skip(PREFIX);
    let bytes = batch.window.get(body.range.clone()).ok_or(DropReason::Damaged)?;
    compressor.decode(body.encoding, bytes, &mut raw).await.map_err(|_| DropReason::Damaged)?;
    Ok(raw)
}

async fn compressed(
    raw: &Frame,
    compressor: &mut Compressor,
    room: &EgressBudget,
) -> Result<Frame, DropReason> {
    let message = raw.get(PREFIX..).unwrap_or_default();
    // The usual compression ratio of telemetry; the buffer grows if it is exceeded.
    let mut out = room.window(PREFIX + message.len() / 4).await?;
    out.skip(PREFIX);
    compressor.encode(message, &mut out).await?;
    Ok(out)
}

/// The bodies of a batch decoded, one after the other, where they came compressed; and in OTLP, where they are not.
async fn decoded(
    batch: &Batch,
    compressor: &mut Compressor,
    room: &EgressBudget,
) -> Result<PreparedRequest, DropReason> {
    let version = version_of(&batch.meta);
    if version.is_none() && batch.bodies.iter().all(|body| body.encoding == Encoding::Identity) {
        return Ok(PreparedRequest::default());
    }
    let raw_len = batch.bodies.iter().fold(0usize, |sum, body| sum.saturating_add(body.raw_len));
    let mut raw = room.window(PREFIX + raw_len + END_SLACK).await?;
    raw.skip(PREFIX);
    let mut ranges = Vec::with_capacity(if version.is_some() { batch.bodies.len() } else { 0 });
    for body in &batch.bodies {
        let start = raw.len();
        let bytes = batch.window.get(body.range.clone()).ok_or(DropReason::Damaged)?;
        compressor.decode(body.encoding, bytes, &mut raw).await.map_err(|_| DropReason::Damaged)?;
        if version.is_some() {
            ranges.push(start..raw.len());
        }
    }
    let Some(version) = version else {
        return Ok(PreparedRequest { frame: Some(raw), ..PreparedRequest::default() });
    };
    let TranslatedBody { frame, untranslatable } =
        translated(raw, &ranges, version, batch.out_len, room).await?;
    Ok(PreparedRequest { frame: Some(frame), untranslatable, rewritten: None })
}

fn outbound(batch: Batch, made: PreparedRequest, encoding: Encoding) -> OutboundRequest {
    let Batch { key, meta, sequences, items, out_len, window, .. } = batch;
    let PreparedRequest { frame, untranslatable, rewritten } = made;
    let raw_len = rewritten.as_ref().map_or(out_len, |rewritten| rewritten.len);
    let (mut frame, original) = match (frame, rewritten) {
        (Some(frame), Some(rewritten)) => (frame, Some(rewritten.original.unwrap_or(window))),
        (frame, _) => (frame.unwrap_or(window), None),
    };
    write_prefix(&mut frame, encoding);
    let request =
        Request { signal: key.signal, tenant: key.tenant, encoding, frame: Bytes::from_owner(frame) };
    OutboundRequest { meta, sequences, items, raw_len, untranslatable, original, request }
}

/// The gRPC message prefix: whether it is compressed, and its length.
pub(super) fn write_prefix(frame: &mut [u8], encoding: Encoding) {
    // A body's length is a `u32` in the journal, and those that are joined are far shorter.
    let len = u32::try_from(frame.len().saturating_sub(PREFIX)).unwrap_or(u32::MAX);
    let [a, b, c, d] = len.to_be_bytes();
    let prefix = [u8::from(encoding != Encoding::Identity), a, b, c, d];
    frame.iter_mut().zip(prefix).for_each(|(to, from)| *to = from);
}

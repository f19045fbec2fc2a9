//! OTLP: traces, metrics, logs and profiles, whatever transport they came by.
//!
//! Specification: <https://opentelemetry.io/docs/specs/otlp/>. What is journalled is protobuf, in the encoding in which
//! it came. Where single items are bad it is the request without them, and `partial_success` says so; otherwise that
//! is not set.

mod request_head;

pub(crate) use request_head::{BodyFormat, SERVICES, encoding_of, encoding_over_http};

use crate::body::{Inspection, InspectionError, LARGE, LARGE_TO_TRANSLATE, Received, decode};
use crate::clock::now_ns;
use crate::http::{Destination, HttpSource, Policy, Route, without_slash};
use crate::thanos_receive::ThanosReceive;
use futures_util::future::{Either, TryFutureExt as _};
use std::future::ready;
use std::sync::Arc;
use tidegate_admission::otlp::{Media, PartialSuccess};
use tidegate_admission::{AnswerFormat as Answered, DecodeBuffer, Gate, Permit, Rejection, Size, answer};
use tidegate_arena::{Arena, ChargeError, Share};
use tidegate_http1::{Body, Content, Head, Reply};
use tidegate_journal::{Batch, Checkpoints, Encoding, Meta, Protocol, Tenant};
use tidegate_ledger as ledger;
use tidegate_ledger::{OpenRequest, Source};
use tidegate_pool::Pool;
use tidegate_wire::otlp::{self, Counts, DEEP_BYTES, Signal, check};

/// The source `otlp`. Clones are the same source.
#[derive(Clone)]
pub struct Otlp {
    books: Source,
    arena: Arena,
    /// Where large bodies are checked.
    pool: Pool,
    /// The most bytes of a body, as sent and when decompressed.
    max_body: usize,
}

/// The refused part of an accepted request; `None` if all of it was accepted.
pub(crate) type LeftOut = Option<Box<PartialSuccess>>;

/// The answer to what was taken: an empty `Export…ServiceResponse`, unless something of it was rejected.
pub(crate) fn accepted(form: BodyFormat, left_out: LeftOut) -> Reply {
    let Some(partial) = left_out else {
        return match form.media {
            // Said of no bytes too, which the codec does not do by itself.
            Media::Protobuf => Reply::new(200).headers(&[("Content-Type", "application/x-protobuf")]),
            Media::Json => Reply::new(200).content_type(form.media.content_type()).text("{}"),
        };
    };
    let response = partial.response(form.media, form.items());
    Reply::new(200).content_type(form.media.content_type()).content(Content::Owned(response.into()))
}

/// The contents of a checked body.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Checked {
    items: u32,
    raw_len: u32,
    /// The length in which it came.
    as_sent: u32,
    left_out: LeftOut,
}

/// Items that are left out, and what is wrong with the first of them.
#[derive(Default)]
struct InvalidRequest {
    items: u64,
    errors: Vec<String>,
}

impl InvalidRequest {
    fn note(&mut self, items: u64, errors: impl IntoIterator<Item = impl ToString>) {
        self.items += items;
        let room = TOLD.saturating_sub(self.errors.len());
        self.errors.extend(errors.into_iter().take(room).map(|error| error.to_string()));
    }

    /// The message for a request with `accepted` remaining items; it is refused if there are none.
    fn verdict(self, accepted: u64) -> Result<LeftOut, Rejection> {
        if self.errors.is_empty() {
            return Ok(None);
        }
        let InvalidRequest { items: refused, errors } = self;
        let all = refused > errors.len() as u64;
        let mut words = errors.join("; ");
        if accepted == 0 {
            return Err(Rejection::malformed(words));
        }
        if all {
            words.push_str("; and so on");
        }
        Ok(Some(Box::new(PartialSuccess { refused, words })))
    }
}

/// How many errors are reported at most.
const TOLD: usize = 3;

impl Otlp {
    /// The memory of a worker or pool thread, kept between requests, and needed temporarily for deeply nested bodies,
    /// in bytes: a line of the memory plan.
    pub const WORKER_BYTES: usize = decode::BYTES + DEEP_BYTES;

    /// A source that takes bodies of up to `max_body` bytes, as sent and when decompressed, if all sinks can
    /// deliver them. Large ones are checked by `pool`.
    pub fn new(books: Source, arena: Arena, pool: Pool, max_body: usize) -> Otlp {
        Otlp { books, arena, pool, max_body }
    }

    pub(crate) fn books(&self) -> &Source {
        &self.books
    }

    /// A request over HTTP with this head, at any path.
    pub(crate) fn request(self: &Arc<Self>, signal: Signal, head: &Head<'_>) -> Destination {
        let headers = head.sole_header("content-type").and_then(|content_type| {
            head.sole_header("content-encoding").map(|encoding| (content_type, encoding))
        });
        let form = BodyFormat::over_http(signal, head.method(), headers.map_err(|_repeated| ()));
        let route = form
            .map(|form| Route::Otlp(Arc::clone(self), form))
            .map_err(|(refused, media)| (refused, Answered::Otlp(media)));
        let policy = if signal == Signal::Metrics { Policy::SERIES } else { Policy::POST };
        Destination { max_body: self.max_body, policy, route }
    }

    /// The longest body that is received.
    pub(crate) fn max_received(&self) -> usize {
        self.max_body
    }

    /// Answers a request over HTTP. Success is the empty message, unless something was rejected.
    pub(crate) async fn answer(
        &self,
        gate: &Gate,
        passage: &Permit,
        open: OpenRequest,
        form: BodyFormat,
        body: Body,
    ) -> Reply {
        match self.receive(gate, passage, open, form, body.into()).await {
            Ok(left_out) => accepted(form, left_out),
            Err(refused) => answer(refused, Answered::Otlp(form.media)),
        }
    }

    /// Checks a body and gives it to the journal; returns when it is durable.
    pub(crate) async fn receive(
        &self,
        gate: &Gate,
        passage: &Permit,
        open: OpenRequest,
        form: BodyFormat,
        body: Received,
    ) -> Result<LeftOut, Rejection> {
        // Taken apart before the wait for the disk, or a connection's task would keep it over that.
        let (body, content) = match self.inspect(gate, passage, form, body).await {
            Ok(inspected) => inspected,
            Err(refused) => {
                refused.close(open);
                return Err(refused);
            }
        };
        self.keep((gate, passage), open, form, content, body).await
    }

    /// Checks the body, decompressed in memory of its own, which is free again on return.
    async fn inspect(
        &self,
        gate: &Gate,
        passage: &Permit,
        form: BodyFormat,
        mut body: Received,
    ) -> Result<(Received, Checked), Rejection> {
        let most = self.max_body.min(gate.most_decoded());
        let large = if form.media == Media::Json { LARGE_TO_TRANSLATE } else { LARGE };
        let inspection = Inspection { gate, passage, pool: &self.pool, encoding: form.encoding, most, large };
        let mut memory = inspection.begin(&body).await?;
        let checked = inspection
            .here(&mut body, &mut memory, |body, room, most| self.check(gate, form, body, room, most));
        if let Some(checked) = checked {
            return checked.map(|content| (body, content));
        }
        let (source, its_gate) = (self.clone(), gate.clone());
        let check = move |body: &mut Received, room: Option<&mut DecodeBuffer>, most| {
            source.check(&its_gate, form, body, room, most)
        };
        inspection.in_pool(body, memory, check).await
    }

    /// Decompresses the body into `room`, checks it, and translates it if it is JSON. `most` bounds what it
    /// may decompress to.
    fn check(
        &self,
        gate: &Gate,
        form: BodyFormat,
        body: &mut Received,
        mut room: Option<&mut DecodeBuffer>,
        most: usize,
    ) -> Result<Checked, InspectionError> {
        let as_sent = body.range.len();
        if let Some(room) = &mut room {
            decode::decode(gate, form.encoding, body, room, most)?;
        }
        let mut bad = InvalidRequest::default();
        let mut encoding = form.encoding;
        if form.media == Media::Json {
            self.translate(gate, form.signal, body, room.as_deref(), &mut bad)?;
            (room, encoding) = (None, Encoding::Identity);
        }
        let raw: &[u8] = match &room {
            Some(room) => room,
            None => body.bytes(),
        };
        let (counts, raw_len) = match check(form.signal, raw) {
            Ok(counts) => (counts, raw.len()),
            Err(_) => {
                encoding = Encoding::Identity;
                retain_valid(gate, form.signal, body, room, &mut bad)?
            }
        };
        let left_out = bad.verdict(counts.items)?;
        let size = match encoding {
            Encoding::Identity => Size { kept: raw_len, decoded: 0, item: counts.largest_item },
            _ => Size { kept: as_sent, decoded: raw_len, item: counts.largest_item },
        };
        gate.check_deliverable(Protocol::Otlp, form.signals().1, size)?;
        match (u32::try_from(raw_len), u32::try_from(counts.items), u32::try_from(as_sent)) {
            (Ok(raw_len), Ok(items), Ok(as_sent)) => Ok(Checked { items, raw_len, as_sent, left_out }),
            _ => Err(Rejection::too_large(self.max_body).into()),
        }
    }

    /// Makes the body the protobuf that it says, where it is JSON: as it came, or as it was decompressed into `room`.
    fn translate(
        &self,
        gate: &Gate,
        signal: Signal,
        body: &mut Received,
        room: Option<&DecodeBuffer>,
        bad: &mut InvalidRequest,
    ) -> Result<(), Rejection> {
        let malformed = Rejection::malformed;
        let Some(room) = room else {
            let json = body.bytes();
            let beside = ReservedBytes { ingest: body.window.charged(), decode: 0 };
            let mut window = None;
            reserve_protobuf(gate, signal, json, beside, |bytes| {
                self.arena.try_window(Share::Ingest, bytes).map(|taken| window = Some(taken))
            })?;
            let Some(mut window) = window else { return Err(gate.no_memory()) };
            let done = otlp::json::translate(signal, json, window.spare_mut()).map_err(malformed)?;
            window.advance(done.len);
            *body = Received { range: 0..done.len, window };
            bad.note(done.refused, done.errors);
            return Ok(());
        };
        // The received body is no longer needed, so its window is free.
        let Received { window, range } = body;
        window.clear();
        let beside = ReservedBytes { ingest: 0, decode: room.charged() };
        reserve_protobuf(gate, signal, room, beside, |bytes| window.try_reserve(bytes))?;
        let done = otlp::json::translate(signal, room, window.spare_mut()).map_err(malformed)?;
        window.advance(done.len);
        *range = 0..done.len;
        bad.note(done.refused, done.errors);
        Ok(())
    }

    /// Not an `async fn`: a connection's task has no room for the body beside the wait for the disk.
    fn keep<'a>(
        &'a self,
        (gate, passage): (&'a Gate, &'a Permit),
        mut open: OpenRequest,
        form: BodyFormat,
        content: Checked,
        body: Received,
    ) -> impl Future<Output = Result<LeftOut, Rejection>> + Send + 'a {
        let (booked, signal) = form.signals();
        let left_out = content.left_out;
        // JSON was translated, and what was left out is not in what came.
        let as_sent = form.media == Media::Protobuf && left_out.is_none();
        let encoding = if as_sent { form.encoding } else { Encoding::Identity };
        if let Some(partial) = &left_out {
            open.refuse_items(ledger::ItemRefusal::Malformed, partial.refused);
        }
        if content.items == 0 {
            open.accept_empty(booked);
            return Either::Left(ready(Ok(left_out)));
        }
        let Received { window, range } = body;
        let counts = ledger::Counts::of(booked, content.items.into(), content.as_sent.into());
        let meta = Meta {
            tenant: Tenant::NONE,
            signal,
            protocol: Protocol::Otlp,
            encoding,
            items: content.items,
            raw_len: content.raw_len,
            received_at_ns: now_ns(),
        };
        let batch =
            Batch { meta, window, from: range.start, len: range.len(), checkpoints: Checkpoints::default() };
        Either::Right(gate.append(passage, open, counts, batch).map_ok(move |()| left_out))
    }
}

impl HttpSource for Arc<Otlp> {
    fn books(&self) -> &Source {
        &self.books
    }

    fn destination(&self, head: &Head<'_>) -> Option<Destination> {
        Some(Otlp::request(self, BodyFormat::signal_at(without_slash(head.path()))?, head))
    }

    fn grpc(&self) -> Option<Arc<Otlp>> {
        Some(Arc::clone(self))
    }

    fn of_thanos_receive(&self, settings: &ThanosReceive) -> Option<Arc<dyn HttpSource>> {
        Some(settings.otlp(self))
    }
}
/// Makes the body, as it came or as it was decompressed into `room`, one without its bad items. Says what is left, and
/// how long it is.
#[cold]
fn retain_valid(
    gate: &Gate,
    signal: Signal,
    body: &mut Received,
    room: Option<&mut DecodeBuffer>,
    bad: &mut InvalidRequest,
) -> Result<(Counts, usize), Rejection> {
    let Received { window, range } = body;
    let retained = match room {
        None => {
            let raw = window.get_mut(range.clone()).unwrap_or_default();
            let retained = otlp::retain_valid(signal, raw).map_err(Rejection::malformed)?;
            range.end = range.start + retained.len;
            retained
        }
        Some(room) => {
            let retained = otlp::retain_valid(signal, room).map_err(Rejection::malformed)?;
            // The received body is no longer needed, so its window is free. No task waits while it holds decode
            // memory.
            window.clear();
            let kept = room.get(..retained.len).unwrap_or_default();
            let appended = window.append(kept);
            appended.map_err(|refused| {
                gate.memory_rejection(refused, kept.len(), room.charged(), kept.len() / 2)
            })?;
            *range = 0..retained.len;
            retained
        }
    };
    bad.note(retained.refused, retained.errors);
    Ok((retained.counts, retained.len))
}

/// A request's memory while its JSON is translated: of the bodies' share, and of the decode share.
#[derive(Clone, Copy)]
struct ReservedBytes {
    ingest: usize,
    decode: usize,
}

/// Reserves the memory in which `json` is translated into protobuf.
///
/// Holding the body, and perhaps decode memory, it does not wait for that. Where as much as JSON can become is not
/// free, or would be much, it is translated to nowhere first, and then only what it takes is asked for.
fn reserve_protobuf(
    gate: &Gate,
    signal: Signal,
    json: &[u8],
    beside: ReservedBytes,
    mut reserve: impl FnMut(usize) -> Result<(), ChargeError>,
) -> Result<(), Rejection> {
    if json.len() <= LARGE && reserve(otlp::json::max_len(json)).is_ok() {
        return Ok(());
    }
    let needed = otlp::json::measure(signal, json).map_err(Rejection::malformed)?;
    let ingest = beside.ingest.saturating_add(needed);
    reserve(needed.max(1))
        .map_err(|refused| gate.memory_rejection(refused, ingest, beside.decode, json.len() / 2))
}

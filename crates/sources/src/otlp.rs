//! OTLP: traces, metrics, logs and profiles, whatever transport they came by.
//!
//! Specification: <https://opentelemetry.io/docs/specs/otlp/>. A request is taken whole or refused whole, so
//! `partial_success` is never set. What is journalled is protobuf, in the encoding in which it came.

pub(crate) mod decode;
mod form;

pub(crate) use form::{Form, Headers, SERVICES, encoding_of};

use crate::clock::now_ns;
use decode::{LARGE, Unfinished};
use futures_util::future::Either;
use std::future::ready;
use std::ops::Range;
use tidegate_admission::otlp::Media;
use tidegate_admission::{Gate, Passage, Refused, Room, Size};
use tidegate_arena::{Arena, Window};
use tidegate_http1::Reply;
use tidegate_journal::{Batch, Encoding, Meta, Protocol, Tenant};
use tidegate_ledger as ledger;
use tidegate_ledger::{Open, Source};
use tidegate_pool::Pool;
use tidegate_wire::otlp::check;

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

/// A body as it was received.
pub(crate) struct Received {
    pub(crate) window: Window,
    /// Where in the window the body is.
    pub(crate) range: Range<usize>,
}

impl Received {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.window.get(self.range.clone()).unwrap_or_default()
    }
}

/// The answer to what was taken: an empty `Export…ServiceResponse`, since nothing of it was rejected.
pub(crate) fn accepted(media: Media) -> Reply {
    match media {
        // Said of no bytes too, which the codec does not do by itself.
        Media::Protobuf => Reply::new(200).headers(&[("Content-Type", "application/x-protobuf")]),
        Media::Json => Reply::new(200).content_type(media.content_type()).text("{}"),
    }
}

/// What a checked body holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    items: u32,
    raw_len: u32,
    /// The length in which it came.
    as_sent: usize,
}

impl Otlp {
    /// What a worker, or a thread of the pool, keeps for it between requests, in bytes: a line of the memory
    /// plan.
    pub const WORKER_BYTES: usize = decode::BYTES;

    /// A source that takes bodies of up to `max_body` bytes, as sent and when decompressed, if all sinks can
    /// deliver them. Large ones are checked by `pool`.
    pub fn new(books: Source, arena: Arena, pool: Pool, max_body: usize) -> Otlp {
        Otlp { books, arena, pool, max_body }
    }

    pub(crate) fn books(&self) -> &Source {
        &self.books
    }

    /// The longest body that is received.
    pub(crate) fn max_received(&self) -> usize {
        self.max_body
    }

    /// Checks a body and gives it to the journal; returns when it is durable.
    pub(crate) async fn receive(
        &self,
        gate: &Gate,
        passage: &Passage,
        open: Open,
        form: Form,
        body: Received,
    ) -> Result<(), Refused> {
        match self.inspect(gate, passage, form, body).await {
            Ok((body, content)) => self.keep(gate, open, form, content, body).await,
            Err(refused) => {
                open.refuse(refused.reason);
                Err(refused)
            }
        }
    }

    /// Checks the body, decompressed in memory of its own, which is free again on return.
    async fn inspect(
        &self,
        gate: &Gate,
        passage: &Passage,
        form: Form,
        mut body: Received,
    ) -> Result<(Received, Content), Refused> {
        let mut room = None;
        let mut expected = body.range.len();
        if form.encoding != Encoding::Identity {
            expected = decode::expected(form.encoding, body.bytes()).max(1).min(self.most(gate));
            // As much as the body says that it becomes: whoever has decode memory in hand must not wait for
            // more.
            let here = expected.max(body.range.len()) <= LARGE;
            room = Some(gate.room_to_decode(passage, expected, here).await?);
        }
        if expected.max(body.range.len()) <= LARGE {
            let most = room.as_ref().map_or(LARGE, |room| room.most_here(LARGE));
            match self.check(gate, form, &mut body, room.as_mut(), most) {
                Ok(content) => return Ok((body, content)),
                Err(Unfinished::Refused(refused)) => return Err(refused),
                // It is larger than it said.
                Err(Unfinished::Larger) => {}
            }
        }
        self.inspect_large(gate, form, body, room).await
    }

    /// The same by the pool.
    fn inspect_large(
        &self,
        gate: &Gate,
        form: Form,
        mut body: Received,
        mut room: Option<Room>,
    ) -> impl Future<Output = Result<(Received, Content), Refused>> + Send {
        let (source, its_gate) = (self.clone(), gate.clone());
        let most = self.most(gate);
        let look = move || {
            let content = source.check(&its_gate, form, &mut body, room.as_mut(), most)?;
            Ok((body, content))
        };
        decode::in_pool(&self.pool, gate, most, look)
    }

    /// Decompresses the body into `room`, checks it, and translates it if it is JSON. `most` bounds what it
    /// may decompress to.
    fn check(
        &self,
        gate: &Gate,
        form: Form,
        body: &mut Received,
        room: Option<&mut Room>,
        most: usize,
    ) -> Result<Content, Unfinished> {
        let as_sent = body.range.len();
        let decoded = match room {
            None => body.bytes(),
            Some(room) => {
                decode::decode(gate, form.encoding, body.bytes(), room, most)?;
                &**room
            }
        };
        let translated = match form.media {
            Media::Protobuf => None,
            Media::Json => Some(decode::translate(&self.arena, gate, form.signal, decoded)?),
        };
        let raw = translated.as_deref().unwrap_or(decoded);
        let counts = check(form.signal, raw).map_err(Refused::malformed)?;
        let raw_len = raw.len();
        let compressed =
            if form.is_kept_as_sent() && form.encoding != Encoding::Identity { as_sent } else { 0 };
        let size = match compressed {
            0 => Size { kept: raw_len, decoded: 0, item: 0 },
            kept => Size { kept, decoded: raw_len, item: 0 },
        };
        gate.judge(Protocol::Otlp, form.signals().1, size)?;
        if let Some(window) = translated {
            *body = Received { range: 0..window.len(), window };
        }
        match (u32::try_from(raw_len), u32::try_from(counts.items)) {
            (Ok(raw_len), Ok(items)) => Ok(Content { items, raw_len, as_sent }),
            _ => Err(Refused::too_large(self.max_body).into()),
        }
    }

    /// The most bytes that a body may decompress to now.
    fn most(&self, gate: &Gate) -> usize {
        self.max_body.min(gate.most_decoded())
    }

    /// Not an `async fn`: a connection's task has no room for the body beside the wait for the disk.
    fn keep(
        &self,
        gate: &Gate,
        open: Open,
        form: Form,
        content: Content,
        body: Received,
    ) -> impl Future<Output = Result<(), Refused>> + Send {
        let (booked, signal) = form.signals();
        if content.items == 0 {
            open.accept_empty(booked);
            return Either::Left(ready(Ok(())));
        }
        let Received { window, range } = body;
        let counts =
            ledger::Counts { signal: booked, items: u64::from(content.items), bytes: content.as_sent as u64 };
        let meta = Meta {
            tenant: Tenant::NONE,
            signal,
            protocol: Protocol::Otlp,
            encoding: if form.is_kept_as_sent() { form.encoding } else { Encoding::Identity },
            items: content.items,
            raw_len: content.raw_len,
            received_at_ns: now_ns(),
        };
        Either::Right(gate.append(open, counts, Batch { meta, window, from: range.start, len: range.len() }))
    }
}

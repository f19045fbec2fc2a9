//! Prometheus Remote-Write 1.0 and 2.0.
//!
//! Specifications: <https://prometheus.io/docs/specs/prw/remote_write_spec/> and
//! <https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/> (2.0-rc.4). The schema is chosen by the
//! Content-Type alone. All of a request is taken or nothing of it.

mod form;

pub(crate) use form::Form;

use crate::clock::now_ns;
use crate::otlp::decode::in_pool;
use futures_util::future::Either;
use std::cell::RefCell;
use std::future::ready;
use tidegate_admission::{Gate, Passage, Protocol, Refused, Room, Size, WRITTEN, answer};
use tidegate_arena::{Arena, Charge, Share};
use tidegate_http1::{Body, Head, Reply};
use tidegate_journal::{Batch, Encoding, Meta, Protocol as Layout, Signal, Tenant};
use tidegate_ledger as ledger;
use tidegate_ledger::{Open, Source};
use tidegate_pool::Pool;
use tidegate_wire::remote_write::{Counts, Limits, Symbols, Version, check};
use tidegate_wire::snappy;

/// Bodies that decompress to more than this are checked by the pool: they would hold up the other connections of
/// their worker for milliseconds.
const LARGE: usize = 4 << 20;
/// Scratch for symbol tables that a worker keeps, in bytes.
const KEPT_SCRATCH: usize = 64 << 10;

thread_local! {
    /// Each thread's symbol table of 2.0 bodies. What it takes beyond [`KEPT_SCRATCH`] is charged.
    static SYMBOLS: RefCell<Symbols> = RefCell::new(Symbols::new());
}

/// The source `prometheus_remote_write`.
#[derive(Clone)]
pub struct RemoteWrite {
    books: Source,
    arena: Arena,
    /// Where large bodies are checked.
    pool: Pool,
    /// The most bytes that a body may decompress to.
    max_body: usize,
    limits: Limits,
}

impl RemoteWrite {
    /// Where it is served: as Prometheus, and as Thanos calls it.
    pub const PATHS: [&str; 2] = ["/api/v1/write", "/api/v1/receive"];
    /// What a worker, or a thread of the pool, keeps for it between requests, in bytes: a line of the memory plan.
    pub const WORKER_BYTES: usize = KEPT_SCRATCH;

    /// A source that takes bodies of up to `max_body` bytes when decompressed, if all sinks can deliver them.
    /// Large ones are checked by `pool`.
    pub fn new(books: Source, arena: Arena, pool: Pool, max_body: usize) -> RemoteWrite {
        RemoteWrite { books, arena, pool, max_body, limits: Limits::default() }
    }

    pub(crate) fn books(&self) -> &Source {
        &self.books
    }

    /// The longest body that is received: what `max_body` bytes can take when Snappy finds nothing to
    /// compress.
    pub(crate) fn max_received(&self) -> usize {
        snappy::max_compressed_len(self.max_body).unwrap_or(usize::MAX)
    }

    /// What the head says about the body.
    pub(crate) fn form(head: &Head<'_>) -> Result<Form, Refused> {
        form::form(head)
    }

    /// Checks a body, gives it to the journal, and answers when it is durable.
    pub(crate) async fn receive(
        &self,
        gate: &Gate,
        passage: &Passage,
        open: Open,
        form: Form,
        body: Body,
    ) -> Reply {
        let refused = match self.inspect((gate, passage), form.version, body).await {
            Ok((body, content)) => match self.keep(gate, open, form.version, content, body).await {
                Ok(()) => return accepted(&content.counts),
                Err(refused) => refused,
            },
            Err(refused) => {
                open.refuse(refused.reason);
                refused
            }
        };
        answer(refused, Protocol::RemoteWrite)
    }

    /// Decompresses the body into memory of its own and checks it; that memory is free again on return.
    async fn inspect(
        &self,
        (gate, passage): (&Gate, &Passage),
        version: Version,
        body: Body,
    ) -> Result<(Body, Content), Refused> {
        let raw_len = self.claimed(gate, version, &body)?;
        // With what a symbol table usually takes: whoever has a body in hand must not wait for more.
        let scratch = if version == Version::V2 { raw_len / 4 } else { 0 };
        let bytes = (raw_len + scratch).min(gate.most_decoded());
        let room = gate.room_to_decode(passage, bytes, raw_len <= LARGE).await?;
        if raw_len <= LARGE {
            let content = self.check(gate, version, &body, room, raw_len)?;
            return Ok((body, content));
        }
        let (source, its_gate) = (self.clone(), gate.clone());
        let look = move || {
            let content = source.check(&its_gate, version, &body, room, raw_len)?;
            Ok((body, content))
        };
        in_pool(&self.pool, gate, raw_len, look).await
    }

    /// The length that the preamble claims, when the body can hold it and it is allowed.
    fn claimed(&self, gate: &Gate, version: Version, body: &[u8]) -> Result<usize, Refused> {
        let most = self.max_body.min(gate.most_decoded());
        let claimed = snappy::decoded_len(body).map_err(Refused::malformed)?;
        if claimed > most {
            return Err(Refused::too_large(most));
        }
        gate.judge(layout(version), Signal::Metrics, Size { kept: body.len(), decoded: claimed, item: 0 })?;
        snappy::plausible(body).map_err(Refused::malformed)
    }

    fn check(
        &self,
        gate: &Gate,
        version: Version,
        body: &[u8],
        mut room: Room,
        raw_len: usize,
    ) -> Result<Content, Refused> {
        let decoded = snappy::decode(body, room.spare_mut()).map_err(Refused::malformed)?;
        room.advance(decoded);
        let scratch = if version == Version::V2 { Symbols::bytes_for(&room) } else { 0 };
        let size = Size { kept: body.len(), decoded, item: 0 };
        gate.judge(layout(version), Signal::Metrics, size)?;
        // Held until the symbol table has shrunk again.
        let _charge = self.pay_scratch(gate, &mut room, scratch)?;
        let counts = SYMBOLS.with_borrow_mut(|symbols| {
            let counts = check(version, &room, &self.limits, symbols);
            symbols.shrink(KEPT_SCRATCH);
            counts
        });
        let counts = counts.map_err(Refused::malformed)?;
        match (u32::try_from(raw_len), u32::try_from(items(&counts))) {
            (Ok(raw_len), Ok(items)) => Ok(Content { counts, raw_len, items }),
            _ => Err(Refused::too_large(self.max_body)),
        }
    }

    /// Charges what a symbol table takes beyond what the worker keeps for it and what is charged behind the
    /// decompressed body. Not waited for: decode memory is in hand.
    fn pay_scratch(&self, gate: &Gate, room: &mut Room, bytes: usize) -> Result<Option<Charge>, Refused> {
        if bytes <= room.spare().max(KEPT_SCRATCH) {
            return Ok(None);
        }
        if (room.charged() + bytes) as u64 > self.arena.ceiling(Share::Decode) {
            return Err(Refused::too_large(self.max_body / 2));
        }
        room.beside(gate, bytes).map(Some)
    }

    /// Not an `async fn`: a connection's task has no room for the body beside the wait for the disk.
    fn keep(
        &self,
        gate: &Gate,
        open: Open,
        version: Version,
        content: Content,
        body: Body,
    ) -> impl Future<Output = Result<(), Refused>> + Send {
        if content.items == 0 {
            open.accept_empty(ledger::Signal::Metrics);
            return Either::Left(ready(Ok(())));
        }
        let (window, range) = body.into_parts();
        let counts = ledger::Counts {
            signal: ledger::Signal::Metrics,
            items: u64::from(content.items),
            bytes: range.len() as u64,
        };
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Metrics,
            protocol: layout(version),
            encoding: Encoding::Snappy,
            items: content.items,
            raw_len: content.raw_len,
            received_at_ns: now_ns(),
        };
        Either::Right(gate.append(open, counts, Batch { meta, window, from: range.start, len: range.len() }))
    }
}

/// What a checked body holds.
#[derive(Debug, Clone, Copy)]
struct Content {
    counts: Counts,
    raw_len: u32,
    items: u32,
}

/// How the journal names a body of this version.
const fn layout(version: Version) -> Layout {
    match version {
        Version::V1 => Layout::RemoteWrite1,
        Version::V2 => Layout::RemoteWrite2,
    }
}

/// Everything that a sink can deliver or lose.
fn items(counts: &Counts) -> u64 {
    counts.samples + counts.histograms + counts.exemplars + counts.metadata
}

fn accepted(counts: &Counts) -> Reply {
    let written = [counts.samples, counts.histograms, counts.exemplars];
    // Each is at most the number of items, which fits.
    Reply::new(204).numbers(WRITTEN, written.map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
}

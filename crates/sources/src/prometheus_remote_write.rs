//! Prometheus Remote-Write 1.0 and 2.0.
//!
//! Specifications: <https://prometheus.io/docs/specs/prw/remote_write_spec/> and
//! <https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/> (2.0-rc.4). The schema is chosen by the
//! Content-Type alone. What is good of a request is taken; of the rest the answer says what it is and why.

mod compressed;
mod request_head;

pub(crate) use request_head::BodyFormat;

use crate::body::{LARGE, Received, in_pool};
use crate::clock::now_ns;
use crate::http::{Destination, HttpSource, Policy, Route, without_slash};
use crate::thanos_receive::ThanosReceive;
use compressed::Compressed;
use futures_util::future::Either;
use std::cell::RefCell;
use std::future::ready;
use std::sync::Arc;
use tidegate_admission::{AnswerFormat, DecodeBuffer, Gate, Permit, Rejection, Size, WRITTEN, answer};
use tidegate_arena::{Arena, Charge, ChargeError as NoMemory, Share};
use tidegate_http1::{Body, Head, Reply};
use tidegate_journal::{Batch, Checkpoints, Encoding, Meta, Protocol as Layout, Signal, Tenant};
use tidegate_ledger as ledger;
use tidegate_ledger::{OpenRequest, Source};
use tidegate_pool::Pool;
use tidegate_wire::remote_write::{Counts, InspectionReport, Limits, Symbols, Version, inspect, repair};
use tidegate_wire::snappy;

/// Scratch for symbol tables that a worker keeps, in bytes.
const KEPT_SCRATCH: usize = 64 << 10;
/// Uncharged bytes for sorting the labels of a series: enough for the default limits.
const SORTING: usize = 40 << 10;

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
    /// The status of success.
    success: u16,
}

impl RemoteWrite {
    /// Where it is served: as Prometheus, and as Thanos calls it.
    pub const PATHS: [&str; 2] = ["/api/v1/write", "/api/v1/receive"];
    /// The memory of a worker or pool thread, kept between requests, in bytes: a line of the memory plan.
    pub const WORKER_BYTES: usize = KEPT_SCRATCH + SORTING;

    /// A source that takes bodies of up to `max_body` bytes when decompressed, if all sinks can deliver them.
    /// Large ones are checked by `pool`.
    pub fn new(books: Source, arena: Arena, pool: Pool, max_body: usize) -> RemoteWrite {
        RemoteWrite { books, arena, pool, max_body, limits: Limits::default(), success: 204 }
    }

    /// The same, with other limits on what a body may hold.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> RemoteWrite {
        self.limits = limits;
        self
    }

    /// The same, with 200 for success instead of 204, as Thanos Receive answers.
    #[must_use]
    pub(crate) fn answering_200(mut self) -> RemoteWrite {
        self.success = 200;
        self
    }

    /// A request with this head, at any path.
    pub(crate) fn request(self: &Arc<Self>, head: &Head<'_>) -> Destination {
        let route = request_head::form(head)
            .map(|form| Route::RemoteWrite(Arc::clone(self), form))
            .map_err(|refused| (refused, AnswerFormat::RemoteWrite));
        // The size of `max_body` bytes if Snappy finds nothing to compress.
        let max_body = snappy::max_compressed_len(self.max_body).unwrap_or(usize::MAX);
        Destination { max_body, policy: Policy::SERIES, route }
    }

    /// Checks a body, gives what is good of it to the journal, and answers when that is durable. `counted` gets what is
    /// accepted of it, before that.
    // A function and no reference to what counts: every connection's task would have room for one.
    pub(crate) async fn receive(
        &self,
        gate: &Gate,
        passage: &Permit,
        mut open: OpenRequest,
        form: BodyFormat,
        body: Body,
        counted: impl FnOnce(&Counts),
    ) -> Reply {
        let refused = match self.inspect((gate, passage), form.version, body).await {
            Ok((body, content)) => {
                let Content { counts, raw_len, items, refused } = content;
                counted(&counts);
                open.refuse_items(
                    ledger::ItemRefusal::Malformed,
                    refused.as_ref().map_or(0, |refused| refused.items),
                );
                // No more than this is kept over the wait for the disk.
                let written = Written::of(&counts, refused);
                match self.keep((gate, passage), open, form.version, (raw_len, items), body).await {
                    Ok(()) => return written.answer(self.success),
                    Err(refused) => refused,
                }
            }
            Err(refused) => {
                refused.close(open);
                refused
            }
        };
        answer(refused, AnswerFormat::RemoteWrite)
    }

    /// Decompresses the body into memory of its own and checks it; that memory is free again on return.
    async fn inspect(
        &self,
        (gate, passage): (&Gate, &Permit),
        version: Version,
        body: Body,
    ) -> Result<(Received, Content), Rejection> {
        let raw_len = self.claimed(gate, version, &body)?;
        // With what a symbol table usually takes: whoever has a body in hand must not wait for more.
        let scratch = if version == Version::V2 { raw_len / 4 } else { 0 };
        let bytes = (raw_len + scratch).min(gate.most_decoded());
        let room = gate.decode_buffer(passage, bytes, raw_len <= LARGE).await?;
        let body = Received::from(body);
        if raw_len <= LARGE {
            return self.check(gate, version, body, room);
        }
        let (source, its_gate) = (self.clone(), gate.clone());
        let look = move || Ok(source.check(&its_gate, version, body, room)?);
        in_pool(&self.pool, gate, raw_len, look).await
    }

    /// The length that the preamble claims, when the body can hold it and it is allowed.
    fn claimed(&self, gate: &Gate, version: Version, body: &[u8]) -> Result<usize, Rejection> {
        let most = self.max_body.min(gate.most_decoded());
        let claimed = snappy::decoded_len(body).map_err(Rejection::malformed)?;
        if claimed > most {
            return Err(Rejection::too_large(most));
        }
        gate.check_deliverable(
            layout(version),
            Signal::Metrics,
            Size { kept: body.len(), decoded: claimed, item: 0 },
        )?;
        snappy::plausible(body).map_err(Rejection::malformed)
    }

    fn check(
        &self,
        gate: &Gate,
        version: Version,
        mut body: Received,
        mut room: DecodeBuffer,
    ) -> Result<(Received, Content), Rejection> {
        let decoded = snappy::decode(body.bytes(), room.spare_mut()).map_err(Rejection::malformed)?;
        room.advance(decoded);
        let scratch = if version == Version::V2 { Symbols::bytes_for(&room) } else { 0 };
        // Held until the symbol table has shrunk again.
        let _charge = self.pay_scratch(gate, &mut room, scratch)?;
        let excess = self.limits.bytes_to_sort().saturating_sub(SORTING);
        let _sorting = if excess > 0 { Some(self.pay(gate, &mut room, excess)?) } else { None };
        let (inspected, raw_len) = SYMBOLS.with_borrow_mut(|symbols| {
            let looked = inspect(version, &room, &self.limits, symbols).map_err(Rejection::malformed);
            let looked = looked.and_then(|inspected| {
                let raw_len = match inspected.needs_repair() && inspected.counts.items() > 0 {
                    true => self.repair(gate, version, &mut body, &mut room, symbols)?,
                    false => decoded,
                };
                Ok((inspected, raw_len))
            });
            symbols.shrink(KEPT_SCRATCH);
            looked
        })?;
        let InspectionReport { counts, rejected: refused, largest_item: item, .. } = inspected;
        if counts.items() > 0 {
            let size = Size { kept: body.range.len(), decoded: raw_len, item };
            gate.check_deliverable(layout(version), Signal::Metrics, size)?;
        }
        if counts.items() == 0 && !refused.is_empty() {
            return Err(Rejection::malformed(refused.to_string().trim_end()));
        }
        let refused = (!refused.is_empty()).then(|| {
            let items = refused.counts.items();
            Box::new(PartialRefusal {
                items,
                words: format!("{}{refused}", PartialRefusal::beginning(&counts, items)),
            })
        });
        match (u32::try_from(raw_len), u32::try_from(counts.items())) {
            (Ok(raw_len), Ok(items)) => Ok((body, Content { counts, raw_len, items, refused })),
            _ => Err(Rejection::too_large(self.max_body)),
        }
    }

    /// Puts what is accepted of `room` in the place of the body as it came, compressed. Says how long it is when it is
    /// decompressed.
    #[cold]
    fn repair(
        &self,
        gate: &Gate,
        version: Version,
        body: &mut Received,
        room: &mut DecodeBuffer,
        symbols: &mut Symbols,
    ) -> Result<usize, Rejection> {
        let _charge = self.pay(gate, room, Compressed::BYTES + self.limits.bytes_to_sort())?;
        let mut out = Compressed::over(&mut body.window);
        let repaired = repair(version, room, &self.limits, symbols, &mut out);
        let (raw_len, range) = out.finish().map_err(|refused| match refused {
            NoMemory::Never { .. } => Rejection::too_large(self.max_body / 2),
            NoMemory::Short | NoMemory::Crowded => gate.no_memory(),
        })?;
        repaired.map_err(Rejection::malformed)?;
        body.range = range;
        Ok(raw_len)
    }

    /// Charges what a symbol table takes beyond what the worker keeps for it and what is charged behind the
    /// decompressed body. Not waited for: decode memory is in hand.
    fn pay_scratch(
        &self,
        gate: &Gate,
        room: &mut DecodeBuffer,
        bytes: usize,
    ) -> Result<Option<Charge>, Rejection> {
        if bytes <= room.spare().max(KEPT_SCRATCH) {
            return Ok(None);
        }
        self.pay(gate, room, bytes).map(Some)
    }

    /// Charges `bytes` beside the decompressed body. Not waited for either.
    fn pay(&self, gate: &Gate, room: &mut DecodeBuffer, bytes: usize) -> Result<Charge, Rejection> {
        if (room.charged() + bytes) as u64 > self.arena.ceiling(Share::Decode) {
            return Err(Rejection::too_large(self.max_body / 2));
        }
        room.beside(gate, bytes)
    }

    /// Not an `async fn`: a connection's task has no room for the body beside the wait for the disk.
    fn keep<'a>(
        &'a self,
        (gate, passage): (&'a Gate, &'a Permit),
        open: OpenRequest,
        version: Version,
        (raw_len, items): (u32, u32),
        body: Received,
    ) -> impl Future<Output = Result<(), Rejection>> + Send + 'a {
        if items == 0 {
            open.accept_empty(ledger::Signal::Metrics);
            return Either::Left(ready(Ok(())));
        }
        let Received { window, range } = body;
        let counts = ledger::Counts::of(ledger::Signal::Metrics, u64::from(items), range.len() as u64);
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Metrics,
            protocol: layout(version),
            encoding: Encoding::Snappy,
            items,
            raw_len,
            received_at_ns: now_ns(),
        };
        let batch =
            Batch { meta, window, from: range.start, len: range.len(), checkpoints: Checkpoints::default() };
        Either::Right(gate.append(passage, open, counts, batch))
    }
}

impl HttpSource for Arc<RemoteWrite> {
    fn books(&self) -> &Source {
        &self.books
    }

    fn destination(&self, head: &Head<'_>) -> Option<Destination> {
        if !RemoteWrite::PATHS.contains(&without_slash(head.path())) {
            return None;
        }
        Some(self.request(head))
    }

    fn of_thanos_receive(&self, settings: &ThanosReceive) -> Option<Arc<dyn HttpSource>> {
        Some(settings.remote_write(self))
    }
}

/// The contents of a checked body.
#[derive(Debug)]
struct Content {
    counts: Counts,
    raw_len: u32,
    items: u32,
    /// The refused part, if any.
    refused: Option<Box<PartialRefusal>>,
}

/// How the journal names a body of this version.
const fn layout(version: Version) -> Layout {
    match version {
        Version::V1 => Layout::RemoteWrite1,
        Version::V2 => Layout::RemoteWrite2,
    }
}

/// The refused part of a request whose rest is accepted.
#[derive(Debug)]
struct PartialRefusal {
    items: u64,
    /// The text of the answer.
    words: String,
}

impl PartialRefusal {
    fn beginning(counts: &Counts, refused: u64) -> String {
        let accepted = counts.items();
        format!("{accepted} items were accepted and {refused} refused; do not send them again as they are:\n")
    }
}

/// The answer after everything accepted is durable.
struct Written {
    /// Samples, histograms and exemplars.
    counts: [u32; 3],
    refused: Option<Box<PartialRefusal>>,
}

impl Written {
    fn of(counts: &Counts, refused: Option<Box<PartialRefusal>>) -> Written {
        let Counts { samples, histograms, exemplars, .. } = *counts;
        // Each is at most the number of items, which fits.
        let counts = [samples, histograms, exemplars].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Written { counts, refused }
    }

    /// By the specification it is 400 when anything was not accepted, which clients do not send again.
    fn answer(self, success: u16) -> Reply {
        match self.refused {
            None => Reply::new(success).numbers(WRITTEN, self.counts),
            Some(refused) => Reply::new(400).content(refused.words).numbers(WRITTEN, self.counts),
        }
    }
}

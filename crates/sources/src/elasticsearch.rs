//! Elasticsearch, as far as those go who send documents to it: `_bulk`, and what clients ask before they send.
//!
//! A body is taken as it came, still compressed if it was; it is written anew only where its address said
//! something that its actions do not (an index, a pipeline), or where a document in it is no JSON: that one is
//! left out, and the answer says so. `design/elasticsearch.md` has the reasons.

mod answer;
mod client_checks;
mod fields;
mod forward;
mod request;
mod request_head;
mod rewrite;
mod rights;

pub use forward::Destination as BulkDestination;

use crate::body::{Inspection, InspectionError, LARGE, Received, decode};
use crate::clock::now_ns;
use crate::http::{Answering, Destination, Exchange, HttpSource, Policy, Route};
use answer::{Answer, ReservedBytes};
use request::Request;
use request_head::{ALLOWED, Bulk, RequestHead};
use rewrite::Defaults;
use rights::Guard;
use std::sync::Arc;
use tidegate_admission::access::{BulkRights, Identity};
use tidegate_admission::{AnswerFormat, DecodeBuffer, Gate, Permit, Rejection, Size, answer};
use tidegate_arena::{Arena, Share, Window};
use tidegate_http1::{Body, Head, Reply};
use tidegate_journal::{Batch, Checkpoints, Encoding, Meta, Protocol as Layout, Signal, Tenant};
use tidegate_ledger as ledger;
use tidegate_ledger::{OpenRequest, Refusal, Source};
use tidegate_pool::Pool;
use tidegate_wire::bulk::{Counts, Field, Item, Kind, items};
use tidegate_wire::output::SliceOutput;

/// The longest body of a request that is not a `_bulk`: templates with all fields of a Beat have about a MiB.
const SETUP: usize = 8 << 20;

/// The source `elasticsearch`. Clones are the same source.
#[derive(Clone)]
pub struct Elasticsearch(Arc<Inner>);

struct Inner {
    books: Source,
    arena: Arena,
    /// Where large bodies are checked.
    pool: Pool,
    settings: Settings,
}

/// How the source is served.
#[derive(Clone)]
pub struct Settings {
    /// Under which path, where other sources have the same address: begins with `/`, and does not end with it.
    pub prefix: String,
    /// The version that it says it has.
    pub version: String,
    /// The most bytes of a body, as sent and when decompressed.
    pub max_body: usize,
    /// The cluster that answers a `_bulk`, instead of the journal.
    pub destination: Option<BulkDestination>,
}

/// The contents of a checked body.
struct Content {
    items: u32,
    /// Documents that are none.
    left_out: u64,
    /// Items that their sender may not have done.
    denied: u64,
    raw_len: u32,
    /// As the journal gets it.
    encoding: Encoding,
    /// The length in which it came.
    as_sent: usize,
    answer: Window,
}

impl Elasticsearch {
    /// A source whose large bodies are checked by `pool`.
    pub fn new(books: Source, arena: Arena, pool: Pool, settings: Settings) -> Elasticsearch {
        Elasticsearch(Arc::new(Inner { books, arena, pool, settings }))
    }

    /// The request's metadata from the head; `None` if its path is not under `prefix`.
    fn destination_behind(&self, prefix: &str, head: &Head<'_>) -> Option<Destination> {
        let path = head.path().strip_prefix(prefix)?;
        if !path.is_empty() && !path.starts_with('/') {
            return None;
        }
        let form = RequestHead::of(head, path, prefix.len());
        let max_body = match &form {
            Ok(RequestHead { route: request_head::Route::Bulk(_), .. }) => self.0.settings.max_body,
            _ => self.0.settings.max_body.min(SETUP),
        };
        let request = |form| Sent { source: self.clone(), form, granted: Identity::default() };
        let route = form
            .map(|form| Route::Boxed(Box::new(request(form))))
            .map_err(|refused| (refused, AnswerFormat::Elastic));
        let journalled = self.0.settings.destination.is_none();
        Some(Destination { max_body, policy: Policy { allowed: ALLOWED, journalled, ..Policy::POST }, route })
    }

    /// Answers a request: of a `_bulk` when it is durable.
    async fn receive(
        &self,
        gate: &Gate,
        (passage, granted): (&Permit, Identity),
        open: OpenRequest,
        form: RequestHead,
        body: Body,
    ) -> Reply {
        let (window, range) = body.into_parts();
        let bulk = match form.route {
            request_head::Route::Bulk(bulk) => bulk,
            request_head::Route::Probe => {
                open.accept_empty(ledger::Signal::Logs);
                let head = window.get(..range.start).unwrap_or_default();
                return client_checks::answer(&Request::of(head, form.prefix), &self.0.settings);
            }
        };
        let rights = gate.bulk_rights(&granted, &open);
        let received = Received { window, range };
        if let Some(destination) = &self.0.settings.destination {
            return Box::pin(self.forward(
                destination,
                (gate, passage, rights),
                open,
                (form, bulk),
                received,
            ))
            .await;
        }
        let outcome = match self.inspect((gate, passage, rights), form, bulk, received).await {
            Ok((body, content)) => self.keep((gate, passage), open, content, body).await,
            Err(refused) => {
                refused.close(open);
                Err(refused)
            }
        };
        match outcome {
            Ok(window) => answer::reply().content(window),
            Err(refused) => answer(refused, AnswerFormat::Elastic),
        }
    }

    /// Checks the body, decompressed in memory of its own, which is free again on return.
    async fn inspect(
        &self,
        (gate, passage, rights): (&Gate, &Permit, BulkRights),
        form: RequestHead,
        bulk: Bulk,
        mut body: Received,
    ) -> Result<(Received, Content), Rejection> {
        let most = self.0.settings.max_body.min(gate.most_decoded());
        let inspection =
            Inspection { gate, passage, pool: &self.0.pool, encoding: bulk.encoding, most, large: LARGE };
        let mut memory = inspection.begin(&body).await?;
        let checked = inspection.here(&mut body, &mut memory, |body, room, most| {
            self.check((gate, &rights), form, bulk, body, room, most)
        });
        if let Some(checked) = checked {
            return checked.map(|content| (body, content));
        }
        let (source, its_gate) = (self.clone(), gate.clone());
        let check = move |body: &mut Received, room: Option<&mut DecodeBuffer>, most| {
            source.check((&its_gate, &rights), form, bulk, body, room, most)
        };
        inspection.in_pool(body, memory, check).await
    }

    /// Decompresses the body into `room`, checks it, answers it, and writes it anew where that is needed. `most`
    /// bounds what it may decompress to.
    fn check(
        &self,
        (gate, rights): (&Gate, &BulkRights),
        form: RequestHead,
        bulk: Bulk,
        body: &mut Received,
        room: Option<&mut DecodeBuffer>,
        most: usize,
    ) -> Result<Content, InspectionError> {
        let as_sent = body.range.len();
        let room = match room {
            None => None,
            Some(room) => {
                decode::decode(gate, bulk.encoding, body, room, most)?;
                Some(&*room)
            }
        };
        let raw: &[u8] = match room {
            Some(room) => room,
            None => body.bytes(),
        };
        let head = body.window.get(..body.range.start).unwrap_or_default();
        let defaults = Defaults::of(&Request::of(head, form.prefix));
        let beside = ReservedBytes {
            ingest: body.window.charged(),
            decode: room.map_or(0, DecodeBuffer::charged),
            len: raw.len(),
        };
        let mut guard = Guard::new(rights);
        guard.request(&defaults)?;
        let mut answer = Answer::new(&self.0.arena, gate, bulk.fields, beside)?;
        let (mut taken, mut left_out, mut denied) = (Counts::default(), 0u64, 0u64);
        let mut anew = false;
        for item in items(raw) {
            let item = item.map_err(Rejection::malformed)?;
            can_be_sent(&item, &defaults)?;
            if let Err(error) = item.check() {
                left_out += 1;
                answer.reject(gate, &item, &defaults, error)?;
                continue;
            }
            if let Some(why) = guard.look(&item, &defaults) {
                denied += 1;
                answer.deny(gate, &item, &defaults, why)?;
                continue;
            }
            let missing = defaults.missing_len(&item.action);
            anew |= missing > 0 || item.action.has(Field::Type);
            taken.count(&item, missing);
            answer.accept(gate, &item, &defaults)?;
        }
        if taken.items + left_out + denied == 0 {
            return Err(Rejection::new(Refusal::Malformed, "request body is required\n").into());
        }
        let mut encoding = bulk.encoding;
        let mut raw_len = raw.len();
        if taken.items > 0 && (anew || left_out + denied > 0) {
            self.write_anew((gate, rights), body, room, &defaults, (taken.bytes, answer.beside()))?;
            (encoding, raw_len) = (Encoding::Identity, body.range.len());
        }
        let size = match encoding {
            Encoding::Identity => Size { kept: raw_len, decoded: 0, item: taken.largest_item },
            _ => Size { kept: as_sent, decoded: raw_len, item: taken.largest_item },
        };
        gate.check_deliverable(Layout::Bulk, Signal::Logs, size)?;
        let answer = answer.finish(gate)?;
        match (u32::try_from(raw_len), u32::try_from(taken.items)) {
            (Ok(raw_len), Ok(items)) => {
                Ok(Content { items, left_out, denied, raw_len, encoding, as_sent, answer })
            }
            _ => Err(Rejection::too_large(self.0.settings.max_body).into()),
        }
    }

    /// Makes the body, as it came or as it was decompressed into `room`, one with what its actions lack and without
    /// documents that are none, or may not be sent: of at most `len` bytes.
    ///
    /// Holding the body, and perhaps decode memory, it does not wait for memory.
    fn write_anew(
        &self,
        (gate, rights): (&Gate, &BulkRights),
        body: &mut Received,
        room: Option<&DecodeBuffer>,
        defaults: &Defaults,
        (len, beside): (usize, ReservedBytes),
    ) -> Result<(), InspectionError> {
        let len = len.max(1);
        let Some(room) = room else {
            let window = self.0.arena.try_window(Share::Ingest, len);
            let mut window = window.map_err(|refused| beside.short(gate, refused, len))?;
            written((gate, rights), body.bytes(), defaults, &mut window)?;
            *body = Received { range: 0..window.len(), window };
            return Ok(());
        };
        // The received body is no longer needed, so its window is free.
        let Received { window, range } = body;
        window.clear();
        let beside = ReservedBytes { ingest: beside.ingest.saturating_sub(window.charged()), ..beside };
        window.try_reserve(len).map_err(|refused| beside.short(gate, refused, len))?;
        written((gate, rights), room, defaults, window)?;
        *range = 0..window.len();
        Ok(())
    }

    /// Gives the body to the journal; returns the answer when it is durable.
    async fn keep(
        &self,
        (gate, passage): (&Gate, &Permit),
        mut open: OpenRequest,
        content: Content,
        body: Received,
    ) -> Result<Window, Rejection> {
        let Content { items, left_out, denied, raw_len, encoding, as_sent, answer } = content;
        open.refuse_items(ledger::ItemRefusal::Malformed, left_out);
        open.refuse_items(ledger::ItemRefusal::Forbidden, denied);
        if items == 0 {
            open.accept_empty(ledger::Signal::Logs);
            return Ok(answer);
        }
        let Received { window, range } = body;
        let counts = ledger::Counts::of(ledger::Signal::Logs, u64::from(items), as_sent as u64);
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Logs,
            protocol: Layout::Bulk,
            encoding,
            items,
            raw_len,
            received_at_ns: now_ns(),
        };
        gate.append(
            passage,
            open,
            counts,
            Batch { meta, window, from: range.start, len: range.len(), checkpoints: Checkpoints::default() },
        )
        .await?;
        Ok(answer)
    }
}

impl HttpSource for Elasticsearch {
    fn books(&self) -> &Source {
        &self.0.books
    }

    fn destination(&self, head: &Head<'_>) -> Option<Destination> {
        self.destination_behind(&self.0.settings.prefix, head)
    }

    /// Its prefix may be empty.
    fn takes_the_rest(&self) -> bool {
        true
    }

    fn alone(&self) -> Option<Arc<dyn HttpSource>> {
        Some(Arc::new(DedicatedListener(self.clone())))
    }
}

/// The source on an address of its own.
struct DedicatedListener(Elasticsearch);

impl HttpSource for DedicatedListener {
    fn books(&self) -> &Source {
        self.0.books()
    }

    fn destination(&self, head: &Head<'_>) -> Option<Destination> {
        self.0.destination_behind("", head)
    }
}

/// A request, and who sent it.
struct Sent {
    source: Elasticsearch,
    form: RequestHead,
    granted: Identity,
}

impl Exchange for Sent {
    fn protocol(&self) -> AnswerFormat {
        AnswerFormat::Elastic
    }

    fn granted(&mut self, granted: Identity) {
        self.granted = granted;
    }

    /// Items that are forwarded and not sent yet.
    fn is_withdrawn_by_leaving(&self) -> bool {
        self.source.0.settings.destination.is_some()
            && matches!(self.form.route, request_head::Route::Bulk(_))
    }

    fn is_heard(&self, refused: &Rejection) -> bool {
        self.form.is_heard(refused)
    }

    fn answer<'a>(
        self: Box<Self>,
        gate: &'a Gate,
        passage: &'a Permit,
        open: OpenRequest,
        body: Body,
    ) -> Answering<'a> {
        let Sent { source, form, granted } = *self;
        Box::pin(async move { source.receive(gate, (passage, granted), open, form, body).await })
    }
}

/// Whether an item has what Elasticsearch refuses the whole request for.
fn can_be_sent(item: &Item<'_>, defaults: &Defaults) -> Result<(), Rejection> {
    let words = if !item.action.has(Field::Index) && defaults.index().is_none() {
        "Validation Failed: 1: index is missing;\n"
    } else if item.action.id.is_none() && matches!(item.action.kind, Kind::Update | Kind::Delete) {
        "Validation Failed: 1: id is missing;\n"
    } else {
        return Ok(());
    };
    Err(Rejection::new(Refusal::Malformed, words))
}

/// Writes the items of `raw` that are any and may be sent, with what their actions lack.
fn written(
    (gate, rights): (&Gate, &BulkRights),
    raw: &[u8],
    defaults: &Defaults,
    window: &mut Window,
) -> Result<(), InspectionError> {
    let mut output = SliceOutput::new(window.spare_mut());
    let mut guard = Guard::new(rights);
    for item in items(raw) {
        let item = item.map_err(Rejection::malformed)?;
        if item.check().is_ok() && guard.look(&item, defaults).is_none() {
            let more = defaults.missing(&item.action);
            item.write(&more, &mut output).map_err(|_| gate.no_memory())?;
        }
    }
    let written = output.len();
    window.advance(written);
    Ok(())
}

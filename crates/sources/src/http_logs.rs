//! Log records over plain HTTP: JSON objects, lines of them, or plain lines, each a record.
//!
//! The journal stores OTLP logs in protobuf, so every sink that accepts those accepts these. An invalid record is
//! refused alone, and the answer contains the number of refused records and the first error.

mod labels;
mod request_head;

use crate::body::{Inspection, InspectionError, LARGE_TO_TRANSLATE, Received, decode};
use crate::clock::now_ns;
use crate::http::{Answering, Destination, Exchange, HttpSource, Policy, Route, without_slash};
use request_head::BodyFormat;
use std::sync::Arc;
use tidegate_admission::{
    AnswerFormat, DecodeBuffer, Gate, Permit, Rejection, Size, TranslationCharge, answer,
};
use tidegate_arena::{Arena, Share};
use tidegate_http1::{Body, Head, Reply};
use tidegate_journal::{Batch, Checkpoints, Encoding, Meta, Protocol as Layout, Signal, Tenant};
use tidegate_ledger::{Counts, ItemRefusal, OpenRequest, Refusal, Signal as Booked, Source};
use tidegate_pool::Pool;
use tidegate_wire::json;
use tidegate_wire::otlp::json::records::{Request, measure, translate};
use tidegate_wire::otlp::{self, check};

const JSON: &str = "application/json";

/// The source `http`. Clones are the same source.
#[derive(Clone)]
pub struct HttpLogs(Arc<Inner>);

struct Inner {
    books: Source,
    arena: Arena,
    /// Where large bodies are translated.
    pool: Pool,
    /// Where it is served: begins with `/`, and does not end with it.
    path: String,
    /// The most bytes of a body, as sent and when decompressed.
    max_body: usize,
}

/// A request that was let in.
struct Sent {
    source: HttpLogs,
    form: BodyFormat,
}

/// A body as OTLP.
struct Translated {
    items: u32,
    refused: u64,
    /// The errors of the first refused records.
    errors: Vec<otlp::json::OtlpJsonError>,
    raw_len: u32,
    /// The length in which it came.
    as_sent: usize,
    /// The tenant's account of it, until it is journalled.
    account: TranslationCharge,
}

impl HttpLogs {
    /// A source that is served at `path` and takes bodies of up to `max_body` bytes, as sent and when decompressed. Large
    /// ones are translated by `pool`.
    pub fn new(books: Source, arena: Arena, pool: Pool, path: String, max_body: usize) -> HttpLogs {
        HttpLogs(Arc::new(Inner { books, arena, pool, path, max_body }))
    }

    async fn receive(
        &self,
        gate: &Gate,
        passage: &Permit,
        open: OpenRequest,
        form: BodyFormat,
        body: Body,
    ) -> Reply {
        match self.inspect(gate, passage, form, body.into()).await {
            Ok((body, translated)) => self.keep((gate, passage), open, translated, body).await,
            Err(refused) => {
                open.refuse(refused.reason);
                answer(refused, AnswerFormat::Http)
            }
        }
    }

    /// Translates the body, decompressed in memory of its own, which is free again on return.
    async fn inspect(
        &self,
        gate: &Gate,
        passage: &Permit,
        form: BodyFormat,
        mut body: Received,
    ) -> Result<(Received, Translated), Rejection> {
        let most = self.0.max_body.min(gate.most_decoded());
        let inspection = Inspection {
            gate,
            passage,
            pool: &self.0.pool,
            encoding: form.encoding,
            most,
            large: LARGE_TO_TRANSLATE,
        };
        let mut memory = inspection.begin(&body).await?;
        let translated = inspection.here(&mut body, &mut memory, |body, room, most| {
            self.translate(gate, gate.translation_charge(passage), &form, body, room, most)
        });
        if let Some(translated) = translated {
            return translated.map(|translated| (body, translated));
        }
        let (source, its_gate, account) = (self.clone(), gate.clone(), gate.translation_charge(passage));
        let translate = move |body: &mut Received, room: Option<&mut DecodeBuffer>, most| {
            source.translate(&its_gate, account, &form, body, room, most)
        };
        inspection.in_pool(body, memory, translate).await
    }

    /// Makes the body OTLP, as it came or as it is decompressed into `room`: to at most `most` bytes. Holding it, and perhaps
    /// decode memory, this does not wait for more: it is translated to nowhere first, and so takes what it needs. Short
    /// lines become several times as long, so `account` charges the tenant for that.
    fn translate(
        &self,
        gate: &Gate,
        mut account: TranslationCharge,
        form: &BodyFormat,
        body: &mut Received,
        room: Option<&mut DecodeBuffer>,
        most: usize,
    ) -> Result<Translated, InspectionError> {
        let as_sent = body.range.len();
        let mut decoded = as_sent;
        let request =
            Request { layout: form.layout, resource: form.labels.resource(), received_ns: now_ns() };
        let done = match room {
            None => {
                let raw = body.bytes();
                let needed = measure(&request, raw).map_err(Rejection::malformed)?.max(1);
                account.grow(gate, needed)?;
                let window = self.0.arena.try_window(Share::Ingest, needed);
                let held = body.window.charged().saturating_add(needed);
                let mut window =
                    window.map_err(|refused| gate.memory_rejection(refused, held, 0, raw.len() / 2))?;
                let done = translate(&request, raw, window.spare_mut()).map_err(Rejection::malformed)?;
                *body = Received { range: 0..done.len, window };
                done
            }
            Some(room) => {
                decode::decode(gate, form.encoding, body, room, most)?;
                decoded = room.len();
                let needed = measure(&request, room).map_err(Rejection::malformed)?.max(1);
                // The received body is no longer needed, so its window is free.
                account.grow(gate, needed.saturating_sub(as_sent))?;
                let Received { window, range } = body;
                window.clear();
                let reserved = window.try_reserve(needed);
                reserved.map_err(|refused| {
                    gate.memory_rejection(refused, needed, room.charged(), room.len() / 2)
                })?;
                let done = translate(&request, room, window.spare_mut()).map_err(Rejection::malformed)?;
                *range = 0..done.len;
                done
            }
        };
        body.window.advance(done.len);
        // The body as it came is gone, and its tenant charged for it still.
        account.shrink(body.window.charged().saturating_sub(as_sent));
        let counts = check(otlp::Signal::Logs, body.bytes()).map_err(Rejection::malformed)?;
        if counts.items > 0 {
            let size = Size { kept: done.len, decoded: 0, item: counts.largest_item };
            // Short lines become longer, so half of it may do, whatever the bound of what they become is.
            let shorter = |refused: Rejection| match refused.reason {
                Refusal::TooLarge => Rejection::too_large(decoded / 2),
                _ => refused,
            };
            gate.check_deliverable(Layout::Otlp, Signal::Logs, size).map_err(shorter)?;
        }
        match (u32::try_from(done.len), u32::try_from(counts.items)) {
            (Ok(raw_len), Ok(items)) => Ok(Translated {
                items,
                refused: done.refused,
                errors: done.errors,
                raw_len,
                as_sent,
                account,
            }),
            _ => Err(Rejection::too_large(self.0.max_body).into()),
        }
    }

    /// Gives the records to the journal; answers when they are durable.
    async fn keep(
        &self,
        (gate, passage): (&Gate, &Permit),
        mut open: OpenRequest,
        translated: Translated,
        body: Received,
    ) -> Reply {
        let Translated { items, refused, errors, raw_len, as_sent, account } = translated;
        let said = (refused > 0).then(|| report(items, refused, &errors));
        drop(errors);
        if items == 0 {
            if let Some(report) = said {
                open.refuse(Refusal::Malformed);
                return Reply::new(400).content_type(JSON).content(report);
            }
            open.accept_empty(Booked::Logs);
        } else {
            open.refuse_items(ItemRefusal::Malformed, refused);
            let counts = Counts::of(Booked::Logs, u64::from(items), as_sent as u64);
            let meta = Meta {
                tenant: Tenant::NONE,
                signal: Signal::Logs,
                protocol: Layout::Otlp,
                encoding: Encoding::Identity,
                items,
                raw_len,
                received_at_ns: now_ns(),
            };
            let Received { window, range } = body;
            let batch = Batch {
                meta,
                window,
                from: range.start,
                len: range.len(),
                checkpoints: Checkpoints::default(),
            };
            let appended = gate.append(passage, open, counts, batch).await;
            drop(account);
            if let Err(refused) = appended {
                return answer(refused, AnswerFormat::Http);
            }
        }
        let reply = Reply::new(200).content_type(JSON);
        match said {
            Some(report) => reply.content(report),
            None => reply.sentence(&["{\"accepted\":", ",\"refused\":0}\n"], items as usize),
        }
    }
}

/// The answer's part on refused records.
fn report(accepted: u32, refused: u64, record_errors: &[otlp::json::OtlpJsonError]) -> String {
    let mut errors = Vec::new();
    for (index, error) in record_errors.iter().enumerate() {
        errors.extend_from_slice(if index > 0 { b"," } else { b"" });
        json::append_string(&mut errors, error.to_string().as_bytes());
    }
    let errors = String::from_utf8_lossy(&errors);
    format!("{{\"accepted\":{accepted},\"refused\":{refused},\"errors\":[{errors}]}}\n")
}

impl HttpSource for HttpLogs {
    fn books(&self) -> &Source {
        &self.0.books
    }

    fn destination(&self, head: &Head<'_>) -> Option<Destination> {
        if without_slash(head.path()) != self.0.path {
            return None;
        }
        let route = BodyFormat::of(head, &self.0.arena)
            .map(|form| Route::Boxed(Box::new(Sent { source: self.clone(), form })))
            .map_err(|refused| (refused, AnswerFormat::Http));
        Some(Destination { max_body: self.0.max_body, policy: Policy::POST, route })
    }
}

impl Exchange for Sent {
    fn protocol(&self) -> AnswerFormat {
        AnswerFormat::Http
    }

    fn answer<'a>(
        self: Box<Self>,
        gate: &'a Gate,
        passage: &'a Permit,
        open: OpenRequest,
        body: Body,
    ) -> Answering<'a> {
        let Sent { source, form } = *self;
        Box::pin(async move { source.receive(gate, passage, open, form, body).await })
    }
}

//! Log records over plain HTTP: JSON objects, lines of them, or plain lines, each a record.
//!
//! The journal stores OTLP logs in protobuf, so every sink that accepts those accepts these. An invalid record is
//! refused alone, and the answer contains the number of refused records and the first error.

mod labels;
mod request_head;

use crate::body::translation::{LogFormat, LogTranslation, TranslatedLogs};
use crate::body::{Inspection, InspectionError, LARGE_TO_TRANSLATE, Received};
use crate::http::{Answering, Destination, Exchange, HttpSource, Policy, Route, without_slash};
use request_head::BodyFormat;
use std::sync::Arc;
use tidegate_admission::{AnswerFormat, DecodeBuffer, Gate, Permit, Rejection, TranslationCharge, answer};
use tidegate_arena::Arena;
use tidegate_http1::{Body, Head, Reply};
use tidegate_ledger::{ItemRefusal, OpenRequest, Refusal, Signal as Booked, Source};
use tidegate_pool::Pool;
use tidegate_wire::json;
use tidegate_wire::otlp::json::OtlpJsonError;
use tidegate_wire::otlp::json::records::{measure, translate};

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

/// How records are read, with the labels of the request.
struct Records<'a>(&'a BodyFormat);

/// The parts of a request that were left out.
struct LeftOut {
    records: u64,
    /// The errors of the first of them.
    errors: Vec<OtlpJsonError>,
}

type Translated = TranslatedLogs<LeftOut>;

impl LogFormat for Records<'_> {
    type Report = LeftOut;

    fn measure(&self, raw: &[u8]) -> Result<usize, Rejection> {
        measure(&self.0.request(), raw).map_err(Rejection::malformed)
    }

    fn translate(&self, raw: &[u8], out: &mut [u8]) -> Result<(usize, LeftOut), Rejection> {
        let done = translate(&self.0.request(), raw, out).map_err(Rejection::malformed)?;
        Ok((done.len, LeftOut { records: done.refused, errors: done.errors }))
    }
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
                refused.close(open);
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

    fn translate(
        &self,
        gate: &Gate,
        account: TranslationCharge,
        form: &BodyFormat,
        body: &mut Received,
        room: Option<&mut DecodeBuffer>,
        most: usize,
    ) -> Result<Translated, InspectionError> {
        let (arena, max_body, encoding) = (&self.0.arena, self.0.max_body, form.encoding);
        let translation = LogTranslation { gate, arena, format: &Records(form), encoding, max_body };
        translation.apply(account, body, room, most)
    }

    /// Gives the records to the journal; answers when they are durable.
    async fn keep(
        &self,
        (gate, passage): (&Gate, &Permit),
        mut open: OpenRequest,
        translated: Translated,
        body: Received,
    ) -> Reply {
        let items = translated.items;
        let LeftOut { records: refused, errors } = &translated.report;
        let refused = *refused;
        let said = (refused > 0).then(|| report(items, refused, errors));
        if items == 0 {
            if let Some(report) = said {
                Rejection::new(Refusal::Malformed, "none of its records can be taken").close(open);
                return Reply::new(400).content_type(JSON).content(report);
            }
            open.accept_empty(Booked::Logs);
        } else {
            open.refuse_items(ItemRefusal::Malformed, refused);
            let (counts, batch, account) = translated.into_batch(body);
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
fn report(accepted: u32, refused: u64, record_errors: &[OtlpJsonError]) -> String {
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

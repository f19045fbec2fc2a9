//! Loki's push API: log lines in streams, in protobuf or JSON.
//!
//! The journal stores OTLP logs: a resource for each stream, a record for each entry. As Loki does, this answers 204, and
//! refuses a request as a whole with 400 if anything in it is wrong. `design/loki.md` says what labels become.
//!
//! Reference: <https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs>.

mod request_head;

use crate::body::translation::{LogFormat, LogTranslation, TranslatedLogs};
use crate::body::{Inspection, InspectionError, LARGE_TO_TRANSLATE, Received};
use crate::clock::now_ns;
use crate::http::{Answering, Destination, Exchange, HttpSource, Policy, Route, without_slash};
use request_head::BodyFormat;
use std::sync::Arc;
use tidegate_admission::{AnswerFormat, DecodeBuffer, Gate, Permit, Rejection, TranslationCharge, answer};
use tidegate_arena::Arena;
use tidegate_http1::{Body, Head, Reply};
use tidegate_ledger::{OpenRequest, Signal as Booked, Source};
use tidegate_pool::Pool;
use tidegate_wire::loki::{Format, Request, measure, translate};
use tidegate_wire::snappy;

/// The source `loki`. Clones are the same source.
#[derive(Clone)]
pub struct Loki(Arc<Inner>);

struct Inner {
    books: Source,
    arena: Arena,
    /// Where large bodies are translated.
    pool: Pool,
    /// The most bytes of a body when decompressed.
    max_body: usize,
}

/// A request that was let in.
struct Sent {
    source: Loki,
    form: BodyFormat,
}

/// How the streams of a request are read.
struct Streams(Request);

impl LogFormat for Streams {
    type Report = ();

    fn measure(&self, raw: &[u8]) -> Result<usize, Rejection> {
        measure(self.0, raw).map_err(Rejection::malformed)
    }

    fn translate(&self, raw: &[u8], out: &mut [u8]) -> Result<(usize, ()), Rejection> {
        translate(self.0, raw, out).map(|len| (len, ())).map_err(Rejection::malformed)
    }
}

impl Loki {
    /// Where it is served: as Loki, and as its first versions.
    pub const PATHS: [&str; 2] = ["/loki/api/v1/push", "/api/prom/push"];

    /// A source that takes bodies of up to `max_body` bytes when decompressed. Large ones are translated by `pool`.
    pub fn new(books: Source, arena: Arena, pool: Pool, max_body: usize) -> Loki {
        Loki(Arc::new(Inner { books, arena, pool, max_body }))
    }

    async fn receive(
        &self,
        gate: &Gate,
        passage: &Permit,
        open: OpenRequest,
        form: BodyFormat,
        body: Body,
    ) -> Reply {
        let (body, translated) = match self.inspect(gate, passage, form, body.into()).await {
            Ok(inspected) => inspected,
            Err(refused) => {
                refused.close(open);
                return answer(refused, AnswerFormat::Http);
            }
        };
        if translated.items == 0 {
            open.accept_empty(Booked::Logs);
            return Reply::new(204);
        }
        let (counts, batch, account) = translated.into_batch(body);
        let appended = gate.append(passage, open, counts, batch).await;
        drop(account);
        match appended {
            Ok(()) => Reply::new(204),
            Err(refused) => answer(refused, AnswerFormat::Http),
        }
    }

    /// Translates the body, decompressed in memory of its own, which is free again on return.
    async fn inspect(
        &self,
        gate: &Gate,
        passage: &Permit,
        form: BodyFormat,
        mut body: Received,
    ) -> Result<(Received, TranslatedLogs<()>), Rejection> {
        let most = self.0.max_body.min(gate.most_decoded());
        if form.format == Format::Protobuf {
            let claimed = snappy::decoded_len(body.bytes()).map_err(Rejection::malformed)?;
            if claimed > most {
                return Err(Rejection::too_large(most));
            }
            snappy::plausible(body.bytes()).map_err(Rejection::malformed)?;
        }
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
            self.translate(gate, gate.translation_charge(passage), form, body, room, most)
        });
        if let Some(translated) = translated {
            return translated.map(|translated| (body, translated));
        }
        let (source, its_gate, account) = (self.clone(), gate.clone(), gate.translation_charge(passage));
        let translate = move |body: &mut Received, room: Option<&mut DecodeBuffer>, most| {
            source.translate(&its_gate, account, form, body, room, most)
        };
        inspection.in_pool(body, memory, translate).await
    }

    fn translate(
        &self,
        gate: &Gate,
        account: TranslationCharge,
        form: BodyFormat,
        body: &mut Received,
        room: Option<&mut DecodeBuffer>,
        most: usize,
    ) -> Result<TranslatedLogs<()>, InspectionError> {
        let (arena, max_body, encoding) = (&self.0.arena, self.0.max_body, form.encoding);
        let format = Streams(Request { format: form.format, received_ns: now_ns() });
        let translation = LogTranslation { gate, arena, format: &format, encoding, max_body };
        translation.apply(account, body, room, most)
    }
}

impl HttpSource for Loki {
    fn books(&self) -> &Source {
        &self.0.books
    }

    fn destination(&self, head: &Head<'_>) -> Option<Destination> {
        if !Loki::PATHS.contains(&without_slash(head.path())) {
            return None;
        }
        let form = BodyFormat::of(head);
        let max_body = match &form {
            Ok(BodyFormat { format: Format::Json, .. }) => self.0.max_body,
            // The size of `max_body` bytes if Snappy finds nothing to compress.
            _ => snappy::max_compressed_len(self.0.max_body).unwrap_or(usize::MAX),
        };
        let route = form
            .map(|form| Route::Boxed(Box::new(Sent { source: self.clone(), form })))
            .map_err(|refused| (refused, AnswerFormat::Http));
        Some(Destination { max_body, policy: Policy::POST, route })
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

//! Spans as transactions and spans of Elastic APM, and their events.

use super::super::document_buffer::DocumentOutput;
use super::super::document_writer::{DocumentWriter, ScopeOrigin, StreamKind};
use super::super::fields::FieldValue;
use super::logs::ExceptionAttributes;
use super::{ServiceInfo, microseconds};
use tidegate_wire::otlp::{AnyValue, Event, Span};
use tidegate_wire::output::Full;

const SERVER: i32 = 2;
const CONSUMER: i32 = 5;

/// A span's kind, from its attributes.
#[derive(Debug, Clone, Copy, Default)]
struct SpanTraits<'a> {
    database: Option<&'a [u8]>,
    messaging: Option<&'a [u8]>,
    queue: &'a [u8],
    rpc: Option<&'a [u8]>,
    is_http: bool,
    http_status: Option<i64>,
    host: &'a [u8],
    port: Option<u16>,
}

impl<'a> SpanTraits<'a> {
    fn of(span: &Span<'a>) -> Self {
        let mut traits = Self::default();
        for attribute in span.attributes() {
            match (attribute.key, attribute.value) {
                (b"db.system" | b"db.system.name", AnyValue::Text(text)) => traits.database = Some(text),
                (b"messaging.system", AnyValue::Text(text)) => traits.messaging = Some(text),
                (b"messaging.destination.name" | b"messaging.destination", AnyValue::Text(text)) => {
                    traits.queue = text;
                }
                (b"rpc.system" | b"rpc.system.name", AnyValue::Text(text)) => traits.rpc = Some(text),
                (b"http.response.status_code" | b"http.status_code", AnyValue::Int(status)) => {
                    traits.http_status = Some(status);
                    traits.is_http = true;
                }
                (b"http.request.method" | b"http.method" | b"http.url", _) => traits.is_http = true,
                (b"server.address" | b"net.peer.name", AnyValue::Text(text)) => traits.host = text,
                (b"server.port" | b"net.peer.port", AnyValue::Int(port)) => {
                    traits.port = u16::try_from(port).ok()
                }
                _ => {}
            }
        }
        traits
    }

    /// As Elastic APM takes it: what the status says, else what the answer's does.
    fn outcome(&self, span: &Span<'_>) -> &'static [u8] {
        let worst = if span.kind == SERVER { 500 } else { 400 };
        match (span.status.code, self.http_status) {
            (1, _) => b"success",
            (2, _) => b"failure",
            (_, Some(status)) if status >= worst => b"failure",
            (_, Some(_)) => b"success",
            _ => b"unknown",
        }
    }

    fn result(&self, span: &Span<'_>) -> &'static [u8] {
        match (self.http_status.map(|status| status / 100), span.status.code) {
            (Some(1), _) => b"HTTP 1xx",
            (Some(2), _) => b"HTTP 2xx",
            (Some(3), _) => b"HTTP 3xx",
            (Some(4), _) => b"HTTP 4xx",
            (Some(5), _) => b"HTTP 5xx",
            (_, 2) => b"Error",
            _ => b"Success",
        }
    }

    /// The type and the subtype of a span, and what it calls.
    fn target(&self, span: &Span<'_>) -> (&'a [u8], &'a [u8], Option<FieldValue<'a>>) {
        let address = || match self.port {
            _ if self.host.is_empty() => None,
            Some(port) => Some(FieldValue::Address(self.host, port)),
            None => Some(FieldValue::Text(self.host)),
        };
        match *self {
            Self { database: Some(system), .. } => (b"db", system, Some(FieldValue::Text(system))),
            Self { messaging: Some(system), queue, .. } => {
                (b"messaging", system, Some(FieldValue::Joined(system, '/', queue)))
            }
            Self { rpc: Some(system), .. } => (b"external", system, address()),
            Self { is_http: true, .. } => (b"external", b"http", address()),
            _ if span.kind == 1 => (b"app", b"internal", None),
            _ => (b"unknown", b"", None),
        }
    }
}

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// A span's documents: its own first, then one for each event, of which those before the place are written.
    pub(in super::super) fn ecs_span(
        &mut self,
        origin: &ScopeOrigin<'a>,
        service: ServiceInfo<'a>,
        span: &Span<'a>,
    ) -> Result<(), Full> {
        let is_transaction =
            matches!(span.kind, SERVER | CONSUMER) || span.parent_span_id.iter().all(|byte| *byte == 0);
        if self.place.part == 0 {
            self.ecs_span_alone(origin, service, span, is_transaction)?;
        }
        let written = usize::try_from(self.place.part).unwrap_or(usize::MAX).saturating_sub(1);
        for event in span.events().skip(written) {
            self.ecs_event(origin, service, span, &event, is_transaction)?;
        }
        Ok(())
    }

    fn ecs_span_alone(
        &mut self,
        origin: &ScopeOrigin<'a>,
        service: ServiceInfo<'a>,
        span: &Span<'a>,
        is_transaction: bool,
    ) -> Result<(), Full> {
        self.fields.begin();
        let wishes = self.ecs_attributes(origin.wishes, span.attributes(), true);
        let traits = SpanTraits::of(span);
        let time = self.ecs_time(span.start_time);
        let duration = FieldValue::Int((span.end_time.saturating_sub(span.start_time) / 1000).cast_signed());
        let kind: &[u8] = match span.kind {
            1 => b"INTERNAL",
            2 => b"SERVER",
            3 => b"CLIENT",
            4 => b"PRODUCER",
            5 => b"CONSUMER",
            _ => b"",
        };
        self.fields.id(b"trace.id", span.trace_id);
        self.fields.id(b"parent.id", span.parent_span_id);
        self.fields.id(b"span.id", span.span_id);
        self.fields.text(b"span.kind", kind);
        self.fields.put(b"timestamp.us", microseconds(time));
        self.fields.text(b"event.outcome", traits.outcome(span));
        if is_transaction {
            let kind: &[u8] = match traits {
                SpanTraits { messaging: Some(_), .. } => b"messaging",
                SpanTraits { is_http: true, .. } | SpanTraits { rpc: Some(_), .. } => b"request",
                _ => b"unknown",
            };
            self.fields.text(b"processor.event", b"transaction");
            self.fields.id(b"transaction.id", span.span_id);
            self.fields.text(b"transaction.name", span.name);
            self.fields.text(b"transaction.type", kind);
            self.fields.text(b"transaction.result", traits.result(span));
            self.fields.put(b"transaction.duration.us", duration);
            self.fields.put(b"transaction.sampled", FieldValue::Bool(true));
        } else {
            let (kind, subtype, target) = traits.target(span);
            self.fields.text(b"processor.event", b"span");
            self.fields.text(b"span.name", span.name);
            self.fields.text(b"span.type", kind);
            self.fields.text(b"span.subtype", subtype);
            self.fields.put(b"span.duration.us", duration);
            if let Some(target) = target {
                self.fields.put(b"span.destination.service.resource", target);
                self.fields.text(b"service.target.type", subtype);
                self.fields.put(b"service.target.name", target);
            }
        }
        if span.links().next().is_some() {
            self.fields.put(b"span.links", FieldValue::Other(0));
        }
        // Words of OpenTelemetry for which the schema has none.
        self.fields.text(b"span.trace_state", span.trace_state);
        self.fields.text(b"span.status.message", span.status.message);
        let dropped =
            span.dropped_attributes.saturating_add(span.dropped_events).saturating_add(span.dropped_links);
        self.objects.lost += u64::from(dropped > 0);
        self.ecs_document(
            StreamKind::Traces,
            "apm",
            service,
            wishes,
            time,
            |_| Ok(()),
            |_, _, out| links(span, out),
        )?;
        self.end(1)
    }

    fn ecs_event(
        &mut self,
        origin: &ScopeOrigin<'a>,
        service: ServiceInfo<'a>,
        span: &Span<'a>,
        event: &Event<'a>,
        of_transaction: bool,
    ) -> Result<(), Full> {
        self.fields.begin();
        let wishes = self.ecs_attributes(origin.wishes, event.attributes(), false);
        let time = self.ecs_time(event.time);
        self.fields.id(b"trace.id", span.trace_id);
        self.fields.id(b"span.id", span.span_id);
        self.fields.id(b"parent.id", span.span_id);
        if of_transaction {
            self.fields.id(b"transaction.id", span.span_id);
        }
        self.fields.text(b"event.action", event.name);
        let exception = ExceptionAttributes::of(event.attributes());
        match exception.map(ExceptionAttributes::message).filter(|message| !message.is_empty()) {
            Some(message) => self.fields.text(b"message", message),
            None => self.fields.text(b"message", event.name),
        }
        let dataset = self.ecs_logged(exception, span.span_id, time);
        self.ecs_document(StreamKind::Logs, dataset, service, wishes, time, |_| Ok(()), |_, _, _| Ok(()))?;
        self.end(0)
    }
}

/// Links as Elastic APM has them: ids alone.
fn links<O: tidegate_wire::output::Output>(span: &Span<'_>, out: &mut O) -> Result<(), Full> {
    for (place, link) in span.links().enumerate() {
        out.put(if place == 0 { br#"[{"trace":{"id":""# } else { br#",{"trace":{"id":""# })?;
        crate::json::hex(link.trace_id, out)?;
        out.put(br#""},"span":{"id":""#)?;
        crate::json::hex(link.span_id, out)?;
        out.put(br#""}}"#)?;
    }
    out.put(b"]")
}

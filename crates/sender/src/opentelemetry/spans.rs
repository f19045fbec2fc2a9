//! Spans of the SDK.

use super::Exporter;
use super::values::Of;
use crate::clock::nanos;
use crate::record::{Link, Links, Span, SpanContext, SpanEvent, SpanEvents, SpanKind, Status};
use opentelemetry::trace::SpanId;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::time::Duration;

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        for span in &batch {
            self.span(span);
        }
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.end(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.flush(Duration::from_secs(5))
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.adopt(resource);
    }
}

impl Exporter {
    fn span(&self, data: &SpanData) {
        let context = &data.span_context;
        let state = context.trace_state().header();
        let span = Span {
            context: span_context(context),
            parent: (data.parent_span_id != SpanId::INVALID).then(|| data.parent_span_id.to_bytes()),
            parent_is_remote: data.parent_span_is_remote,
            trace_state: &state,
            name: &data.name,
            kind: match data.span_kind {
                opentelemetry::trace::SpanKind::Client => SpanKind::Client,
                opentelemetry::trace::SpanKind::Server => SpanKind::Server,
                opentelemetry::trace::SpanKind::Producer => SpanKind::Producer,
                opentelemetry::trace::SpanKind::Consumer => SpanKind::Consumer,
                opentelemetry::trace::SpanKind::Internal => SpanKind::Internal,
            },
            start: nanos(data.start_time),
            end: nanos(data.end_time),
            attributes: &Of(&*data.attributes),
            dropped_attributes: data.dropped_attributes_count,
            events: &Of(data),
            links: &Of(data),
            status: match &data.status {
                opentelemetry::trace::Status::Unset => Status::Unset,
                opentelemetry::trace::Status::Ok => Status::Ok,
                opentelemetry::trace::Status::Error { description } => Status::Error(description),
            },
            scope: self.scope(&data.instrumentation_scope),
        };
        // Counted if it is refused; the SDK would only log it.
        let _ = self.sender.span(&span);
    }
}

impl SpanEvents for Of<'_, SpanData> {
    fn each(&self, visit: &mut dyn FnMut(&SpanEvent<'_>)) {
        for event in &self.0.events.events {
            let attributes = &Of(&*event.attributes);
            visit(&SpanEvent { time: nanos(event.timestamp), name: &event.name, attributes });
        }
    }
}

impl Links for Of<'_, SpanData> {
    fn each(&self, visit: &mut dyn FnMut(&Link<'_>)) {
        for link in &self.0.links.links {
            let state = link.span_context.trace_state().header();
            let attributes = &Of(&*link.attributes);
            visit(&Link { context: span_context(&link.span_context), trace_state: &state, attributes });
        }
    }
}

fn span_context(context: &opentelemetry::trace::SpanContext) -> SpanContext {
    SpanContext {
        trace_id: context.trace_id().to_bytes(),
        span_id: context.span_id().to_bytes(),
        flags: context.trace_flags().to_u8(),
    }
}

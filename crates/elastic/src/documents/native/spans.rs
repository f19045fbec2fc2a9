//! Spans, and their events as documents of their own.

use super::super::document_buffer::DocumentOutput;
use super::super::document_writer::{DocumentWriter, ScopeOrigin, StreamKind};
use crate::json;
use tidegate_wire::otlp::{Event, Link, Span};
use tidegate_wire::output::Full;

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// A span's documents: its own first, then one for each event, of which those before the place are written.
    pub(in super::super) fn native_span(
        &mut self,
        origin: &mut ScopeOrigin<'a>,
        span: &Span<'a>,
    ) -> Result<(), Full> {
        if self.place.part == 0 {
            self.native_span_alone(origin, span)?;
        }
        let written = usize::try_from(self.place.part).unwrap_or(usize::MAX) - 1;
        for event in span.events().skip(written) {
            self.native_event(origin, span, &event)?;
        }
        Ok(())
    }

    fn native_span_alone(&mut self, origin: &mut ScopeOrigin<'a>, span: &Span<'a>) -> Result<(), Full> {
        let own = self.own(origin, span.attributes());
        self.opened(StreamKind::Traces, span.start_time, own.wishes, |_| Ok(()))?;
        self.id(r#","trace_id":"#, span.trace_id)?;
        self.id(r#","span_id":"#, span.span_id)?;
        self.text(r#","trace_state":"#, span.trace_state)?;
        self.id(r#","parent_span_id":"#, span.parent_span_id)?;
        self.number(r#","flags":"#, span.flags.into())?;
        self.text(r#","name":"#, span.name)?;
        self.out.put(br#","kind":""#)?;
        self.out.put(kind(span.kind).as_bytes())?;
        self.out.put(br#"","duration":"#)?;
        json::int(span.end_time.wrapping_sub(span.start_time).cast_signed(), self.out)?;
        self.attributes(&own)?;
        self.number(r#","dropped_attributes_count":"#, span.dropped_attributes.into())?;
        self.number(r#","dropped_events_count":"#, span.dropped_events.into())?;
        self.number(r#","dropped_links_count":"#, span.dropped_links.into())?;
        for (place, link) in span.links().enumerate() {
            self.out.put(if place == 0 { br#","links":[{"# } else { b",{" })?;
            self.link(&link)?;
            self.out.put(b"}")?;
        }
        if span.links().next().is_some() {
            self.out.put(b"]")?;
        }
        self.out.put(br#","status":{"code":""#)?;
        self.out.put(status(span.status.code).as_bytes())?;
        self.out.put(b"\"")?;
        self.text(r#","message":"#, span.status.message)?;
        self.out.put(b"}")?;
        self.origin(origin)?;
        self.end(1)
    }

    fn link(&mut self, link: &Link<'a>) -> Result<(), Full> {
        self.out.put(br#""trace_id":""#)?;
        json::hex(link.trace_id, self.out)?;
        self.out.put(br#"","span_id":""#)?;
        json::hex(link.span_id, self.out)?;
        self.out.put(b"\"")?;
        self.text(r#","trace_state":"#, link.trace_state)?;
        self.number(r#","flags":"#, link.flags.into())?;
        self.number(r#","dropped_attributes_count":"#, link.dropped_attributes.into())?;
        if link.attributes().next().is_some() {
            self.out.put(br#","attributes":"#)?;
            self.objects.object(link.attributes(), self.out)?;
        }
        Ok(())
    }

    fn native_event(
        &mut self,
        origin: &mut ScopeOrigin<'a>,
        span: &Span<'a>,
        event: &Event<'a>,
    ) -> Result<(), Full> {
        let own = self.own(origin, event.attributes());
        self.opened(StreamKind::Logs, event.time, own.wishes, |_| Ok(()))?;
        self.id(r#","trace_id":"#, span.trace_id)?;
        self.id(r#","span_id":"#, span.span_id)?;
        self.text(r#","event_name":"#, event.name)?;
        self.number(r#","dropped_attributes_count":"#, event.dropped_attributes.into())?;
        self.attributes(&own)?;
        self.origin(origin)?;
        self.end(0)
    }
}

fn kind(kind: i32) -> &'static str {
    match kind {
        1 => "Internal",
        2 => "Server",
        3 => "Client",
        4 => "Producer",
        5 => "Consumer",
        _ => "Unspecified",
    }
}

fn status(code: i32) -> &'static str {
    match code {
        1 => "Ok",
        2 => "Error",
        _ => "Unset",
    }
}

//! `Span`.

use super::Framed;
use super::proto::{bytes_field, fixed32_field, message_head, text_field, time_field, varint_field};
use super::value::attributes;
use crate::record::{Link, Span, SpanEvent, Status};
use crate::ring::{Counted, EventOutput, Payload};

pub(crate) struct EndedSpan<'a> {
    span: &'a Span<'a>,
    framed: Framed,
}

impl<'a> EndedSpan<'a> {
    pub(crate) fn new(span: &'a Span<'a>) -> Self {
        EndedSpan { span, framed: Framed::count(|out| write_span(out, span)) }
    }
}

impl Payload for EndedSpan<'_> {
    fn len(&self) -> usize {
        self.framed.len()
    }

    fn write<O: EventOutput>(&self, out: &mut O) {
        self.framed.head(out);
        write_span(out, self.span);
    }
}

fn write_span<O: EventOutput>(out: &mut O, span: &Span<'_>) {
    bytes_field(out, 1, &span.context.trace_id);
    bytes_field(out, 2, &span.context.span_id);
    text_field(out, 3, span.trace_state);
    if let Some(parent) = &span.parent {
        bytes_field(out, 4, parent);
    }
    text_field(out, 5, span.name);
    varint_field(out, 6, span.kind as u64);
    time_field(out, 7, span.start);
    time_field(out, 8, span.end);
    attributes(out, 9, span.attributes);
    varint_field(out, 10, u64::from(span.dropped_attributes));
    span.events.each(&mut |event| {
        let mut len = Counted::default();
        write_event(&mut len, event);
        message_head(out, 11, len.0);
        write_event(out, event);
    });
    span.links.each(&mut |link| {
        let mut len = Counted::default();
        write_link(&mut len, link);
        message_head(out, 13, len.0);
        write_link(out, link);
    });
    match span.status {
        Status::Unset => (),
        Status::Ok => bytes_field(out, 15, &[3 << 3, 1]),
        Status::Error(message) => {
            let mut len = Counted::default();
            text_field(&mut len, 2, message);
            message_head(out, 15, len.0 + 2);
            text_field(out, 2, message);
            varint_field(out, 3, 2);
        }
    }
    // Bit 8 says that bit 9 is known.
    let remote = if span.parent_is_remote { 0x300 } else { 0x100 };
    fixed32_field(out, 16, remote | u32::from(span.context.flags));
}

fn write_event<O: EventOutput>(out: &mut O, event: &SpanEvent<'_>) {
    time_field(out, 1, event.time);
    text_field(out, 2, event.name);
    attributes(out, 3, event.attributes);
}

fn write_link<O: EventOutput>(out: &mut O, link: &Link<'_>) {
    bytes_field(out, 1, &link.context.trace_id);
    bytes_field(out, 2, &link.context.span_id);
    text_field(out, 3, link.trace_state);
    attributes(out, 4, link.attributes);
    fixed32_field(out, 6, u32::from(link.context.flags));
}

//! Lines of transactions and spans.

use super::json::{Object, milliseconds};
use super::{counted, is_transaction, line};
use crate::record::{Attributes, Span, SpanKind, Status, Value};
use crate::ring::EventOutput;

pub(crate) struct SpanLine<'a> {
    span: &'a Span<'a>,
    len: usize,
}

impl<'a> SpanLine<'a> {
    pub(crate) fn new(span: &'a Span<'a>) -> Self {
        let mut line = SpanLine { span, len: 0 };
        line.len = counted(|out| write(out, &line));
        line
    }
}

line!(SpanLine, write);

fn write<O: EventOutput>(out: &mut O, line: &SpanLine<'_>) {
    let span = line.span;
    let transaction = is_transaction(span);
    let mut outer = Object::open(out);
    let mut object = outer.object(if transaction { "transaction" } else { "span" });
    object.hex("id", &span.context.span_id);
    object.hex("trace_id", &span.context.trace_id);
    if let Some(parent) = &span.parent {
        object.hex("parent_id", parent);
    }
    object.keyword("name", span.name);
    if transaction {
        object.text("type", transaction_type(span.kind));
        // How many spans it started is not known here; the server counts those that arrive.
        let mut count = object.object("span_count");
        count.whole("started", 0);
        count.close();
        object.value("sampled", Value::Bool(true));
    } else {
        let (kind, subtype) = span_type(span);
        object.text("type", kind);
        if let Some(key) = subtype {
            subtype_of(&mut object, span.attributes, key);
        }
    }
    object.timestamp("timestamp", span.start);
    milliseconds(object.key("duration"), span.end.saturating_sub(span.start));
    object.text(
        "outcome",
        match span.status {
            Status::Error(_) => "failure",
            Status::Ok => "success",
            Status::Unset => "unknown",
        },
    );
    let mut some = false;
    span.links.each(&mut |link| {
        let out = if some { &mut *object.out } else { object.key("links") };
        out.put(if some { b"," } else { b"[" });
        some = true;
        let mut object = Object::open(out);
        object.hex("trace_id", &link.context.trace_id);
        object.hex("span_id", &link.context.span_id);
        object.close();
    });
    if some {
        object.out.put(b"]");
    }
    let mut otel = object.object("otel");
    otel.text("span_kind", kind_name(span.kind));
    let mut attributes = otel.object("attributes");
    attributes.members(span.attributes);
    attributes.close();
    otel.close();
    object.close();
    outer.close();
    out.put(b"\n");
}

fn transaction_type(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Server => "request",
        SpanKind::Consumer => "messaging",
        _ => "unknown",
    }
}

fn kind_name(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Internal => "INTERNAL",
        SpanKind::Server => "SERVER",
        SpanKind::Client => "CLIENT",
        SpanKind::Producer => "PRODUCER",
        SpanKind::Consumer => "CONSUMER",
    }
}

/// The type, and the attribute that holds the subtype.
fn span_type(span: &Span<'_>) -> (&'static str, Option<&'static str>) {
    let mut found = None;
    span.attributes.each(&mut |key, _| {
        let these = match key {
            "db.system" => ("db", Some("db.system")),
            "db.system.name" => ("db", Some("db.system.name")),
            "messaging.system" => ("messaging", Some("messaging.system")),
            "rpc.system" => ("external", Some("rpc.system")),
            "rpc.system.name" => ("external", Some("rpc.system.name")),
            "url.full" | "http.url" | "http.request.method" | "http.method" => ("external", None),
            _ => return,
        };
        found = found.or(Some(these));
    });
    found.unwrap_or(match span.kind {
        SpanKind::Internal => ("app", None),
        SpanKind::Producer => ("messaging", None),
        _ => ("external", None),
    })
}

fn subtype_of<O: EventOutput>(object: &mut Object<'_, O>, attributes: &dyn Attributes, wanted: &str) {
    let mut first = true;
    attributes.each(&mut |key, value| {
        if let Value::Str(text) = value
            && key == wanted
            && std::mem::take(&mut first)
        {
            object.keyword("subtype", text);
        }
    });
}

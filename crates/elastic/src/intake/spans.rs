//! Transactions and spans as spans.

use super::attributes::members;
use super::ids::id;
use super::tables::{MemberTable, SPAN, TRANSACTION};
use super::time::{of_micros, of_millis};
use super::writer::{AttributeName, MessageWriter};
use tidegate_wire::intake::{Number, Object, Text, Value};

/// `ScopeSpans.spans`
const SPANS: u8 = 2;
/// `Span.attributes`
const ATTRIBUTES: u8 = 9;
/// `Span.links`
const LINKS: u8 = 13;

/// `Span.SpanKind`
mod kind {
    pub(super) const INTERNAL: u64 = 1;
    pub(super) const SERVER: u64 = 2;
    pub(super) const CLIENT: u64 = 3;
    pub(super) const PRODUCER: u64 = 4;
    pub(super) const CONSUMER: u64 = 5;
}

/// The dedicated fields of a transaction or a span.
#[derive(Default)]
struct SpanFields<'a> {
    id: Option<Value<'a>>,
    trace_id: Option<Value<'a>>,
    parent_id: Option<Value<'a>>,
    name: Option<Value<'a>>,
    timestamp: Option<Value<'a>>,
    /// Milliseconds from the beginning of the transaction.
    start: Option<Number<'a>>,
    duration: Option<Number<'a>>,
    sample_rate: Option<Number<'a>>,
    outcome: Option<Text<'a>>,
    links: Option<Value<'a>>,
    kind: Option<Text<'a>>,
    r#type: Option<Text<'a>>,
    action: Option<Text<'a>>,
    has_request: bool,
    has_message: bool,
}

pub(super) fn transaction(out: &mut MessageWriter<'_>, fields: Object<'_>, received_at_ns: u64) {
    let span = out.open(SPANS);
    let said = said(out, fields, &TRANSACTION);
    let is = |name: &[u8]| said.r#type.is_some_and(|text| text.is(name));
    let inferred = if said.has_message || is(b"messaging") {
        kind::CONSUMER
    } else if said.has_request || is(b"request") {
        kind::SERVER
    } else {
        kind::INTERNAL
    };
    finish(out, &said, inferred, received_at_ns);
    out.close(span);
}

pub(super) fn span(out: &mut MessageWriter<'_>, fields: Object<'_>, received_at_ns: u64) {
    let span = out.open(SPANS);
    let said = said(out, fields, &SPAN);
    // Some agents put subtype and action behind the type, set off by dots.
    let kind = said.r#type.and_then(Text::plain).and_then(|text| text.split(|byte| *byte == b'.').next());
    let is = |name: &[u8]| kind == Some(name);
    let does = |name: &[u8]| said.action.is_some_and(|text| text.is(name));
    let inferred = if is(b"db") || is(b"external") || is(b"storage") {
        kind::CLIENT
    } else if is(b"messaging") && (does(b"send") || does(b"publish")) {
        kind::PRODUCER
    } else if is(b"messaging") && (does(b"receive") || does(b"poll")) {
        kind::CONSUMER
    } else {
        kind::INTERNAL
    };
    finish(out, &said, inferred, received_at_ns);
    out.close(span);
}

/// Writes what becomes attributes, and finds what does not.
fn said<'a>(out: &mut MessageWriter<'_>, fields: Object<'a>, table: &'static MemberTable) -> SpanFields<'a> {
    let mut said = SpanFields::default();
    members(out, ATTRIBUTES, fields, table, |name, value| match name {
        b"id" => said.id = Some(value),
        b"trace_id" => said.trace_id = Some(value),
        b"parent_id" => said.parent_id = Some(value),
        b"name" => said.name = Some(value),
        b"timestamp" => said.timestamp = Some(value),
        b"start" => said.start = value.number(),
        b"duration" => said.duration = value.number(),
        b"sample_rate" => said.sample_rate = value.number(),
        b"outcome" => said.outcome = value.text(),
        b"links" => said.links = Some(value),
        b"type" => said.r#type = value.text(),
        b"action" => said.action = value.text(),
        b"otel" => {
            said.kind = value.object().and_then(|otel| otel.find(b"span_kind")).and_then(Value::text);
        }
        b"context" => {
            let has = |name: &[u8]| {
                let part = value.object().and_then(|context| context.find(name)).and_then(Value::object);
                part.is_some_and(|part| !part.is_empty())
            };
            (said.has_request, said.has_message) = (has(b"request"), has(b"message"));
        }
        _ => {}
    });
    said
}

/// Writes what is said in fields of their own.
fn finish(out: &mut MessageWriter<'_>, said: &SpanFields<'_>, inferred: u64, received_at_ns: u64) {
    id::<16>(out, 1, said.trace_id, false, ATTRIBUTES, "elastic.trace_id");
    id::<8>(out, 2, said.id, false, ATTRIBUTES, "elastic.id");
    id::<8>(out, 4, said.parent_id, true, ATTRIBUTES, "elastic.parent_id");
    if let Some(Value::Text(name)) = said.name {
        out.text_field(5, name);
    }
    out.varint(6, said.kind.and_then(named).unwrap_or(inferred));
    times(out, said, received_at_ns);
    if let Some(rate) = said.sample_rate {
        sample_rate(out, rate);
    }
    if let Some(outcome) = said.outcome {
        status(out, outcome);
    }
    if let Some(value) = said.links {
        links(out, value);
    }
}

fn times(out: &mut MessageWriter<'_>, said: &SpanFields<'_>, received_at_ns: u64) {
    let start = of_micros(said.timestamp).unwrap_or_else(|| {
        if said.timestamp.is_none_or(|value| value == Value::Null) {
            out.with_value(ATTRIBUTES, AttributeName::fixed("elastic.received"), |out| out.varint(2, 1));
        } else if let Some(value) = said.timestamp {
            out.attribute(ATTRIBUTES, AttributeName::fixed("elastic.timestamp"), value);
        }
        let since = said.start.map_or(0, |start| of_millis(start).0);
        received_at_ns.saturating_add(since)
    });
    out.fixed64(7, start);
    if let Some(duration) = said.duration {
        let (ns, is_exact) = of_millis(duration);
        let end = start.saturating_add(ns);
        out.fixed64(8, end);
        if !is_exact || end - start != ns {
            out.attribute(ATTRIBUTES, AttributeName::fixed("elastic.duration"), Value::Number(duration));
        }
    }
}

/// How many there are of which this is one: for Elastic's own and for OpenTelemetry's samplers.
fn sample_rate(out: &mut MessageWriter<'_>, rate: Number<'_>) {
    let state = out.open(3);
    out.bytes(b"es=s:");
    out.bytes(rate.raw());
    let probability = rate.double();
    if probability > 0.0 && probability < 1.0 {
        // The threshold below which a random number of 56 bits is not sampled, without the zeros at its end.
        let threshold = ((1.0 - probability) * (1_u64 << 56) as f64).round() as u64;
        let mut digits = [b'0'; 14];
        for (at, digit) in digits.iter_mut().enumerate() {
            let value = (threshold >> (52 - 4 * at)).to_le_bytes()[0] & 15;
            *digit = b"0123456789abcdef".get(usize::from(value)).copied().unwrap_or(b'0');
        }
        let len = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |at| at + 1);
        out.bytes(b",ot=th:");
        out.bytes(digits.get(..len).unwrap_or_default());
    }
    out.close(state);
}

fn status(out: &mut MessageWriter<'_>, outcome: Text<'_>) {
    let code = if outcome.is(b"success") {
        1
    } else if outcome.is(b"failure") {
        2
    } else {
        return out.attribute(ATTRIBUTES, AttributeName::fixed("event.outcome"), Value::Text(outcome));
    };
    let status = out.open(15);
    out.varint(3, code);
    out.close(status);
}

/// Links to other spans, where all of them can be said as such.
fn links(out: &mut MessageWriter<'_>, value: Value<'_>) {
    let plain = |value: Value<'_>| {
        let object = value.object()?;
        let mut ids = [None; 2];
        for (name, value) in object.members() {
            match name.plain()? {
                b"trace_id" => ids[0] = value.text(),
                b"span_id" => ids[1] = value.text(),
                _ => return None,
            }
        }
        let [Some(trace), Some(span)] = ids else { return None };
        let ((trace, trace_is_exact), (span, span_is_exact)) =
            (super::ids::bytes::<16>(trace), super::ids::bytes::<8>(span));
        (trace_is_exact && span_is_exact).then_some((trace, span))
    };
    let Value::Array(array) = value else { return };
    if !array.values().all(|value| plain(value).is_some()) {
        return out.attribute(ATTRIBUTES, AttributeName::fixed("elastic.links"), value);
    }
    for (trace, span) in array.values().filter_map(plain) {
        let link = out.open(LINKS);
        out.field(1, &trace);
        out.field(2, &span);
        out.close(link);
    }
}

/// The kind of this name in OpenTelemetry.
fn named(kind: Text<'_>) -> Option<u64> {
    const NAMES: [(&[u8], u64); 5] = [
        (b"INTERNAL", kind::INTERNAL),
        (b"SERVER", kind::SERVER),
        (b"CLIENT", kind::CLIENT),
        (b"PRODUCER", kind::PRODUCER),
        (b"CONSUMER", kind::CONSUMER),
    ];
    let name = kind.plain()?;
    NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, kind)| *kind)
}

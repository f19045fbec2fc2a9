//! Errors and log events as log records.

use super::attributes::table;
use super::ids::id;
use super::name_budget::NameBudget;
use super::tables::ERROR;
use super::time::{of_micros, of_text};
use super::writer::{AttributeName, MessageWriter};
use tidegate_wire::intake::{Object, Text, Value};

/// `ScopeLogs.log_records`
const RECORDS: u8 = 2;
/// `LogRecord.attributes`
const ATTRIBUTES: u8 = 6;
/// Objects in a log event that are said member by member, around each other.
const MAX_NESTED: usize = 8;

pub(super) fn error(out: &mut MessageWriter<'_>, fields: Object<'_>, received_at_ns: u64) {
    let record = out.open(RECORDS);
    table(out, ATTRIBUTES, fields, &ERROR);
    time(out, of_micros(fields.find(b"timestamp")), fields.find(b"timestamp"), received_at_ns);
    id::<16>(out, 9, fields.find(b"trace_id"), true, ATTRIBUTES, "elastic.trace_id");
    id::<8>(out, 10, fields.find(b"parent_id"), true, ATTRIBUTES, "elastic.parent_id");
    let level = fields.at(&[b"log", b"level"]).and_then(Value::text);
    severity(out, level, ERROR_LEVEL);
    let message = fields.at(&[b"exception", b"message"]).or_else(|| fields.at(&[b"log", b"message"]));
    if let Some(Value::Text(message)) = message {
        body(out, message);
    }
    if fields.find(b"exception").is_some() {
        out.field(12, b"exception");
    }
    out.close(record);
}

pub(super) fn log(out: &mut MessageWriter<'_>, fields: Object<'_>, received_at_ns: u64) {
    let record = out.open(RECORDS);
    let mut said = LogFields::default();
    let mut path = [Text::EMPTY; MAX_NESTED];
    let mut names = NameBudget::of(fields.raw());
    flat(out, fields, &mut path, 0, (&mut said, &mut names));
    let at = match said.time {
        Some(Value::Text(text)) => of_text(text),
        value => of_micros(value),
    };
    if let Some(Value::Text(text)) = said.time
        && !text.raw().ends_with(b"Z")
    {
        out.attribute(ATTRIBUTES, AttributeName::fixed("elastic.timestamp"), Value::Text(text));
    }
    time(out, at, said.time, received_at_ns);
    id::<16>(out, 9, said.trace_id, true, ATTRIBUTES, "elastic.trace_id");
    id::<8>(out, 10, said.span_id, true, ATTRIBUTES, "elastic.id");
    severity(out, said.level, 0);
    if let Some(message) = said.message {
        body(out, message);
    }
    out.close(record);
}

/// The dedicated fields of a log event.
#[derive(Default)]
struct LogFields<'a> {
    time: Option<Value<'a>>,
    message: Option<Text<'a>>,
    level: Option<Text<'a>>,
    trace_id: Option<Value<'a>>,
    span_id: Option<Value<'a>>,
}

/// Writes the members of an object as attributes with their whole names: in ECS, `{"log":{"level":…}}` is `log.level`.
fn flat<'a>(
    out: &mut MessageWriter<'_>,
    object: Object<'a>,
    path: &mut [Text<'a>; MAX_NESTED],
    depth: usize,
    (said, names): (&mut LogFields<'a>, &mut NameBudget),
) {
    for (name, value) in object.members() {
        if let Some(place) = path.get_mut(depth) {
            *place = name;
        }
        let here = path.get(..=depth).unwrap_or_default();
        let is = |known: &[&[u8]]| named(here, known);
        match value {
            Value::Text(_) | Value::Number(_) if is(&[b"@timestamp"]) => said.time = Some(value),
            Value::Text(text) if is(&[b"message"]) => said.message = Some(text),
            Value::Text(text) if is(&[b"log", b"level"]) => said.level = Some(text),
            Value::Text(_) if is(&[b"trace", b"id"]) => said.trace_id = Some(value),
            Value::Text(_) if is(&[b"span", b"id"]) => said.span_id = Some(value),
            Value::Object(inner) if depth + 1 < MAX_NESTED && names.affords(here, inner) => {
                flat(out, inner, path, depth + 1, (said, names));
            }
            value => out.attribute(ATTRIBUTES, AttributeName { prefix: "", path: here }, value),
        }
    }
}

/// Whether a path is this name, written in one piece or in several.
fn named(path: &[Text<'_>], known: &[&[u8]]) -> bool {
    match (path, known) {
        ([one], [first, second]) => {
            let rest = one.plain().and_then(|name| name.strip_prefix(*first));
            rest.and_then(|rest| rest.strip_prefix(b".")) == Some(*second)
        }
        (path, known) => {
            path.len() == known.len() && path.iter().zip(known).all(|(name, known)| name.is(known))
        }
    }
}

/// The time of the record; that at which it was received where it has none.
fn time(out: &mut MessageWriter<'_>, at: Option<u64>, said: Option<Value<'_>>, received_at_ns: u64) {
    match (at, said) {
        (Some(_), _) => {}
        (None, Some(value)) => out.attribute(ATTRIBUTES, AttributeName::fixed("elastic.timestamp"), value),
        (None, None) => {
            out.with_value(ATTRIBUTES, AttributeName::fixed("elastic.received"), |out| out.varint(2, 1))
        }
    }
    out.fixed64(1, at.unwrap_or(received_at_ns));
    out.fixed64(11, received_at_ns);
}

fn body(out: &mut MessageWriter<'_>, message: Text<'_>) {
    let body = out.open(5);
    out.text_field(1, message);
    out.close(body);
}

/// `SEVERITY_NUMBER_ERROR`
const ERROR_LEVEL: u64 = 17;

/// The level as it was written, and its number: `otherwise` where it is none that is known.
fn severity(out: &mut MessageWriter<'_>, level: Option<Text<'_>>, otherwise: u64) {
    const LEVELS: [(&[u8], u64); 13] = [
        (b"trace", 1),
        (b"debug", 5),
        (b"info", 9),
        (b"information", 9),
        (b"notice", 10),
        (b"warn", 13),
        (b"warning", 13),
        (b"error", ERROR_LEVEL),
        (b"err", ERROR_LEVEL),
        (b"critical", 21),
        (b"fatal", 21),
        (b"alert", 22),
        (b"emergency", 24),
    ];
    let name = level.and_then(Text::plain).unwrap_or_default();
    let known = LEVELS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    let number = known.map_or(otherwise, |(_, number)| *number);
    if number > 0 {
        out.varint(2, number);
    }
    if let Some(level) = level {
        out.text_field(3, level);
    }
}

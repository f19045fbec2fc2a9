//! Expected documents in OpenTelemetry's schema, computed from whole objects that prost decodes.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{Span, span};
use serde_json::{Map, Value, json};

/// The kind of a data stream, the attributes that may name it from the weakest on, and a document.
pub(super) type Expected = (String, Value);

pub(super) fn log(from: &Origin<'_>, record: &LogRecord, received: u64) -> Expected {
    let mut document = Map::new();
    let own = if record.time_unix_nano > 0 { record.time_unix_nano } else { record.observed_time_unix_nano };
    document.insert("@timestamp".into(), time(if own > 0 { own } else { received }));
    if record.observed_time_unix_nano > 0 {
        document.insert("observed_timestamp".into(), time(record.observed_time_unix_nano));
    }
    text(&mut document, "severity_text", &record.severity_text);
    number(&mut document, "severity_number", record.severity_number.into());
    text(&mut document, "event_name", &record.event_name);
    text(&mut document, "trace_id", &id(&record.trace_id));
    text(&mut document, "span_id", &id(&record.span_id));
    number(&mut document, "flags", record.flags.into());
    number(&mut document, "dropped_attributes_count", record.dropped_attributes_count.into());
    if let Some(body) = record.body.as_ref().and_then(|body| body.value.as_ref()) {
        let body = match body {
            Any::KvlistValue(_) => json!({ "structured": value_in(Some(body), 8, true) }),
            Any::ArrayValue(array) => {
                let is_map = |one: &AnyValue| matches!(one.value, Some(Any::KvlistValue(_)));
                let all = value_in(Some(body), 8, true);
                json!({ "structured": if array.values.iter().all(is_map) { all } else { json!({ "value": all }) } })
            }
            Any::StringValue(text) => json!({ "text": text }),
            Any::DoubleValue(number) if !number.is_finite() => json!({ "text": number.to_string() }),
            Any::DoubleValue(number) => json!({ "text": format!("{number:?}") }),
            Any::BytesValue(_) => json!({ "text": value(Some(body), 8) }),
            scalar => json!({ "text": value(Some(scalar), 8).to_string() }),
        };
        document.insert("body".into(), body);
    }
    finished(document, "logs", from, &record.attributes)
}

pub(super) fn span(from: &Origin<'_>, span: &Span, received: u64) -> Vec<Expected> {
    let mut document = Map::new();
    document.insert(
        "@timestamp".into(),
        time(if span.start_time_unix_nano > 0 { span.start_time_unix_nano } else { received }),
    );
    text(&mut document, "trace_id", &id(&span.trace_id));
    text(&mut document, "span_id", &id(&span.span_id));
    text(&mut document, "trace_state", &span.trace_state);
    text(&mut document, "parent_span_id", &id(&span.parent_span_id));
    number(&mut document, "flags", span.flags.into());
    text(&mut document, "name", &span.name);
    let kinds = ["Unspecified", "Internal", "Server", "Client", "Producer", "Consumer"];
    let kind = usize::try_from(span.kind).ok().and_then(|kind| kinds.get(kind)).unwrap_or(&"Unspecified");
    document.insert("kind".into(), json!(kind));
    let duration = span.end_time_unix_nano.wrapping_sub(span.start_time_unix_nano).cast_signed();
    document.insert("duration".into(), json!(duration));
    number(&mut document, "dropped_attributes_count", span.dropped_attributes_count.into());
    number(&mut document, "dropped_events_count", span.dropped_events_count.into());
    number(&mut document, "dropped_links_count", span.dropped_links_count.into());
    if !span.links.is_empty() {
        document.insert("links".into(), span.links.iter().map(link).collect());
    }
    let status = span.status.clone().unwrap_or_default();
    let mut said = Map::new();
    said.insert(
        "code".into(),
        json!(match status.code {
            1 => "Ok",
            2 => "Error",
            _ => "Unset",
        }),
    );
    text(&mut said, "message", &status.message);
    document.insert("status".into(), said.into());
    let mut all = vec![finished(document, "traces", from, &span.attributes)];
    all.extend(span.events.iter().map(|one| event(from, span, one, received)));
    all
}

fn link(link: &span::Link) -> Value {
    let mut said = Map::new();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    said.insert("trace_id".into(), json!(hex(&link.trace_id)));
    said.insert("span_id".into(), json!(hex(&link.span_id)));
    text(&mut said, "trace_state", &link.trace_state);
    number(&mut said, "flags", link.flags.into());
    number(&mut said, "dropped_attributes_count", link.dropped_attributes_count.into());
    if !link.attributes.is_empty() {
        said.insert("attributes".into(), attributes(&link.attributes, 8));
    }
    said.into()
}

fn event(from: &Origin<'_>, span: &Span, event: &span::Event, received: u64) -> Expected {
    let mut document = Map::new();
    document.insert(
        "@timestamp".into(),
        time(if event.time_unix_nano > 0 { event.time_unix_nano } else { received }),
    );
    text(&mut document, "trace_id", &id(&span.trace_id));
    text(&mut document, "span_id", &id(&span.span_id));
    text(&mut document, "event_name", &event.name);
    number(&mut document, "dropped_attributes_count", event.dropped_attributes_count.into());
    finished(document, "logs", from, &event.attributes)
}

/// A resource and a scope with their schemas.
pub(super) struct Origin<'a> {
    pub(super) resource: &'a Option<Resource>,
    pub(super) resource_schema: &'a str,
    pub(super) scope: &'a Option<InstrumentationScope>,
    pub(super) scope_schema: &'a str,
}

/// Adds what every document has, and says to which data stream it goes.
pub(super) fn finished(
    mut document: Map<String, Value>,
    kind: &str,
    from: &Origin<'_>,
    own: &[KeyValue],
) -> Expected {
    let (resource, scope) =
        (from.resource.clone().unwrap_or_default(), from.scope.clone().unwrap_or_default());
    let wish = |name: &str| {
        let of = |all: &[KeyValue]| {
            let mut texts = all.iter().filter(|one| one.key == name).filter_map(|one| {
                match one.value.as_ref()?.value.as_ref()? {
                    Any::StringValue(text) if !text.is_empty() => Some(text.clone()),
                    _ => None,
                }
            });
            texts.next_back()
        };
        of(own).or_else(|| of(&scope.attributes)).or_else(|| of(&resource.attributes))
    };
    let dataset = wish("data_stream.dataset").unwrap_or("generic".into()) + ".otel";
    let namespace = wish("data_stream.namespace").unwrap_or("default".into());
    let index = format!("{kind}-{dataset}-{namespace}");
    document
        .insert("data_stream".into(), json!({ "type": kind, "dataset": dataset, "namespace": namespace }));
    members(&mut document, own, 0);
    let mut said = Map::new();
    text(&mut said, "schema_url", from.resource_schema);
    members(&mut said, &resource.attributes, resource.dropped_attributes_count);
    document.insert("resource".into(), said.into());
    let mut said = Map::new();
    text(&mut said, "name", &scope.name);
    text(&mut said, "version", &scope.version);
    text(&mut said, "schema_url", from.scope_schema);
    members(&mut said, &scope.attributes, scope.dropped_attributes_count);
    document.insert("scope".into(), said.into());
    (index, document.into())
}

fn members(object: &mut Map<String, Value>, all: &[KeyValue], dropped: u32) {
    number(object, "dropped_attributes_count", dropped.into());
    let routing = ["data_stream.type", "data_stream.dataset", "data_stream.namespace"];
    let kept: Vec<_> = all.iter().filter(|one| !routing.contains(&one.key.as_str())).cloned().collect();
    if !kept.is_empty() {
        object.insert("attributes".into(), attributes(&kept, 8));
    }
}

fn attributes(all: &[KeyValue], depth: usize) -> Value {
    members_of(all, depth, false)
}

fn members_of(all: &[KeyValue], depth: usize, is_free: bool) -> Value {
    let value_of = |any: Option<&Any>| value_in(any, depth, is_free);
    resolved(all).into_iter().map(|(key, value)| (key, value_of(value))).collect::<Map<_, _>>().into()
}

/// Attributes under the names that they are written under, each name once: of equal keys the last value, of keys that
/// are the same only since one was renamed the one that was not, else the greatest. In the order in which they came,
/// but from the first that was renamed on in that of their names.
fn resolved(all: &[KeyValue]) -> Vec<(String, Option<&Any>)> {
    let mut pairs: Vec<(&str, Option<&Any>)> = Vec::new();
    for one in all {
        let value = one.value.as_ref().and_then(|value| value.value.as_ref());
        match pairs.iter_mut().find(|(key, _)| *key == one.key) {
            Some((_, known)) => *known = value,
            None => pairs.push((&one.key, value)),
        }
    }
    let rank = |key: &str| (field(key), field(key) == key, key.to_owned());
    let first = pairs.iter().position(|(key, _)| field(key) != *key).unwrap_or(pairs.len());
    pairs[first..].sort_by_key(|(key, _)| rank(key));
    let is_beaten =
        |key: &str| pairs.iter().any(|(other, _)| field(other) == field(key) && rank(other) > rank(key));
    pairs.iter().filter(|(key, _)| !is_beaten(key)).map(|(key, value)| (field(key), *value)).collect()
}

fn field(key: &str) -> String {
    match key {
        "" => "_".into(),
        key if key.split('.').any(|part| part.trim_ascii().is_empty()) => {
            let part =
                |part: &str| if part.trim_ascii().is_empty() { "_".to_owned() } else { part.to_owned() };
            key.split('.').map(part).collect::<Vec<_>>().join("_")
        }
        key => key.into(),
    }
}

/// Whether a list can be a field of one type.
fn is_uniform(values: &[AnyValue]) -> bool {
    let kinds: Vec<_> =
        values.iter().filter_map(|one| one.value.as_ref()).map(std::mem::discriminant).collect();
    let is_list = |one: &AnyValue| matches!(one.value, Some(Any::ArrayValue(_)));
    kinds.iter().all(|kind| *kind == kinds[0]) && !values.iter().any(is_list)
}

/// A value as a text: what is neither a text nor bytes as JSON, in the order that it came in.
fn as_text(any: &Any) -> String {
    let list = |parts: Vec<String>| parts.join(",");
    let json = |one: &AnyValue| one.value.as_ref().map_or("null".to_owned(), in_json);
    fn in_json(any: &Any) -> String {
        match any {
            Any::StringValue(_) | Any::BytesValue(_) => escaped(&as_text(any)),
            Any::DoubleValue(number) if !number.is_finite() => "null".into(),
            other => as_text(other),
        }
    }
    match any {
        Any::StringValue(text) => text.clone(),
        Any::BytesValue(bytes) => base64(bytes),
        Any::BoolValue(value) => value.to_string(),
        Any::IntValue(value) => value.to_string(),
        Any::DoubleValue(value) if !value.is_finite() => value.to_string(),
        Any::DoubleValue(value) => format!("{value:?}"),
        Any::ArrayValue(array) => format!("[{}]", list(array.values.iter().map(json).collect())),
        Any::KvlistValue(map) => {
            let said = |value: Option<&Any>| value.map_or("null".to_owned(), in_json);
            let pairs = resolved(&map.values);
            let pairs = pairs.iter().map(|(key, value)| format!("{}:{}", escaped(key), said(*value)));
            format!("{{{}}}", list(pairs.collect()))
        }
        Any::StringValueStrindex(_) => "null".into(),
    }
}

/// A JSON string, with those escapes that this project uses.
fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '\u{8}' | '\u{c}' => out += &format!("\\u{:04x}", u32::from(letter)),
            letter => out += json!(letter).to_string().strip_prefix('"').unwrap().strip_suffix('"').unwrap(),
        }
    }
    out + "\""
}

fn value(any: Option<&Any>, depth: usize) -> Value {
    value_in(any, depth, false)
}

fn value_in(any: Option<&Any>, depth: usize, is_free: bool) -> Value {
    let nested = |one: &AnyValue| value_in(one.value.as_ref(), depth.saturating_sub(1), is_free);
    match any {
        None | Some(Any::StringValueStrindex(_)) => Value::Null,
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(value)) => json!(value),
        Some(Any::IntValue(value)) => json!(value),
        Some(Any::DoubleValue(value)) => json!(value),
        Some(Any::BytesValue(bytes)) => json!(base64(bytes)),
        Some(Any::ArrayValue(_) | Any::KvlistValue(_)) if depth == 0 => {
            json!(value(any, usize::MAX).to_string())
        }
        Some(Any::ArrayValue(array)) if is_free || is_uniform(&array.values) => {
            array.values.iter().map(nested).collect()
        }
        Some(Any::ArrayValue(array)) => {
            let quoted = |one: &AnyValue| one.value.as_ref().map_or(Value::Null, |any| json!(as_text(any)));
            array.values.iter().map(quoted).collect()
        }
        Some(Any::KvlistValue(map)) => members_of(&map.values, depth - 1, is_free),
    }
}

fn base64(bytes: &[u8]) -> String {
    let digits: Vec<char> = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['+', '/']).collect();
    let bits: Vec<bool> =
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
    let mut text: String = bits
        .chunks(6)
        .map(|six| six.iter().enumerate().map(|(place, bit)| usize::from(*bit) << (5 - place)).sum::<usize>())
        .map(|six| digits[six])
        .collect();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

fn text(object: &mut Map<String, Value>, name: &str, text: &str) {
    if !text.is_empty() {
        object.insert(name.into(), json!(text));
    }
}

fn number(object: &mut Map<String, Value>, name: &str, number: i64) {
    if number != 0 {
        object.insert(name.into(), json!(number));
    }
}

fn id(bytes: &[u8]) -> String {
    if bytes.iter().all(|byte| *byte == 0) {
        return String::new();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A time, which stays a number here: what was written is read to compare.
fn time(nanoseconds: u64) -> Value {
    json!({ "time": nanoseconds })
}

/// Replaces the times of a document by what they mean.
pub(super) fn with_times(mut document: Value) -> Value {
    for name in ["@timestamp", "observed_timestamp", "start_timestamp"] {
        if let Some(text) = document.get(name).and_then(Value::as_str) {
            document[name] = time(nanoseconds(text).unwrap());
        }
    }
    document
}

/// A time as documents have it, in nanoseconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (year, month) = (number(0, 4)?, number(5, 7)?);
    let mut days: u64 = (1970..year).map(|year| if leap(year) { 366 } else { 365 }).sum();
    let of_month = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    days += of_month.iter().take(usize::try_from(month).ok()? - 1).sum::<u64>() + number(8, 10)? - 1;
    let seconds = days * 86_400 + number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    let fraction = text.get(20..)?.strip_suffix('Z')?;
    let scale = 10u64.pow(9u32.checked_sub(u32::try_from(fraction.len()).ok()?)?);
    Some(seconds * 1_000_000_000 + fraction.parse::<u64>().ok()? * scale)
}

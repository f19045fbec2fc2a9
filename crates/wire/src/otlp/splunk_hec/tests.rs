//! The events are those of a model that makes them of what prost decodes; and space of any length makes the same.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")]

use super::super::json::GROWTH;
use super::super::tests::strategies;
use super::super::{MAX_DEPTH, Signal, check};
use super::*;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue as ProtoValue, ArrayValue, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord as ProtoRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource as ProtoResource;
use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Map, Value, json};

fn encoded_in(raw: &[u8], metadata: &Metadata, first: usize) -> String {
    let (mut encoder, mut out, mut len) = (Encoder::new(raw, metadata), Vec::new(), first);
    loop {
        let mut space = vec![0xaa; len];
        let progress = encoder.write(&mut space);
        out.extend_from_slice(&space[..progress.written]);
        match progress.next {
            Next::Done => return String::from_utf8(out).unwrap(),
            Next::More => assert!(progress.written >= TURN),
            Next::Space => len = if progress.written == 0 { len * 2 + 1 } else { first },
        }
    }
}

fn encoded(raw: &[u8], metadata: &Metadata) -> Vec<Value> {
    let all = encoded_in(raw, metadata, 1 << 20);
    assert_eq!(encoded_in(raw, metadata, 7), all);
    assert_eq!(encoded_in(raw, metadata, 300), all);
    all.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn plain(value: &Option<ProtoValue>) -> Value {
    let double = |value: f64| match value {
        value if value.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        value => json!(value),
    };
    match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(value)) => json!(value),
        Some(Any::IntValue(value)) => json!(value),
        Some(Any::DoubleValue(value)) => double(*value),
        Some(Any::BytesValue(bytes)) => {
            json!(base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes))
        }
        Some(Any::ArrayValue(array)) => {
            array.values.iter().map(|value| plain(&Some(value.clone()))).collect()
        }
        Some(Any::KvlistValue(list)) => Value::Object(
            list.values.iter().map(|entry| (entry.key.clone(), plain(&entry.value))).collect::<Map<_, _>>(),
        ),
        _ => Value::Null,
    }
}

/// The members of an event without its fields, and the fields with nested values as what their texts say.
fn modelled(request: &ExportLogsServiceRequest, metadata: &Metadata) -> Vec<Value> {
    let mut events = Vec::new();
    for group in &request.resource_logs {
        let resource = group.resource.clone().unwrap_or_default().attributes;
        for scope in &group.scope_logs {
            for record in &scope.log_records {
                events.push(modelled_event(&resource, scope, record, metadata));
            }
        }
    }
    events
}

fn modelled_event(
    resource: &[KeyValue],
    scope: &ScopeLogs,
    record: &ProtoRecord,
    metadata: &Metadata,
) -> Value {
    let mut event = Map::new();
    let body = plain(&record.body);
    let is_empty = body.is_null() || body == json!("");
    let name = &record.event_name;
    event.insert(
        "event".into(),
        match is_empty {
            true if name.is_empty() => json!({}),
            true => json!(name),
            false => body,
        },
    );
    let mut fields = Map::new();
    let is_own = |key: &str| record.attributes.iter().any(|other| other.key == key);
    let of_resource = resource.iter().filter(|attribute| !is_own(&attribute.key));
    for KeyValue { key, value, .. } in of_resource.chain(&record.attributes) {
        let value = plain(value);
        let is_text = value.as_str().is_some_and(|text| !text.is_empty())
            && matches!(attribute_kind(resource, record, key, &value), Kind::Text);
        let is_metadata = is_text && metadata.position(key.as_bytes()).is_some();
        if !value.is_null() && !is_metadata {
            fields.insert(key.clone(), value);
        }
    }
    for (name, field) in metadata.fields() {
        let last_text = |attributes: &[KeyValue]| {
            let found = attributes.iter().filter(|other| other.key == field.attribute);
            found.filter_map(text).rfind(|text| !text.is_empty())
        };
        let value = last_text(&record.attributes).or(last_text(resource)).or(field.default.clone());
        event.extend(value.map(|value| (name.to_owned(), json!(value))));
    }
    let scope = scope.scope.clone().unwrap_or_default();
    for (name, text) in [
        ("otel.scope.name", &scope.name),
        ("otel.scope.version", &scope.version),
        ("otel.log.severity.text", &record.severity_text),
        ("event.name", name),
    ] {
        if !text.is_empty() {
            fields.insert(name.into(), json!(text));
        }
    }
    if record.severity_number != 0 {
        fields.insert("otel.log.severity.number".into(), json!(record.severity_number));
    }
    for (name, id) in [("trace_id", &record.trace_id), ("span_id", &record.span_id)] {
        if id.iter().any(|byte| *byte != 0) {
            let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            fields.insert(name.into(), json!(hex));
        }
    }
    if !fields.is_empty() {
        event.insert("fields".into(), Value::Object(fields));
    }
    Value::Object(event)
}

enum Kind {
    Text,
    Other,
}

/// Bytes and doubles without a number are texts in JSON, too; they are no metadata.
fn attribute_kind(resource: &[KeyValue], record: &ProtoRecord, key: &str, value: &Value) -> Kind {
    let all = resource.iter().chain(&record.attributes);
    let mut same = all.filter(|other| other.key == key && plain(&other.value) == *value);
    if same.any(|other| text(other).is_some()) { Kind::Text } else { Kind::Other }
}

fn text(attribute: &KeyValue) -> Option<String> {
    match attribute.value.as_ref()?.value.as_ref()? {
        Any::StringValue(text) => Some(text.clone()),
        _ => None,
    }
}

/// An event as the model has it: without its time, and with the JSON in the texts of fields read.
fn comparable(mut event: Value, expected: &Value) -> Value {
    let members = event.as_object_mut().unwrap();
    members.remove("time");
    if let Some(fields) = members.get_mut("fields").and_then(Value::as_object_mut) {
        for (name, value) in fields {
            let wanted = &expected["fields"][name];
            if (wanted.is_object() || wanted.is_array())
                && let Some(text) = value.as_str()
            {
                *value = serde_json::from_str(text).unwrap();
            }
        }
    }
    event
}

fn request(attributes: Vec<KeyValue>, record: ProtoRecord) -> Vec<u8> {
    let resource = Some(ProtoResource { attributes, ..ProtoResource::default() });
    let scope_logs = vec![ScopeLogs { log_records: vec![record], ..ScopeLogs::default() }];
    let group = ResourceLogs { resource, scope_logs, ..ResourceLogs::default() };
    ExportLogsServiceRequest { resource_logs: vec![group] }.encode_to_vec()
}

fn of_text(text: &str) -> Option<ProtoValue> {
    Some(ProtoValue { value: Some(Any::StringValue(text.into())) })
}

fn attribute(key: &str, value: Option<ProtoValue>) -> KeyValue {
    KeyValue { key: key.into(), value, key_strindex: 0 }
}

proptest! {
    #[test]
    fn events_say_what_the_records_say(request in strategies::logs()) {
        let field = |attribute: &str, default: Option<&str>| {
            MetadataField { attribute: attribute.into(), default: default.map(Into::into) }
        };
        let metadata = Metadata {
            host: field("a", None),
            source: field("b", Some("in\"put")),
            sourcetype: field("service.name", None),
            index: field("none", Some("main")),
        };
        let raw = request.encode_to_vec();
        let expected = modelled(&request, &metadata);
        let events = encoded(&raw, &metadata);
        prop_assert_eq!(events.len(), expected.len());
        for (event, expected) in events.into_iter().zip(expected) {
            prop_assert_eq!(comparable(event, &expected), expected);
        }
    }
}

#[test]
fn an_event_looks_as_splunk_expects() {
    let record = ProtoRecord {
        time_unix_nano: 1_700_000_000_012_000_000,
        severity_text: "WARN".into(),
        body: of_text("disk \"sda\" is full"),
        attributes: vec![
            attribute("com.splunk.sourcetype", of_text("syslog")),
            attribute("code", Some(ProtoValue { value: Some(Any::IntValue(28)) })),
        ],
        ..ProtoRecord::default()
    };
    let raw = request(vec![attribute("host.name", of_text("web-1"))], record);
    assert_eq!(
        encoded_in(&raw, &Metadata::default(), 4096),
        "{\"time\":1700000000.012,\"host\":\"web-1\",\"sourcetype\":\"syslog\",\"event\":\"disk \\\"sda\\\" is full\",\
         \"fields\":{\"code\":28,\"otel.log.severity.text\":\"WARN\"}}\n"
    );
}

/// Splunk reads a nested field as nothing, so it is a text.
#[test]
fn a_nested_attribute_is_a_text_of_json() {
    let list = Any::ArrayValue(ArrayValue { values: vec![of_text("a").unwrap(), of_text("b").unwrap()] });
    let map = Any::KvlistValue(KeyValueList { values: vec![attribute("k\"", of_text("v"))] });
    let attributes = vec![
        attribute("list", Some(ProtoValue { value: Some(list) })),
        attribute("map", Some(ProtoValue { value: Some(map) })),
    ];
    let raw = request(attributes, ProtoRecord { body: of_text("x"), ..ProtoRecord::default() });
    let events = encoded(&raw, &Metadata::default());
    assert_eq!(events[0]["fields"], json!({"list": ["a", "b"], "map": "{\"k\\\"\":\"v\"}"}));
}

/// The memory that a sink sets aside suffices for the worst item and the deepest value.
#[test]
fn no_item_grows_beyond_the_declared_factor() {
    let control = of_text(&"\u{1}".repeat(100_000));
    let nested = |value| ProtoValue {
        value: Some(Any::KvlistValue(KeyValueList { values: vec![attribute("", Some(value))] })),
    };
    let of = |value| Some(ProtoValue { value: Some(value) });
    let empty = of(Any::ArrayValue(ArrayValue { values: vec![ProtoValue { value: None }; 50_000] }));
    let small = of(Any::IntValue(1));
    let deep = (0..MAX_DEPTH - 1).fold(ProtoValue { value: Some(Any::BoolValue(true)) }, |inner, _| {
        ProtoValue { value: Some(Any::ArrayValue(ArrayValue { values: vec![inner] })) }
    });
    for (what, attributes) in [
        ("control characters", vec![attribute("a", control.clone())]),
        ("control characters in a map", vec![attribute("a", Some(nested(control.unwrap())))]),
        ("empty values", vec![attribute("a", empty)]),
        ("short attributes", vec![attribute("", small); 50_000]),
        ("depth", vec![attribute("a", Some(deep))]),
    ] {
        let raw = request(vec![], ProtoRecord { attributes, ..ProtoRecord::default() });
        check(Signal::Logs, &raw).unwrap();
        let len = encoded_in(&raw, &Metadata::default(), 1 << 20).len();
        assert!(len <= GROWTH * raw.len() + 512, "{what}: {len} of {}", raw.len());
    }
}

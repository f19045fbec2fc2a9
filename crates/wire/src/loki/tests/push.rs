//! Promise: each record is an entry; a stream of Loki becomes the same stream again; and lengths are known before the bytes.

use super::model::{Model, NOW, Pair, PushRequest, otlp, protobuf, push_request, quoted, streams};
use crate::loki::Format;
use crate::loki::push::{Encoder, GROWTH, LabelRules, OVERHEAD};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, any_value::Value,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use proptest::prelude::*;
use prost::Message as _;
use std::collections::BTreeMap;

fn pushed_bytes(raw: &[u8], rules: &LabelRules) -> Vec<u8> {
    let mut encoder = Encoder::new(raw, rules, NOW);
    let mut out = Vec::new();
    while let Some(len) = encoder.next().unwrap() {
        let before = out.len();
        encoder.write(&mut out).unwrap();
        assert_eq!((out.len() - before) as u64, len);
        assert!(encoder.entries() > 0);
    }
    out
}

/// The request, with neighbouring streams of the same labels as one.
fn pushed(raw: &[u8], rules: &LabelRules) -> PushRequest {
    let mut request = PushRequest::decode(&*pushed_bytes(raw, rules)).unwrap();
    request.streams.dedup_by(|next, stream| {
        let is_same = next.labels == stream.labels;
        if is_same {
            stream.entries.append(&mut next.entries);
        }
        is_same
    });
    request
}

proptest! {
    #[test]
    fn streams_come_out_as_they_went_in(streams in streams()) {
        let streams: Vec<Model> = streams.into_iter().filter(|stream| !stream.entries.is_empty()).collect();
        let found = pushed(&otlp(Format::Protobuf, &protobuf(&streams)).unwrap(), &LabelRules::default());
        let mut expected = push_request(&streams);
        for (stream, model) in expected.streams.iter_mut().zip(&streams) {
            stream.hash = 0;
            let labels: BTreeMap<_, _> =
                model.labels.clone().into_iter().filter(|(_, value)| !value.is_empty()).collect();
            stream.labels = if labels.is_empty() {
                "{service_name=\"unknown_service\"}".into()
            } else {
                labels_of(&quoted(&labels))
            };
            let empty = model.labels.iter().filter(|(_, value)| value.is_empty());
            let empty: Vec<_> = empty
                .map(|(name, value)| Pair {
                    name: String::from_utf8_lossy(crate::loki::names::attribute_of(name.as_bytes())).into(),
                    value: value.clone(),
                })
                .collect();
            for (entry, model) in stream.entries.iter_mut().zip(&model.entries) {
                entry.parsed.clear();
                entry.metadata.splice(0..0, empty.iter().cloned());
                if model.0 == 0 {
                    entry.timestamp = Some(super::model::Timestamp {
                        seconds: (NOW / 1_000_000_000) as i64,
                        nanos: 0,
                    });
                }
            }
        }
        expected.streams.dedup_by(|next, stream| {
            let is_same = next.labels == stream.labels;
            if is_same {
                stream.entries.append(&mut next.entries);
            }
            is_same
        });
        let mut found = found;
        for stream in &mut found.streams {
            stream.labels = labels_of(&stream.labels);
        }
        prop_assert_eq!(found, expected);
    }
}

/// Labels in one spelling, through the parser.
fn labels_of(text: &str) -> String {
    let mut labels = crate::loki::labels::Labels::new(text.as_bytes());
    let mut found = BTreeMap::new();
    while let Some((name, value)) = labels.next().unwrap() {
        let mut out = vec![0; 4 * text.len() + 16];
        let mut writer = crate::otlp::json::writer::Writer::new(&mut out);
        value.put(&mut writer).unwrap();
        let len = crate::otlp::json::writer::ProtoOutput::len(&writer);
        out.truncate(len);
        found.insert(String::from_utf8(name.to_vec()).unwrap(), String::from_utf8(out).unwrap());
    }
    quoted(&found)
}

fn value(value: Value) -> Option<AnyValue> {
    Some(AnyValue { value: Some(value) })
}

fn attribute(key: &str, of: Value) -> KeyValue {
    KeyValue { key: key.into(), value: value(of), ..KeyValue::default() }
}

fn request(resource: Vec<KeyValue>, scope: InstrumentationScope, records: Vec<LogRecord>) -> Vec<u8> {
    let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records: records, schema_url: String::new() }];
    let resource = Some(Resource { attributes: resource, ..Resource::default() });
    let logs = ResourceLogs { resource, scope_logs, schema_url: String::new() };
    ExportLogsServiceRequest { resource_logs: vec![logs] }.encode_to_vec()
}

#[test]
fn a_record_becomes_what_the_otlp_endpoint_of_loki_makes_of_it() {
    let map = KeyValueList {
        values: vec![attribute("a", Value::IntValue(-1)), attribute("b", Value::BoolValue(true))],
    };
    let array = ArrayValue {
        values: vec![AnyValue { value: None }, value(Value::StringValue("\"".into())).unwrap()],
    };
    let raw = request(
        vec![
            attribute("k8s.pod.name", Value::StringValue("web \"0\"\n".into())),
            attribute("host.name", Value::StringValue("h".into())),
            attribute("service.name", Value::StringValue("shop".into())),
            attribute("service.instance.id", Value::StringValue("x".repeat(2049))),
        ],
        InstrumentationScope { name: "lib".into(), version: "1".into(), ..InstrumentationScope::default() },
        vec![LogRecord {
            observed_time_unix_nano: 5_000_000_001,
            severity_number: 9,
            severity_text: "INFO".into(),
            body: value(Value::KvlistValue(map)),
            attributes: vec![
                attribute("http.code", Value::DoubleValue(200.0)),
                attribute("é.1", Value::DoubleValue(1.5)),
                attribute("1st", Value::BytesValue(vec![1, 2, 3])),
                attribute("list", Value::ArrayValue(array)),
                attribute("nan", Value::DoubleValue(f64::NAN)),
            ],
            flags: 1,
            trace_id: vec![0xab; 16],
            span_id: vec![0; 8],
            ..LogRecord::default()
        }],
    );
    let PushRequest { streams } = pushed(&raw, &LabelRules::default());
    assert_eq!(streams[0].labels, "{service_name=\"shop\", k8s_pod_name=\"web \\\"0\\\"\\n\"}");
    let entry = &streams[0].entries[0];
    assert_eq!(entry.line, r#"{"a":-1,"b":true}"#);
    assert_eq!(entry.timestamp.as_ref().map(|time| (time.seconds, time.nanos)), Some((5, 1)));
    let metadata: Vec<_> =
        entry.metadata.iter().map(|pair| (pair.name.as_str(), pair.value.as_str())).collect();
    assert_eq!(
        metadata,
        [
            ("host_name", "h"),
            ("service_instance_id", "x".repeat(2049).as_str()),
            ("scope_name", "lib"),
            ("scope_version", "1"),
            ("http_code", "200"),
            ("__1", "1.5"),
            ("key_1st", "AQID"),
            ("list", r#"[null,"\""]"#),
            ("nan", "NaN"),
            ("observed_timestamp", "5000000001"),
            ("severity_number", "9"),
            ("severity_text", "INFO"),
            ("flags", "1"),
            ("trace_id", "abababababababababababababababab"),
        ]
    );
}

#[test]
fn a_stream_without_labels_gets_the_name_of_an_unknown_service() {
    let raw = request(vec![], InstrumentationScope::default(), vec![LogRecord::default()]);
    let PushRequest { streams } = pushed(&raw, &LabelRules::new(["a.b", "a_b"]));
    assert_eq!(streams[0].labels, "{service_name=\"unknown_service\"}");
    assert_eq!(streams[0].entries[0].timestamp.as_ref().unwrap().seconds as u64, NOW / 1_000_000_000);
}

#[test]
fn attributes_become_labels_as_configured() {
    let text = |text: &str| Value::StringValue(text.into());
    let resource =
        vec![attribute("a.b", text("1")), attribute("a.b", text("2")), attribute("c", Value::IntValue(3))];
    let raw = request(resource, InstrumentationScope::default(), vec![LogRecord::default()]);
    let PushRequest { streams } = pushed(&raw, &LabelRules::new(["c", "none", "a.b", "a_b"]));
    assert_eq!(streams[0].labels, "{c=\"3\", a_b=\"2\"}");
    assert_eq!(streams[0].entries[0].metadata[0].value, "1", "the attribute that is given twice");
}

/// Promise: an item with its envelope is at most [`GROWTH`] times as long, and [`OVERHEAD`] bytes.
#[test]
fn the_worst_item_grows_within_its_bound() {
    let control = || "\u{1}".repeat(5000);
    let nested =
        |value: Value| Value::ArrayValue(ArrayValue { values: vec![AnyValue { value: Some(value) }] });
    let empty = Value::ArrayValue(ArrayValue { values: vec![AnyValue { value: None }; 3000] });
    let pairs = KeyValueList { values: vec![KeyValue::default(); 3000] };
    let worst = [
        nested(Value::StringValue(control())),
        empty,
        Value::KvlistValue(pairs),
        nested(nested(Value::BytesValue(vec![255; 5000]))),
        Value::ArrayValue(ArrayValue { values: vec![value(Value::IntValue(i64::MIN)).unwrap(); 500] }),
        Value::ArrayValue(ArrayValue {
            values: vec![value(Value::DoubleValue(-f64::MIN_POSITIVE)).unwrap(); 500],
        }),
        Value::ArrayValue(ArrayValue { values: vec![value(Value::BoolValue(false)).unwrap(); 500] }),
    ];
    let full = |body: Option<AnyValue>, attributes: Vec<KeyValue>| LogRecord {
        time_unix_nano: u64::MAX,
        observed_time_unix_nano: u64::MAX,
        severity_number: 24,
        flags: u32::MAX,
        trace_id: vec![1; 16],
        span_id: vec![1; 8],
        severity_text: "x".into(),
        event_name: "y".into(),
        body,
        attributes,
        ..LogRecord::default()
    };
    let mut requests = Vec::new();
    for worst in worst {
        requests.push(request(
            vec![],
            InstrumentationScope::default(),
            vec![full(value(worst.clone()), vec![])],
        ));
        let attributes = vec![attribute("1", worst.clone())];
        requests.push(request(vec![], InstrumentationScope::default(), vec![full(None, attributes.clone())]));
        requests.push(request(attributes, InstrumentationScope::default(), vec![full(None, vec![])]));
    }
    let many = |of: KeyValue| vec![of; 3000];
    for of in [
        KeyValue::default(),
        attribute("", Value::BoolValue(false)),
        attribute("1", Value::IntValue(-1)),
        attribute("", Value::DoubleValue(-1.0e-300)),
    ] {
        requests.push(request(many(of.clone()), InstrumentationScope::default(), vec![full(None, many(of))]));
    }
    let label = attribute("service.name", Value::StringValue("\u{1}".repeat(2048)));
    requests.push(request(vec![label], InstrumentationScope::default(), vec![full(None, vec![])]));
    for raw in requests {
        let len = pushed_bytes(&raw, &LabelRules::default()).len();
        assert!(len <= GROWTH * raw.len() + OVERHEAD, "{} became {len}", raw.len());
    }
}

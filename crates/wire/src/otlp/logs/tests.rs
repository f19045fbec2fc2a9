//! prost encodes the same records, and has the same bytes.

#![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

use super::{Attributes, Body, EncodedLogs, LogRecord, LogsEncoder, Value};
use crate::otlp::{Signal, check};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, any_value,
};
use opentelemetry_proto::tonic::logs::v1 as proto;
use opentelemetry_proto::tonic::resource::v1::Resource;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

const MOST: usize = 4 << 20;

/// Writes what prost's value holds, as a member or as an element.
fn write(out: &mut Attributes<'_>, key: Option<&str>, value: &AnyValue) {
    use any_value::Value as V;
    let plain = match &value.value {
        None => Value::Empty,
        Some(V::StringValue(text)) => Value::Text(text),
        Some(V::BoolValue(value)) => Value::Bool(*value),
        Some(V::IntValue(value)) => Value::Int(*value),
        Some(V::DoubleValue(value)) => Value::Double(*value),
        Some(V::BytesValue(bytes)) => Value::Bytes(bytes),
        Some(V::KvlistValue(members)) => {
            let open = match key {
                Some(key) => out.open_map(key),
                None => out.push_map(),
            };
            let open = open.unwrap();
            list(out, &members.values);
            return out.close(open);
        }
        Some(V::ArrayValue(elements)) => {
            let open = match key {
                Some(key) => out.open_list(key),
                None => out.push_list(),
            };
            let open = open.unwrap();
            elements.values.iter().for_each(|element| write(out, None, element));
            return out.close(open);
        }
        other => panic!("not generated: {other:?}"),
    };
    match key {
        Some(key) => out.put(key, plain).unwrap(),
        None => out.push(plain).unwrap(),
    }
}

fn list(out: &mut Attributes<'_>, attributes: &[KeyValue]) {
    for attribute in attributes {
        write(out, Some(&attribute.key), attribute.value.as_ref().unwrap());
    }
}

fn encoded(attributes: &[KeyValue]) -> Vec<u8> {
    let mut bytes = Vec::new();
    list(&mut Attributes::new(&mut bytes, MOST), attributes);
    bytes
}

fn add(encoder: &mut LogsEncoder<'_>, record: &proto::LogRecord) -> Result<(), crate::output::Full> {
    let attributes = encoded(&record.attributes);
    let text;
    let value;
    let pieces;
    let body = match &record.body {
        None => Body::None,
        Some(AnyValue { value: Some(any_value::Value::StringValue(whole)), .. }) => {
            text = whole.as_bytes().split_at(whole.len() / 2);
            pieces = [text.0, text.1];
            Body::Text(&pieces)
        }
        Some(AnyValue { value: Some(any_value::Value::KvlistValue(members)), .. }) => {
            value = encoded(&members.values);
            Body::Map(&value)
        }
        Some(other) => {
            value = other.encode_to_vec();
            Body::Encoded(&value)
        }
    };
    encoder.record(&LogRecord {
        time_ns: record.time_unix_nano,
        observed_ns: record.observed_time_unix_nano,
        severity: u8::try_from(record.severity_number).unwrap(),
        severity_text: &record.severity_text,
        body,
        attributes: &attributes,
    })
}

fn value() -> impl Strategy<Value = AnyValue> {
    use any_value::Value as V;
    let text = prop_oneof!["\\PC{0,20}", "[a-z]{100,300}"];
    let plain = prop_oneof![
        text.prop_map(V::StringValue),
        any::<bool>().prop_map(V::BoolValue),
        any::<i64>().prop_map(V::IntValue),
        (0..200i64).prop_map(V::IntValue),
        any::<i32>().prop_map(|value| V::DoubleValue(value.into())),
        vec(any::<u8>(), 0..200).prop_map(V::BytesValue),
    ];
    let any_value = prop_oneof![
        1 => Just(AnyValue { value: None }),
        9 => plain.prop_map(|value| AnyValue { value: Some(value) })
    ];
    any_value.prop_recursive(4, 40, 6, |inner| {
        let pair = ("[a-z.]{0,150}", inner.clone());
        let pair = pair.prop_map(|(key, value)| KeyValue { key, value: Some(value), ..Default::default() });
        prop_oneof![
            vec(pair, 0..6).prop_map(|values| V::KvlistValue(KeyValueList { values })),
            vec(inner, 0..6).prop_map(|values| V::ArrayValue(ArrayValue { values })),
        ]
        .prop_map(|value| AnyValue { value: Some(value) })
    })
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    vec(("[a-z.]{0,12}", value()), 0..4).prop_map(|pairs| {
        let pair = |(key, value)| KeyValue { key, value: Some(value), ..Default::default() };
        pairs.into_iter().map(pair).collect()
    })
}

fn record() -> impl Strategy<Value = proto::LogRecord> {
    let time = prop_oneof![Just(0u64), any::<u64>()];
    let fields = (time.clone(), time, 0..25i32, "[A-Z]{0,8}", proptest::option::of(value()), attributes());
    fields.prop_map(|(time, observed, severity, text, body, attributes)| proto::LogRecord {
        time_unix_nano: time,
        observed_time_unix_nano: observed,
        severity_number: severity,
        severity_text: text,
        body,
        attributes,
        ..Default::default()
    })
}

fn groups() -> impl Strategy<Value = Vec<proto::ResourceLogs>> {
    let group = (attributes(), "[a-z]{0,9}", vec(record(), 0..12));
    let group = group.prop_map(|(attributes, name, log_records)| {
        let resource = (!attributes.is_empty()).then(|| Resource { attributes, ..Default::default() });
        let scope = (!name.is_empty()).then(|| InstrumentationScope { name, ..Default::default() });
        let scope_logs = vec![proto::ScopeLogs { scope, log_records, ..Default::default() }];
        proto::ResourceLogs { resource, scope_logs, ..Default::default() }
    });
    vec(group, 0..4)
}

/// Encodes as many records as `space` has room for, and gives back those.
fn encode(groups: &[proto::ResourceLogs], space: &mut [u8]) -> (EncodedLogs, ExportLogsServiceRequest) {
    let mut encoder = LogsEncoder::new(space);
    let mut written = ExportLogsServiceRequest::default();
    'full: for group in groups {
        let resource = group.resource.as_ref().map(|resource| encoded(&resource.attributes));
        let scope = &group.scope_logs[0];
        let name = scope.scope.as_ref().map_or("", |scope| &scope.name);
        if encoder.resource(&resource.unwrap_or_default(), name).is_err() {
            break;
        }
        for (index, record) in scope.log_records.iter().enumerate() {
            if add(&mut encoder, record).is_err() {
                break 'full;
            }
            if index == 0 {
                let empty = proto::ScopeLogs { log_records: Vec::new(), ..scope.clone() };
                written.resource_logs.push(proto::ResourceLogs { scope_logs: vec![empty], ..group.clone() });
            }
            let group = written.resource_logs.last_mut().unwrap();
            group.scope_logs[0].log_records.push(record.clone());
        }
    }
    (encoder.finish(), written)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The bytes are prost's, and the counts are those of the check, whatever the space is.
    #[test]
    fn encodes_as_prost_does(groups in groups(), space in prop_oneof![Just(1 << 20), 0..4000usize]) {
        let mut space = vec![0xff; space];
        let (done, written) = encode(&groups, &mut space);
        let body = &space[..done.len];
        prop_assert_eq!(body, &written.encode_to_vec()[..]);
        let counts = check(Signal::Logs, body).unwrap();
        prop_assert_eq!((counts.items, counts.largest_item), (done.items.into(), done.largest_item));
    }

    /// Attributes never exceed their bound, and what did not fit leaves nothing behind.
    #[test]
    fn attributes_keep_their_bound(most in 0..200usize, texts in vec(("[a-z]{0,9}", "[a-z]{0,60}"), 0..10)) {
        let mut bytes = Vec::new();
        let mut out = Attributes::new(&mut bytes, most);
        let mut expected = Vec::new();
        let mut open = Vec::new();
        for (index, (key, value)) in texts.iter().enumerate() {
            if index % 3 == 2 && let Ok(map) = out.open_map(key) {
                open.push(map);
            }
            if out.text(key, value).is_ok() {
                expected.push(value);
            }
        }
        while let Some(map) = open.pop() {
            out.close(map);
        }
        prop_assert!(bytes.len() <= most && bytes.capacity() <= most.max(8));
        let list = KeyValueList::decode(&bytes[..]).unwrap();
        let mut found = Vec::new();
        let mut lists = vec![list.values];
        while let Some(values) = lists.pop() {
            for pair in values {
                match pair.value.unwrap().value.unwrap() {
                    any_value::Value::StringValue(text) => found.push(text),
                    any_value::Value::KvlistValue(list) => lists.push(list.values),
                    other => panic!("{other:?}"),
                }
            }
        }
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    }

    /// Invalid UTF-8 becomes what the standard library makes of it.
    #[test]
    fn invalid_text_is_replaced(bytes in vec(prop_oneof![any::<u8>(), Just(b'a')], 0..300)) {
        let (mut lossy, mut plain) = (Vec::new(), Vec::new());
        Attributes::new(&mut lossy, MOST).text_lossy("k", &bytes).unwrap();
        Attributes::new(&mut plain, MOST).text("k", &String::from_utf8_lossy(&bytes)).unwrap();
        prop_assert_eq!(lossy, plain);
    }
}

/// Groups of more than 2 MiB have longer lengths than what is reserved for them.
#[test]
fn long_groups_are_moved() {
    let text = "x".repeat(100_000);
    let body = Some(AnyValue { value: Some(any_value::Value::StringValue(text)) });
    let record = proto::LogRecord { body, ..Default::default() };
    let scope = proto::ScopeLogs { log_records: vec![record; 30], ..Default::default() };
    let group = proto::ResourceLogs { scope_logs: vec![scope], ..Default::default() };
    let mut space = vec![0; 8 << 20];
    let (done, written) = encode(&[group.clone(), group], &mut space);
    assert_eq!(done.items, 60);
    assert_eq!(space[..done.len], written.encode_to_vec());
}

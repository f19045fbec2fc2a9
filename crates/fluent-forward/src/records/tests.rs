#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use super::*;
use crate::testing::{self, Value as Packed};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::LogRecord as ProtoRecord;
use proptest::prelude::*;
use prost::Message as _;
use tidegate_wire::otlp::{Signal, check};

fn encoded(record: &Packed, most: usize, space: usize) -> Result<ProtoRecord, RecordError> {
    let record = record.encoded();
    let entry = Entry { time_ns: 5, record: &record, len: record.len() };
    let keys = vec!["log".to_owned(), "message".to_owned()];
    let mut encoder = RecordEncoder::new(keys, most);
    let mut out = vec![0; space];
    let mut batch = LogsEncoder::new(&mut out);
    batch.resource(&[], SCOPE).unwrap();
    let outcome = encoder.encode(b"app", &entry, 9, &mut batch);
    let len = batch.finish().len;
    assert_eq!(outcome.is_ok(), len > 0);
    outcome?;
    let bytes = out.get(..len).unwrap();
    check(Signal::Logs, bytes).unwrap();
    let mut request = ExportLogsServiceRequest::decode(bytes).unwrap();
    Ok(request.resource_logs.remove(0).scope_logs.remove(0).log_records.remove(0))
}

fn any(value: &Packed) -> AnyValue {
    let of_bytes = |bytes: &Vec<u8>| match String::from_utf8(bytes.clone()) {
        Ok(text) => Any::StringValue(text),
        Err(_) => Any::BytesValue(bytes.clone()),
    };
    let value = match value {
        Packed::Nil => None,
        Packed::Bool(value) => Some(Any::BoolValue(*value)),
        Packed::Int(value) => Some(Any::IntValue(*value)),
        Packed::Unsigned(value) => Some(match i64::try_from(*value) {
            Ok(value) => Any::IntValue(value),
            Err(_) => Any::StringValue(value.to_string()),
        }),
        Packed::Double(value) => Some(Any::DoubleValue(*value)),
        Packed::Text(bytes) | Packed::Bytes(bytes) => Some(of_bytes(bytes)),
        Packed::Extension(_, bytes) => Some(Any::BytesValue(bytes.clone())),
        Packed::Array(values) => {
            Some(Any::ArrayValue(ArrayValue { values: values.iter().map(any).collect() }))
        }
        Packed::Map(members) => Some(Any::KvlistValue(KeyValueList { values: pairs(members) })),
    };
    AnyValue { value }
}

fn pairs(members: &[(Packed, Packed)]) -> Vec<KeyValue> {
    let pair = |(key, value): &(Packed, Packed)| {
        let Packed::Text(key) = key else { unreachable!() };
        let value = match value {
            // A text of a map or a record is a text, whatever it holds.
            Packed::Text(text) => {
                AnyValue { value: Some(Any::StringValue(String::from_utf8_lossy(text).into_owned())) }
            }
            value => any(value),
        };
        KeyValue { key: String::from_utf8_lossy(key).into_owned(), value: Some(value), key_strindex: 0 }
    };
    members.iter().map(pair).collect()
}

fn tag() -> KeyValue {
    let value = Some(AnyValue { value: Some(Any::StringValue("app".into())) });
    KeyValue { key: "fluent.tag".into(), value, key_strindex: 0 }
}

#[test]
fn the_first_body_key_is_the_body() {
    for (record, body, others) in [
        (Packed::map([("message", Packed::text("hi"))]), Some("hi"), 0),
        (Packed::map([("message", Packed::text("two")), ("log", Packed::text("one"))]), Some("one"), 1),
        (Packed::map([("log", Packed::Bytes(b"bytes\n".to_vec()))]), Some("bytes\n"), 0),
        (Packed::map([("text", Packed::text("hi"))]), None, 1),
        (Packed::map([]), None, 0),
    ] {
        let read = encoded(&record, 4096, 4096).unwrap();
        let expected = body.map(|text| AnyValue { value: Some(Any::StringValue(text.into())) });
        assert_eq!((read.body, read.attributes.len()), (expected, others + 1), "{record:?}");
        assert_eq!((read.time_unix_nano, read.observed_time_unix_nano), (5, 9));
    }
}

#[test]
fn a_record_that_does_not_fit_is_not_written() {
    let record =
        Packed::map([("log", Packed::text(&"x".repeat(1000))), ("a", Packed::text(&"y".repeat(1000)))]);
    assert_eq!(encoded(&record, 900, 4096), Err(RecordError::TooLarge));
    assert_eq!(encoded(&record, 4096, 1500), Err(RecordError::Full));
    assert_eq!(encoded(&Packed::text("x"), 4096, 4096), Err(RecordError::Malformed));
    let key = Packed::Map(vec![(Packed::Array(vec![]), Packed::Nil)]);
    assert_eq!(encoded(&key, 4096, 4096), Err(RecordError::Malformed));
}

proptest! {
    #[test]
    fn every_member_is_in_the_log_record(value in testing::value(), body in proptest::option::of(testing::value())) {
        let members = match value {
            Packed::Map(members) => members,
            other => vec![(Packed::text("a"), other)],
        };
        let mut all = members.clone();
        all.extend(body.clone().map(|body| (Packed::text("log"), body)));
        let read = encoded(&Packed::Map(all), 1 << 20, 1 << 20).unwrap();
        let mut expected = vec![tag()];
        expected.extend(pairs(&members));
        prop_assert_eq!(read.attributes, expected);
        let body = body.map(|body| match body {
            Packed::Text(text) => {
                AnyValue { value: Some(Any::StringValue(String::from_utf8_lossy(&text).into_owned())) }
            }
            body => any(&body),
        });
        prop_assert_eq!(read.body.unwrap_or_default(), body.unwrap_or_default());
    }
}

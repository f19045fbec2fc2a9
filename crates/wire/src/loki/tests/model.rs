//! Push requests as trees: random ones, in both encodings, and the OTLP that they should become.

use super::super::{Format, LokiError, Request, measure, translate};
use crate::otlp::{Signal, check};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use proptest::prelude::*;
use prost::Message as _;
use std::collections::BTreeMap;

pub(super) const NOW: u64 = 1_800_000_000_000_000_000;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) streams: Vec<Stream>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Stream {
    #[prost(string, tag = "1")]
    pub(super) labels: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) entries: Vec<Entry>,
    #[prost(uint64, tag = "3")]
    pub(super) hash: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Entry {
    #[prost(message, optional, tag = "1")]
    pub(super) timestamp: Option<Timestamp>,
    #[prost(string, tag = "2")]
    pub(super) line: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) metadata: Vec<Pair>,
    #[prost(message, repeated, tag = "4")]
    pub(super) parsed: Vec<Pair>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Pair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// A stream before it is encoded.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) entries: Vec<(u64, String, BTreeMap<String, String>)>,
}

/// Labels as Go writes them.
pub(super) fn quoted(labels: &BTreeMap<String, String>) -> String {
    let mut text = String::from("{");
    for (at, (name, value)) in labels.iter().enumerate() {
        text += if at > 0 { ", " } else { "" };
        text += &format!("{name}=\"");
        for char in value.chars() {
            match char {
                '"' | '\\' => text.extend(['\\', char]),
                '\n' => text += "\\n",
                '\t' => text += "\\t",
                '\u{7}' => text += "\\a",
                '\u{0}'..=' ' if char != ' ' => text += &format!("\\x{:02x}", u32::from(char)),
                '\u{200b}'..='\u{200f}' => text += &format!("\\u{:04x}", u32::from(char)),
                '\u{10000}'.. => text += &format!("\\U{:08x}", u32::from(char)),
                _ => text.push(char),
            }
        }
        text.push('"');
    }
    text + "}"
}

pub(super) fn protobuf(streams: &[Model]) -> Vec<u8> {
    push_request(streams).encode_to_vec()
}

pub(super) fn push_request(streams: &[Model]) -> PushRequest {
    let pairs = |map: &BTreeMap<String, String>| {
        map.iter().map(|(name, value)| Pair { name: name.clone(), value: value.clone() }).collect()
    };
    let entry = |(time, line, metadata): &(u64, String, BTreeMap<String, String>)| Entry {
        timestamp: Some(Timestamp {
            seconds: (time / 1_000_000_000) as i64,
            nanos: (time % 1_000_000_000) as i32,
        }),
        line: line.clone(),
        metadata: pairs(metadata),
        parsed: vec![Pair { name: "parsed".into(), value: "is left out".into() }],
    };
    let streams = streams.iter().map(|stream| Stream {
        labels: quoted(&stream.labels),
        entries: stream.entries.iter().map(entry).collect(),
        hash: 7,
    });
    PushRequest { streams: streams.collect() }
}

pub(super) fn json(streams: &[Model]) -> Vec<u8> {
    let streams: Vec<_> = streams
        .iter()
        .map(|stream| {
            let values: Vec<_> = stream
                .entries
                .iter()
                .map(|(time, line, metadata)| serde_json::json!([time.to_string(), line, metadata]))
                .collect();
            serde_json::json!({"stream": stream.labels, "values": values})
        })
        .collect();
    serde_json::to_vec_pretty(&serde_json::json!({ "streams": streams })).unwrap()
}

/// Translates a body.
pub(super) fn translated(format: Format, body: &[u8]) -> Result<ExportLogsServiceRequest, LokiError> {
    otlp(format, body).map(|out| ExportLogsServiceRequest::decode(&*out).unwrap())
}

/// Translates a body, and gives the encoded request.
pub(super) fn otlp(format: Format, body: &[u8]) -> Result<Vec<u8>, LokiError> {
    let request = Request { format, received_ns: NOW };
    let mut out = vec![0; measure(request, body)?];
    let len = translate(request, body, &mut out)?;
    if let Some(less) = out.len().checked_sub(1) {
        assert_eq!(translate(request, body, &mut out[..less].to_vec()), Err(LokiError::Full));
    }
    out.truncate(len);
    let counts = check(Signal::Logs, &out).unwrap();
    let decoded = ExportLogsServiceRequest::decode(&*out).unwrap();
    assert_eq!(decoded.encode_to_vec().len(), out.len(), "lengths are as short as they can be");
    let records = decoded.resource_logs.iter().flat_map(|logs| &logs.scope_logs);
    assert_eq!(counts.items, records.map(|scope| scope.log_records.len() as u64).sum::<u64>());
    Ok(out)
}

/// The texts of attributes.
pub(super) fn texts(attributes: &[KeyValue]) -> Vec<(String, String)> {
    attributes.iter().map(|member| (member.key.clone(), text(member.value.as_ref()))).collect()
}

pub(super) fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// The records of a request with their resource's attributes.
pub(super) fn records(request: &ExportLogsServiceRequest) -> Vec<(Vec<(String, String)>, LogRecord)> {
    let of = |logs: &opentelemetry_proto::tonic::logs::v1::ResourceLogs| {
        let attributes = texts(&logs.resource.as_ref().unwrap().attributes);
        let [scope] = &logs.scope_logs[..] else { panic!("one scope") };
        assert_eq!(scope.scope.as_ref().unwrap().name, super::super::SCOPE);
        scope.log_records.iter().map(|record| (attributes.clone(), record.clone())).collect::<Vec<_>>()
    };
    request.resource_logs.iter().flat_map(of).collect()
}

prop_compose! {
    fn label()(known in 0..12usize, name in "[a-zA-Z_][a-zA-Z0-9_]{0,9}") -> String {
        let names = ["service_name", "k8s_pod_name", "level", "job", "filename"];
        names.get(known).map_or(name, |known| (*known).to_owned())
    }
}

/// Streams of any shape.
pub(super) fn streams() -> impl Strategy<Value = Vec<Model>> {
    let labels = prop::collection::btree_map(label(), any_text(), 0..4);
    let metadata =
        prop::collection::btree_map("[a-z.]{1,9}|trace_id|span_id|detected_level", any_text(), 0..3);
    let entries = prop::collection::vec((any::<u64>(), any_text(), metadata), 0..5);
    let stream = (labels, entries).prop_map(|(labels, entries)| Model { labels, entries });
    prop::collection::vec(stream, 0..4)
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => ".{0,20}",
        1 => Just("0123456789abcdef0123456789abcdef".to_owned()),
        1 => Just("0123456789abcdef".to_owned()),
        1 => Just("warn".to_owned()),
        2 => prop::collection::vec(any::<char>(), 0..200).prop_map(String::from_iter),
    ]
}

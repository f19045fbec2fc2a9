//! `merge_maps` with `ParseJSON`, which hands over its pairs instead of having them read again.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use tidegate_pipeline::{
    Definition, ErrorMode, Format, Outcome, Pipeline, Progress, Run, StepDefinition, StepKind,
};
use tidegate_wire::otlp::{Signal, check};

/// JSON, as a sender wrote it.
#[derive(Debug, Clone)]
enum Json {
    Word(&'static str),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-e]{1,2}",
        2 => prop_oneof![Just("service"), Just("order_number"), Just("ü"), Just("a\"b"), Just("")].prop_map(String::from),
        1 => "[a-c]{100,300}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-zü\"\\\\\n]{0,12}", 4 => "[ a-z]{20,70}", 1 => "[a-z]{100,300}", 1 => "[a-z]{17000}"]
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        prop_oneof![Just("true"), Just("false"), Just("null")].prop_map(Json::Word),
        "-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?".prop_map(Json::Number),
        text().prop_map(Json::Text),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Json::List),
            vec((name(), inner), 0..6).prop_map(Json::Map)
        ]
    })
}

/// Writes JSON with some white space.
fn write(json: &Json, out: &mut String) {
    let quoted = |text: &str, out: &mut String| out.push_str(&serde_json::Value::from(text).to_string());
    match json {
        Json::Word(word) => out.push_str(word),
        Json::Number(number) => out.push_str(number),
        Json::Text(text) => quoted(text, out),
        Json::List(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                out.push_str(if at > 0 { " ," } else { "" });
                write(element, out);
            }
            out.push(']');
        }
        Json::Map(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                quoted(name, out);
                out.push_str(if at % 2 == 0 { ":" } else { " :\n" });
                write(value, out);
            }
            out.push('}');
        }
    }
}

/// Result of the statement.
fn value(json: &Json) -> AnyValue {
    let value = match json {
        Json::Word("null") => None,
        Json::Word(word) => Some(Value::BoolValue(*word == "true")),
        Json::Number(number) => {
            Some(Value::DoubleValue(number.parse().expect("a number of JSON is one of Rust")))
        }
        Json::Text(text) => Some(Value::StringValue(text.clone())),
        Json::List(elements) => {
            Some(Value::ArrayValue(ArrayValue { values: elements.iter().map(value).collect() }))
        }
        Json::Map(members) => Some(Value::KvlistValue(KeyValueList { values: pairs(members) })),
    };
    AnyValue { value }
}

/// The pairs of a map: of members with one name the last.
fn pairs(members: &[(String, Json)]) -> Vec<KeyValue> {
    let mut pairs: Vec<KeyValue> = Vec::new();
    for (name, json) in members {
        pairs.retain(|pair| pair.key != *name);
        pairs.push(KeyValue { key: name.clone(), value: Some(value(json)), key_strindex: 0 });
    }
    pairs
}

fn merge(attributes: &mut Vec<KeyValue>, pairs: &[KeyValue], strategy: &str) {
    for pair in pairs {
        match attributes.iter_mut().find(|attribute| attribute.key == pair.key) {
            Some(attribute) if strategy != "insert" => attribute.value.clone_from(&pair.value),
            None if strategy != "update" => attributes.push(pair.clone()),
            _ => {}
        }
    }
}

fn request(body: &str, attributes: &[KeyValue]) -> ExportLogsServiceRequest {
    let record = LogRecord {
        body: Some(AnyValue { value: Some(Value::StringValue(body.to_owned())) }),
        attributes: attributes.to_vec(),
        ..LogRecord::default()
    };
    let scope = ScopeLogs { log_records: vec![record], ..ScopeLogs::default() };
    let resource = Resource { attributes: attributes.to_vec(), ..Resource::default() };
    let group = ResourceLogs { resource: Some(resource), scope_logs: vec![scope], ..ResourceLogs::default() };
    ExportLogsServiceRequest { resource_logs: vec![group] }
}

/// Result of the statements for the request, and whether all succeeded.
fn run(statements: &[String], request: &ExportLogsServiceRequest) -> (ExportLogsServiceRequest, bool) {
    let kind = StepKind::Edit(statements.to_vec());
    let steps = vec![StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }];
    let pipeline =
        Pipeline::compile(&Definition { steps }).unwrap_or_else(|problems| panic!("{problems:#?}")).0;
    let mut workspace = pipeline.workspace();
    let body = request.encode_to_vec();
    let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
    let format = Format::Otlp(Signal::Logs);
    let mut run = Run::new(&pipeline, 0, &mut workspace, format, &body, &mut scratch, 0);
    let outcome = loop {
        if let Progress::Done(outcome) = run.advance() {
            break outcome;
        }
    };
    let result = match outcome {
        Outcome::Changed { len, .. } => {
            let mut out = vec![0; len];
            run.write(&mut out);
            check(Signal::Logs, &out).expect("the output is valid");
            ExportLogsServiceRequest::decode(&*out).expect("the output can be decoded")
        }
        _ => request.clone(),
    };
    let mut failures = 0;
    workspace.take_counts(|_, counts| failures += counts.failures.iter().sum::<u64>());
    (result, failures == 0)
}

proptest! {
    /// The attributes of a record and of its resource are those that the model has, and those of a map that was stored first.
    #[test]
    fn members_are_merged_as_a_map_is(
        members in vec((name(), json()), 0..40),
        own in vec((name(), json()), 0..12),
        strategy in prop_oneof![Just("insert"), Just("update"), Just("upsert")],
    ) {
        let mut text = String::new();
        write(&Json::Map(members.clone()), &mut text);
        let before = request(&text, &pairs(&own));
        let at_once: Vec<String> = ["log", "resource"].iter().map(|owner| {
            format!("merge_maps({owner}.attributes, ParseJSON(log.body), \"{strategy}\")")
        }).collect();
        let (got, succeeded) = run(&at_once, &before);
        prop_assert!(succeeded);
        let mut wanted = before.clone();
        let group = &mut wanted.resource_logs[0];
        merge(&mut group.scope_logs[0].log_records[0].attributes, &pairs(&members), strategy);
        merge(&mut group.resource.as_mut().unwrap().attributes, &pairs(&members), strategy);
        prop_assert_eq!(&got, &wanted);
        let stored = [
            "set(log.cache[\"m\"], ParseJSON(log.body))".to_owned(),
            format!("merge_maps(log.attributes, log.cache[\"m\"], \"{strategy}\")"),
            format!("merge_maps(resource.attributes, log.cache[\"m\"], \"{strategy}\")"),
        ];
        let (got, succeeded) = run(&stored, &before);
        prop_assert!(succeeded);
        prop_assert_eq!(&got, &wanted);
    }
}

/// Text that is no JSON, or no object, changes nothing.
#[test]
fn what_is_no_object_is_not_merged() {
    let own = pairs(&[("a".to_owned(), Json::Word("true"))]);
    for body in ["", "{", "{\"a\":1", "{\"a\":1}}", "[1]", "{\"a\":1,}", "{\"a\":01}", "{\"a\" 1}", "1"] {
        let before = request(body, &own);
        let statement = "merge_maps(log.attributes, ParseJSON(log.body), \"upsert\")".to_owned();
        assert_eq!(run(&[statement], &before), (before, false), "{body}");
    }
}

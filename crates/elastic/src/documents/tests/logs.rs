//! Documents of `_bulk` bodies as log records, against a model, and what is left out.

use super::super::*;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use proptest::prelude::*;
use prost::Message;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const RECEIVED: u64 = 1_700_000_000_000_000_000;

fn translated(body: &str) -> (ExportLogsServiceRequest, LogTranslation) {
    let mut space = vec![0; 1 << 20];
    let logs = to_otlp_logs(body.as_bytes(), RECEIVED, &mut space).unwrap();
    let counts = tidegate_wire::otlp::check(Signal::Logs, &space[..logs.bytes]).unwrap();
    assert_eq!(counts.items, logs.records);
    (ExportLogsServiceRequest::decode(&space[..logs.bytes]).unwrap(), logs)
}

fn records(request: &ExportLogsServiceRequest) -> Vec<&LogRecord> {
    request
        .resource_logs
        .iter()
        .flat_map(|group| &group.scope_logs)
        .flat_map(|group| &group.log_records)
        .collect()
}

fn json_of(value: &Option<AnyValue>) -> Value {
    match value.as_ref().and_then(|value| value.value.as_ref()) {
        None | Some(Any::StringValueStrindex(_)) => Value::Null,
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(value)) => json!(value),
        Some(Any::IntValue(value)) => json!(value),
        Some(Any::DoubleValue(value)) => json!(value),
        Some(Any::BytesValue(_)) => panic!("JSON has no bytes"),
        Some(Any::ArrayValue(array)) => {
            array.values.iter().map(|value| json_of(&Some(value.clone()))).collect()
        }
        Some(Any::KvlistValue(map)) => map
            .values
            .iter()
            .map(|pair| (pair.key.clone(), json_of(&pair.value)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

fn attributes(record: &LogRecord) -> BTreeMap<String, Value> {
    record.attributes.iter().map(|pair| (pair.key.clone(), json_of(&pair.value))).collect()
}

/// A Filebeat event becomes a log record with a body, a level, ids and the rest as attributes.
#[test]
fn documents_are_log_records() {
    let body = concat!(
        r#"{"create":{"_index":"filebeat-8","_id":"x1"}}"#,
        "\n",
        r#"{"@timestamp":"2024-02-29T12:34:56.789Z","message":"a \"b\"\n","log":{"level":"Warn","offset":7},"#,
        r#""trace.id":"0102030405060708090a0b0c0d0e0f10","span":{"id":"0102030405060708"},"#,
        r#""service":{"name":"shop","version":"1"},"tags":["a",1,null,{"b":{}}],"big":18446744073709551615,"f":1.5}"#,
        "\n",
        r#"{"index":{"_index":"i","_id":7}}"#,
        "\n",
        r#"{"@timestamp":1709210096789,"service.name":"shop","trace":{"id":"no"},"message":{"nested":true}}"#,
        "\n",
        r#"{"delete":{"_index":"i","_id":"7"}}"#,
        "\n",
        r#"{"update":{"_index":"i","_id":"7"}}"#,
        "\n",
        r#"{"doc":{"a":1}}"#,
        "\n",
        r#"{"create":{"_index":"i"}}"#,
        "\n",
        "{\"a\":",
        "\n",
        r#"{"create":{}}"#,
        "\n",
        "{}",
        "\n",
    );
    let (request, logs) = translated(body);
    assert_eq!((logs.records, logs.untranslatable), (3, 3));
    let services: Vec<_> = request
        .resource_logs
        .iter()
        .map(|group| {
            group
                .resource
                .as_ref()
                .unwrap()
                .attributes
                .iter()
                .map(|pair| json_of(&pair.value))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(services, [vec![json!("shop")], vec![]]);
    let all = records(&request);
    let first = all[0];
    assert_eq!((first.time_unix_nano, first.observed_time_unix_nano), (1_709_210_096_789_000_000, RECEIVED));
    assert_eq!(json_of(&first.body), json!("a \"b\"\n"));
    assert_eq!((first.severity_number, first.severity_text.as_str()), (13, "Warn"));
    assert_eq!((first.trace_id.len(), first.span_id.as_slice()), (16, &[1, 2, 3, 4, 5, 6, 7, 8][..]));
    let expected = json!({
        "log.offset": 7, "service.version": "1", "tags": ["a", 1, null, {"b": {}}], "big": "18446744073709551615",
        "f": 1.5, "elasticsearch.index": "filebeat-8", "elasticsearch.id": "x1",
    });
    assert_eq!(json!(attributes(first)), expected);
    let expected =
        json!({"trace.id": "no", "message.nested": true, "elasticsearch.index": "i", "elasticsearch.id": 7});
    assert_eq!(json!(attributes(all[1])), expected);
    assert_eq!(all[1].time_unix_nano, 1_709_210_096_789_000_000);
}

/// A document in OpenTelemetry's schema converts back with its body, severity and ids.
#[test]
fn native_documents_come_back() {
    let raw = include_bytes!("../../../../wire/tests/data/otlp/python-logs.pb");
    let mut space = vec![0; 1 << 20];
    let mut page = DocumentBuffer::new(&mut space);
    from_otlp(Signal::Logs, raw, DocumentPosition::START, "p", &DocumentSettings::default(), &mut page)
        .unwrap();
    let text = String::from_utf8(page.written().to_vec()).unwrap();
    let (request, _) = translated(&text);
    let original = ExportLogsServiceRequest::decode(&raw[..]).unwrap();
    for (found, original) in records(&request).into_iter().zip(records(&original)) {
        assert_eq!(found.time_unix_nano, original.time_unix_nano);
        assert_eq!(found.observed_time_unix_nano, original.observed_time_unix_nano);
        assert_eq!(
            (&found.body, &found.trace_id, &found.span_id),
            (&original.body, &original.trace_id, &original.span_id)
        );
        assert_eq!(
            (found.severity_number, &found.severity_text),
            (original.severity_number, &original.severity_text)
        );
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        (-1e9..1e9).prop_map(|value: f64| json!(value)),
        "\\PC{0,8}|[\u{0}-\u{20}\"\\\\]{0,4}".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]{1,3}", inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// Fields under their dotted names.
fn flattened(prefix: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (name, value) in object {
                flattened(&format!("{prefix}.{name}"), value, into);
            }
        }
        value => drop(into.insert(prefix.to_owned(), value.clone())),
    }
}

proptest! {
    /// Every field of any document is an attribute of its record, with the value that it had.
    #[test]
    fn no_field_is_lost(documents in prop::collection::vec(prop::collection::btree_map("[a-d]{1,3}", value(), 0..6), 0..4)) {
        let lines = documents.iter().map(|document| format!("{{\"create\":{{}}}}\n{}\n", json!(document)));
        let (request, logs) = translated(&lines.collect::<String>());
        prop_assert_eq!(logs.records, documents.len() as u64);
        for (record, document) in records(&request).into_iter().zip(&documents) {
            let mut expected = BTreeMap::new();
            document.iter().for_each(|(name, value)| flattened(name, value, &mut expected));
            prop_assert_eq!(attributes(record), expected);
        }
    }

    /// Whatever a body is, what comes of it is a request that its own check takes, in the room that there is.
    #[test]
    fn any_document_becomes_valid_otlp(lines in prop::collection::vec("\\{\"(create|index)\":\\{\\}\\}|\\{.{0,20}\\}|[\\[\\]{}\":,a1 ]{0,20}", 0..6), room in 0usize..2000) {
        let body = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let mut space = vec![0; room];
        if let Ok(logs) = to_otlp_logs(body.as_bytes(), 1, &mut space) {
            tidegate_wire::otlp::check(Signal::Logs, &space[..logs.bytes]).unwrap();
        }
    }
}

/// In whatever pieces documents are written, they say the same.
#[test]
fn pieces_hold_the_same_records_as_the_whole() {
    let mut body = String::new();
    for number in 0..300 {
        let service = ["shop", "cart"][number / 7 % 2];
        body += &format!(
            "{{\"create\":{{}}}}\n{{\"message\":\"{number}\",\"service\":{{\"name\":\"{service}\"}},\"a\":{{\"b\":{number}}}}}\n"
        );
        if number % 50 == 0 {
            body += "{\"delete\":{\"_id\":\"x\"}}\n";
        }
    }
    let (whole, counted) = translated(&body);
    for most in [0, 1000, 5000, 1 << 20] {
        let (mut pieces, mut joined) = (LogRequests::new(body.as_bytes(), RECEIVED), Vec::new());
        let (mut records, mut untranslatable, mut count) = (0, 0, 0);
        while !pieces.is_done() {
            let mut space = vec![0; 1 << 20];
            let passed = pieces.passed();
            let logs = pieces.write(&mut space, most).unwrap();
            assert!(logs.bytes <= most || logs.records <= 1, "{} of {most}", logs.bytes);
            joined.extend_from_slice(&space[..logs.bytes]);
            (records, untranslatable, count) =
                (records + logs.records, untranslatable + logs.untranslatable, count + 1);
            let mut again = LogRequests::new(body.as_bytes(), RECEIVED);
            again.skip_to(passed);
            assert_eq!(again.write(&mut vec![0; 1 << 20], most), Ok(logs));
        }
        assert_eq!((records, untranslatable), (counted.records, counted.untranslatable));
        assert_eq!(count > 1, most < 1 << 20, "{count}");
        let joined = ExportLogsServiceRequest::decode(&joined[..]).unwrap();
        let each = |request: &ExportLogsServiceRequest| -> Vec<_> {
            let groups = request.resource_logs.iter();
            let pairs = groups.flat_map(|group| {
                group.scope_logs[0].log_records.iter().map(|record| (group.resource.clone(), record.clone()))
            });
            pairs.collect()
        };
        assert!(each(&joined) == each(&whole));
    }
    // Without room for one, nothing goes on but by passing it over.
    let mut pieces = LogRequests::new(body.as_bytes(), RECEIVED);
    assert_eq!(pieces.write(&mut [0; 60], usize::MAX), Err(Full));
    pieces.pass();
    assert_eq!(pieces.passed(), 1);
}

/// The bound that sinks rely on: a document takes at most six times the item's length plus a constant, whatever its
/// names.
#[test]
fn a_document_is_at_most_six_times_as_long() {
    let many = |member: &str, count: usize| vec![member; count].join(",");
    let long = "n".repeat(20_000);
    let mut deep = many("\"\":1", 500);
    for _ in 0..20 {
        deep = format!("\"{}\":{{{deep}}}", "d".repeat(300));
    }
    let documents = [
        format!("{{{}}}", many("\"\":1e1", 9000)),
        format!("{{\"{long}\":{{{}}}}}", many("\"\":1", 9000)),
        format!("{{\"{long}\":{{{}}}}}", many("\"a\":{\"b\":1}", 5000)),
        format!("{{\"a\":[{}]}}", many("1e1", 9000)),
        format!("{{\"a\":[{}]}}", many("[]", 9000)),
        format!("{{\"a\":[{}]}}", many("{\"\":{}}", 9000)),
        format!("{{{deep}}}"),
        "{}".to_owned(),
    ];
    for document in documents {
        let body = format!("{{\"index\":{{\"_index\":\"i\"}}}}\n{document}\n");
        let mut space = vec![0; 4 << 20];
        let logs = to_otlp_logs(body.as_bytes(), RECEIVED, &mut space).unwrap();
        assert_eq!(logs.records, 1);
        assert!(logs.bytes <= 6 * body.len() + (4 << 10), "{} of {}", logs.bytes, body.len());
    }
}

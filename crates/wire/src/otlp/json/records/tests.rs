//! Promise: each object and each line is the record that it says, as `prost` and `serde_json` read them; what is not
//! right costs itself and nothing else; and the room that is measured is the room that is needed.

#![expect(clippy::indexing_slicing, reason = "tests")]

use super::super::super::{Signal, check};
use super::*;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Value, json};

const NOW: u64 = 1_800_000_000_000_000_000;

/// The request that `body` becomes, and what was wrong with it.
fn translated(layout: Layout, body: &[u8]) -> Result<(ExportLogsServiceRequest, Translated), OtlpJsonError> {
    let resource = resource([("service.name", "shop"), ("zone", "")].into_iter());
    let request = Request { layout, resource: &resource, received_ns: NOW };
    let mut out = vec![0; measure(&request, body)?];
    let done = translate(&request, body, &mut out)?;
    if let Some(less) = out.len().checked_sub(1) {
        assert!(translate(&request, body, &mut out[..less].to_vec()).is_err(), "it has exactly that room");
    }
    out.truncate(done.len);
    let counts = check::check(Signal::Logs, &out).unwrap();
    let decoded = ExportLogsServiceRequest::decode(&*out).unwrap();
    assert_eq!(decoded.encode_to_vec().len(), out.len(), "lengths are as short as they can be");
    assert_eq!(counts.items, decoded.resource_logs[0].scope_logs[0].log_records.len() as u64);
    Ok((decoded, done))
}

fn records(layout: Layout, body: &str) -> Vec<LogRecord> {
    let (decoded, done) = translated(layout, body.as_bytes()).unwrap();
    assert_eq!((done.refused, done.errors), (0, vec![]), "{body}");
    let [logs] = <[_; 1]>::try_from(decoded.resource_logs).unwrap();
    let attributes = logs.resource.unwrap().attributes;
    let attributes: Vec<_> =
        attributes.into_iter().map(|label| (label.key, shown(label.value.as_ref()))).collect();
    assert_eq!(attributes, [("service.name".to_owned(), json!("shop")), ("zone".to_owned(), json!(""))]);
    logs.scope_logs.into_iter().flat_map(|scope| scope.log_records).collect()
}

/// A value as JSON.
fn shown(value: Option<&AnyValue>) -> Value {
    match value.and_then(|value| value.value.as_ref()) {
        None => Value::Null,
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(flag)) => json!(flag),
        Some(Any::IntValue(number)) => json!(number),
        Some(Any::DoubleValue(number)) => json!(number),
        Some(Any::ArrayValue(array)) => array.values.iter().map(|value| shown(Some(value))).collect(),
        Some(Any::KvlistValue(map)) => {
            map.values.iter().map(|member| (member.key.clone(), shown(member.value.as_ref()))).collect()
        }
        Some(other) => panic!("{other:?}"),
    }
}

fn attributes(record: &LogRecord) -> Value {
    record.attributes.iter().map(|member| (member.key.clone(), shown(member.value.as_ref()))).collect()
}

#[test]
fn known_members_become_record_fields() {
    let body = r#"
{"@timestamp":"2024-02-29T12:34:56.789Z","level":"WARN","msg":"disk \"full\" \u00e9","disk":{"free":0,"of":[1,2.5,true,null]}}

{"log":{"a":1},"message":"second","severity":40,"time":"soon"}
{"a":1,"level":7}
"#;
    let [first, second, third] = <[_; 3]>::try_from(records(Layout::Lines, body)).unwrap();
    assert_eq!(first.time_unix_nano, 1_709_210_096_789_000_000);
    assert_eq!((first.severity_number, &*first.severity_text), (13, "WARN"));
    assert_eq!(shown(first.body.as_ref()), json!("disk \"full\" é"));
    assert_eq!(attributes(&first), json!({"disk": {"free": 0, "of": [1, 2.5, true, null]}}));
    assert_eq!(first.observed_time_unix_nano, NOW);
    // The first of a kind counts, and what cannot be read is an attribute like any other.
    assert_eq!(shown(second.body.as_ref()), json!({"a": 1}));
    assert_eq!(attributes(&second), json!({"message": "second", "time": "soon"}));
    assert_eq!((second.severity_number, second.time_unix_nano), (13, 0));
    // Without a message all of it is the body.
    assert_eq!(shown(third.body.as_ref()), json!({"a": 1, "level": 7}));
    assert_eq!((attributes(&third), third.severity_number), (json!({}), 0));
}

#[test]
fn numbers_are_times_by_their_size() {
    for (time, ns) in [
        ("1700000000", 1_700_000_000_000_000_000),
        ("1700000000.25", 1_700_000_000_250_000_000),
        ("1700000000.123456789123", 1_700_000_000_123_456_789),
        ("1700000000123", 1_700_000_000_123_000_000),
        ("1700000000123.5", 1_700_000_000_123_500_000),
        ("1700000000123456", 1_700_000_000_123_456_000),
        ("1700000000123456789", 1_700_000_000_123_456_789),
        ("\"1700000000\"", 1_700_000_000_000_000_000),
        ("0", 0),
        ("-1", 0),
        ("1e9", 0),
        ("99999999999999999999999", 0),
    ] {
        let body = format!("{{\"ts\":{time},\"msg\":\"\"}}");
        assert_eq!(records(Layout::Objects, &body)[0].time_unix_nano, ns, "{time}");
    }
}

#[test]
fn bodies_are_divided_as_their_type_says() {
    let bodies = |layout, body: &str| -> Vec<Value> {
        records(layout, body).iter().map(|record| shown(record.body.as_ref())).collect()
    };
    assert_eq!(bodies(Layout::Text, "a\r\n\n  \nb {\n"), [json!("a"), json!("b {")]);
    assert_eq!(bodies(Layout::Objects, r#"[{"msg":1}, {"msg":[]}]"#), [json!(1), json!([])]);
    assert_eq!(bodies(Layout::Objects, "{\n\"msg\":1\n}\n {\"msg\":2}"), [json!(1), json!(2)]);
    for layout in [Layout::Text, Layout::Lines, Layout::Objects] {
        assert!(bodies(layout, " \r\n \n").is_empty());
    }
    assert!(bodies(Layout::Objects, " [ ] ").is_empty());
}

#[test]
fn a_bad_record_costs_itself() {
    for (layout, body, left, error) in [
        (
            Layout::Lines,
            "{\"a\":1}\n{\"a\":}\n{}\n",
            2,
            "line 2: there is `}` instead of a value, at byte 13",
        ),
        (Layout::Lines, "7\n{}", 1, "line 1: there is a number instead of an object, at byte 0"),
        (Layout::Lines, "{} {}\n{}", 1, "line 1: the request ends before this"),
        (Layout::Lines, "{\"a\":\"\\ud800\"}\n{}", 1, "line 1: a string has one half of a surrogate pair"),
        (Layout::Lines, "{\"a\":1e999}\n{}", 1, "line 1: `1e999` is not a number of 64 bits"),
        (Layout::Lines, "{\"a\":\"\n{}", 1, "line 1: there is the end of the body"),
        (Layout::Objects, "[{},[],{}]", 2, "object 2: there is `[` instead of an object, at byte 4"),
        (
            Layout::Objects,
            "{\"msg\":\"\\x\"}{}",
            1,
            "object 1: a string has an escape that JSON does not know",
        ),
    ] {
        let (decoded, done) = translated(layout, body.as_bytes()).unwrap();
        assert_eq!(decoded.resource_logs[0].scope_logs[0].log_records.len(), left, "{body}");
        assert_eq!((done.refused, done.errors.len()), (1, 1), "{body}");
        assert!(done.errors[0].to_string().starts_with(error), "{}", done.errors[0]);
    }
    let (_, done) = translated(Layout::Text, b"a\nb\xff\nc").unwrap();
    assert_eq!(done.errors[0].to_string(), "line 2: the text is not valid UTF-8, at byte 3");
    let (_, done) = translated(Layout::Lines, &b"!\n".repeat(9)).unwrap();
    assert_eq!((done.refused, done.errors.len()), (9, TOLD));
    for hidden in ["{", "[{}", "[{},", "[{}{}]", "[{}] {}", "{} x", "\u{1}"] {
        assert!(translated(Layout::Objects, hidden.as_bytes()).is_err(), "{hidden}");
    }
    assert!(translated(Layout::Objects, b"{\"a\":\"\xff\"}").is_err());
}

/// Recursion has a bound, and what is within it is taken.
#[test]
fn only_the_record_that_nests_too_deeply_is_refused() {
    for (levels, refused) in [(LEVELS, 0), (LEVELS + 1, 1), (3000, 1), (100_000, 1)] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{{\"msg\":{}1{}}}\n{{}}", open.repeat(levels), close.repeat(levels));
            let (_, done) = translated(Layout::Lines, deep.as_bytes()).unwrap();
            assert_eq!(done.refused, refused, "{levels} of {open}");
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()).prop_map(Value::from),
        "\\PC{0,12}|[\\x00-\\x{ff}]{0,200}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"é]{0,9}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// A value comes out as it went in, in a body and in attributes alike.
    #[test]
    fn values_equal_those_of_serde_json(values in prop::collection::vec(value(), 1..4)) {
        let lines: String = values.iter().map(|value| format!("{{\"x\":{value},\"msg\":{value}}}\n")).collect();
        for layout in [Layout::Lines, Layout::Objects] {
            for (record, value) in records(layout, &lines).iter().zip(&values) {
                if value.is_null() {
                    prop_assert_eq!(shown(record.body.as_ref()), json!({"x": null, "msg": null}));
                } else {
                    prop_assert_eq!(&shown(record.body.as_ref()), value);
                    prop_assert_eq!(attributes(record), json!({"x": value}));
                }
            }
        }
    }

    /// Nothing that comes from outside makes it panic, and the room that is measured always does.
    #[test]
    fn any_bytes_have_an_answer(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "[\\[\\]{}\",:0-9eE.\\-\\\\ntru \n]{0,120}".prop_map(String::into_bytes),
        ],
    ) {
        for layout in [Layout::Text, Layout::Lines, Layout::Objects] {
            let _ = translated(layout, &bytes);
        }
    }
}

//! The OTLP fields of members, beyond renaming.

use super::*;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// The span of an event with these fields besides those that it must have.
fn span(kind: &str, fields: &str) -> Span {
    let more = if kind == "transaction" {
        r#","span_count":{"started":0}"#
    } else {
        r#","parent_id":"1","name":"n","start":2"#
    };
    let raw = format!(
        "{{\"metadata\":{{\"service\":{{\"name\":\"a\",\"agent\":{{\"name\":\"b\",\"version\":\"1\"}}}}}}}}\n\
         {{\"{kind}\":{{\"id\":\"0123456789abcdef\",\"trace_id\":\"0123456789abcdef0123456789abcdef\",\"duration\":1.5{more}{fields}}}}}"
    );
    let (request, _) = said(raw.as_bytes(), Signal::Traces);
    let mut request = ExportTraceServiceRequest::decode(&request[..]).unwrap();
    request.resource_spans.remove(0).scope_spans.remove(0).spans.remove(0)
}

#[test]
fn missing_span_kinds_are_inferred() {
    for (kind, fields, expected) in [
        ("transaction", r#","type":"request""#, 2),
        ("transaction", r#","type":"messaging""#, 5),
        ("transaction", r#","type":"scheduled""#, 1),
        ("transaction", r#","type":"x","context":{"request":{"method":"GET"}}"#, 2),
        ("transaction", r#","type":"x","context":{"request":{},"message":{"queue":{"name":"q"}}}"#, 5),
        ("transaction", r#","type":"request","otel":{"span_kind":"internal"}"#, 1),
        ("span", r#","type":"db""#, 3),
        ("span", r#","type":"db.postgresql.query""#, 3),
        ("span", r#","type":"external""#, 3),
        ("span", r#","type":"storage""#, 3),
        ("span", r#","type":"messaging","action":"send""#, 4),
        ("span", r#","type":"messaging","action":"poll""#, 5),
        ("span", r#","type":"app""#, 1),
        ("span", r#","type":"app","otel":{"span_kind":"PRODUCER"}"#, 4),
    ] {
        assert_eq!(span(kind, fields).kind, expected, "{kind} {fields}");
    }
}

/// The threshold is that of OpenTelemetry's samplers: 56 bits of `1 - rate`, which has 53, without the zeros at their
/// end.
#[test]
fn sample_rates_become_both_otlp_forms() {
    let state = |rate: &str| span("span", &format!(r#","type":"t","sample_rate":{rate}"#)).trace_state;
    assert_eq!(state("1"), "es=s:1");
    assert_eq!(state("0"), "es=s:0");
    assert_eq!(state("0.5"), "es=s:0.5,ot=th:8");
    assert_eq!(state("0.25"), "es=s:0.25,ot=th:c");
    assert_eq!(state("0.1"), "es=s:0.1,ot=th:e6666666666668");
}

/// Ids that are no bytes are some all the same, and the same for the same text.
#[test]
fn ids_are_bytes_whatever_they_were() {
    let id = |text: &str| {
        let json = format!("\"{text}\"");
        let text = tidegate_wire::intake::Value::of(json.as_bytes()).text().unwrap();
        ids::bytes::<8>(text)
    };
    assert_eq!(id("00000000000000ff"), (255u64.to_be_bytes(), true));
    assert_eq!(id("ff"), (255u64.to_be_bytes(), false));
    assert_eq!(id("00000000000000FF"), (255u64.to_be_bytes(), false));
    assert_eq!(id("request-1"), id("request-1"));
    assert_eq!(id("request-1"), id("request\\u002d1"));
    assert_ne!(id("request-1"), id("request-2"));
    assert!(!id("").1 && !id("0123456789abcdef0").1);
}

/// Values out of range saturate; nothing panics.
#[test]
fn out_of_range_numbers_saturate() {
    let odd = span("span", r#","type":"t","timestamp":-5"#);
    assert_eq!(
        (odd.start_time_unix_nano, odd.end_time_unix_nano),
        (RECEIVED + 2_000_000, RECEIVED + 3_500_000)
    );
    let odd = span("span", r#","type":"t","timestamp":18446744073709551615"#);
    assert_eq!(odd.start_time_unix_nano, RECEIVED + 2_000_000);
}

/// Of a field that is given twice the last value counts that says something; each attribute is there once.
#[test]
fn the_last_value_of_a_repeated_field_counts() {
    let twice = concat!(
        r#","type":"a","type":"request","name":"one","name":"two","name":null,"result":"x","own":1,"result":"y""#,
        r#","context":{"user":{"id":"1","id":"2"}}"#
    );
    let span = span("transaction", twice);
    assert_eq!((span.name.as_str(), span.kind), ("two", 2));
    let values = |name: &str| {
        let all = span.attributes.iter().filter(|attribute| attribute.key == name);
        all.map(|attribute| format!("{:?}", attribute.value)).collect::<Vec<_>>()
    };
    for (name, value) in
        [("transaction.type", "request"), ("transaction.result", "\"y\""), ("user.id", "\"2\"")]
    {
        let found = values(name);
        assert!(found.len() == 1 && found[0].contains(value), "{name}: {found:?}");
    }
    assert_eq!(values("elastic.transaction.own").len(), 1);
}

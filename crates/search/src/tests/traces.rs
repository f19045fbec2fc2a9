//! Traces.

use super::logs::logs;
use super::{SECOND, START, Stored, attributes, each, resource};
use crate::Kind;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use serde_json::json;
use tidegate_journal::Signal;

struct S {
    trace: u8,
    id: u8,
    parent: u8,
    second: u64,
    millis: u64,
    failed: bool,
}

fn spans(service: &str, spans: &[S]) -> ExportTraceServiceRequest {
    let id = |id: u8| if id == 0 { Vec::new() } else { vec![id; 8] };
    let span = |span: &S| Span {
        trace_id: vec![span.trace; 16],
        span_id: id(span.id),
        parent_span_id: id(span.parent),
        name: format!("span-{}", span.id),
        kind: 2,
        start_time_unix_nano: (START + span.second) * SECOND,
        end_time_unix_nano: (START + span.second) * SECOND + span.millis * 1_000_000,
        attributes: attributes(&[("http.route", "/cart"), ("user", "u1")]),
        events: vec![Event {
            name: "exception".to_owned(),
            time_unix_nano: START * SECOND,
            ..Event::default()
        }],
        status: Some(Status { code: if span.failed { 2 } else { 0 }, message: String::new() }),
        ..Span::default()
    };
    let scope_spans = vec![ScopeSpans { spans: spans.iter().map(span).collect(), ..ScopeSpans::default() }];
    let resource_spans =
        vec![ResourceSpans { resource: resource(service), scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }
}

const fn s(trace: u8, id: u8, parent: u8, second: u64, millis: u64) -> S {
    S { trace, id, parent, second, millis, failed: false }
}

/// A trace of which one part is in the lake and the other in the journal is whole.
#[test]
fn a_trace_is_put_together_from_both() {
    let mut stored = Stored::new();
    stored.commit_otlp(Signal::Traces, &spans("shop", &[s(1, 1, 0, 0, 3000), s(2, 9, 0, 1, 10)]));
    stored.append_otlp(Signal::Traces, &spans("db", &[S { failed: true, ..s(1, 2, 1, 1, 500) }]));
    let mut records = logs("shop", &[(1, 9, "in the trace"), (2, 9, "beside it")]);
    records.resource_logs[0].scope_logs[0].log_records[0].trace_id = vec![1; 16];
    stored.append_otlp(Signal::Logs, &records);
    let answer = stored.ask(Kind::Trace, &json!({"trace_id": "01".repeat(16)}));
    assert_eq!(each(&answer["spans"], "name"), ["span-1", "span-2"]);
    assert_eq!(each(&answer["spans"], "from"), ["lake", "journal"]);
    assert_eq!(each(&answer["logs"], "body"), ["in the trace"]);
    let span = &answer["spans"][1];
    assert_eq!(
        (&span["status"], &span["duration_ns"], &span["kind"]),
        (&json!(2), &json!(500_000_000), &json!(2))
    );
    assert_eq!((&span["span_id"], &span["parent_span_id"]), (&json!("02".repeat(8)), &json!("01".repeat(8))));
    assert_eq!(span["attributes"], json!({"http.route": "/cart", "user": "u1"}));
    assert_eq!(span["events"][0]["name"], "exception");
    let none = stored.ask(Kind::Trace, &json!({"trace_id": "0a".repeat(16)}));
    assert_eq!((&none["spans"], &none["logs"]), (&json!([]), &json!([])));
}

/// The list is of traces with a span that fulfils the conditions, with what all their spans say.
#[test]
fn traces_are_listed_with_all_their_spans() {
    let mut stored = Stored::new();
    let all = [s(1, 1, 0, 0, 3000), s(2, 3, 0, 10, 20), s(3, 4, 7, 20, 30)];
    stored.commit_otlp(Signal::Traces, &spans("shop", &all));
    stored.append_otlp(
        Signal::Traces,
        &spans("db", &[S { failed: true, ..s(1, 2, 1, 1, 5000) }, s(4, 5, 0, 30, 1)]),
    );
    let list = |query| stored.ask(Kind::Traces, &query);
    let answer = list(json!({}));
    let ids = |first: &str| [first.repeat(16)].to_vec();
    assert_eq!(each(&answer["traces"], "trace_id"), ["04", "03", "02", "01"].map(|id| id.repeat(16)));
    let oldest = &answer["traces"][3];
    assert_eq!(
        (&oldest["spans"], &oldest["errors"], &oldest["has_root"]),
        (&json!(2), &json!(1), &json!(true))
    );
    assert_eq!((&oldest["name"], &oldest["service"]), (&json!("span-1"), &json!("shop")));
    // From the beginning of the first span to the end of the last.
    assert_eq!(oldest["duration_ns"], 6_000_000_000_u64);
    assert_eq!(answer["traces"][1]["has_root"], json!(false));
    assert_eq!((&answer["from_lake"], &answer["from_journal"]), (&json!(2), &json!(2)));
    assert_eq!(each(&list(json!({"error": true}))["traces"], "trace_id"), ids("01"));
    assert_eq!(
        each(&list(json!({"service": "db", "min_duration_ns": 1_000_000_000}))["traces"], "trace_id"),
        ids("01")
    );
    assert_eq!(each(&list(json!({"max_duration_ns": 5_000_000}))["traces"], "trace_id"), ids("04"));
    assert_eq!(
        each(&list(json!({"name": "span-3", "attributes": {"user": "u1"}}))["traces"], "trace_id"),
        ids("02")
    );
    let newest = list(json!({"limit": 1}));
    assert_eq!((each(&newest["traces"], "trace_id"), &newest["has_more"]), (ids("04"), &json!(true)));
}

#[test]
fn services_are_named_wherever_they_are() {
    let mut stored = Stored::new();
    stored.commit_otlp(Signal::Traces, &spans("shop", &[s(1, 1, 0, 0, 1)]));
    stored.append_otlp(Signal::Logs, &logs("mail", &[(1, 9, "x")]));
    assert_eq!(stored.ask(Kind::Services, &json!({}))["services"], json!(["mail", "shop"]));
}

//! The cost of a document: OTLP logs and spans in both mappings, and Elastic APM events.
//!
//! `cargo bench -p tidegate-elastic --bench documents`. Throughput is in documents; how long they are is printed. Asserted
//! first: a body of many documents allocates no more than one of few.

#![allow(clippy::print_stderr, reason = "a bench, which says how long documents are")]

use std::hint::black_box;

use allocation_counter::measure;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tidegate_elastic::documents::{
    DocumentBuffer, DocumentPosition, DocumentSettings, Mapping, WriteResult, from_intake, from_otlp,
};
use tidegate_load::elastic_apm::AGENTS;
use tidegate_wire::otlp::Signal;

const MANY: usize = 200;
const FEW: usize = 2;
const TIME: u64 = 1_790_000_000_123_456_789;

fn text(key: &str, text: impl Into<String>) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(text.into())) });
    KeyValue { key: key.to_owned(), value, key_strindex: 0 }
}

fn number(key: &str, number: i64) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::IntValue(number)) });
    KeyValue { key: key.to_owned(), value, key_strindex: 0 }
}

fn resource() -> Option<Resource> {
    let attributes = vec![
        text("service.name", "checkout"),
        text("service.version", "1.2.3"),
        text("deployment.environment.name", "production"),
        text("host.name", "node-17"),
        text("k8s.pod.name", "checkout-6d4cf56db6-x2x7k"),
        text("telemetry.sdk.language", "go"),
    ];
    Some(Resource { attributes, ..Resource::default() })
}

fn logs(count: usize) -> Vec<u8> {
    let record = |at: usize| LogRecord {
        time_unix_nano: TIME + at as u64,
        severity_text: "INFO".to_owned(),
        severity_number: 9,
        body: text("", format!("order {at} was taken in {} ms, \"as promised\"", at % 90)).value,
        attributes: vec![
            text("http.request.method", "POST"),
            text("url.path", "/api/orders"),
            number("http.response.status_code", 201),
            text("user.id", format!("user-{at}")),
            text("order.region", "eu-west-1"),
            number("order.items", at as i64),
        ],
        trace_id: vec![at as u8 | 1; 16],
        span_id: vec![at as u8 | 1; 8],
        ..LogRecord::default()
    };
    let scope = ScopeLogs { log_records: (0..count).map(record).collect(), ..ScopeLogs::default() };
    let resource_logs =
        vec![ResourceLogs { resource: resource(), scope_logs: vec![scope], ..ResourceLogs::default() }];
    ExportLogsServiceRequest { resource_logs }.encode_to_vec()
}

fn spans(count: usize) -> Vec<u8> {
    let span = |at: usize| Span {
        trace_id: vec![at as u8 | 1; 16],
        span_id: vec![at as u8 | 1; 8],
        parent_span_id: vec![7; 8],
        name: "GET /api/orders/{id}".to_owned(),
        kind: 3,
        start_time_unix_nano: TIME,
        end_time_unix_nano: TIME + 1_500_000 + at as u64,
        attributes: vec![
            text("http.request.method", "GET"),
            text("http.route", "/api/orders/{id}"),
            number("http.response.status_code", 200),
            text("server.address", "orders.internal"),
            number("server.port", 8443),
            text("user.id", format!("user-{at}")),
            number("retry", at as i64 % 3),
            text("network.protocol.version", "1.1"),
        ],
        ..Span::default()
    };
    let scope = ScopeSpans { spans: (0..count).map(span).collect(), ..ScopeSpans::default() };
    let resource_spans =
        vec![ResourceSpans { resource: resource(), scope_spans: vec![scope], ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

/// An agent's events, repeated.
fn events(count: usize) -> Vec<u8> {
    let mut lines = AGENTS[0].busy.lines();
    let metadata = lines.next().unwrap_or_default();
    let events = lines.collect::<Vec<_>>();
    let all = [metadata].into_iter().chain(events.into_iter().cycle().take(count));
    all.flat_map(|line| [line, "\n"]).collect::<String>().into_bytes()
}

/// A case: its name, a body with this many items, its translation, and the output format.
type Subject = (&'static str, fn(usize) -> Vec<u8>, Translate, &'static [(&'static str, Mapping)]);

/// Translates a body whole.
type Translate = fn(&[u8], Mapping, &mut DocumentBuffer<'_>) -> Option<WriteResult>;

fn settings(mapping: Mapping) -> DocumentSettings<'static> {
    DocumentSettings { mapping, received: TIME, ..DocumentSettings::default() }
}

fn documents(criterion: &mut Criterion) {
    let of_logs: Translate = |raw, mapping, page| {
        from_otlp(Signal::Logs, raw, DocumentPosition::START, "j-1", &settings(mapping), page).ok()
    };
    let of_spans: Translate = |raw, mapping, page| {
        from_otlp(Signal::Traces, raw, DocumentPosition::START, "j-1", &settings(mapping), page).ok()
    };
    let of_events: Translate =
        |raw, mapping, page| from_intake(raw, DocumentPosition::START, "j-1", &settings(mapping), page).ok();
    let bodies: [Subject; 3] = [
        ("logs", logs, of_logs, &[("otel", Mapping::Otel), ("ecs", Mapping::Ecs)]),
        ("spans", spans, of_spans, &[("otel", Mapping::Otel), ("ecs", Mapping::Ecs)]),
        ("intake", events, of_events, &[("ecs", Mapping::Ecs)]),
    ];
    let mut group = criterion.benchmark_group("documents");
    group.throughput(Throughput::Elements(MANY as u64));
    let mut space = vec![0; 4 << 20];
    for (name, body, translate, mappings) in bodies {
        let (few, many) = (body(FEW), body(MANY));
        for (word, mapping) in mappings {
            let mut allocations = |raw: &[u8], count: usize| {
                let mut written = None;
                let info =
                    measure(|| written = translate(raw, *mapping, &mut DocumentBuffer::new(&mut space)));
                assert_eq!(written.map(|written| written.documents), Some(count as u64), "{name}, {word}");
                info.count_total
            };
            assert_eq!(allocations(&few, FEW), allocations(&many, MANY), "{name}, {word}: allocations");
            let mut page = DocumentBuffer::new(&mut space);
            _ = translate(&many, *mapping, &mut page);
            eprintln!(
                "{name}, {word}: {} bytes a document with its action, of {} bytes as it came",
                page.written().len() / MANY,
                many.len() / MANY
            );
            group.bench_function(format!("{name} as {word}"), |bench| {
                bench.iter(|| translate(black_box(&many), *mapping, &mut DocumentBuffer::new(&mut space)));
            });
        }
    }
}

criterion_group!(benches, documents);
criterion_main!(benches);

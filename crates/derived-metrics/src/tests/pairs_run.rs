//! Promise: a trace that passes a pipeline's measure has the edges that the Collector's connector, of version 0.145, made of it.

use super::pairs::{TTL_MS, lines, pair_settings};
use super::*;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use tidegate_pipeline::{
    AttributeSource, Definition, ErrorMode, Format, KeyAttribute, KeyAttributes, Measure, MeasureCount,
    MeasureValue, Measured, Pipeline, Progress, Run, StepDefinition, StepKind,
};
use tidegate_wire::otlp::Signal;

/// The id of a span, that of its parent, its kind, the milliseconds that it took, its status, and an attribute.
type Row = (u8, u8, i32, i64, i32, Option<(&'static str, &'static str)>);

const FRONT: [Row; 4] = [
    (1, 0, 2, 100, 0, Some(("http.method", "POST"))),
    (2, 1, 3, 50, 2, None),
    (3, 1, 3, 5, 0, Some(("db.name", "orders"))),
    (4, 1, 3, 2, 0, Some(("peer.service", "mailer"))),
];
const BACK: [Row; 1] = [(5, 2, 2, 30, 0, Some(("http.method", "PUT")))];
/// Without a service. It ends before it begins.
const NOBODY: [Row; 1] = [(9, 0, 1, -10, 0, None)];

fn trace() -> Vec<u8> {
    let span = |(id, parent, kind, took_ms, code, own): Row| Span {
        trace_id: vec![1; 16],
        span_id: vec![0, 0, 0, 0, 0, 0, 0, id],
        parent_span_id: if parent == 0 { Vec::new() } else { vec![0, 0, 0, 0, 0, 0, 0, parent] },
        kind,
        trace_state: "ot=th:c".into(),
        start_time_unix_nano: 1_700_000_000_000_000_000,
        end_time_unix_nano: (1_700_000_000_000_000_000 + took_ms * 1_000_000) as u64,
        status: Some(Status { code, message: String::new() }),
        attributes: own.map(|(key, value)| attribute(key, value)).into_iter().collect(),
        ..Span::default()
    };
    let group = |service: Option<&str>, rows: &[Row]| {
        let attributes = service.map(|service| attribute("service.name", service)).into_iter().collect();
        let spans = rows.iter().copied().map(span).collect();
        ResourceSpans {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        }
    };
    let resource_spans = vec![group(Some("front"), &FRONT), group(Some("back"), &BACK), group(None, &NOBODY)];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

/// The measure of a service graph with one dimension and the default peers.
fn pipeline() -> Pipeline {
    use AttributeSource::{Item, Resource, ResourceOrItem};
    let of = |key: &str, from| KeyAttribute { key: key.into(), from, default: None, is_optional: true };
    let measure = |attributes| Measure {
        of: Measured::Spans,
        conditions: Vec::new(),
        resource: KeyAttributes::Listed(Vec::new()),
        attributes: KeyAttributes::Listed(attributes),
        value: MeasureValue::Duration,
        count: MeasureCount::One,
        tells_span: true,
    };
    let attributes = vec![
        KeyAttribute { is_optional: false, ..of("service.name", Resource) },
        of("http.method", ResourceOrItem),
        of("peer.service", Item),
        of("db.name", Item),
        of("db.system", Item),
        of("db.name", ResourceOrItem),
    ];
    // The first measure of the settings is none of pairs.
    let nothing = KeyAttribute { is_optional: false, ..of("nothing has it", Item) };
    let kind = StepKind::Measure(vec![measure(vec![nothing]), measure(attributes)]);
    let step = StepDefinition { when: None, on_error: ErrorMode::Ignore, kind };
    Pipeline::compile(&Definition { steps: vec![step] }).unwrap().0
}

fn measure(pipeline: &Pipeline, aggregator: &mut Aggregator, body: &[u8]) {
    let format = Format::Otlp(Signal::Traces);
    let mut workspace = pipeline.workspace();
    let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
    for pass in 0..pipeline.passes(format) {
        let mut run = Run::new(pipeline, pass, &mut workspace, format, body, &mut scratch, 0)
            .with_measurements(aggregator);
        while !matches!(run.advance(), Progress::Done(_)) {}
    }
}

#[test]
fn edges_are_those_of_the_connector() {
    let mut settings = pair_settings(Temporality::Cumulative, 10);
    let group = &mut settings.measures[1];
    group.pairs.as_mut().unwrap().peers = 3;
    let names = group.attributes.as_mut().unwrap();
    (names[4], names[5]) = ("client_http.method".into(), "server_http.method".into());
    let mut aggregator = Aggregator::new(settings);
    aggregator.begin(b"t", START_MS);
    measure(&pipeline(), &mut aggregator, &trace());

    let orders = "client=front,server=orders,connection_type=database,failed=(false),virtual_node=";
    let back = "client=front,server=back,connection_type=,failed=(true),server_http.method=PUT,virtual_node=";
    let mut expected = vec![
        format!("total {orders} AsInt(1)"),
        format!("total {back} AsInt(1)"),
        format!("failed {back} AsInt(1)"),
        format!("server {orders} 1 0.005"),
        format!("server {back} 1 0.03"),
        format!("client {orders} 1 0.005"),
        format!("client {back} 1 0.05"),
    ];
    expected.sort();
    assert_eq!(lines(&flush(&mut aggregator, START_MS)), expected);

    aggregator.begin(b"", START_MS + TTL_MS + 1);
    let user = "client=user,server=front,connection_type=virtual_node,failed=(false),server_http.method=POST,virtual_node=client";
    let mailer = "client=front,server=mailer,connection_type=virtual_node,failed=(false),virtual_node=server";
    expected.extend([
        format!("total {user} AsInt(1)"),
        format!("total {mailer} AsInt(1)"),
        format!("server {user} 1 0.1"),
        format!("server {mailer} 1 0"),
        format!("client {user} 1 0"),
        format!("client {mailer} 1 0.002"),
    ]);
    expected.sort();
    assert_eq!(lines(&flush(&mut aggregator, START_MS + 1_000)), expected);
}

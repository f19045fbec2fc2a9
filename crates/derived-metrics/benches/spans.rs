//! Nanoseconds of thread time for each span of a decoded body: the walk over it, its key, and its series among 10,000.
//!
//! `cargo bench -p tidegate-derived-metrics --bench spans`. The bar is 300 ns. Spans have 460 bytes with eight attributes, as those of SDKs.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench, which says what it measures"
)]

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tidegate_derived_metrics::{Aggregator, Group, Instrument, InstrumentKind, Settings, Temporality};
use tidegate_pipeline::{
    AttributeSource, Definition, ErrorMode, Format, KeyAttribute, KeyAttributes, Measure, MeasureCount,
    MeasureValue, Measured, Pipeline, Progress, Run, StepDefinition, StepKind,
};
use tidegate_wire::otlp::Signal;

const SPANS: usize = 1000;
/// Bodies, of which each has routes of its own.
const BODIES: usize = 20;
const TRACES: Format = Format::Otlp(Signal::Traces);

fn text(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) });
    KeyValue { key: key.to_owned(), value, key_strindex: 0 }
}

/// Spans of 500 series.
fn body(number: usize) -> Vec<u8> {
    let span = |span: usize| Span {
        trace_id: (span as u128 + 1).to_be_bytes().to_vec(),
        span_id: (span as u64 + 1).to_be_bytes().to_vec(),
        parent_span_id: vec![7; 8],
        name: format!("GET /api/v{number}/orders/{}", span * 7 % 500),
        kind: 2,
        start_time_unix_nano: 1_700_000_000_000_000_000,
        end_time_unix_nano: 1_700_000_000_000_000_000 + (span as u64 * 7_919_003) % 50_000_000,
        attributes: vec![
            text("http.request.method", "GET"),
            text("http.route", "/api/v1/orders/{id}"),
            text("server.address", "shop-frontend.production.svc.cluster.local"),
            text("user_agent.original", "Mozilla/5.0 (X11; Linux x86_64)"),
            text("network.protocol.version", "1.1"),
            text("enduser.id", "user-0badcafe"),
            text("thread.name", "worker-3"),
            text("code.function.name", "handle_order"),
        ],
        ..Span::default()
    };
    let scope_spans = vec![ScopeSpans { spans: (0..SPANS).map(span).collect(), ..ScopeSpans::default() }];
    let attributes =
        ["service.name", "service.version", "host.name", "telemetry.sdk.name"].map(|key| text(key, "shop"));
    let resource = Some(Resource { attributes: attributes.to_vec(), ..Resource::default() });
    let group = ResourceSpans { resource, scope_spans, ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![group] }.encode_to_vec()
}

fn measure(name: &str, dimensions: &[&str], bodies: &[Vec<u8>]) {
    use AttributeSource::{ItemOrResource, Resource, SpanKind, SpanName, StatusCode};
    let built_in = [
        ("service.name", Resource),
        ("span.name", SpanName),
        ("span.kind", SpanKind),
        ("status.code", StatusCode),
    ];
    let more = dimensions.iter().map(|key| (*key, ItemOrResource));
    let listed: Vec<KeyAttribute> = built_in
        .into_iter()
        .chain(more)
        .map(|(key, from)| KeyAttribute { key: key.to_owned(), from, default: None, is_optional: true })
        .collect();
    let attributes = Some(listed.iter().map(|attribute| attribute.key.clone()).collect());
    let measure = Measure {
        of: Measured::Spans,
        conditions: Vec::new(),
        resource: KeyAttributes::All,
        attributes: KeyAttributes::Listed(listed),
        value: MeasureValue::Duration,
        count: MeasureCount::Adjusted,
        tells_span: false,
    };
    let step =
        StepDefinition { when: None, on_error: ErrorMode::Ignore, kind: StepKind::Measure(vec![measure]) };
    let (pipeline, _) = Pipeline::compile(&Definition { steps: vec![step] }).unwrap();
    let instrument = |name: &str, kind| Instrument {
        name: name.into(),
        description: String::new(),
        unit: "ms".into(),
        kind,
    };
    let bounds = (0..16).map(|bound| f64::from(bound) * 3.0).collect();
    let instruments = vec![
        instrument("calls", InstrumentKind::Count),
        instrument("duration", InstrumentKind::Histogram { bounds }),
    ];
    let mut aggregator = Aggregator::new(Settings {
        measures: vec![Group { attributes, divisor: 1e6, instruments, pairs: None }],
        temporality: Temporality::Cumulative,
        max_series: 10_000,
        expire_ms: 0,
        exemplars: false,
        scope: "bench".into(),
        definition: String::new(),
    });
    let mut workspace = pipeline.workspace();
    let longest = bodies.iter().map(Vec::len).max().unwrap();
    let mut scratch = vec![0; Pipeline::scratch_bytes(longest)];
    let mut best = f64::INFINITY;
    for _ in 0..60 {
        let start = thread_seconds();
        for body in bodies {
            aggregator.begin(b"", 1_700_000_000_000);
            let mut run = Run::new(&pipeline, 0, &mut workspace, TRACES, body, &mut scratch, 0)
                .with_measurements(&mut aggregator);
            while run.advance() == Progress::More {}
        }
        best = best.min(thread_seconds() - start);
    }
    let ns = best * 1e9 / (SPANS * bodies.len()) as f64;
    let series = aggregator.series();
    println!("{name:<28} {ns:6.0} ns/span   bar 300   {series} series, {} bytes a span", longest / SPANS);
}

/// The time that this thread has computed for.
fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let bodies: Vec<Vec<u8>> = (0..BODIES).map(body).collect();
    measure("calls and durations", &[], &bodies);
    measure("with three dimensions", &["http.request.method", "http.route", "user_agent.original"], &bodies);
}

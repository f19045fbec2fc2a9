//! Promise: what comes out of a limited run is within its limits, whatever its statements do; what is not written stays as it was, or
//! is dropped, and is counted.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use tidegate_pipeline::{
    Definition, ErrorMode, Format, Limits, Outcome, Pipeline, Progress, RuleDefinition, Run, StepDefinition,
    StepKind,
};
use tidegate_wire::otlp::{Signal, check};
use tidegate_wire::remote_write::Version;

/// The lengths and tags of the messages around an item may take more bytes.
const HEADERS: usize = 40;

fn edit(statements: &[&str], on_error: ErrorMode) -> StepDefinition {
    let statements = statements.iter().map(|text| (*text).to_owned()).collect();
    StepDefinition { when: None, on_error, kind: StepKind::Edit(statements) }
}

/// Output of a run over a body, with its counts.
struct Ran {
    outcome: Outcome,
    body: Vec<u8>,
    failures: u64,
    filtered: u64,
}

fn run(steps: Vec<StepDefinition>, format: Format, body: &[u8], limits: Limits) -> Ran {
    let pipeline =
        Pipeline::compile(&Definition { steps }).unwrap_or_else(|problems| panic!("{problems:#?}")).0;
    assert_eq!(pipeline.passes(format), 1);
    let mut workspace = pipeline.workspace();
    let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
    let mut run = Run::new(&pipeline, 0, &mut workspace, format, body, &mut scratch, 0).limited(limits);
    let outcome = loop {
        if let Progress::Done(outcome) = run.advance() {
            break outcome;
        }
    };
    let mut out = body.to_vec();
    if let Outcome::Changed { len, .. } = outcome {
        out = vec![0; len];
        run.write(&mut out);
    }
    let (mut failures, mut filtered) = (0, 0);
    workspace.take_counts(|_, counts| {
        failures += counts.failures.iter().sum::<u64>();
        filtered += counts.filtered;
    });
    Ran { outcome, body: out, failures, filtered }
}

fn attributes(len: usize) -> Vec<KeyValue> {
    let value = Some(AnyValue { value: Some(Value::StringValue("x".repeat(len))) });
    vec![KeyValue { key: "a".to_owned(), value, key_strindex: 0 }]
}

fn resource(len: usize) -> Option<Resource> {
    Some(Resource { attributes: attributes(len), ..Resource::default() })
}

fn scope(len: usize) -> Option<InstrumentationScope> {
    Some(InstrumentationScope { attributes: attributes(len), ..InstrumentationScope::default() })
}

/// A request with items of these lengths, whose resource and scope have about `around` bytes each.
fn request(signal: Signal, around: usize, items: &[usize]) -> Vec<u8> {
    let (resource, scope) = (resource(around), scope(around / 2));
    match signal {
        Signal::Logs => {
            let record = |len: &usize| LogRecord { attributes: attributes(*len), ..LogRecord::default() };
            let log_records = items.iter().map(record).collect();
            let scope = ScopeLogs { scope, log_records, ..ScopeLogs::default() };
            let group = ResourceLogs { resource, scope_logs: vec![scope], ..ResourceLogs::default() };
            ExportLogsServiceRequest { resource_logs: vec![group] }.encode_to_vec()
        }
        Signal::Traces => {
            let event = |len: usize| Event { attributes: attributes(len), ..Event::default() };
            let span = |len: &usize| Span {
                attributes: attributes(*len),
                events: vec![event(len / 2), event(len / 3)],
                ..Span::default()
            };
            let scope =
                ScopeSpans { scope, spans: items.iter().map(span).collect(), ..ScopeSpans::default() };
            let group = ResourceSpans { resource, scope_spans: vec![scope], ..ResourceSpans::default() };
            ExportTraceServiceRequest { resource_spans: vec![group] }.encode_to_vec()
        }
        _ => {
            let point =
                |len: &usize| NumberDataPoint { attributes: attributes(*len), ..NumberDataPoint::default() };
            let gauge = Gauge { data_points: items.iter().map(point).collect() };
            let metric = Metric {
                name: "m".repeat(around.min(200) + 1),
                data: Some(Data::Gauge(gauge)),
                ..Metric::default()
            };
            let scope = ScopeMetrics { scope, metrics: vec![metric], ..ScopeMetrics::default() };
            let group =
                ResourceMetrics { resource, scope_metrics: vec![scope], ..ResourceMetrics::default() };
            ExportMetricsServiceRequest { resource_metrics: vec![group] }.encode_to_vec()
        }
    }
}

/// Statements that make items, and what is around them, longer.
fn programs() -> Vec<(Signal, Vec<&'static str>)> {
    vec![
        (
            Signal::Logs,
            vec![
                r#"set(log.attributes["b"], log.attributes["a"])"#,
                r#"set(log.attributes["c"], Concat([log.attributes["a"], log.attributes["a"]], ""))"#,
            ],
        ),
        (Signal::Logs, vec![r#"set(log.attributes["b"], resource.attributes["a"])"#]),
        (
            Signal::Logs,
            vec![
                r#"set(resource.attributes["b"], log.attributes["a"])"#,
                r#"set(scope.attributes["b"], log.attributes["a"])"#,
                r#"set(log.attributes["b"], log.attributes["a"])"#,
            ],
        ),
        (Signal::Logs, vec![r#"set(resource.attributes["b"], resource.attributes["a"])"#]),
        (Signal::Logs, vec![r#"set(scope.attributes["b"], resource.attributes["a"])"#]),
        (Signal::Traces, vec![r#"set(span.attributes["b"], resource.attributes["a"])"#]),
        (
            Signal::Traces,
            vec![
                r#"set(spanevent.attributes["b"], span.attributes["a"])"#,
                r#"set(span.attributes["b"], spanevent.attributes["a"])"#,
                r#"set(resource.attributes["b"], spanevent.attributes["a"])"#,
            ],
        ),
        (
            Signal::Metrics,
            vec![
                r#"set(datapoint.attributes["b"], datapoint.attributes["a"])"#,
                r#"set(metric.description, datapoint.attributes["a"])"#,
                r#"set(resource.attributes["b"], datapoint.attributes["a"])"#,
            ],
        ),
        (Signal::Metrics, vec![r#"set(metric.description, resource.attributes["a"])"#]),
    ]
}

proptest! {
    #[test]
    fn the_output_is_within_its_limits(
        (signal, program) in proptest::sample::select(programs()),
        around in 0_usize..5_000,
        items in vec(prop_oneof![0_usize..100, 0_usize..8_000], 1..6),
        drops in any::<bool>(),
        growth in prop_oneof![Just(0), 0_usize..2_000, 0_usize..30_000],
        more in prop_oneof![Just(0), 0_usize..2_000, 0_usize..60_000],
    ) {
        let body = request(signal, around, &items);
        let limits = Limits { body: body.len() + more, growth };
        let on_error = if drops { ErrorMode::Drop } else { ErrorMode::Ignore };
        let ran = run(vec![edit(&program, on_error)], Format::Otlp(signal), &body, limits);
        let before = check(signal, &body).unwrap();
        if ran.outcome == Outcome::Empty {
            prop_assert_eq!(ran.filtered, before.items);
            return Ok(());
        }
        let after = check(signal, &ran.body).unwrap();
        prop_assert!(ran.body.len() <= limits.body, "{} > {limits:?}", ran.body.len());
        prop_assert!(
            after.largest_item <= before.largest_item + growth + HEADERS,
            "{} to {}, {limits:?}", before.largest_item, after.largest_item
        );
        prop_assert_eq!(after.items + ran.filtered, before.items);
        if growth == 0 && !drops {
            prop_assert!(ran.failures > 0 || items.iter().all(|len| *len == 0) || around == 0);
        }
    }
}

/// An item that would become too long stays, or is dropped; others are changed. Within the limits nothing fails.
#[test]
fn only_items_that_grow_too_much_are_left_alone() {
    let body = request(Signal::Logs, 10, &[100, 5_000, 100]);
    let statement = [r#"set(log.attributes["b"], log.attributes["a"])"#];
    let run = |growth: usize, on_error| {
        let limits = Limits { body: usize::MAX, growth };
        run(vec![edit(&statement, on_error)], Format::Otlp(Signal::Logs), &body, limits)
    };
    let ran = run(1_000, ErrorMode::Ignore);
    assert_eq!((ran.failures, ran.filtered), (1, 0));
    assert!((200..300).contains(&(ran.body.len() - body.len())), "{} {}", ran.body.len(), body.len());
    let ran = run(1_000, ErrorMode::Drop);
    assert_eq!((ran.failures, ran.filtered), (1, 1));
    assert!(ran.body.len() < 1_000);
    let ran = run(6_000, ErrorMode::Drop);
    assert_eq!((ran.failures, ran.filtered), (0, 0));
    assert!(ran.body.len() > body.len() + 5_000);
}

/// A series of remote write stays as it was where rules would make it too long, and so does one that would make the body too long.
#[test]
fn series_stay_within_the_limits() {
    let series = |name: &str| {
        let text =
            |tag: u8, text: &str| [&[tag, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let label =
            text(0x0a, &String::from_utf8([text(0x0a, "__name__"), text(0x12, name)].concat()).unwrap());
        text(0x0a, &String::from_utf8([label, vec![0x12, 2, 0x10, 1]].concat()).unwrap())
    };
    let body = [series("a"), series("b"), series("c")].concat();
    let rule = RuleDefinition {
        source_labels: Vec::new(),
        separator: None,
        target_label: Some("long".to_owned()),
        regex: Vec::new(),
        modulus: None,
        replacement: Some("x".repeat(1_000)),
        action: None,
        condition: Vec::new(),
    };
    let step =
        |on_error| StepDefinition { when: None, on_error, kind: StepKind::Relabel(vec![rule.clone()]) };
    let format = Format::RemoteWrite(Version::V1);
    let all = Limits { body: usize::MAX, growth: 2_000 };
    let ran = run(vec![step(ErrorMode::Ignore)], format, &body, all);
    assert_eq!((ran.failures, ran.body.len() > body.len() + 3_000), (0, true));
    let ran = run(vec![step(ErrorMode::Ignore)], format, &body, Limits { growth: 900, ..all });
    assert_eq!((ran.failures, ran.outcome), (3, Outcome::Unchanged));
    let ran = run(vec![step(ErrorMode::Drop)], format, &body, Limits { growth: 900, ..all });
    assert_eq!((ran.filtered, ran.outcome), (3, Outcome::Empty));
    let ran = run(vec![step(ErrorMode::Ignore)], format, &body, Limits { body: body.len() + 2_500, ..all });
    assert_eq!((ran.failures, ran.body.len() <= body.len() + 2_500), (1, true));
}

//! The functions of the Collector's processors within pipelines of several steps. `collector.rs` compares what each of them does.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tidegate_pipeline::{
    Definition, ErrorMode, Format, Outcome, Pipeline, Progress, Run, StepDefinition, StepKind,
};
use tidegate_wire::otlp::Signal;

fn edit(statements: &[&str]) -> StepDefinition {
    let kind = StepKind::Edit(statements.iter().map(|text| (*text).to_owned()).collect());
    StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }
}

fn drop_if(conditions: &[&str]) -> StepDefinition {
    let kind = StepKind::Drop(conditions.iter().map(|text| (*text).to_owned()).collect());
    StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }
}

/// The body behind all passes.
fn run(steps: Vec<StepDefinition>, signal: Signal, body: Vec<u8>) -> Vec<u8> {
    let (pipeline, _) = Pipeline::compile(&Definition { steps }).expect("it compiles");
    let (mut workspace, mut body) = (pipeline.workspace(), body);
    for pass in 0..pipeline.passes(Format::Otlp(signal)) {
        let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
        let mut run = Run::new(&pipeline, pass, &mut workspace, Format::Otlp(signal), &body, &mut scratch, 0);
        let outcome = loop {
            if let Progress::Done(outcome) = run.advance() {
                break outcome;
            }
        };
        match outcome {
            Outcome::Unchanged => {}
            Outcome::Empty => body = Vec::new(),
            Outcome::Changed { len, .. } => {
                let mut out = vec![0; len];
                run.write(&mut out);
                body = out;
            }
        }
    }
    tidegate_wire::otlp::check(signal, &body).expect("the output is valid");
    body
}

fn metrics(data: Vec<Data>) -> Vec<u8> {
    let metrics =
        data.into_iter().map(|data| Metric { name: "m".into(), data: Some(data), ..Metric::default() });
    let scope = ScopeMetrics { metrics: metrics.collect(), ..ScopeMetrics::default() };
    let resource = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![resource] }.encode_to_vec()
}

fn run_metrics(steps: Vec<StepDefinition>, data: Vec<Data>) -> Vec<Metric> {
    let body = run(steps, Signal::Metrics, metrics(data));
    let request = ExportMetricsServiceRequest::decode(&*body).expect("the output can be decoded");
    let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    scopes.flat_map(|scope| scope.metrics).collect()
}

fn points(values: &[i64]) -> Vec<NumberDataPoint> {
    let point = |value| NumberDataPoint { value: Some(value), ..NumberDataPoint::default() };
    values.iter().map(|value| point(Number::AsInt(*value))).collect()
}

fn sum(values: &[i64]) -> Data {
    Data::Sum(Sum { data_points: points(values), aggregation_temporality: 2, is_monotonic: true })
}

#[test]
fn points_behind_a_conversion_see_the_new_kind_and_values() {
    let steps = vec![
        edit(&[
            "convert_sum_to_gauge() where metric.is_monotonic == true",
            "scale_metric(10.0, \"ms\") where metric.type == METRIC_DATA_TYPE_GAUGE",
            "scale_metric(0.5)",
        ]),
        edit(&[
            "set(datapoint.flags, 7) where metric.type == METRIC_DATA_TYPE_GAUGE and datapoint.value_int == 15",
        ]),
    ];
    let found = run_metrics(steps, vec![sum(&[3, 4])]);
    let flagged = NumberDataPoint { flags: 7, ..points(&[15]).remove(0) };
    let data = Data::Gauge(Gauge { data_points: vec![flagged, points(&[20]).remove(0)] });
    let expected = Metric { name: "m".into(), unit: "ms".into(), data: Some(data), ..Metric::default() };
    assert_eq!(found, [expected]);
}

#[test]
fn a_metric_becomes_what_it_was() {
    let steps = vec![edit(&["convert_sum_to_gauge()", "convert_gauge_to_sum(\"delta\", false)"])];
    let found = run_metrics(steps, vec![sum(&[3])]);
    let data = Sum { data_points: points(&[3]), aggregation_temporality: 1, is_monotonic: false };
    assert_eq!(found[0].data, Some(Data::Sum(data)));
}

#[test]
fn factors_belong_to_one_metric() {
    let steps = vec![edit(&["scale_metric(2.0) where metric.is_monotonic == true"])];
    let gauge = Data::Gauge(Gauge { data_points: points(&[1, 2]) });
    let found = run_metrics(steps, vec![sum(&[1, 2]), gauge.clone(), sum(&[3])]);
    let data: Vec<_> = found.into_iter().filter_map(|metric| metric.data).collect();
    assert_eq!(data, [sum(&[2, 4]), gauge, sum(&[6])]);
}

#[test]
fn buckets_are_limited_by_merging_neighbours() {
    let histogram = |bounds: &[f64], counts: &[u64]| {
        let point = HistogramDataPoint {
            explicit_bounds: bounds.to_vec(),
            bucket_counts: counts.to_vec(),
            ..HistogramDataPoint::default()
        };
        Data::Histogram(Histogram { data_points: vec![point], aggregation_temporality: 2 })
    };
    let limit = |most: &str| {
        let statement = format!("merge_histogram_buckets({most}, method=\"limit_buckets\")");
        let given = histogram(&[1.0, 2.0, 3.0, 4.0], &[1, 2, 3, 4, 5]);
        run_metrics(vec![edit(&[&statement])], vec![given]).remove(0).data.expect("a histogram")
    };
    assert_eq!(limit("2"), histogram(&[3.0], &[6, 9]));
    assert_eq!(limit("3.0"), histogram(&[2.0, 4.0], &[3, 7, 5]));
    assert_eq!(limit("4"), histogram(&[2.0, 4.0], &[3, 7, 5]));
    assert_eq!(limit("1"), histogram(&[], &[15]));
    assert_eq!(limit("\"5\""), histogram(&[1.0, 2.0, 3.0, 4.0], &[1, 2, 3, 4, 5]));
    for wrong in ["0", "2.5", "-1", "nil", "\"x\""] {
        let statement = format!("merge_histogram_buckets({wrong}, \"limit_buckets\")");
        assert!(Pipeline::compile(&Definition { steps: vec![edit(&[&statement])] }).is_err(), "{wrong}");
    }
    // Bounds that do not rise.
    let given = histogram(&[2.0, 1.0], &[1, 2, 3]);
    let steps = vec![edit(&["merge_histogram_buckets(2, \"limit_buckets\")"])];
    assert_eq!(run_metrics(steps, vec![given.clone()])[0].data, Some(given));
}

#[test]
fn root_spans_are_told_apart_where_events_are_looked_at_too() {
    let span = |parent: &[u8], name: &str| Span {
        parent_span_id: parent.to_vec(),
        name: name.into(),
        events: vec![Event { name: "e".into(), ..Event::default() }],
        ..Span::default()
    };
    let spans = vec![span(&[1; 8], "child"), span(&[], "root"), span(&[2; 8], "child")];
    let scope = ScopeSpans { spans, ..ScopeSpans::default() };
    let resource = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
    let request = ExportTraceServiceRequest { resource_spans: vec![resource] };
    let steps = vec![drop_if(&["IsRootSpan()", "spanevent.name == \"e\""])];
    let body = run(steps, Signal::Traces, request.encode_to_vec());
    let request = ExportTraceServiceRequest::decode(&*body).expect("the output can be decoded");
    let names: Vec<_> =
        request.resource_spans[0].scope_spans[0].spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["child", "child"]);
    assert!(request.resource_spans[0].scope_spans[0].spans.iter().all(|span| span.events.is_empty()));
}

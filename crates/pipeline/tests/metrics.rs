//! Steps on metrics and their points, and on spans and their events, over whole bodies.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use tidegate_pipeline::{
    Definition, ErrorMode, Format, Limits, Outcome, Pipeline, Progress, Run, StepDefinition, StepKind,
};
use tidegate_wire::otlp::{Signal, check};

const NO_LIMITS: Limits = Limits { body: usize::MAX, growth: usize::MAX };

fn step(kind: impl FnOnce(Vec<String>) -> StepKind, texts: &[&str]) -> StepDefinition {
    let kind = kind(texts.iter().map(|text| (*text).to_owned()).collect());
    StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }
}

/// Output of all passes over a body, with the failures and the filtered items.
struct Ran {
    body: Vec<u8>,
    failures: u64,
    filtered: u64,
}

fn run(steps: Vec<StepDefinition>, signal: Signal, body: Vec<u8>, limits: Limits) -> Ran {
    let pipeline = Pipeline::compile(&Definition { steps });
    let pipeline = pipeline.unwrap_or_else(|problems| panic!("{problems:#?}")).0;
    let (mut workspace, format) = (pipeline.workspace(), Format::Otlp(signal));
    let mut ran = Ran { body, failures: 0, filtered: 0 };
    for pass in 0..pipeline.passes(format) {
        let body = std::mem::take(&mut ran.body);
        let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
        let mut run =
            Run::new(&pipeline, pass, &mut workspace, format, &body, &mut scratch, 0).limited(limits);
        let outcome = loop {
            if let Progress::Done(outcome) = run.advance() {
                break outcome;
            }
        };
        ran.body = match outcome {
            Outcome::Unchanged => body.clone(),
            Outcome::Empty => Vec::new(),
            Outcome::Changed { len, .. } => {
                let mut out = vec![0; len];
                run.write(&mut out);
                out
            }
        };
        check(signal, &ran.body).expect("the output is valid");
    }
    workspace.take_counts(|_, counts| {
        ran.failures += counts.failures.iter().sum::<u64>();
        ran.filtered += counts.filtered;
    });
    ran
}

fn encoded(metrics: Vec<Metric>) -> Vec<u8> {
    let scope = ScopeMetrics { metrics, ..ScopeMetrics::default() };
    let resource = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![resource] }.encode_to_vec()
}

fn decoded(body: &[u8]) -> Vec<Metric> {
    let groups = ExportMetricsServiceRequest::decode(body).expect("it decodes").resource_metrics;
    groups.into_iter().flat_map(|group| group.scope_metrics).flat_map(|scope| scope.metrics).collect()
}

fn gauge(data_points: Vec<NumberDataPoint>) -> Metric {
    Metric { name: "m".into(), data: Some(Data::Gauge(Gauge { data_points })), ..Metric::default() }
}

fn points(metric: &Metric) -> &[NumberDataPoint] {
    match &metric.data {
        Some(Data::Gauge(gauge)) => &gauge.data_points,
        Some(Data::Sum(sum)) => &sum.data_points,
        data => panic!("{data:?}"),
    }
}

fn flagged(flags: u32) -> NumberDataPoint {
    NumberDataPoint { flags, ..NumberDataPoint::default() }
}

/// The integer attribute `key`.
fn attribute(attributes: &[KeyValue], key: &str) -> Option<i64> {
    let value = attributes.iter().find(|pair| pair.key == key)?.value.clone()?.value?;
    if let Value::IntValue(number) = value { Some(number) } else { panic!("{value:?}") }
}

#[test]
fn the_points_of_a_metric_are_counted() {
    let statements = [
        "set(datapoint.attributes[\"n\"], Len(metric.data_points))",
        "set(datapoint.attributes[\"x\"], Len(datapoint.exemplars)) where metric.data_points != nil",
    ];
    let metrics = vec![
        gauge(vec![flagged(0); 3]),
        gauge(vec![]),
        Metric { name: "none".into(), ..Metric::default() },
        gauge(vec![flagged(0); 200]),
    ];
    let ran = run(vec![step(StepKind::Edit, &statements)], Signal::Metrics, encoded(metrics), NO_LIMITS);
    let metrics = decoded(&ran.body);
    for (at, count) in [(0, 3), (3, 200)] {
        let points = points(&metrics[at]);
        assert_eq!(points.len() as i64, count);
        for point in points {
            let found = ["n", "x"].map(|key| attribute(&point.attributes, key));
            assert_eq!(found, [Some(count), Some(0)]);
        }
    }
    assert_eq!(ran.failures, 0);

    let statement =
        "set(metric.unit, Concat([Len(metric.data_points)], \"\")) where metric.data_points != nil";
    let metrics = vec![gauge(vec![flagged(0); 70]), Metric::default()];
    let ran = run(vec![step(StepKind::Edit, &[statement])], Signal::Metrics, encoded(metrics), NO_LIMITS);
    let units: Vec<_> = decoded(&ran.body).into_iter().map(|metric| metric.unit).collect();
    assert_eq!(units, ["70", ""]);
}

#[test]
fn the_events_and_links_of_a_span_are_counted() {
    let span = |events: usize, links: usize| Span {
        events: vec![Event::default(); events],
        links: vec![Link::default(); links],
        ..Span::default()
    };
    let scope = ScopeSpans { spans: vec![span(2, 1), span(0, 3), span(100, 0)], ..ScopeSpans::default() };
    let group = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
    let body = ExportTraceServiceRequest { resource_spans: vec![group] }.encode_to_vec();
    for context in ["span", "spanevent"] {
        let statements = ["events", "links"]
            .map(|field| format!("set({context}.attributes[\"{field}\"], Len(span.{field}))"));
        let steps = vec![step(StepKind::Edit, &statements.each_ref().map(String::as_str))];
        let ran = run(steps, Signal::Traces, body.clone(), NO_LIMITS);
        let request = ExportTraceServiceRequest::decode(&*ran.body).unwrap();
        for span in &request.resource_spans[0].scope_spans[0].spans {
            let counts = [span.events.len(), span.links.len()].map(|count| Some(count as i64));
            let found = |attributes: &[_]| ["events", "links"].map(|key| attribute(attributes, key));
            if context == "span" {
                assert_eq!(found(&span.attributes), counts);
            }
            if context == "spanevent" {
                assert!(span.events.iter().all(|event| found(&event.attributes) == counts));
            }
        }
    }
}

/// A count for each point would look at them all each time, and take minutes.
#[test]
fn counting_from_a_member_looks_at_its_siblings_once() {
    let steps =
        || vec![step(StepKind::Edit, &["set(datapoint.flags, 1) where Len(metric.data_points) == 1"])];
    let body = encoded(vec![gauge(vec![flagged(0); 100_000])]);
    let ran = run(steps(), Signal::Metrics, body.clone(), NO_LIMITS);
    assert!(ran.body == body && ran.failures == 0);
}

/// A step counts the items that the steps before it left.
#[test]
fn dropped_points_and_events_are_not_counted() {
    let edit = "set(datapoint.attributes[\"n\"], Len(metric.data_points))";
    let steps = vec![step(StepKind::Drop, &["datapoint.flags == 1"]), step(StepKind::Edit, &[edit])];
    let body = encoded(vec![gauge(vec![flagged(1), flagged(1), flagged(0)])]);
    let ran = run(steps, Signal::Metrics, body, NO_LIMITS);
    let metrics = decoded(&ran.body);
    let [point] = points(&metrics[0]) else { panic!("{metrics:?}") };
    assert_eq!(attribute(&point.attributes, "n"), Some(1));

    // A failure may drop, too.
    let failing = StepDefinition {
        on_error: ErrorMode::Drop,
        ..step(
            StepKind::Edit,
            &["set(datapoint.attributes[\"a\"], ParseJSON(\"{\")) where datapoint.flags == 1"],
        )
    };
    let body = encoded(vec![gauge(vec![flagged(1), flagged(0)])]);
    let ran = run(vec![failing, step(StepKind::Edit, &[edit])], Signal::Metrics, body, NO_LIMITS);
    let metrics = decoded(&ran.body);
    let [point] = points(&metrics[0]) else { panic!("{metrics:?}") };
    assert_eq!(attribute(&point.attributes, "n"), Some(1));

    let event = |name: &str| Event { name: name.into(), ..Event::default() };
    let span = Span { events: vec![event("a"), event("b")], ..Span::default() };
    let scope = ScopeSpans { spans: vec![span], ..ScopeSpans::default() };
    let group = ResourceSpans { scope_spans: vec![scope], ..ResourceSpans::default() };
    let body = ExportTraceServiceRequest { resource_spans: vec![group] }.encode_to_vec();
    let steps = vec![
        step(StepKind::Drop, &["spanevent.name == \"a\""]),
        step(StepKind::Edit, &["set(spanevent.attributes[\"n\"], Len(span.events))"]),
    ];
    let ran = run(steps, Signal::Traces, body, NO_LIMITS);
    let request = ExportTraceServiceRequest::decode(&*ran.body).unwrap();
    let [event] = &*request.resource_spans[0].scope_spans[0].spans[0].events else { panic!("{request:?}") };
    assert_eq!(attribute(&event.attributes, "n"), Some(1));
}

/// Bounds and counts are set both or not at all, wherever the room ends.
#[test]
fn merged_buckets_fit_their_bounds() {
    let mut failures = 0;
    for count in (200..3_000).step_by(50) {
        let point = HistogramDataPoint {
            explicit_bounds: (0..count).map(f64::from).collect(),
            bucket_counts: vec![u64::MAX / 3; count as usize + 1],
            ..HistogramDataPoint::default()
        };
        let data = Data::Histogram(Histogram { data_points: vec![point], aggregation_temporality: 2 });
        let body = encoded(vec![Metric { data: Some(data), ..Metric::default() }]);
        let steps = vec![step(StepKind::Edit, &["merge_histogram_buckets(7.0)"])];
        let ran = run(steps, Signal::Metrics, body, NO_LIMITS);
        failures += ran.failures;
        let metrics = decoded(&ran.body);
        let Some(Data::Histogram(histogram)) = &metrics[0].data else { panic!("{metrics:?}") };
        let point = &histogram.data_points[0];
        assert_eq!(point.explicit_bounds.len() + 1, point.bucket_counts.len(), "{count}");
        assert_eq!(point.explicit_bounds.len() as u64, count as u64 - 1 + ran.failures);
    }
    assert!(failures > 0);
}

/// A gauge may have any unknown fields, also with the numbers of a sum's.
#[test]
fn a_gauge_with_unknown_fields_becomes_a_valid_sum() {
    let field = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
    // A point, text and a number in field 3, text and a number in field 2.
    let gauge = [&[0x0a, 0][..], &[0x1a, 1, b'x', 0x18, 1], &[0x12, 1, b'y', 0x10, 1]].concat();
    let body = field(0x0a, &field(0x12, &field(0x12, &field(0x2a, &gauge))));
    check(Signal::Metrics, &body).unwrap();
    let steps = vec![step(StepKind::Edit, &["convert_gauge_to_sum(\"delta\", true)"])];
    let ran = run(steps, Signal::Metrics, body, NO_LIMITS);
    let metrics = decoded(&ran.body);
    let Some(Data::Sum(sum)) = &metrics[0].data else { panic!("{metrics:?}") };
    assert_eq!((sum.aggregation_temporality, sum.is_monotonic, sum.data_points.len()), (1, true, 1));
}

/// Metrics in seconds, with two points.
fn seconds() -> Vec<u8> {
    let point =
        |value| NumberDataPoint { value: Some(Number::AsDouble(value)), ..NumberDataPoint::default() };
    let metric = gauge(vec![point(1.0), point(2.0)]);
    encoded(vec![Metric { unit: "s".into(), description: "d".repeat(3_000), ..metric }])
}

fn values(metric: &Metric) -> Vec<Option<Number>> {
    points(metric).iter().map(|point| point.value).collect()
}

const SCALE: &str = "scale_metric(1000.0, \"ms\")";

/// A point that grows too much is without the other changes, but its value has the unit of its metric.
#[test]
fn a_point_that_becomes_too_long_is_multiplied() {
    let copy = "set(datapoint.attributes[\"x\"], metric.description) where datapoint.value_double > 1500.0";
    let steps = vec![step(StepKind::Edit, &[SCALE]), step(StepKind::Edit, &[copy])];
    let ran = run(steps, Signal::Metrics, seconds(), Limits { growth: 1_000, ..NO_LIMITS });
    let metrics = decoded(&ran.body);
    assert_eq!(metrics[0].unit, "ms");
    assert_eq!(values(&metrics[0]), [1_000.0, 2_000.0].map(|value| Some(Number::AsDouble(value))));
    assert!(points(&metrics[0])[1].attributes.is_empty());
    assert_eq!((ran.failures, ran.filtered), (1, 0));
}

/// Where a metric's own fields stay as they were, so do the values of its points.
#[test]
fn a_metric_that_becomes_too_long_is_not_multiplied() {
    let copy = "set(metric.name, metric.description)";
    let steps = vec![step(StepKind::Edit, &[SCALE, copy])];
    let ran = run(steps, Signal::Metrics, seconds(), Limits { growth: 1_000, ..NO_LIMITS });
    assert!(ran.body == seconds() && ran.failures == 1 && ran.filtered == 0);
}

/// A point for whose multiplied values there is no room is dropped: with the unit of the others it would be wrong.
#[test]
fn a_point_that_cannot_be_multiplied_is_dropped() {
    let point = |bounds: i32| HistogramDataPoint {
        explicit_bounds: (0..bounds).map(f64::from).collect(),
        ..HistogramDataPoint::default()
    };
    let data = Histogram { data_points: vec![point(20_000), point(1)], aggregation_temporality: 2 };
    let body = encoded(vec![Metric { data: Some(Data::Histogram(data)), ..Metric::default() }]);
    let ran = run(vec![step(StepKind::Edit, &[SCALE])], Signal::Metrics, body, NO_LIMITS);
    let metrics = decoded(&ran.body);
    let Some(Data::Histogram(histogram)) = &metrics[0].data else { panic!("{metrics:?}") };
    assert_eq!(
        histogram.data_points.iter().map(|point| point.explicit_bounds.len()).collect::<Vec<_>>(),
        [1]
    );
    assert_eq!((metrics[0].unit.as_str(), ran.failures, ran.filtered), ("ms", 1, 1));
}

/// A statement on a metric asks all of its points, and each call of a run does a part of that.
#[test]
fn attributes_of_points_are_found_in_parts() {
    let text = |key: &str, value: &str| KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(Value::StringValue(value.into())) }),
        ..KeyValue::default()
    };
    let point = |key: &str, value: &str| NumberDataPoint {
        attributes: vec![text("same", "s"), text(key, value)],
        ..NumberDataPoint::default()
    };
    let set = |name: &str, condition: &str| format!("set(metric.{name}, \"x\") where {condition}");
    let statements = [
        set("name", "HasAttrKeyOnDatapoint(\"none\")"),
        set("unit", "HasAttrOnDatapoint(\"k\", \"first\") and HasAttrKeyOnDatapoint(\"same\")"),
        set("description", "HasAttrOnDatapoint(\"k\", \"second\") or HasAttrKeyOnDatapoint(\"none\")"),
    ];
    let steps = || vec![step(StepKind::Edit, &statements.each_ref().map(String::as_str))];
    let mut all = vec![point("other", "o"); 20_000];
    all.extend([point("k", "first"), point("k", "second")]);
    let histogram =
        HistogramDataPoint { attributes: vec![text("k", "second")], ..HistogramDataPoint::default() };
    let data = Histogram { data_points: vec![histogram], aggregation_temporality: 2 };
    let body = encoded(vec![
        gauge(all),
        Metric { name: "h".into(), data: Some(Data::Histogram(data)), ..Metric::default() },
        gauge(vec![point("other", "o")]),
    ]);
    let ran = run(steps(), Signal::Metrics, body.clone(), NO_LIMITS);
    let metrics = decoded(&ran.body);
    let found: Vec<_> =
        metrics.iter().map(|metric| [&*metric.name, &*metric.unit, &*metric.description]).collect();
    assert_eq!(found, [["m", "x", ""], ["h", "", "x"], ["m", "", ""]]);
    assert_eq!(ran.failures, 0);

    let pipeline = Pipeline::compile(&Definition { steps: steps() }).unwrap().0;
    let (mut workspace, mut scratch) = (pipeline.workspace(), vec![0; Pipeline::scratch_bytes(body.len())]);
    let format = Format::Otlp(Signal::Metrics);
    let mut run = Run::new(&pipeline, 0, &mut workspace, format, &body, &mut scratch, 0);
    let mut calls = 0;
    while !matches!(run.advance(), Progress::Done(_)) {
        calls += 1;
    }
    // Three keys, of which two are looked for until the end: each call looks at some 32 KiB.
    assert!(calls >= 2 * body.len() / (32 << 10), "{calls} calls for {} bytes", body.len());
}

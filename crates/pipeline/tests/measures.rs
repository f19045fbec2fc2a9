//! Steps that measure: which items they tell of, under which keys, with which values.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, span};
use prost::Message;
use tidegate_pipeline::{
    AttributeSource, AttributeValue, DERIVED_SCOPE, Definition, ErrorMode, Format, KeyAttribute,
    KeyAttributes, Measure, MeasureCount, MeasureKey, MeasureValue, Measured, Measurements, Number,
    Observation, Outcome, Pipeline, Progress, Run, StepDefinition, StepKind,
};
use tidegate_wire::otlp::Signal;

fn any(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(any(value)), key_strindex: 0 }
}

fn text(key: &str, value: &str) -> KeyValue {
    pair(key, Value::StringValue(value.to_owned()))
}

/// An observation, with its resource and its key decoded.
#[derive(Debug, PartialEq)]
struct Told {
    measure: usize,
    resource: Vec<KeyValue>,
    key: Vec<Option<AnyValue>>,
    value: Number,
    count: u64,
}

/// Notes what it is told.
#[derive(Default)]
struct Notes {
    key: MeasureKey,
    resources: Vec<Vec<u8>>,
    told: Vec<Told>,
    pairs: Vec<Vec<KeyValue>>,
}

impl Measurements for Notes {
    fn key(&mut self) -> &mut MeasureKey {
        &mut self.key
    }

    fn resource(&mut self, measure: usize) {
        self.resources.resize(self.resources.len().max(measure + 1), Vec::new());
        self.resources[measure] = self.key.bytes().to_vec();
        self.key.clear();
    }

    fn observe(&mut self, measure: usize, observation: &Observation) {
        let resource = self.resources.get(measure).map_or(&[][..], Vec::as_slice);
        let resource = Resource::decode(resource).expect("attributes").attributes;
        // Pairs begin with the tag of field 1, and no length here is as long.
        if self.key.bytes().first() == Some(&0x0a) && self.key.bytes().len() > 10 {
            self.pairs.push(Resource::decode(self.key.bytes()).expect("attributes").attributes);
        }
        let (mut key, mut rest) = (Vec::new(), self.key.bytes());
        while let [len, behind @ ..] = rest {
            let len = usize::from(*len);
            let Some((value, behind)) = behind.split_at_checked(len.saturating_sub(1)) else { break };
            key.push((len > 0).then(|| AnyValue::decode(value).unwrap_or_default()));
            rest = behind;
        }
        let Observation { value, count, .. } = *observation;
        self.told.push(Told { measure, resource, key, value, count });
        self.key.clear();
    }
}

fn of(key: &str, from: AttributeSource) -> KeyAttribute {
    KeyAttribute { key: key.to_owned(), from, default: None, is_optional: true }
}

fn spans(attributes: Vec<KeyAttribute>) -> Measure {
    Measure {
        of: Measured::Spans,
        conditions: Vec::new(),
        resource: KeyAttributes::Listed(Vec::new()),
        attributes: KeyAttributes::Listed(attributes),
        value: MeasureValue::Duration,
        count: MeasureCount::Adjusted,
        tells_span: false,
    }
}

fn compiled(measures: Vec<Measure>) -> Pipeline {
    let step = StepDefinition { when: None, on_error: ErrorMode::Ignore, kind: StepKind::Measure(measures) };
    let (pipeline, problems) = Pipeline::compile(&Definition { steps: vec![step] })
        .unwrap_or_else(|problems| panic!("{problems:#?}"));
    assert!(problems.is_empty(), "{problems:#?}");
    pipeline
}

/// The observations, and how often each text failed.
fn measured(pipeline: &Pipeline, signal: Signal, body: &[u8]) -> (Notes, Vec<u64>) {
    let format = Format::Otlp(signal);
    let mut workspace = pipeline.workspace();
    let mut scratch = vec![0; Pipeline::scratch_bytes(body.len())];
    let mut notes = Notes::default();
    for pass in 0..pipeline.passes(format) {
        let mut run = Run::new(pipeline, pass, &mut workspace, format, body, &mut scratch, 0)
            .with_measurements(&mut notes);
        let outcome = loop {
            if let Progress::Done(outcome) = run.advance() {
                break outcome;
            }
        };
        assert_eq!(outcome, Outcome::Unchanged);
    }
    let mut failures = Vec::new();
    workspace.take_counts(|_, counts| failures = counts.failures.clone());
    (notes, failures)
}

fn span(name: &str, attributes: Vec<KeyValue>) -> Span {
    Span {
        trace_id: vec![1; 16],
        span_id: vec![2; 8],
        name: name.to_owned(),
        kind: span::SpanKind::Server.into(),
        start_time_unix_nano: 100,
        end_time_unix_nano: 130,
        attributes,
        ..Span::default()
    }
}

fn traces(services: Vec<(&str, Vec<Span>)>) -> Vec<u8> {
    let resource_spans = services.into_iter().map(|(service, spans)| {
        let attributes = vec![text("service.name", service), pair("replica", Value::IntValue(3))];
        let resource = Some(Resource { attributes, ..Resource::default() });
        ResourceSpans {
            resource,
            scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        }
    });
    ExportTraceServiceRequest { resource_spans: resource_spans.collect() }.encode_to_vec()
}

fn string(text: &str) -> Option<AnyValue> {
    Some(any(Value::StringValue(text.to_owned())))
}

#[test]
fn keys_have_what_spans_and_resources_say() {
    use AttributeSource::{ItemOrResource, Resource, SpanKind, SpanName, StatusCode};
    let attributes = vec![
        of("service.name", Resource),
        of("span.name", SpanName),
        of("span.kind", SpanKind),
        of("status.code", StatusCode),
        of("replica", ItemOrResource),
        KeyAttribute {
            default: Some(AttributeValue::Text("none".to_owned())),
            ..of("region", ItemOrResource)
        },
        of("absent", ItemOrResource),
    ];
    let mut failed = span("failed", vec![text("region", "eu"), pair("replica", Value::IntValue(4))]);
    failed.status = Some(Status { code: 2, message: String::new() });
    failed.end_time_unix_nano = 90;
    let body = traces(vec![("a", vec![span("get", Vec::new())]), ("b", vec![failed])]);
    let defaulted = KeyAttribute { default: Some(AttributeValue::Bool(true)), ..of("zone", Resource) };
    let resource = KeyAttributes::Listed(vec![of("replica", Resource), defaulted, of("absent", Resource)]);
    let pipeline = compiled(vec![Measure { resource, ..spans(attributes) }]);
    let (notes, _) = measured(&pipeline, Signal::Traces, &body);
    let told = |key, value| Told {
        measure: 0,
        resource: vec![pair("replica", Value::IntValue(3)), pair("zone", Value::BoolValue(true))],
        key,
        value: Number::Int(value),
        count: 1,
    };
    let int = |number| Some(any(Value::IntValue(number)));
    let server = string("SPAN_KIND_SERVER");
    let first = vec![
        string("a"),
        string("get"),
        server.clone(),
        string("STATUS_CODE_UNSET"),
        int(3),
        string("none"),
        None,
    ];
    let second =
        vec![string("b"), string("failed"), server, string("STATUS_CODE_ERROR"), int(4), string("eu"), None];
    assert_eq!(notes.told, [told(first, 30), told(second, 0)]);
}

#[test]
fn an_attribute_of_the_resource_may_come_first() {
    let attributes = ["replica", "region"].map(|key| of(key, AttributeSource::ResourceOrItem));
    let own = vec![pair("replica", Value::IntValue(4)), text("region", "eu")];
    let body = traces(vec![("a", vec![span("x", own)])]);
    let (notes, _) = measured(&compiled(vec![spans(attributes.into())]), Signal::Traces, &body);
    assert_eq!(notes.told[0].key, [Some(any(Value::IntValue(3))), string("eu")]);
}

#[test]
fn an_item_without_what_its_key_needs_is_not_measured() {
    let needed = KeyAttribute { is_optional: false, ..of("region", AttributeSource::Item) };
    let body =
        traces(vec![("a", vec![span("without", Vec::new()), span("with", vec![text("region", "eu")])])]);
    let (notes, _) = measured(&compiled(vec![spans(vec![needed])]), Signal::Traces, &body);
    assert_eq!(notes.told.iter().map(|told| &told.key).collect::<Vec<_>>(), [&[string("eu")]]);
}

#[test]
fn conditions_select_and_expressions_give_values() {
    let of_value = Measure {
        conditions: vec!["name == \"x\"".to_owned(), "attributes[\"size\"] > 5".to_owned()],
        value: MeasureValue::Expression("attributes[\"size\"] * 2".to_owned()),
        count: MeasureCount::Expression("Int(attributes[\"many\"])".to_owned()),
        ..spans(Vec::new())
    };
    let size = |size: Value| vec![pair("size", size), pair("many", Value::IntValue(7))];
    let body = traces(vec![(
        "a",
        vec![
            span("y", size(Value::IntValue(5))),
            span("y", size(Value::IntValue(6))),
            span("x", size(Value::DoubleValue(0.5))),
            span("x", size(Value::StringValue("much".to_owned()))),
            span("x", vec![pair("size", Value::IntValue(1)), text("many", "none")]),
        ],
    )]);
    let pipeline = compiled(vec![spans(Vec::new()), of_value]);
    let (notes, failures) = measured(&pipeline, Signal::Traces, &body);
    let told: Vec<(Number, u64)> =
        notes.told.iter().filter(|told| told.measure == 1).map(|told| (told.value, told.count)).collect();
    assert_eq!(told, [(Number::Int(12), 7), (Number::Double(1.0), 7)]);
    assert_eq!(failures, [0, 0, 1, 1, 0], "two conditions, the value, the count, and attributes");
    assert_eq!(notes.told.len(), 7);
}

#[test]
fn all_attributes_are_pairs() {
    let all = Measure {
        resource: KeyAttributes::All,
        attributes: KeyAttributes::All,
        value: MeasureValue::One,
        ..spans(Vec::new())
    };
    let attributes = vec![text("region", "europe"), pair("replica", Value::IntValue(4))];
    let body = traces(vec![("a", vec![span("x", attributes.clone())])]);
    let (notes, _) = measured(&compiled(vec![all]), Signal::Traces, &body);
    assert_eq!(notes.pairs, [attributes]);
    assert_eq!(
        notes.told[0].resource,
        [pair("replica", Value::IntValue(3)), text("service.name", "a")],
        "by key"
    );
}

#[test]
fn events_have_the_attributes_of_their_spans_and_resources() {
    use AttributeSource::{SpanName, SpanOrEventOrResource};
    let attributes = ["own", "of_span", "replica"].map(|key| of(key, SpanOrEventOrResource));
    let attributes = attributes.into_iter().chain([of("span.name", SpanName)]).collect();
    let measure = Measure { of: Measured::SpanEvents, value: MeasureValue::One, ..spans(attributes) };
    let mut eventful = span("x", vec![text("of_span", "s")]);
    eventful.events = vec![
        span::Event { attributes: vec![text("own", "e"), text("of_span", "not this")], ..Default::default() },
        span::Event::default(),
    ];
    let body = traces(vec![("a", vec![eventful, span("none", Vec::new())])]);
    let (notes, _) = measured(&compiled(vec![measure]), Signal::Traces, &body);
    let keys: Vec<_> = notes.told.iter().map(|told| told.key.clone()).collect();
    let replica = Some(any(Value::IntValue(3)));
    assert_eq!(
        keys,
        [
            vec![string("e"), string("s"), replica.clone(), string("x")],
            vec![None, string("s"), replica, string("x")],
        ]
    );
}

/// Spans that were sampled say how many they stand for, and the same span says the same each time.
#[test]
fn sampled_spans_count_for_those_that_are_not_there() {
    let with = |state: &str, id: u64| Span {
        trace_state: state.to_owned(),
        span_id: id.to_be_bytes().to_vec(),
        ..span("x", Vec::new())
    };
    let counts = |spans_of: Vec<Span>| {
        let body = traces(vec![("a", spans_of)]);
        let (notes, _) = measured(&compiled(vec![spans(Vec::new())]), Signal::Traces, &body);
        notes.told.iter().map(|told| told.count).collect::<Vec<_>>()
    };
    let one = counts(vec![with("ot=th:8", 1), with("ot=th:c", 1), with("ot=rv:1", 1), with("x=th:8", 1)]);
    assert_eq!(one, [2, 4, 1, 1]);
    // Three of four are kept: one in three stands for two.
    let many: Vec<Span> =
        (0..3000_u64).map(|id| with("ot=th:4", id.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let first = counts(many.clone());
    assert_eq!(first, counts(many));
    let sum: u64 = first.iter().sum();
    assert!((3900..4100).contains(&sum), "{sum}");
}

/// Derived metrics come to the sink that derives, too: it would count them again and again.
#[test]
fn derived_points_are_not_measured() {
    let points = |count| {
        let point = NumberDataPoint {
            value: Some(number_data_point::Value::AsInt(4)),
            attributes: vec![text("k", "v")],
            ..NumberDataPoint::default()
        };
        let data = metric::Data::Gauge(Gauge { data_points: vec![point; count] });
        Metric { name: "m".to_owned(), data: Some(data), ..Metric::default() }
    };
    let scope = |name: &str, count| ScopeMetrics {
        scope: Some(InstrumentationScope { name: name.to_owned(), ..InstrumentationScope::default() }),
        metrics: vec![points(count)],
        ..ScopeMetrics::default()
    };
    let group = ResourceMetrics {
        scope_metrics: vec![scope(DERIVED_SCOPE, 3), scope("other", 2)],
        ..ResourceMetrics::default()
    };
    let body = ExportMetricsServiceRequest { resource_metrics: vec![group] }.encode_to_vec();
    let measure = |of| Measure { of, value: MeasureValue::One, ..spans(vec![of_point()]) };
    fn of_point() -> KeyAttribute {
        of("k", AttributeSource::Item)
    }
    let points = compiled(vec![measure(Measured::DataPoints)]);
    let (notes, _) = measured(&points, Signal::Metrics, &body);
    assert_eq!(
        notes.told.iter().map(|told| told.key.clone()).collect::<Vec<_>>(),
        vec![vec![string("v")]; 2]
    );
    let metrics = Measure { attributes: KeyAttributes::Listed(Vec::new()), ..measure(Measured::Metrics) };
    let metrics = compiled(vec![metrics]);
    assert_eq!(measured(&metrics, Signal::Metrics, &body).0.told.len(), 1);
    assert_eq!(points.passes(Format::Otlp(Signal::Traces)), 0, "a signal that it does not measure");
}

//! Helpers of the tests: settings, observations and decoded output.

mod interrupted;
mod limits;
mod memory;
mod model;
mod output;
mod pairs;
mod pairs_model;
mod pairs_run;
mod pairs_states;
mod states;

use crate::*;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prost::Message;
use std::collections::BTreeMap;
use tidegate_pipeline::{MeasuredSpan, Measurements, Number, Observation};
use tidegate_wire::output::SliceOutput;

const START_MS: u64 = 1_700_000_000_000;

/// Tenant, resource, metric and attributes.
type PointKey = (Vec<u8>, String, String, String);
/// Metrics with one data point each.
type Points = BTreeMap<PointKey, Data>;

fn instrument(name: &str, kind: InstrumentKind) -> Instrument {
    Instrument { name: name.into(), description: format!("the {name}"), unit: "ms".into(), kind }
}

/// Two measures: one with listed attributes, and one with all.
fn settings(temporality: Temporality, max_series: u32) -> Settings {
    let listed = Group {
        attributes: Some(vec!["name".into(), "kind".into()]),
        divisor: 4.0,
        instruments: vec![
            instrument("calls", InstrumentKind::Count),
            instrument("duration", InstrumentKind::Histogram { bounds: vec![1.0, 2.5, 10.0] }),
        ],
        pairs: None,
    };
    let all = Group {
        attributes: None,
        divisor: 1.0,
        instruments: vec![
            instrument("total", InstrumentKind::Sum { is_monotonic: true }),
            instrument("last", InstrumentKind::Gauge),
            instrument("spread", InstrumentKind::ExponentialHistogram { max_size: 6 }),
        ],
        pairs: None,
    };
    Settings {
        measures: vec![listed, all],
        temporality,
        max_series,
        expire_ms: 0,
        exemplars: true,
        scope: "tests".into(),
        definition: String::new(),
    }
}

fn text(text: &str) -> AnyValue {
    AnyValue { value: Some(any_value::Value::StringValue(text.into())) }
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.into(), value: Some(text(value)), ..KeyValue::default() }
}

/// A key as a run makes it, for the first measure.
fn listed(values: &[Option<&str>]) -> Vec<u8> {
    let mut key = Vec::new();
    for value in values {
        let value = value.map(|value| text(value).encode_to_vec());
        prost::encoding::encode_varint(value.as_ref().map_or(0, |value| value.len() as u64 + 1), &mut key);
        key.extend(value.unwrap_or_default());
    }
    key
}

/// A key as a run makes it, for the second measure, or for resources.
fn fields(attributes: &[(&str, &str)]) -> Vec<u8> {
    let mut key = Vec::new();
    for (name, value) in attributes {
        prost::encoding::message::encode(1, &attribute(name, value), &mut key);
    }
    key
}

fn span(id: u8) -> MeasuredSpan {
    MeasuredSpan { trace_id: [id; 16], span_id: [id; 8], ..MeasuredSpan::default() }
}

fn set_resource(aggregator: &mut Aggregator, measure: usize, attributes: &[(&str, &str)]) {
    aggregator.key().push(&fields(attributes));
    aggregator.resource(measure);
}

fn observe(aggregator: &mut Aggregator, measure: usize, key: &[u8], value: Number, count: u64) {
    aggregator.key().push(key);
    aggregator.observe(measure, &Observation { value, count, span: None });
}

/// The bytes of a piece.
fn written(piece: &Piece<'_>) -> Vec<u8> {
    let mut bytes = vec![0; piece.bytes];
    let mut out = SliceOutput::new(&mut bytes);
    piece.write(&mut out).unwrap();
    assert_eq!(out.len(), piece.bytes, "the length is known before");
    bytes
}

/// The points of a piece, each of which is new.
fn decode(piece: &Piece<'_>, points: &mut Points) {
    let request = ExportMetricsServiceRequest::decode(&*written(piece)).unwrap();
    let before = points.len();
    for resource in request.resource_metrics {
        let attributes = names(&resource.resource.unwrap().attributes);
        for scope in resource.scope_metrics {
            assert_eq!(scope.scope.unwrap().name, "tests");
            for metric in scope.metrics {
                assert_eq!((metric.description, &*metric.unit), (format!("the {}", metric.name), "ms"));
                for (of_point, data) in single(metric.data.unwrap()) {
                    let key = (piece.tenant.to_vec(), attributes.clone(), metric.name.clone(), of_point);
                    assert!(points.insert(key, data).is_none(), "each point once");
                }
            }
        }
    }
    assert_eq!(points.len() - before, piece.data_points as usize);
}

/// Metrics with one point each, and the attributes of that.
fn single(data: Data) -> Vec<(String, Data)> {
    macro_rules! split {
        ($kind:ident, $all:ident) => {{
            let (points, rest) = (std::mem::take(&mut $all.data_points), $all);
            let alone = |point| {
                let mut one = rest.clone();
                one.data_points.push(point);
                Data::$kind(one)
            };
            points.into_iter().map(|point| (names(&point.attributes), alone(point))).collect()
        }};
    }
    match data {
        Data::Gauge(mut all) => split!(Gauge, all),
        Data::Sum(mut all) => split!(Sum, all),
        Data::Histogram(mut all) => split!(Histogram, all),
        Data::ExponentialHistogram(mut all) => split!(ExponentialHistogram, all),
        Data::Summary(_) => panic!("there are no summaries"),
    }
}

fn names(attributes: &[KeyValue]) -> String {
    let pair = |attribute: &KeyValue| match attribute.value.as_ref().unwrap().value.as_ref().unwrap() {
        any_value::Value::StringValue(text) => format!("{}={text}", attribute.key),
        other => format!("{}={other:?}", attribute.key),
    };
    attributes.iter().map(pair).collect::<Vec<_>>().join(",")
}

/// All points of a flush that is under way, from pieces of at most so many bytes.
fn points(aggregator: &Aggregator, most_bytes: usize) -> Points {
    let (mut points, mut from) = (Points::new(), 0);
    while let Some(piece) = aggregator.piece(from, most_bytes) {
        assert!(piece.bytes <= most_bytes && piece.next > from && piece.skipped == 0);
        decode(&piece, &mut points);
        from = piece.next;
    }
    points
}

/// All points of a whole flush.
fn flush(aggregator: &mut Aggregator, at_ms: u64) -> Points {
    aggregator.begin_flush(at_ms);
    let points = points(aggregator, 1 << 20);
    aggregator.end_flush();
    points
}

fn key(tenant: &str, resource: &str, metric: &str, attributes: &str) -> PointKey {
    (tenant.into(), resource.into(), metric.into(), attributes.into())
}

fn state(aggregator: &Aggregator, position: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    aggregator.write_state(position, &mut bytes).unwrap();
    bytes
}

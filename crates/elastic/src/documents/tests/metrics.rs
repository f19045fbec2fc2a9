//! Metric points as documents: which points share one, and their values.

use super::super::*;
use super::otlp::documents;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
};
use prost::Message;
use serde_json::{Value, json};

const DELTA: i32 = 1;
const CUMULATIVE: i32 = 2;

fn attribute(key: &str, text: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Any::StringValue(text.into())) });
    KeyValue { key: key.into(), value, key_strindex: 0 }
}

fn point(value: Number, region: &str, time: u64) -> NumberDataPoint {
    let attributes = vec![attribute("region", region)];
    NumberDataPoint { attributes, time_unix_nano: time, value: Some(value), ..NumberDataPoint::default() }
}

fn metric(name: &str, data: Data) -> Metric {
    Metric { name: name.into(), data: Some(data), ..Metric::default() }
}

fn gauge(name: &str, data_points: Vec<NumberDataPoint>) -> Metric {
    metric(name, Data::Gauge(Gauge { data_points }))
}

fn request(metrics: Vec<Metric>) -> Vec<u8> {
    let scope = ScopeMetrics { metrics, ..ScopeMetrics::default() };
    let resource = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![resource] }.encode_to_vec()
}

fn translated(metrics: Vec<Metric>, mapping: Mapping) -> (Vec<(Value, Value)>, WriteResult) {
    documents(
        Signal::Metrics,
        &request(metrics),
        &DocumentSettings { mapping, ..DocumentSettings::default() },
    )
}

/// Points of different metrics with the same time and attributes share a document; others do not, nor do two of one
/// metric.
#[test]
fn points_of_one_time_and_one_set_of_attributes_share_a_document() {
    let metrics = || {
        vec![
            gauge("b", vec![point(Number::AsInt(1), "eu", 5), point(Number::AsInt(2), "us", 5)]),
            gauge("a", vec![point(Number::AsDouble(3.0), "eu", 5), point(Number::AsInt(4), "eu", 6)]),
            gauge("b", vec![point(Number::AsInt(5), "eu", 5)]),
        ]
    };
    let (native, written) = translated(metrics(), Mapping::Otel);
    assert_eq!((written.items, written.documents), (5, 4));
    let mut values: Vec<String> =
        native.iter().map(|(_, document)| document["metrics"].to_string()).collect();
    values.sort();
    assert_eq!(values, [r#"{"a":3.0,"b":1}"#, r#"{"a":4}"#, r#"{"b":2}"#, r#"{"b":5}"#]);
    let shared = native.iter().find(|(_, document)| document["metrics"]["a"] == 3.0).unwrap();
    assert_eq!(
        shared.0["dynamic_templates"],
        json!({"metrics.a": "gauge_double", "metrics.b": "gauge_long"})
    );
    // XXH64 of the names in order, as the Collector's exporter makes it.
    assert_eq!(shared.1["_metric_names_hash"], format!("{:x}", xxhash_rust::xxh64::xxh64(b"ab", 0)));
    let ids: std::collections::HashSet<String> =
        native.iter().map(|(line, _)| line["_id"].to_string()).collect();
    assert_eq!(ids.len(), 4);
    let (ecs, written) = translated(metrics(), Mapping::Ecs);
    assert_eq!((written.items, written.documents), (5, 4));
    let shared = ecs.iter().find(|(_, document)| document["a"] == 3.0).unwrap();
    assert_eq!((&shared.1["b"], &shared.1["labels"]), (&json!(1), &json!({"region": "eu"})));
}

/// Counters say so, deltas of histograms are counts at the middles of their buckets, and what is cumulative is a
/// summary.
#[test]
fn each_kind_of_metric_has_its_value() {
    let sum = Sum {
        data_points: vec![point(Number::AsInt(7), "eu", 1)],
        aggregation_temporality: CUMULATIVE,
        is_monotonic: true,
    };
    let histogram = |aggregation_temporality| {
        Data::Histogram(Histogram {
            data_points: vec![HistogramDataPoint {
                time_unix_nano: 2,
                count: 9,
                sum: Some(20.5),
                bucket_counts: vec![2, 0, 3, 4],
                explicit_bounds: vec![1.0, 2.0, 4.0],
                ..HistogramDataPoint::default()
            }],
            aggregation_temporality,
        })
    };
    let exponential = ExponentialHistogramDataPoint {
        time_unix_nano: 3,
        count: 10,
        sum: Some(1.0),
        scale: 0,
        zero_count: 1,
        positive: Some(Buckets { offset: 1, bucket_counts: vec![2, 0, 3] }),
        negative: Some(Buckets { offset: 0, bucket_counts: vec![1, 3] }),
        ..ExponentialHistogramDataPoint::default()
    };
    let exponential = ExponentialHistogram { data_points: vec![exponential], aggregation_temporality: DELTA };
    let summary = SummaryDataPoint { time_unix_nano: 4, count: 3, sum: 1.5, ..SummaryDataPoint::default() };
    let metrics = vec![
        metric("sum", Data::Sum(sum)),
        metric("delta", histogram(DELTA)),
        metric("cumulative", histogram(CUMULATIVE)),
        metric("exponential", Data::ExponentialHistogram(exponential)),
        metric("summary", Data::Summary(Summary { data_points: vec![summary] })),
    ];
    let (native, written) = translated(metrics, Mapping::Otel);
    assert_eq!((written.items, written.untranslatable.items), (5, 0));
    let of = |name: &str| {
        let (line, document) =
            native.iter().find(|(_, document)| !document["metrics"][name].is_null()).unwrap();
        (document["metrics"][name].clone(), line["dynamic_templates"][format!("metrics.{name}")].clone())
    };
    assert_eq!(of("sum"), (json!(7), json!("counter_long")));
    let delta = json!({"counts": [2, 3, 4], "values": [0.5, 3.0, 4.0]});
    assert_eq!(of("delta"), (delta, json!("histogram")));
    assert_eq!(of("cumulative"), (json!({"sum": 20.5, "value_count": 9}), json!("summary")));
    let exponential = json!({"counts": [3, 1, 1, 2, 3], "values": [-3.0, -1.5, 0.0, 3.0, 12.0]});
    assert_eq!(of("exponential"), (exponential, json!("histogram")));
    assert_eq!(of("summary"), (json!({"sum": 1.5, "value_count": 3}), json!("summary")));
}

/// Only parts that no field can hold are counted.
#[test]
fn untranslatable_values_are_counted() {
    let nothing = NumberDataPoint { time_unix_nano: 1, ..NumberDataPoint::default() };
    let gone = NumberDataPoint { flags: 1, ..point(Number::AsInt(1), "eu", 1) };
    let unordered = HistogramDataPoint {
        sum: Some(1.0),
        bucket_counts: vec![1, 1, 1],
        explicit_bounds: vec![2.0, 1.0],
        ..HistogramDataPoint::default()
    };
    let unordered = Histogram { data_points: vec![unordered], aggregation_temporality: DELTA };
    let metrics = vec![
        gauge(
            "ok",
            vec![point(Number::AsInt(1), "eu", 1), point(Number::AsDouble(f64::NAN), "eu", 1), nothing, gone],
        ),
        gauge("", vec![point(Number::AsInt(1), "eu", 1)]),
        metric("unordered", Data::Histogram(unordered)),
        metric("none", Data::Gauge(Gauge::default())),
    ];
    for mapping in [Mapping::Otel, Mapping::Ecs] {
        let (_, written) = translated(metrics.clone(), mapping);
        assert_eq!((written.items, written.untranslatable.items), (1, 5), "{mapping:?}");
    }
}

/// More documents take no more allocations, in either mapping.
#[test]
fn nothing_is_allocated_per_document() {
    let mut space = vec![0; 16 << 20];
    for mapping in [Mapping::Otel, Mapping::Ecs] {
        let settings = DocumentSettings { mapping, ..DocumentSettings::default() };
        let mut counts = [10, 5000].map(|count| {
            let points = (0..count).map(|time| point(Number::AsInt(1), "eu", time + 1)).collect();
            let raw = request(vec![gauge("a", points)]);
            let mut page = DocumentBuffer::new(&mut space);
            let info = allocation_counter::measure(|| {
                from_otlp(Signal::Metrics, &raw, DocumentPosition::START, "p", &settings, &mut page).unwrap();
            });
            info.count_total
        });
        counts.sort_unstable();
        assert_eq!(counts[0], counts[1], "{mapping:?}");
        assert!(counts[0] <= 6, "{mapping:?}: {counts:?}");
    }
}

//! Metrics.

use super::{SECOND, START, Stored, attributes, each, resource};
use crate::Kind;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use prost::Message;
use serde_json::{Value, json};
use tidegate_journal::Signal;

fn request(metric: Metric) -> ExportMetricsServiceRequest {
    let scope_metrics = vec![ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() }];
    let resource_metrics =
        vec![ResourceMetrics { resource: resource("shop"), scope_metrics, ..ResourceMetrics::default() }];
    ExportMetricsServiceRequest { resource_metrics }
}

/// A counter of orders, by region, at each second.
pub(super) fn counter(points: &[(&str, u64, i64)]) -> ExportMetricsServiceRequest {
    let point = |&(region, second, value): &(&str, u64, i64)| NumberDataPoint {
        attributes: attributes(&[("region", region)]),
        time_unix_nano: (START + second) * SECOND,
        value: Some(Number::AsInt(value)),
        ..NumberDataPoint::default()
    };
    let sum = Sum {
        data_points: points.iter().map(point).collect(),
        aggregation_temporality: 2,
        is_monotonic: true,
    };
    request(Metric {
        name: "orders".to_owned(),
        unit: "{order}".to_owned(),
        description: "Orders.".to_owned(),
        data: Some(Data::Sum(sum)),
        ..Metric::default()
    })
}

fn plot(stored: &Stored, query: &Value) -> Value {
    let mut whole = json!({"from": "2023-11-14T22:13:20Z", "to": "2023-11-14T22:13:50Z", "steps": 3});
    whole.as_object_mut().unwrap().extend(query.as_object().unwrap().clone());
    stored.ask(Kind::Plot, &whole)
}

/// Points of one series are put together from the lake and the journal.
#[test]
fn a_counter_is_plotted_by_its_rate() {
    let mut stored = Stored::new();
    stored.commit_otlp(
        Signal::Metrics,
        &counter(&[("eu", 0, 100), ("eu", 9, 109), ("us", 0, 0), ("us", 9, 0)]),
    );
    stored.append_otlp(Signal::Metrics, &counter(&[("eu", 19, 129), ("us", 19, 50)]));
    let answer = plot(&stored, &json!({"metric": "orders", "function": "rate"}));
    assert_eq!(
        answer["times"],
        json!(["2023-11-14T22:13:30Z", "2023-11-14T22:13:40Z", "2023-11-14T22:13:50Z"])
    );
    let series = answer["series"].as_array().unwrap();
    assert_eq!(series.len(), 2);
    assert_eq!(
        (&series[0]["labels"]["region"], &series[0]["values"]),
        (&json!("us"), &json!([null, 5.0, null]))
    );
    assert_eq!(
        (&series[1]["labels"]["region"], &series[1]["values"]),
        (&json!("eu"), &json!([null, 2.0, null]))
    );
    let all = plot(&stored, &json!({"metric": "orders", "function": "increase", "by": ["host.name"]}));
    assert_eq!(all["series"], json!([{"labels": {"host.name": "host-1"}, "values": [null, 70.0, null]}]));
    let one = plot(&stored, &json!({"metric": "orders", "function": "last", "labels": {"region": "eu"}}));
    assert_eq!(one["series"][0]["values"], json!([109.0, 129.0, null]));
}

/// Series of two services with the same attributes are two: their counters have nothing to do with each other.
#[test]
fn services_are_told_apart() {
    let mut stored = Stored::new();
    let of = |service: &str, points: &[(&str, u64, i64)]| {
        let mut request = counter(points);
        request.resource_metrics[0].resource = resource(service);
        request
    };
    stored.commit_otlp(Signal::Metrics, &of("shop", &[("eu", 5, 1000), ("eu", 15, 1010)]));
    stored.append_otlp(Signal::Metrics, &of("bank", &[("eu", 6, 5), ("eu", 16, 25)]));
    let answer = plot(&stored, &json!({"metric": "orders", "function": "increase", "by": ["service.name"]}));
    let expected = json!([
        {"labels": {"service.name": "bank"}, "values": [null, 20.0, null]},
        {"labels": {"service.name": "shop"}, "values": [null, 10.0, null]},
    ]);
    assert_eq!(answer["series"], expected);
    let all = plot(&stored, &json!({"metric": "orders", "function": "increase", "by": ["region"]}));
    assert_eq!(all["series"][0]["values"], json!([null, 30.0, null]));
}

/// However many series there are and however long their labels, a plot has an end, and says what is missing.
#[test]
fn series_that_are_too_many_or_too_long_are_left_out() {
    let stored = Stored::new();
    let names: Vec<String> = (0..600).map(|place| format!("{place}-{}", "x".repeat(3000))).collect();
    let points: Vec<(&str, u64, i64)> = names.iter().map(|name| (name.as_str(), 5, 1)).collect();
    for points in points.chunks(50) {
        stored.append_otlp(Signal::Metrics, &counter(points));
    }
    let answer = plot(&stored, &json!({"metric": "orders", "function": "sum", "by": ["host.name"]}));
    let sum = answer["series"][0]["values"][0].as_f64().unwrap();
    assert!((200.0..260.0).contains(&sum), "{sum}");
    assert!(answer["incomplete"][0].as_str().unwrap().starts_with("series are left out"), "{answer}");
}

/// A histogram of latencies with one point, bounds at 0.1 and 0.5.
pub(super) fn histogram(second: u64, counts: [u64; 3]) -> ExportMetricsServiceRequest {
    let point = HistogramDataPoint {
        time_unix_nano: (START + second) * SECOND,
        count: counts.iter().sum(),
        bucket_counts: counts.to_vec(),
        explicit_bounds: vec![0.1, 0.5],
        ..HistogramDataPoint::default()
    };
    let histogram = Histogram { data_points: vec![point], aggregation_temporality: 2 };
    request(Metric {
        name: "latency".to_owned(),
        unit: "s".to_owned(),
        data: Some(Data::Histogram(histogram)),
        ..Metric::default()
    })
}

/// Both kinds of classic histograms have quantiles: buckets of Prometheus, and explicit bounds of OpenTelemetry.
#[test]
fn histograms_have_quantiles() {
    let mut stored = Stored::new();
    stored.commit_otlp(Signal::Metrics, &histogram(5, [10, 0, 0]));
    stored.append_otlp(Signal::Metrics, &histogram(15, [60, 40, 10]));
    let answer = plot(&stored, &json!({"metric": "latency", "function": "quantile", "quantile": 0.5}));
    // Of 100 new values, 50 are at most 0.1.
    assert_eq!(answer["series"][0]["values"], json!([null, 0.1, null]));
    let rate = plot(&stored, &json!({"metric": "latency", "function": "rate"}));
    assert_eq!(rate["series"][0]["values"], json!([null, 10.0, null]));

    let buckets = |second: u64, counts: [f64; 3]| {
        let mut body = Vec::new();
        for (bound, count) in ["0.1", "0.5", "+Inf"].into_iter().zip(counts) {
            body.extend(series(&[("__name__", "rpc_bucket"), ("le", bound)], (START + second) * 1000, count));
        }
        body
    };
    stored.remote_write(&buckets(5, [10.0, 10.0, 10.0]), true);
    stored.remote_write(&buckets(15, [60.0, 100.0, 110.0]), false);
    let answer = plot(&stored, &json!({"metric": "rpc", "function": "quantile", "quantile": 0.5}));
    assert_eq!(answer["series"], json!([{"labels": {}, "values": [null, 0.1, null]}]));
}

/// Exponential histograms, of scales that change, cumulative and not.
#[test]
fn exponential_histograms_have_quantiles() {
    let mut stored = Stored::new();
    let point = |second, scale, offset, counts: &[u64]| ExponentialHistogramDataPoint {
        time_unix_nano: (START + second) * SECOND,
        count: counts.iter().sum(),
        scale,
        positive: Some(Buckets { offset, bucket_counts: counts.to_vec() }),
        ..ExponentialHistogramDataPoint::default()
    };
    let histogram = |name: &str, aggregation_temporality, points| {
        let histogram = ExponentialHistogram { data_points: points, aggregation_temporality };
        let data = Some(Data::ExponentialHistogram(histogram));
        request(Metric { name: name.to_owned(), unit: "s".to_owned(), data, ..Metric::default() })
    };
    let median = |stored: &Stored, metric: &str| {
        let answer = plot(stored, &json!({"metric": metric, "function": "quantile", "quantile": 0.5}));
        assert_eq!((&answer["incomplete"], answer["series"].as_array().unwrap().len()), (&json!([]), 1));
        answer["series"][0]["values"].as_array().unwrap().iter().map(Value::as_f64).collect::<Vec<_>>()
    };
    // Ten values between 2 and 2.2; then four of 4 to 4.8.
    stored.commit_otlp(Signal::Metrics, &histogram("size", 2, vec![point(5, 3, 8, &[10])]));
    stored.append_otlp(Signal::Metrics, &histogram("size", 2, vec![point(15, 2, 4, &[10, 0, 0, 0, 4])]));
    assert_eq!(median(&stored, "size"), [None, Some(4.0 * 2_f64.powf(0.125)), None]);
    // What began anew counts from zero.
    stored.append_otlp(Signal::Metrics, &histogram("size", 2, vec![point(25, 0, 0, &[2])]));
    assert_eq!(median(&stored, "size")[2], Some(2_f64.sqrt()));

    let deltas = vec![point(5, 0, 0, &[1]), point(8, 0, 0, &[0, 2]), point(25, 0, 1, &[4])];
    stored.commit_otlp(Signal::Metrics, &histogram("delta", 1, deltas));
    assert_eq!(median(&stored, "delta"), [Some(2.0 * 2_f64.powf(0.25)), None, Some(2.0 * 2_f64.sqrt())]);
}

/// A series of Remote-Write 1.0, as a field of its request.
pub(super) fn series(labels: &[(&str, &str)], millis: u64, value: f64) -> Vec<u8> {
    #[derive(Message)]
    struct Label {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "2")]
        value: String,
    }
    #[derive(Message)]
    struct Sample {
        #[prost(double, tag = "1")]
        value: f64,
        #[prost(int64, tag = "2")]
        timestamp: i64,
    }
    #[derive(Message)]
    struct Series {
        #[prost(message, repeated, tag = "1")]
        labels: Vec<Label>,
        #[prost(message, repeated, tag = "2")]
        samples: Vec<Sample>,
    }
    #[derive(Message)]
    struct Request {
        #[prost(message, repeated, tag = "1")]
        series: Vec<Series>,
    }
    let labels =
        labels.iter().map(|&(name, value)| Label { name: name.into(), value: value.into() }).collect();
    let samples = vec![Sample { value, timestamp: i64::try_from(millis).unwrap() }];
    Request { series: vec![Series { labels, samples }] }.encode_to_vec()
}

#[test]
fn metrics_are_named_with_what_is_known_of_them() {
    let mut stored = Stored::new();
    stored.commit_otlp(Signal::Metrics, &counter(&[("eu", 0, 1)]));
    stored
        .remote_write(&series(&[("__name__", "up"), ("job", "a"), ("zone", "z")], START * 1000, 1.0), false);
    let answer = stored.ask(Kind::Metrics, &json!({}));
    assert_eq!(each(&answer["metrics"], "name"), ["orders", "up"]);
    let orders = &answer["metrics"][0];
    assert_eq!(
        (&orders["unit"], &orders["kind"], &orders["description"]),
        (&json!("{order}"), &json!("counter"), &json!("Orders."))
    );
    assert_eq!(orders["labels"], json!(["host.name", "region"]));
    assert_eq!(answer["metrics"][1]["labels"], json!(["job", "zone"]));
}

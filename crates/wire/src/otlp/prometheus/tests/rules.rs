//! Single rules, by example.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Of;
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

use super::found::{self, Series, Value};
use super::translate;
use crate::otlp::prometheus::{Dropped, Scratch, ScratchCapacity, Settings, to_v1, to_v2};
use crate::otlp::tests::captured;
use crate::output::{Counter, SliceOutput};
use crate::remote_write::{RewriteError, STALE_NAN, Version};

fn attribute(key: &str, value: &str) -> KeyValue {
    use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.into())) };
    KeyValue { key: key.into(), value: Some(value), key_strindex: 0 }
}

fn request(data: Data, resource: &[(&str, &str)]) -> Vec<u8> {
    let metric = Metric { name: "m".into(), data: Some(data), ..Metric::default() };
    let scope = ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() };
    let attributes = resource.iter().map(|(key, value)| attribute(key, value)).collect();
    let resource = Resource { attributes, ..Resource::default() };
    let group =
        ResourceMetrics { resource: Some(resource), scope_metrics: vec![scope], ..Default::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![group] }.encode_to_vec()
}

fn gauge(point: NumberDataPoint) -> Data {
    Data::Gauge(Gauge { data_points: vec![point] })
}

fn shown(series: &Series) -> String {
    let labels: Vec<_> = series.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    labels.join(" ")
}

fn v1(raw: &[u8], settings: &Settings<'_>) -> Vec<Series> {
    let [(_, body, _), _] = translate(raw, settings);
    found::series(Version::V1, &body)
}

#[test]
fn a_captured_request_becomes_the_series_that_prometheus_would_have() {
    let [(_, _, of_v1), (_, body, translated)] = translate(captured::METRICS, &Settings::default());
    assert_eq!(translated.dropped, Dropped { exemplars: 1, ..Dropped::default() });
    assert_eq!(of_v1.dropped.start_timestamps, 3);
    let series = found::series(Version::V2, &body);
    let names: Vec<_> = series.iter().map(|series| series.labels["__name__"].as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "latency_milliseconds_bucket").count(), 16);
    for name in
        ["orders_total", "latency_milliseconds_sum", "latency_milliseconds_count", "inflight", "target_info"]
    {
        assert_eq!(names.iter().filter(|found| **found == name).count(), 1, "{names:?}");
    }
    let orders = &series[0];
    assert_eq!(orders.value, Value::Sample(5f64.to_bits()));
    assert_eq!(orders.family.0, 1);
    assert_eq!(orders.labels["job"], "shop-otel");
    assert_eq!(orders.exemplars.len(), 1);
    assert_eq!(orders.exemplars[0].0["trace_id"].len(), 32);
}

#[test]
fn names_that_become_one_are_joined_in_the_order_of_their_keys() {
    let point = NumberDataPoint {
        attributes: vec![
            attribute("a_b", "3"),
            attribute("a.b", "1"),
            attribute("a/b", "2"),
            attribute("c", ""),
        ],
        value: Some(Of::AsInt(1)),
        ..NumberDataPoint::default()
    };
    assert_eq!(shown(&v1(&request(gauge(point), &[]), &Settings::default())[0]), "__name__=m a_b=1;2;3");
}

#[test]
fn labels_win_over_attributes_and_attributes_over_promoted_ones() {
    let point = NumberDataPoint {
        attributes: vec![attribute("job", "x"), attribute("__name__", "y"), attribute("region", "z")],
        value: Some(Of::AsInt(1)),
        ..NumberDataPoint::default()
    };
    let resource = [
        ("service.name", "shop"),
        ("service.namespace", "eu"),
        ("service.instance.id", "7"),
        ("region", "w"),
    ];
    let promote = ["region".to_owned()];
    let settings = Settings { promote: &promote, ..Settings::default() };
    let series = v1(&request(gauge(point), &resource), &settings);
    assert_eq!(shown(&series[0]), "__name__=m instance=7 job=eu/shop key_name_=y region=z");
    assert_eq!(shown(&series[1]), "__name__=target_info instance=7 job=eu/shop region=w");
}

#[test]
fn no_recorded_value_is_the_stale_marker() {
    let point = NumberDataPoint { flags: 1, ..NumberDataPoint::default() };
    assert_eq!(v1(&request(gauge(point), &[]), &Settings::default())[0].value, Value::Sample(STALE_NAN));
}

#[test]
fn delta_sums_are_left_out_and_counted() {
    let data_points = vec![NumberDataPoint { value: Some(Of::AsInt(1)), ..Default::default() }; 3];
    let sum = Sum { data_points, aggregation_temporality: 1, is_monotonic: true };
    let [(_, body, translated), _] = translate(&request(Data::Sum(sum), &[("a", "b")]), &Settings::default());
    assert!(body.is_empty());
    assert_eq!(translated.dropped, Dropped { delta: 3, ..Dropped::default() });
    assert_eq!(translated.dropped.points(), 3);
}

/// Neither labels nor symbols beyond the room make memory grow.
#[test]
fn series_beyond_the_scratch_space_are_dropped_or_an_error() {
    let attributes = (0..20).map(|number| attribute(&format!("a{number}"), "b")).collect();
    let point = NumberDataPoint { attributes, value: Some(Of::AsInt(1)), ..NumberDataPoint::default() };
    let raw = request(gauge(point), &[]);
    let settings = Settings::default();
    for room in [
        ScratchCapacity { labels: 19, ..ScratchCapacity::default() },
        ScratchCapacity { label_bytes: 60, ..ScratchCapacity::default() },
    ] {
        let translated = to_v1(&raw, &settings, &mut Scratch::new(room), &mut Counter::default()).unwrap();
        assert_eq!((translated.series, translated.dropped.oversized), (0, 1));
    }
    let room = ScratchCapacity { symbols: 10, symbol_bytes: 1000, ..ScratchCapacity::default() };
    let error = to_v2(&raw, &settings, &mut Scratch::new(room), &mut Counter::default()).unwrap_err();
    assert!(matches!(error, RewriteError::Scratch { .. }), "{error}");
    let mut space = [0; 50];
    let error = to_v1(
        &raw,
        &settings,
        &mut Scratch::new(ScratchCapacity::default()),
        &mut SliceOutput::new(&mut space),
    );
    assert!(matches!(error, Err(RewriteError::Full(_))));
}

/// A number is told from what stands before it, also where that ends in an `e`.
#[test]
fn a_tiny_number_has_no_sign_before_it() {
    use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};
    let value = AnyValue { value: Some(any_value::Value::DoubleValue(5e-324)) };
    let tiny = KeyValue { key: "size".into(), value: Some(value), key_strindex: 0 };
    let point =
        NumberDataPoint { attributes: vec![tiny], value: Some(Of::AsInt(1)), ..NumberDataPoint::default() };
    assert_eq!(shown(&v1(&request(gauge(point), &[]), &Settings::default())[0]), "__name__=m size=5e-324");
}

fn any(value: opentelemetry_proto::tonic::common::v1::any_value::Value) -> KeyValue {
    use opentelemetry_proto::tonic::common::v1::AnyValue;
    KeyValue { key: "k".into(), value: Some(AnyValue { value: Some(value) }), key_strindex: 0 }
}

fn of_point(attributes: Vec<KeyValue>) -> Vec<Series> {
    let point = NumberDataPoint { attributes, value: Some(Of::AsInt(1)), ..NumberDataPoint::default() };
    v1(&request(gauge(point), &[]), &Settings::default())
}

/// Keys in any script become names, and what differs in them alone stays apart.
#[test]
fn a_key_without_a_letter_keeps_its_value() {
    let [tokyo, osaka] = ["東京", "大阪"].map(|city| of_point(vec![attribute("都市", city)]));
    assert_eq!(shown(&tokyo[0]), "__name__=m key_=東京");
    assert_eq!(shown(&osaka[0]), "__name__=m key_=大阪");
    let both = of_point(vec![attribute("都市", "大阪"), attribute("国", "日本")]);
    assert_eq!(shown(&both[0]), "__name__=m key_=日本;大阪");
    let [_, (_, _, translated)] = translate(
        &request(
            gauge(NumberDataPoint {
                attributes: vec![attribute("都市", "x"), attribute("", "y")],
                value: Some(Of::AsInt(1)),
                ..Default::default()
            }),
            &[],
        ),
        &Settings::default(),
    );
    assert_eq!(translated.dropped, Dropped { labels: 1, ..Dropped::default() });
}

/// The order in which a map's keys come makes no other series.
#[test]
fn the_keys_of_a_map_are_sorted() {
    use opentelemetry_proto::tonic::common::v1::KeyValueList;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    let entry = |key: &str, value| KeyValue { key: key.into(), ..any(value) };
    let inner = || {
        Any::KvlistValue(KeyValueList {
            values: vec![entry("z", Any::IntValue(1)), entry("y", Any::DoubleValue(f64::INFINITY))],
        })
    };
    let values = vec![
        entry("b", inner()),
        entry("a", Any::IntValue(1)),
        entry("c", Any::BoolValue(true)),
        entry("a", Any::IntValue(2)),
    ];
    let expected = r#"__name__=m k={"a":2,"b":{"y":"Infinity","z":1},"c":true}"#;
    assert_eq!(
        shown(&of_point(vec![any(Any::KvlistValue(KeyValueList { values: values.clone() }))])[0]),
        expected
    );
    let values = vec![values[2].clone(), values[3].clone(), values[0].clone()];
    assert_eq!(shown(&of_point(vec![any(Any::KvlistValue(KeyValueList { values }))])[0]), expected);
}

/// As the specification writes them, and the Collector.
#[test]
fn numbers_that_are_none_have_names() {
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    for (value, text) in [(f64::INFINITY, "Infinity"), (f64::NEG_INFINITY, "-Infinity"), (f64::NAN, "NaN")] {
        assert_eq!(shown(&of_point(vec![any(Any::DoubleValue(value))])[0]), format!("__name__=m k={text}"));
    }
}

/// Many entries, or deep ones, cost what is declared and no more.
#[test]
fn huge_maps_stay_within_the_scratch_space() {
    use opentelemetry_proto::tonic::common::v1::KeyValueList;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    let map = |count: usize| {
        let values =
            (0..count).map(|number| KeyValue { key: format!("{number:04}"), ..any(Any::IntValue(1)) });
        any(Any::KvlistValue(KeyValueList { values: values.collect() }))
    };
    assert_eq!(of_point(vec![map(1024)]).len(), 1);
    assert_eq!(of_point(vec![map(1025)]).len(), 0);
}

/// Nothing calls itself for each level, so a small stack is enough for whatever is taken in.
#[test]
fn values_may_nest_deep() {
    use crate::otlp::MAX_DEPTH;
    let field = |tag: u8, payload: &[u8]| {
        let mut field = vec![tag];
        prost::encoding::encode_varint(payload.len() as u64, &mut field);
        [&field[..], payload].concat()
    };
    let write = move || {
        for depth in [1, 2, 40, MAX_DEPTH] {
            let (mut value, mut said) = (field(0x0a, b"x"), "\"x\"".to_owned());
            for level in 0..depth {
                (value, said) = match level % 2 {
                    0 => (field(0x2a, &field(0x0a, &value)), format!("[{said}]")),
                    _ => {
                        let entry = [field(0x0a, b"b"), field(0x12, &value)].concat();
                        (field(0x32, &field(0x0a, &entry)), format!("{{\"b\":{said}}}"))
                    }
                };
            }
            let attribute = field(0x3a, &[field(0x0a, b"k"), field(0x12, &value)].concat());
            let point = [&[0x31, 1, 0, 0, 0, 0, 0, 0, 0][..], &attribute].concat();
            let metric = [field(0x0a, b"m"), field(0x2a, &field(0x0a, &point))].concat();
            let raw = field(0x0a, &field(0x12, &field(0x12, &metric)));
            assert_eq!(crate::otlp::check(crate::otlp::Signal::Metrics, &raw).unwrap().items, 1);
            assert_eq!(shown(&v1(&raw, &Settings::default())[0]), format!("__name__=m k={said}"));
        }
    };
    std::thread::Builder::new().stack_size(192 << 10).spawn(write).unwrap().join().unwrap();
}

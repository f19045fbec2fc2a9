//! Deltas that are added up, against maps of strings.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Of;
use opentelemetry_proto::tonic::metrics::v1::{
    Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum,
};
use proptest::prelude::*;
use prost::Message;

use super::found::{self, Value};
use crate::otlp::prometheus::deltas::Counter;
use crate::otlp::prometheus::{
    Deltas, Dropped, Scratch, ScratchCapacity, Settings, Translated, points_to_v1, points_to_v2,
};
use crate::remote_write::{STALE_NAN, Version};

/// Times of points are in milliseconds here, which is what Prometheus has.
const MS: u64 = 1_000_000;
const DELTA: i32 = 1;

/// One point of a sum or, with bounds, of a histogram.
#[derive(Debug, Clone)]
struct Point {
    route: u8,
    start: u64,
    time: u64,
    /// The counts below each bound and above the last.
    counts: Vec<u64>,
    bounds: Option<Vec<f64>>,
    stale: bool,
}

fn attributes(route: u8) -> Vec<KeyValue> {
    let value = AnyValue { value: Some(any_value::Value::StringValue(format!("/{route}"))) };
    vec![KeyValue { key: "route".into(), value: Some(value), key_strindex: 0 }]
}

fn metric(point: &Point) -> Metric {
    let (attributes, flags) = (attributes(point.route), u32::from(point.stale));
    let (start_time_unix_nano, time_unix_nano) = (point.start * MS, point.time * MS);
    let total: u64 = point.counts.iter().sum();
    let data = match &point.bounds {
        None => {
            let value = Some(Of::AsInt(total.cast_signed()));
            let point = NumberDataPoint {
                attributes,
                start_time_unix_nano,
                time_unix_nano,
                value,
                flags,
                ..Default::default()
            };
            Data::Sum(Sum { data_points: vec![point], aggregation_temporality: DELTA, is_monotonic: true })
        }
        Some(bounds) => {
            let point = HistogramDataPoint {
                attributes,
                start_time_unix_nano,
                time_unix_nano,
                flags,
                count: total,
                sum: Some(total as f64 / 4.0),
                bucket_counts: point.counts.clone(),
                explicit_bounds: bounds.clone(),
                ..Default::default()
            };
            Data::Histogram(Histogram { data_points: vec![point], aggregation_temporality: DELTA })
        }
    };
    Metric { name: "m".into(), data: Some(data), ..Metric::default() }
}

fn request(points: &[Point]) -> Vec<u8> {
    let scope = ScopeMetrics { metrics: points.iter().map(metric).collect(), ..ScopeMetrics::default() };
    let group = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![group] }.encode_to_vec()
}

/// Name, route and bound of a series.
type Name = (String, u8, String);

/// Each series' sum, start and last time.
#[derive(Debug, Clone, Default)]
struct Model(BTreeMap<Name, (f64, u64, u64)>);

impl Model {
    /// The expected series of a point, or `None` if it is late: name, value's bits, start and time.
    fn say(&mut self, point: &Point) -> Option<Vec<(Name, u64, i64, i64)>> {
        let total: u64 = point.counts.iter().sum();
        let series: Vec<(&str, String, f64)> = match &point.bounds {
            None => vec![("m_total", String::new(), total as f64)],
            Some(bounds) => {
                let mut sum = 0;
                let buckets = bounds.iter().zip(&point.counts).map(|(bound, count)| {
                    sum += count;
                    ("m_bucket", bound.to_string(), sum as f64)
                });
                let mut series = vec![
                    ("m_sum", String::new(), total as f64 / 4.0),
                    ("m_count", String::new(), total as f64),
                ];
                series.extend(buckets);
                series
            }
        };
        let names =
            series.into_iter().map(|(name, bound, delta)| ((name.to_owned(), point.route, bound), delta));
        let names: Vec<(Name, f64)> = names.collect();
        let is_late = |name: &Name| self.0.get(name).is_some_and(|(_, _, last)| point.time <= *last);
        if !point.stale && names.iter().any(|(name, _)| name.0 != "m_sum" && is_late(name)) {
            return None;
        }
        let mut said = Vec::new();
        let mut count = (STALE_NAN, point.start);
        for (name, delta) in names {
            let (value, start) = if point.stale {
                (STALE_NAN, point.start)
            } else {
                let (sum, start, last) = self.0.entry(name.clone()).or_insert((0.0, point.start, 0));
                (*sum, *last) = (*sum + delta, point.time);
                (sum.to_bits(), *start)
            };
            if name.0 == "m_count" {
                count = (value, start);
            }
            said.push((name, value, start.cast_signed(), point.time.cast_signed()));
        }
        if point.bounds.is_some() {
            said.push((
                ("m_bucket".into(), point.route, "+Inf".into()),
                count.0,
                0,
                point.time.cast_signed(),
            ));
            // A histogram has one start, that of its count.
            said.iter_mut().for_each(|(_, _, start, _)| *start = count.1.cast_signed());
        }
        Some(said)
    }
}

fn samples_in(version: Version, body: &[u8]) -> Vec<(Name, u64, i64, i64)> {
    let series = found::series(version, body).into_iter();
    let said = series.map(|series| {
        let label = |name: &str| series.labels.get(name).cloned().unwrap_or_default();
        let route = label("route").trim_start_matches('/').parse().unwrap();
        let Value::Sample(bits) = series.value else { panic!("{series:?}") };
        ((label("__name__"), route, label("le")), bits, series.start_timestamp, series.timestamp)
    });
    said.collect()
}

fn scratch() -> Scratch {
    Scratch::new(ScratchCapacity { symbols: 1_000, symbol_bytes: 64 << 10, ..ScratchCapacity::default() })
}

fn translate(
    version: Version,
    raw: &[u8],
    points: std::ops::Range<u64>,
    deltas: &mut Deltas,
) -> (Translated, Vec<(Name, u64, i64, i64)>) {
    let (settings, mut scratch, mut body) = (Settings::default(), scratch(), Vec::new());
    let done = match version {
        Version::V1 => points_to_v1(raw, points, &settings, &mut scratch, Some(deltas), &mut body),
        Version::V2 => points_to_v2(raw, points, &settings, &mut scratch, Some(deltas), &mut body),
    };
    (done.unwrap(), samples_in(version, &body))
}

/// Points of a few series, mostly later than those before.
fn points() -> impl Strategy<Value = Vec<Point>> {
    let bounds = prop_oneof![
        2 => Just(None),
        1 => Just(Some(vec![])),
        2 => Just(Some(vec![1.0, 2.5])),
        1 => Just(Some(vec![-1.0, 1.0, 3.0])),
    ];
    let one = (
        0u8..3,
        0u64..40,
        -2i64..20,
        prop::collection::vec(0u64..1_000, 4),
        bounds,
        prop::bool::weighted(0.1),
    );
    prop::collection::vec(one, 1..40).prop_map(|many| {
        let mut clock = 1_000u64;
        let points = many.into_iter().map(|(route, start, step, mut counts, bounds, stale)| {
            clock = clock.saturating_add_signed(step);
            counts.truncate(bounds.as_ref().map_or(1, Vec::len) + 1);
            Point { route, start: clock - start, time: clock, counts, bounds, stale }
        });
        points.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is cut into parts, tried in vain and tried again in either version: what is kept is what the
    /// sums come to, each delta once.
    #[test]
    fn each_delta_counts_once(
        points in points(),
        parts in prop::collection::vec((1u64..6, 0u8..3, any::<bool>()), 1..20),
    ) {
        let raw = request(&points);
        let (mut model, mut deltas) = (Model::default(), Deltas::new(100));
        let mut from = 0;
        for (len, in_vain, newer) in parts.into_iter().cycle() {
            if from >= points.len() as u64 {
                break;
            }
            let to = (from + len).min(points.len() as u64);
            for round in 0..in_vain {
                // In vain is also what goes beyond the part.
                translate(if round == 0 { Version::V2 } else { Version::V1 }, &raw, from..to + 1, &mut deltas);
            }
            let version = if newer { Version::V2 } else { Version::V1 };
            let (done, said) = translate(version, &raw, from..to, &mut deltas);
            deltas.commit();
            let mut expected = Vec::new();
            let mut late = 0;
            for point in &points[from as usize..to as usize] {
                match model.say(point) {
                    Some(said) => expected.extend(said),
                    None => late += 1,
                }
            }
            if version == Version::V1 {
                expected.iter_mut().for_each(|(_, _, start, _)| *start = 0);
            }
            prop_assert_eq!(said, expected);
            let dropped = Dropped { late, start_timestamps: done.dropped.start_timestamps, ..Dropped::default() };
            prop_assert_eq!(done.dropped, dropped);
            from = to;
        }
        prop_assert_eq!(deltas.len(), model.0.len());
    }
}

fn sum(route: u8, time: u64, delta: u64) -> Point {
    Point { route, start: time - 1, time, counts: vec![delta], bounds: None, stale: false }
}

/// A full table refuses what is new and counts it, goes on with what it knows, and takes a histogram whole or not
/// at all. What is not heard of for an hour makes room.
#[test]
fn the_table_has_an_end() {
    let mut deltas = Deltas::new(4);
    let histogram = Point { route: 9, bounds: Some(vec![1.0, 2.0]), counts: vec![1, 1, 1], ..sum(9, 10, 0) };
    let (done, said) =
        translate(Version::V1, &request(&[sum(1, 10, 5), histogram.clone()]), 0..2, &mut deltas);
    assert_eq!((done.dropped.crowded, said.len()), (1, 1));
    deltas.commit();
    let many: Vec<Point> = (1..=6).map(|route| sum(route, 20, 5)).collect();
    let (done, said) = translate(Version::V1, &request(&many), 0..6, &mut deltas);
    assert_eq!((done.dropped.crowded, done.dropped.points(), said.len()), (2, 2, 4));
    assert_eq!(f64::from_bits(said[0].1), 10.0);
    deltas.commit();
    // The first is heard of within the hour, the others are not.
    deltas.set_time(3_000);
    translate(Version::V1, &request(&[sum(1, 30, 1)]), 0..1, &mut deltas);
    deltas.commit();
    deltas.set_time(3_700);
    let (done, said) = translate(Version::V1, &request(&[sum(5, 30, 7), sum(1, 40, 1)]), 0..2, &mut deltas);
    deltas.commit();
    let values: Vec<f64> = said.iter().map(|(_, bits, ..)| f64::from_bits(*bits)).collect();
    assert_eq!((done.dropped.crowded, &values[..], deltas.len()), (0, &[7.0, 12.0][..], 2));
}

/// The same series of two owners are two, and each goes on where it was.
#[test]
fn owners_have_separate_sums() {
    let mut deltas = Deltas::new(4);
    let mut add = |owner: &[u8], time: u64, delta: u64| {
        deltas.set_owner(owner);
        let (_, said) = translate(Version::V1, &request(&[sum(1, time, delta)]), 0..1, &mut deltas);
        deltas.commit();
        f64::from_bits(said[0].1)
    };
    let sums = [add(b"a", 10, 5), add(b"b", 11, 7), add(b"a", 20, 1), add(b"", 21, 2), add(b"b", 30, 1)];
    assert_eq!(sums, [5.0, 7.0, 6.0, 2.0, 8.0]);
}

/// Deltas that cannot be a counter's growth are refused, and change nothing.
#[test]
fn invalid_deltas_are_refused() {
    let mut deltas = Deltas::new(4);
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        let point =
            NumberDataPoint { value: Some(Of::AsDouble(value)), time_unix_nano: 5, ..Default::default() };
        let sum = Sum { data_points: vec![point], aggregation_temporality: DELTA, is_monotonic: true };
        let metric = Metric { name: "m".into(), data: Some(Data::Sum(sum)), ..Metric::default() };
        let scope = ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() };
        let group = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
        let raw = ExportMetricsServiceRequest { resource_metrics: vec![group] }.encode_to_vec();
        let (done, said) = translate(Version::V1, &raw, 0..1, &mut deltas);
        assert_eq!((done.dropped.invalid, said.len(), deltas.len()), (1, 0, 0));
    }
}

/// Many small deltas beside a large sum are not lost in rounding.
#[test]
fn small_deltas_add_up() {
    let mut deltas = Deltas::new(1);
    let mut last = 0.0;
    for (number, delta) in std::iter::once(1u64 << 53).chain([1; 1_000]).enumerate() {
        let (_, said) =
            translate(Version::V1, &request(&[sum(1, 10 + number as u64, delta)]), 0..1, &mut deltas);
        deltas.commit();
        last = f64::from_bits(said[0].1);
    }
    assert_eq!(last, ((1u64 << 53) + 1_000) as f64);
}

/// The declared memory is allocated once: a full table, refusals, undoing and forgetting allocate nothing more.
#[test]
fn the_table_stays_within_its_declared_memory() {
    for series in [1, 100, 10_000] {
        let mut table = None;
        let taken = allocation_counter::measure(|| table = Some(Deltas::new(series)));
        let said = Deltas::bytes_for(series) as u64;
        assert!(
            taken.bytes_max <= said && said <= taken.bytes_max + 64,
            "{series}: {taken:?}, {said} bytes said"
        );
        let mut deltas = table.unwrap();
        let key = deltas.key(b"m", std::iter::empty());
        let used = allocation_counter::measure(|| {
            for hour in 0..3 {
                deltas.set_time(hour * 4_000);
                for number in 0..2 * series as u64 {
                    let counter = Counter::Bucket(hour << 32 | number);
                    assert_eq!(deltas.add(key, counter, 1.0, 0, 1).is_ok(), number < series as u64);
                }
                deltas.rollback();
                assert!(deltas.is_empty());
                for number in 0..series as u64 {
                    deltas.add(key, Counter::Bucket(hour << 32 | number), 1.0, 0, 1).unwrap();
                }
                deltas.commit();
            }
        });
        assert_eq!((used.count_total, deltas.len()), (0, series));
    }
}

//! Promise: requests are OTLP, grouped, and no larger than asked.

use super::*;
use opentelemetry_proto::tonic::metrics::v1 as otlp;
use tidegate_wire::output::Full;

fn sum_of(points: &Points, key: &PointKey) -> otlp::NumberDataPoint {
    match points.get(key) {
        Some(Data::Sum(sum)) => sum.data_points[0].clone(),
        other => panic!("{key:?}: {other:?} of {points:?}"),
    }
}

fn filled(series: usize) -> Aggregator {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 1_000));
    for number in 0..series {
        let (tenant, name) = (["b", "a"][number % 2], format!("name {}", number / 6));
        aggregator.begin(tenant.as_bytes(), START_MS);
        let host = ["h1", "h2", "h3"][number % 3];
        set_resource(&mut aggregator, 0, &[("host", host)]);
        observe(&mut aggregator, 0, &listed(&[Some(&name), None]), Number::Int(8), 1);
    }
    aggregator
}

#[test]
fn groups_points_by_resource_and_metric() {
    let mut aggregator = filled(60);
    aggregator.begin_flush(START_MS);
    let mut tenants = Vec::new();
    let mut from = 0;
    while let Some(piece) = aggregator.piece(from, 1 << 20) {
        let request = ExportMetricsServiceRequest::decode(&*written(&piece)).unwrap();
        let metrics = |resource: &otlp::ResourceMetrics| resource.scope_metrics[0].metrics.len();
        assert_eq!(request.resource_metrics.iter().map(metrics).collect::<Vec<_>>(), [2, 2, 2]);
        tenants.push(piece.tenant.to_vec());
        assert_eq!(piece.data_points, 60);
        from = piece.next;
    }
    assert_eq!(tenants, [b"a".to_vec(), b"b".to_vec()]);
}

#[test]
fn pieces_of_any_size_have_each_series_once() {
    let mut aggregator = filled(200);
    aggregator.begin_flush(START_MS);
    let whole = points(&aggregator, 1 << 20);
    assert_eq!(whole.len(), 400);
    for most_bytes in [600, 601, 1_000, 5_000, 20_000] {
        assert_eq!(points(&aggregator, most_bytes), whole);
    }
    // A restart may have another limit.
    let first = aggregator.piece(0, 3_000).unwrap();
    let (mut seen, mut from) = (Points::new(), first.next);
    decode(&first, &mut seen);
    let bytes = state(&aggregator, 0);
    let (restored, _) = Aggregator::read_state(aggregator.settings().clone(), &mut &*bytes).unwrap();
    while let Some(piece) = restored.piece(from, 900) {
        decode(&piece, &mut seen);
        from = piece.next;
    }
    assert_eq!(seen, whole);
}

#[test]
fn fills_pieces() {
    let mut aggregator = filled(200);
    aggregator.begin_flush(START_MS);
    let piece = aggregator.piece(0, 10_000).unwrap();
    assert!(piece.bytes > 9_000, "{}", piece.bytes);
}

#[test]
fn skips_series_that_are_too_large() {
    let mut aggregator = filled(2);
    let long = "x".repeat(2_000);
    observe(&mut aggregator, 0, &listed(&[Some(&long), None]), Number::Int(8), 1);
    aggregator.begin_flush(START_MS);
    let (mut seen, mut from, mut skipped) = (Points::new(), 0, 0);
    while let Some(piece) = aggregator.piece(from, 1_000) {
        decode(&piece, &mut seen);
        (from, skipped) = (piece.next, skipped + piece.skipped);
    }
    assert_eq!((skipped, seen.len()), (1, 4));
    let nothing = aggregator.piece(0, 10).unwrap();
    assert_eq!((nothing.skipped, nothing.bytes, nothing.data_points), (3, 0, 0));
    assert_eq!(nothing.tenant, b"a");
}

#[test]
fn tells_when_the_output_is_full() {
    let mut aggregator = filled(2);
    aggregator.begin_flush(START_MS);
    let piece = aggregator.piece(0, 10_000).unwrap();
    let mut bytes = vec![0; piece.bytes - 1];
    assert_eq!(piece.write(&mut SliceOutput::new(&mut bytes)), Err(Full));
}

#[test]
fn absent_values_are_no_attributes() {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 10));
    aggregator.begin(b"t", START_MS);
    observe(&mut aggregator, 0, &listed(&[None, Some("server")]), Number::Int(8), 3);
    let points = flush(&mut aggregator, START_MS + 5);
    let point = sum_of(&points, &key("t", "", "calls", "kind=server"));
    assert_eq!(point.value, Some(otlp::number_data_point::Value::AsInt(3)));
}

#[test]
fn times_never_go_back() {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 10));
    let calls = key("t", "", "calls", "");
    let times = |points: Points| {
        let point = sum_of(&points, &calls);
        (point.start_time_unix_nano / 1_000_000, point.time_unix_nano / 1_000_000)
    };
    // The record comes from a clock that is ahead.
    aggregator.begin(b"t", START_MS + 500);
    observe(&mut aggregator, 0, &listed(&[None, None]), Number::Int(8), 1);
    assert_eq!(times(flush(&mut aggregator, START_MS)), (START_MS, START_MS));
    assert_eq!(times(flush(&mut aggregator, START_MS - 100)), (START_MS, START_MS + 1));
    assert_eq!(times(flush(&mut aggregator, START_MS + 2_000)), (START_MS, START_MS + 2_000));
}

#[test]
fn sums_saturate_and_become_doubles() {
    let mut aggregator = Aggregator::new(settings(Temporality::Cumulative, 10));
    aggregator.begin(b"t", START_MS);
    let (total, value) =
        (key("t", "", "total", ""), |points: Points| sum_of(&points, &key("t", "", "total", "")).value);
    observe(&mut aggregator, 1, &[], Number::Int(i64::MAX / 2), 3);
    assert_eq!(
        value(flush(&mut aggregator, START_MS)),
        Some(otlp::number_data_point::Value::AsInt(i64::MAX))
    );
    observe(&mut aggregator, 1, &[], Number::Double(f64::NAN), 1);
    assert_eq!(
        value(flush(&mut aggregator, START_MS)),
        Some(otlp::number_data_point::Value::AsInt(i64::MAX))
    );
    observe(&mut aggregator, 1, &[], Number::Double(1e19), 2);
    let sum = i64::MAX as f64 + 2e19;
    let points = flush(&mut aggregator, START_MS);
    assert_eq!(sum_of(&points, &total).value, Some(otlp::number_data_point::Value::AsDouble(sum)));
}

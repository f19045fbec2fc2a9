//! OTLP data reads back as written: log records and metrics, field by field.

use super::body::{bytes, fixed64, varint, zigzag};
use super::otlp::{Attr, Attrs, START_NS, attributes, log_record, logs, metrics, trace_id};
use super::traces::{push_otlp, rows};
use super::*;
use serde_json::{Value, json};
use tidegate_wire::otlp::Signal;

fn assert_row(row: &Value, expected: &Value) {
    for (column, value) in expected.as_object().unwrap() {
        assert_eq!(&row[column], value, "{column}");
    }
}

#[test]
fn every_field_of_a_log_record_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let own = [
        ("host.name", Attr::Text("mine")),
        ("log.file.path", Attr::Text("/a")),
        ("k8s.pod.name", Attr::Int(4)),
        ("n", Attr::Int(1)),
    ];
    let mut full = log_record(1, Attr::Text("it \"broke\"\n"), &own);
    bytes(&mut full, 12, b"event");
    varint(&mut full, 7, 2);
    super::fixed32(&mut full, 8, 0x101);
    let structured = Attr::Map(vec![("b", Attr::Int(2)), ("a", Attr::Bytes(b"x"))]);
    let mut bare = Vec::new();
    bytes(&mut bare, 5, &structured.encode());
    let resource = [("service.name", Attr::Text("shop")), ("host.name", Attr::Text("theirs"))];
    let pushed = push_otlp(&mut writer, 3, Signal::Logs, &logs(&resource, &[full, bare, Vec::new()]));
    assert_eq!((pushed.rows, pushed.dropped.items()), (3, 0));
    writer.close_files().unwrap();
    let rows = rows(dir.path(), Table::Logs);
    assert_row(
        &rows[0],
        &json!({
            "service_name": "shop", "time": "2023-11-14T22:13:20.123456790Z", "time_ns": 790,
            "observed_time": "2023-11-14T22:13:20.123456795Z", "severity_number": 9, "severity_text": "INFO",
            "body": "it \"broke\"\n", "body_type": 1, "event_name": "event", "flags": 257,
            "trace_id": "00000070000000000000000000000001", "span_id": "0000000000000001",
            "scope_name": "library", "scope_version": "1.2.3", "dropped_attributes": 2,
            "resource": {"host.name": "theirs", "service.name": "shop"},
            // Attributes shared with the resource stay; those with the wrong type for their column stay.
            "attributes": {"host.name": "mine", "k8s.pod.name": 4, "n": 1},
            "host.name": "mine", "log.file.path": "/a", "k8s.pod.name": null,
        }),
    );
    assert_row(
        &rows[1],
        &json!({
            // Without a time of its own it has that of its arrival.
            "time": "2023-11-14T22:13:20.000000000Z", "observed_time": null, "trace_id": null, "span_id": null,
            "body": "{\"a\":{\"$bytes\":\"eA==\"},\"b\":2}", "body_type": 6, "severity_text": null,
            "host.name": "theirs", "attributes": {}, "event_name": null,
        }),
    );
    assert_row(&rows[2], &json!({"body": null, "body_type": 0}));
}

fn point(all: &Attrs<'_>, value: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut point = Vec::new();
    fixed64(&mut point, 2, START_NS - 5_000_000_001);
    fixed64(&mut point, 3, START_NS);
    attributes(&mut point, 7, all);
    value(&mut point);
    point
}

fn metric(name: &str, field: u64, data: &[u8]) -> Vec<u8> {
    let mut metric = Vec::new();
    bytes(&mut metric, 1, name.as_bytes());
    bytes(&mut metric, 2, b"what it is");
    bytes(&mut metric, 3, b"s");
    bytes(&mut metric, field, data);
    metric
}

fn exemplar() -> Vec<u8> {
    let mut exemplar = Vec::new();
    fixed64(&mut exemplar, 2, START_NS);
    fixed64(&mut exemplar, 6, 7);
    bytes(&mut exemplar, 4, &[1; 8]);
    bytes(&mut exemplar, 5, &trace_id(1));
    attributes(&mut exemplar, 7, &[("user", Attr::Text("x"))]);
    exemplar
}

#[test]
fn points_of_gauges_sums_and_summaries_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let (mut gauge, mut sum, mut summary) = (Vec::new(), Vec::new(), Vec::new());
    bytes(
        &mut gauge,
        1,
        &point(&[("a", Attr::Int(1)), ("job", Attr::Text("j"))], |point| {
            fixed64(point, 6, (i64::MAX - 1).cast_unsigned());
            bytes(point, 5, &exemplar());
        }),
    );
    bytes(&mut sum, 1, &point(&[], |point| fixed64(point, 4, 2.5_f64.to_bits())));
    // No recorded value.
    bytes(&mut sum, 1, &point(&[("gone", Attr::Bool(true))], |point| varint(point, 8, 1)));
    varint(&mut sum, 2, 1);
    varint(&mut sum, 3, 1);
    let mut quantile = Vec::new();
    fixed64(&mut quantile, 1, 0.99_f64.to_bits());
    fixed64(&mut quantile, 2, 0.25_f64.to_bits());
    let summary_point = point(&[], |point| {
        fixed64(point, 4, 12);
        fixed64(point, 5, 1.5_f64.to_bits());
        bytes(point, 6, &quantile);
    });
    bytes(&mut summary, 1, &summary_point);
    let resource = [("service.name", Attr::Text("shop")), ("host.name", Attr::Text("h"))];
    let all = [metric("gauge", 5, &gauge), metric("sum", 7, &sum), metric("summary", 11, &summary)];
    let pushed = push_otlp(&mut writer, 3, Signal::Metrics, &metrics(&resource, &all));
    assert_eq!((pushed.rows, pushed.dropped.items()), (6, 0));
    writer.close_files().unwrap();
    let rows = rows(dir.path(), Table::MetricPoints);
    assert_row(
        &rows[0],
        &json!({
            "metric_name": "gauge", "type": 1, "unit": "s", "description": "what it is", "service_name": "shop",
            "time": "2023-11-14T22:13:20.123456789Z", "start_time": "2023-11-14T22:13:15.123456788Z",
            "value": null, "value_int": i64::MAX - 1, "flags": 0, "attributes": {"a": 1}, "job": "j",
            "host.name": "h", "resource": {"host.name": "h", "service.name": "shop"}, "scope_version": "1.2.3",
            "exemplars": [{"time": "2023-11-14T22:13:20.123456789Z", "time_ns": 789, "value": 7.0, "value_int": 7,
                "trace_id": "00000070000000000000000000000001", "span_id": "0101010101010101",
                "attributes": {"user": "x"}}],
        }),
    );
    let mut sums = rows[1..3].to_vec();
    sums.sort_by_key(|row| row["flags"].as_i64());
    assert_row(
        &sums[0],
        &json!({"metric_name": "sum", "type": 3, "value": 2.5, "value_int": null, "flags": 0}),
    );
    assert_row(&sums[1], &json!({"type": 3, "value": null, "value_int": null, "flags": 1}));
    let mut summaries = rows[3..].to_vec();
    summaries.sort_by_key(|row| row["type"].as_i64());
    assert_row(&summaries[0], &json!({"type": 5, "quantile": 0.99, "value": 0.25}));
    assert_row(&summaries[1], &json!({"type": 6, "quantile": null, "value": 1.5}));
    assert_row(&summaries[2], &json!({"type": 7, "quantile": null, "value": null, "value_int": 12}));
    assert_eq!(summaries[0]["series_id"], summaries[2]["series_id"]);
}

#[test]
fn both_kinds_of_histograms_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let (mut explicit, mut exponential) = (Vec::new(), Vec::new());
    bytes(&mut explicit, 1, &super::histogram_point(START_NS, &[1, 2, u64::MAX], &[0.5, 10.0], &exemplar()));
    varint(&mut explicit, 2, 1);
    let (mut positive, mut exponential_point) = (Vec::new(), Vec::new());
    varint(&mut positive, 1, zigzag(-7));
    varint(&mut positive, 2, 3);
    varint(&mut positive, 2, 0);
    fixed64(&mut exponential_point, 3, START_NS);
    fixed64(&mut exponential_point, 4, 5);
    varint(&mut exponential_point, 6, zigzag(-1));
    fixed64(&mut exponential_point, 7, 2);
    bytes(&mut exponential_point, 8, &positive);
    bytes(&mut exponential, 1, &exponential_point);
    varint(&mut exponential, 2, 2);
    let all = [metric("explicit", 9, &explicit), metric("exponential", 10, &exponential)];
    let pushed = push_otlp(&mut writer, 3, Signal::Metrics, &metrics(&[], &all));
    assert_eq!((pushed.rows, pushed.dropped.items()), (2, 0));
    writer.close_files().unwrap();
    let rows = rows(dir.path(), Table::MetricHistograms);
    assert_row(
        &rows[0],
        &json!({
            "metric_name": "explicit", "type": 8, "count": 9, "sum": 4.5, "min": 0.25, "max": null,
            "bounds": [0.5, 10.0], "bucket_counts": [1, 2, i64::MAX], "scale": null, "temporality": 1,
            "positive_counts": null, "reset_hint": null,
        }),
    );
    assert_eq!(rows[0]["exemplars"][0]["value_int"], 7);
    assert_row(
        &rows[1],
        &json!({
            "metric_name": "exponential", "count": 5, "sum": null, "scale": -1, "zero_count": 2,
            "zero_threshold": 0.0, "positive_offset": -7, "positive_counts": [3, 0], "negative_counts": [],
            "bounds": null, "bucket_counts": null, "temporality": 2, "exemplars": null,
        }),
    );
}

/// Senders that take turns share row groups, and lose nothing by it; each row is found by its filter.
#[test]
fn mixed_signals_share_the_slice() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let long = "x".repeat(900);
    let mut dropped = 0;
    for sequence in 0..300_u64 {
        let resource = [("service.name", Attr::Text(["a", "b", "c"][sequence as usize % 3]))];
        let serials = sequence * 40..sequence * 40 + 40;
        let pushed = match sequence % 4 {
            0 => {
                let spans: Vec<_> = serials
                    .map(|serial| super::otlp::span(serial, "op", &[("l", Attr::Text(&long))]))
                    .collect();
                push_otlp(&mut writer, sequence, Signal::Traces, &super::otlp::traces(&resource, &spans))
            }
            1 => {
                let records: Vec<_> = serials
                    .map(|serial| log_record(serial, Attr::Text(&format!("{serial} {long}")), &[]))
                    .collect();
                push_otlp(&mut writer, sequence, Signal::Logs, &logs(&resource, &records))
            }
            2 => {
                let mut gauge = Vec::new();
                for serial in serials {
                    bytes(
                        &mut gauge,
                        1,
                        &point(&[("serial", Attr::Int(serial.cast_signed()))], |point| {
                            fixed64(point, 6, serial);
                        }),
                    );
                }
                push_otlp(
                    &mut writer,
                    sequence,
                    Signal::Metrics,
                    &metrics(&resource, &[metric("g", 5, &gauge)]),
                )
            }
            _ => {
                let mut histogram = Vec::new();
                for _ in serials {
                    bytes(
                        &mut histogram,
                        1,
                        &super::histogram_point(START_NS, &[1; 50], &[1.0; 49], &exemplar()),
                    );
                }
                push_otlp(
                    &mut writer,
                    sequence,
                    Signal::Metrics,
                    &metrics(&resource, &[metric("h", 9, &histogram)]),
                )
            }
        };
        assert_eq!(pushed.rows, 40, "{sequence}");
        dropped += pushed.dropped.items();
    }
    // One that is larger than the pool is lost alone.
    let huge = "y".repeat(5 << 20);
    let spans = [
        super::otlp::span(1 << 40, "huge", &[("h", Attr::Text(&huge))]),
        super::otlp::span(1 << 41, "small", &[]),
    ];
    let pushed = push_otlp(&mut writer, 300, Signal::Traces, &super::otlp::traces(&[], &spans));
    assert_eq!((pushed.rows, pushed.dropped.too_large), (1, 1));
    writer.close_files().unwrap();
    assert_eq!(dropped, 0);
    let report = crate::verify(dir.path()).unwrap();
    assert!(report.is_sound() && report.rows == 300 * 40 + 1, "{report:?}");

    let found = |query: Query| {
        scan(dir.path(), &query).unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>()
    };
    let spans = || Query::new(Table::Spans);
    assert_eq!(found(Query { trace_id: Some(trace_id(4)), ..spans() }), 1);
    assert_eq!(found(Query { trace_id: Some([9; 16]), ..spans() }), 0);
    assert_eq!(found(Query { service: Some("a".into()), ..spans() }), 25 * 40);
    assert_eq!(found(Query { name: Some("small".into()), ..spans() }), 1);
    let records = || Query::new(Table::Logs);
    assert_eq!(found(Query { trace_id: Some(trace_id(41)), ..records() }), 1);
    let serials =
        (0..300).filter(|sequence| sequence % 4 == 1).flat_map(|sequence| sequence * 40..sequence * 40 + 40);
    let ending = serials.filter(|serial| serial % 100 == 41).count();
    assert_eq!(found(Query { contains: Some("41 xx".into()), ..records() }), ending);
    assert_eq!(found(Query { severity: Some(9), ..records() }), 75 * 40);
    assert_eq!(found(Query { severity: Some(10), ..records() }), 0);
    let points = Query {
        metric: Some("g".into()),
        labels: vec!["serial=81".parse().unwrap()],
        ..Query::new(Table::MetricPoints)
    };
    assert_eq!(found(points), 1);
    let refused = Query { severity: Some(1), ..spans() };
    assert!(
        scan(dir.path(), &refused).is_err_and(|error| error.to_string().contains("spans has no severities"))
    );
}

//! The columns other than labels, time and value.

use super::*;
use crate::{Format, Output};
use body::{custom_histogram, int_histogram};

fn ndjson(dir: &Path, table: Table, columns: &[&str]) -> Vec<serde_json::Value> {
    let columns: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
    let query = Query { columns: columns.clone(), ..Query::new(table) };
    let mut output = Output::new(Format::Ndjson, Vec::new(), columns);
    for batch in scan(dir, &query).unwrap() {
        output.write(&batch.unwrap()).unwrap();
    }
    let text = String::from_utf8(output.finish().unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Type, unit and help come from what the sender said about the family, whenever that was.
#[test]
fn metadata_is_joined_to_the_points() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    push(&mut writer, 1, NOW_NS, &Body::default().metadata("latency", 5, "seconds", "how long"));
    let label = |pairs: &[(&str, &str)]| body::labels(pairs);
    let body = Body::default()
        .metadata("requests", 1, "", "how many")
        .series(&label(&[("__name__", "latency"), ("quantile", "0.5")]), &[(NOW_MS, 1)])
        .series(&label(&[("__name__", "latency_sum")]), &[(NOW_MS, 1)])
        .series(&label(&[("__name__", "requests_total")]), &[(NOW_MS, 1)])
        .series(&label(&[("__name__", "zother")]), &[(NOW_MS, 1)]);
    push(&mut writer, 2, NOW_NS, &body);
    writer.close_files().unwrap();
    let rows = ndjson(dir.path(), Table::MetricPoints, &["metric_name", "type", "unit", "description"]);
    let expected = serde_json::json!([
        {"metric_name": "latency", "type": 5, "unit": "seconds", "description": "how long"},
        {"metric_name": "latency_sum", "type": 6, "unit": "seconds", "description": "how long"},
        {"metric_name": "requests_total", "type": 2, "unit": null, "description": "how many"},
        {"metric_name": "zother", "type": 0, "unit": null, "description": null},
    ]);
    assert_eq!(serde_json::Value::from(rows), expected);
}

/// 2.0 says when a counter began, in each sample.
#[test]
fn start_times_are_kept_when_given() {
    let (mut sample, mut series, mut raw) = (Vec::new(), Vec::new(), Vec::new());
    for symbol in ["", "__name__", "up"] {
        body::bytes(&mut raw, 4, symbol.as_bytes());
    }
    body::fixed64(&mut sample, 1, 1.0_f64.to_bits());
    body::varint(&mut sample, 2, NOW_MS.cast_unsigned());
    let started = sample.len();
    body::varint(&mut sample, 3, (NOW_MS - 1500).cast_unsigned());
    body::bytes(&mut series, 1, &[1, 2]);
    body::bytes(&mut series, 2, &sample);
    body::bytes(&mut series, 2, &sample[..started]);
    body::bytes(&mut raw, 5, &series);
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let mut symbols = Symbols::new();
    let request = view(Version::V2, &raw, &mut symbols).unwrap();
    let position = crate::BatchPosition { sequence: 1, received_at_ns: NOW_NS };
    assert_eq!(writer.push(&position, &request, NOW_NS).unwrap().rows, 2);
    writer.close_files().unwrap();
    let rows = ndjson(dir.path(), Table::MetricPoints, &["metric_name", "start_time"]);
    assert_eq!(rows[0]["start_time"], "2023-11-14T22:13:18.500000000Z");
    assert_eq!(rows[1]["start_time"], serde_json::Value::Null);
}

/// Exemplars go with the last point of their series; without one they have a row of their own, which has no
/// value.
#[test]
fn exemplars_are_kept_with_their_series() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let label = |pairs: &[(&str, &str)]| body::labels(pairs);
    let (a, b) = (label(&[("__name__", "a")]), label(&[("__name__", "b")]));
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let traced = label(&[("trace_id", trace), ("user", "x")]);
    let body = Body::default()
        .series(&a, &[(NOW_MS - 1, 0), (NOW_MS, 0)])
        .exemplar(&a, &[], &traced, (NOW_MS, 2.5_f64.to_bits()))
        .exemplar(&b, &[], &label(&[("trace_id", "ABC")]), (NOW_MS, 1.0_f64.to_bits()));
    assert_eq!(push(&mut writer, 1, NOW_NS, &body).rows, 3);
    writer.close_files().unwrap();
    let rows = ndjson(dir.path(), Table::MetricPoints, &["metric_name", "value", "flags", "exemplars"]);
    let time = "2023-11-14T22:13:20.000000000Z";
    let expected = serde_json::json!([
        {"metric_name": "a", "value": 0.0, "flags": 0, "exemplars": null},
        {"metric_name": "a", "value": 0.0, "flags": 0, "exemplars": [
            {"time": time, "time_ns": 0, "value": 2.5, "value_int": null, "trace_id": trace, "span_id": null,
             "attributes": {"user": "x"}}]},
        {"metric_name": "b", "value": null, "flags": 2, "exemplars": [
            {"time": time, "time_ns": 0, "value": 1.0, "value_int": null, "trace_id": null, "span_id": null,
             "attributes": {"trace_id": "ABC"}}]},
    ]);
    assert_eq!(serde_json::Value::from(rows), expected);
}

/// Native histograms: counts are absolute, the first bucket counted as OpenTelemetry does.
#[test]
fn native_histograms_have_a_table_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let label = |name: &str| body::labels(&[("__name__", name), ("job", "j")]);
    let mut lying = int_histogram(NOW_MS, 0, &[1]);
    // A second span, for five buckets that are not there.
    lying.extend([0x5a, 4, 0x08, 0, 0x10, 5]);
    let body = Body::default()
        .histogram(&label("none"), &[])
        .histogram(&label("custom"), &custom_histogram(NOW_MS, &[0.5, 1.0], &[1.0, 2.5, 0.5]))
        .histogram(&label("int"), &int_histogram(NOW_MS, -3, &[2, 1, -3]))
        .histogram(&label("lying"), &lying);
    let pushed = push(&mut writer, 1, NOW_NS, &body);
    // One without anything in it is a histogram all the same; one with less counts than its spans say is not.
    assert_eq!((pushed.rows, pushed.dropped.malformed), (3, 1));
    writer.close_files().unwrap();
    let columns = [
        "metric_name",
        "service_name",
        "count",
        "count_float",
        "sum",
        "scale",
        "bounds",
        "bucket_counts_float",
        "positive_offset",
        "positive_counts",
        "temporality",
        "reset_hint",
    ];
    let rows = ndjson(dir.path(), Table::MetricHistograms, &columns);
    let expected = serde_json::json!([
        {"metric_name": "custom", "service_name": "j", "count": null, "count_float": 4.0, "sum": 99.0,
         "scale": null, "bounds": [0.5, 1.0], "bucket_counts_float": [1.0, 2.5, 0.5],
         "positive_offset": null, "positive_counts": null, "temporality": 0, "reset_hint": 3},
        {"metric_name": "int", "service_name": "j", "count": 5, "count_float": null, "sum": 12.5,
         "scale": 3, "bounds": null, "bucket_counts_float": null,
         "positive_offset": -4, "positive_counts": [2, 3, 0], "temporality": 2, "reset_hint": 0},
    ]);
    assert_eq!(serde_json::Value::from(rows[..2].to_vec()), expected);
}

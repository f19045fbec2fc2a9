//! Nothing is lost: from what is said in OTLP the event can be written again. The way back is written here, from
//! `design/intake.md`, and knows nothing of the tables by which events are said.

mod back;
pub(crate) mod events;

use super::*;
use back::{alike, attributes, hex, normal, plain, span_back};
use events::{anything, error, metricset, put, span, transaction};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point::Value as Point};
use proptest::prelude::*;
use prost::Message;
use serde_json::{Map, Value as Json, json};
use tidegate_wire::intake::{LONGEST_LINE, check as check_intake};
use tidegate_wire::otlp::check;

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn transactions_can_be_written_again(event in transaction()) {
        let back = span_back(&request("transaction", &event, Signal::Traces), false);
        let mut expected = normal(&event);
        // No name and an empty one are the same to OTLP.
        if expected["name"] == "" { expected.as_object_mut().unwrap().remove("name"); }
        prop_assert!(alike(&normal(&back), &expected), "{}\n{}", normal(&back), expected);
    }

    #[test]
    fn spans_can_be_written_again(event in span()) {
        let back = span_back(&request("span", &event, Signal::Traces), true);
        let expected = normal(&event);
        prop_assert!(alike(&normal(&back), &expected), "{}\n{}", normal(&back), expected);
    }

    #[test]
    fn errors_can_be_written_again(event in error()) {
        let request = ExportLogsServiceRequest::decode(&request("error", &event, Signal::Logs)[..]).unwrap();
        let record = &request.resource_logs[0].scope_logs[0].log_records[0];
        let mut back = json!({});
        let own = attributes(&mut back, &record.attributes, "context/tags", false);
        if let Some(sampled) = back.as_object_mut().unwrap().remove("sampled") {
            put(&mut back, "transaction/sampled", sampled);
        }
        for (name, bytes) in [("trace_id", &record.trace_id), ("parent_id", &record.span_id)] {
            put(&mut back, name, own.get(name).cloned().unwrap_or(json!(hex(bytes))));
        }
        if own.get("received").is_none() {
            put(&mut back, "timestamp", json!(record.time_unix_nano / 1000));
        }
        let expected = normal(&event);
        prop_assert!(alike(&normal(&back), &expected), "{}\n{}", normal(&back), expected);
        prop_assert_eq!(record.body.as_ref().map(plain), Some(json!("boom")));
        prop_assert_eq!((record.severity_number, record.severity_text.as_str()), (13, "warn"));
    }

    #[test]
    fn metricsets_can_be_written_again(event in metricset()) {
        let request = ExportMetricsServiceRequest::decode(&request("metricset", &event, Signal::Metrics)[..]).unwrap();
        let mut back = json!({});
        for metric in &request.resource_metrics[0].scope_metrics[0].metrics {
            let mut sample = json!({});
            if !metric.unit.is_empty() {
                put(&mut sample, "unit", json!(metric.unit));
            }
            let (pairs, time) = match metric.data.as_ref().unwrap() {
                Data::Gauge(gauge) => {
                    put(&mut sample, "value", point(&gauge.data_points[0].value));
                    (&gauge.data_points[0].attributes, gauge.data_points[0].time_unix_nano)
                }
                Data::Sum(sum) => {
                    assert!(sum.is_monotonic);
                    put(&mut sample, "value", point(&sum.data_points[0].value));
                    put(&mut sample, "type", json!("counter"));
                    (&sum.data_points[0].attributes, sum.data_points[0].time_unix_nano)
                }
                Data::Histogram(histogram) => {
                    let point = &histogram.data_points[0];
                    assert_eq!(point.count, point.bucket_counts.iter().sum::<u64>());
                    if let Some((last, counts)) = point.bucket_counts.split_last() {
                        assert_eq!((*last, counts.len()), (0, point.explicit_bounds.len()));
                        put(&mut sample, "values", json!(point.explicit_bounds));
                        put(&mut sample, "counts", json!(counts));
                        put(&mut sample, "type", json!("histogram"));
                    }
                    (&point.attributes, point.time_unix_nano)
                }
                other => panic!("{other:?}"),
            };
            let own = attributes(&mut back, pairs, "tags", true);
            for (name, value) in &own {
                if let Some(name) = name.strip_prefix("sample.") {
                    put(&mut sample, name, value.clone());
                }
            }
            if own.get("received").is_none() {
                put(&mut back, "timestamp", json!(time / 1000));
            }
            let mut samples = back.get("samples").cloned().unwrap_or(json!({}));
            samples.as_object_mut().unwrap().insert(metric.name.clone(), sample);
            put(&mut back, "samples", samples);
        }
        let expected = normal(&event);
        prop_assert!(alike(&normal(&back), &expected), "{}\n{}", normal(&back), expected);
    }

    /// Fields of ECS have the same names, however they were nested.
    #[test]
    fn log_events_can_be_written_again(
        fields in proptest::collection::btree_map("[a-z]{2,6}", anything(), 0..6),
        nested in any::<bool>(),
    ) {
        let mut event = json!({"@timestamp": "2024-02-29T12:34:56.789Z", "message": "hello"});
        for (name, value) in fields {
            put(&mut event, &name, value);
        }
        if nested {
            put(&mut event, "log", json!({"level": "warn", "logger": "main"}));
        } else {
            put(&mut event, "log.level", json!("warn"));
        }
        let request = ExportLogsServiceRequest::decode(&request("log", &event, Signal::Logs)[..]).unwrap();
        let record = &request.resource_logs[0].scope_logs[0].log_records[0];
        let mut back = Map::new();
        for pair in &record.attributes {
            back.insert(pair.key.clone(), plain(pair.value.as_ref().unwrap()));
        }
        back.insert("message".into(), record.body.as_ref().map(plain).unwrap());
        back.insert("log.level".into(), json!(record.severity_text));
        assert_eq!(record.time_unix_nano, 1_709_210_096_789_000_000);
        back.insert("@timestamp".into(), json!("2024-02-29T12:34:56.789Z"));
        let mut expected = Map::new();
        flat("", &event, &mut expected);
        prop_assert!(alike(&Json::Object(back.clone()), &Json::Object(expected.clone())), "{back:?}\n{expected:?}");
    }
}
fn body(kind: &str, event: &Json) -> Vec<u8> {
    let metadata =
        json!({"metadata": {"service": {"name": "shop", "agent": {"name": "go", "version": "1"}}}});
    format!("{metadata}\n{}\n", json!({kind: event})).into_bytes()
}

#[track_caller]
fn request(kind: &str, event: &Json, signal: Signal) -> Vec<u8> {
    let raw = body(kind, event);
    check_intake(&raw, LONGEST_LINE, |_, error| panic!("{error}: {event}")).unwrap();
    let (request, events) = said(&raw, signal);
    assert_eq!(events, 1);
    check(signal, &request).unwrap_or_else(|error| panic!("{error}: {event}"));
    request
}
fn point(value: &Option<Point>) -> Json {
    match value.unwrap() {
        Point::AsInt(value) => json!(value),
        Point::AsDouble(value) => json!(value),
    }
}

fn flat(before: &str, value: &Json, out: &mut Map<String, Json>) {
    match value {
        Json::Object(map) => {
            for (name, value) in map {
                let name = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
                flat(&name, value, out);
            }
        }
        Json::Null => {}
        Json::Array(list) if list.is_empty() => {}
        other => drop(out.insert(before.to_owned(), other.clone())),
    }
}

//! Bodies in the shape of the specification's examples, and everything that its rules allow.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest as Logs;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest as Metrics;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest as Traces;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use prost::Message as _;

use super::*;

/// A trace as an SDK writes it is what serde and prost read in it.
#[test]
fn a_trace_is_read_as_elsewhere() {
    let json = r#"{
      "resourceSpans": [{
        "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": "my.service" } }] },
        "scopeSpans": [{
          "scope": { "name": "my.library", "version": "1.0.0",
            "attributes": [{ "key": "my.scope.attribute", "value": { "stringValue": "some scope attribute" } }] },
          "spans": [{
            "traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174",
            "parentSpanId": "EEE19B7EC3C1B173", "name": "I'm a server span",
            "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": "1544712661000000000", "kind": 2,
            "attributes": [{ "key": "my.span.attr", "value": { "stringValue": "some value" } }],
            "events": [{ "timeUnixNano": "1544712660500000000", "name": "e", "droppedAttributesCount": 1 }],
            "links": [{ "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174" }],
            "status": { "message": "no", "code": 2 }, "flags": 257
          }]
        }]
      }]
    }"#;
    let found = Traces::decode(&translated(Signal::Traces, json).unwrap()[..]).unwrap();
    assert_eq!(found, serde_json::from_str::<Traces>(json).unwrap());
    let span = &found.resource_spans[0].scope_spans[0].spans[0];
    assert_eq!(
        (span.trace_id.len(), span.flags, span.end_time_unix_nano),
        (16, 257, 1_544_712_661_000_000_000)
    );
    let found = translated(Signal::Traces, json).unwrap();
    assert_eq!(crate::otlp::check(Signal::Traces, &found).unwrap().items, 1);
}

/// Metrics of every kind are what serde and prost read in them.
#[test]
fn metrics_are_read_as_elsewhere() {
    let json = r#"{"resourceMetrics":[{"resource":{"attributes":[]},"scopeMetrics":[{"scope":{},"metrics":[
      {"name":"my.counter","unit":"1","description":"I am a Counter","sum":{"aggregationTemporality":1,
        "isMonotonic":true,"dataPoints":[{"asDouble":5.5,"startTimeUnixNano":"1544712660300000000",
        "timeUnixNano":"1544712660300000000","attributes":[]}]}},
      {"name":"my.gauge","gauge":{"dataPoints":[{"asInt":"-9223372036854775808","timeUnixNano":"1"}]}},
      {"name":"my.histogram","histogram":{"aggregationTemporality":2,"dataPoints":[{"count":"2","sum":2.5,
        "bucketCounts":["1","1"],"explicitBounds":[1],"min":0,"max":2}]}},
      {"name":"my.exponential","exponentialHistogram":{"aggregationTemporality":1,"dataPoints":[{"count":"3",
        "sum":10,"scale":-2,"zeroCount":"1","zeroThreshold":0.5,"positive":{"offset":-1,"bucketCounts":["0","2"]}}]}},
      {"name":"my.summary","summary":{"dataPoints":[{"count":"3","sum":10,
        "quantileValues":[{"quantile":0.5,"value":3}]}]}}]}]}]}"#;
    let found = Metrics::decode(&translated(Signal::Metrics, json).unwrap()[..]).unwrap();
    assert_eq!(found, serde_json::from_str::<Metrics>(json).unwrap());
    let metrics = &found.resource_metrics[0].scope_metrics[0].metrics;
    let Some(metric::Data::Gauge(gauge)) = &metrics[1].data else { panic!("no gauge") };
    assert_eq!(gauge.data_points[0].value, Some(number_data_point::Value::AsInt(i64::MIN)));
}

fn body_of(value: &str) -> Option<Value> {
    let json = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{value}}}]}}]}}]}}"#);
    let found = translated(Signal::Logs, &json).unwrap_or_else(|error| panic!("{value}: {error}"));
    let mut logs = Logs::decode(&found[..]).unwrap();
    logs.resource_logs.remove(0).scope_logs.remove(0).log_records.remove(0).body.and_then(|body| body.value)
}

/// Every form of a value that the rules allow means what it says.
#[test]
fn every_form_of_a_value_is_read() {
    let int = |value: i64| Some(Value::IntValue(value));
    let text = |value: &str| Some(Value::StringValue(value.to_owned()));
    let bytes = |value: &[u8]| Some(Value::BytesValue(value.to_vec()));
    let cases = [
        ("null", None),
        ("{}", None),
        (r#"{"stringValue":null}"#, None),
        (r#"{"string_value":"snake","x":[{"y":[1.5e-3,"\ud83e\udd80",{}]},null,true]}"#, None),
        (r#"{"stringValue":""}"#, text("")),
        (r#"{"stringValue":"\"\\\/\b\f\n\r\t\u20ac\uD83E\uDD80\u0000"}"#, text("\"\\/\u{8}\u{c}\n\r\t€🦀\0")),
        (r#"{"intValue":9223372036854775807}"#, int(i64::MAX)),
        (r#"{"intValue":"-9223372036854775808"}"#, int(i64::MIN)),
        (r#"{"intValue":9007199254740993}"#, int(9_007_199_254_740_993)),
        (r#"{"intValue":1.5e1}"#, int(15)),
        (r#"{"intValue":-0}"#, int(0)),
        (r#"{"intValue":120e-1}"#, int(12)),
        (r#"{"boolValue":false}"#, Some(Value::BoolValue(false))),
        (r#"{"doubleValue":"-Infinity"}"#, Some(Value::DoubleValue(f64::NEG_INFINITY))),
        (r#"{"doubleValue":0.1}"#, Some(Value::DoubleValue(0.1))),
        (r#"{"doubleValue":"1e-400"}"#, Some(Value::DoubleValue(0.0))),
        (r#"{"bytesValue":"aGk"}"#, bytes(b"hi")),
        (r#"{"bytesValue":"aGk="}"#, bytes(b"hi")),
        (r#"{"bytesValue":"-_-_"}"#, bytes(&[0xfb, 0xff, 0xbf])),
        (r#"{"bytesValue":"+\/+\/"}"#, bytes(&[0xfb, 0xff, 0xbf])),
        (r#"{"bytesValue":""}"#, bytes(b"")),
    ];
    for (json, expected) in cases {
        assert_eq!(body_of(json), expected, "{json}");
    }
    let Some(Value::DoubleValue(nan)) = body_of(r#"{"doubleValue":"NaN"}"#) else { panic!("no double") };
    assert!(nan.is_nan());
}

/// Every nesting that the check allows can be expressed in JSON; the check refuses the others.
#[test]
fn the_check_has_the_last_word_on_depth() {
    let nested = |depth: usize| {
        let open = r#"{"kvlistValue":{"values":[{"value":"#.repeat(depth);
        let close = "}]}}".repeat(depth);
        format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{open}{{}}{close}}}]}}]}}]}}"#)
    };
    let deep = translated(Signal::Logs, &nested(crate::otlp::MAX_DEPTH)).unwrap();
    assert!(crate::otlp::check(Signal::Logs, &deep).is_ok());
    let deeper = translated(Signal::Logs, &nested(crate::otlp::MAX_DEPTH + 1)).unwrap();
    assert!(crate::otlp::check(Signal::Logs, &deeper).is_err());
    for depth in [1020, 100_000] {
        assert_eq!(*translated(Signal::Logs, &nested(depth)).unwrap_err().kind(), OtlpJsonErrorKind::Depth);
    }
    // Deep invalid values affect only themselves, and ignored fields may be as deep.
    let good = r#"{"body":{"stringValue":"a"}}"#;
    let both = nested(1020).replace("[{\"body\"", &format!("[{good},{{\"body\""));
    let (left, done) = super::translate_valid(Signal::Logs, &both).unwrap();
    assert_eq!((crate::otlp::check(Signal::Logs, &left).unwrap().items, done.refused), (1, 1));
    let unknown = format!(
        r#"{{"unknown":{}{}}}"#,
        "[{\"a\":".repeat(2000),
        "1}]".replace('1', "").repeat(2000).replacen('}', "1}", 1)
    );
    assert_eq!(translated(Signal::Logs, &unknown).unwrap(), b"");
}

/// A request without anything is one.
#[test]
fn an_empty_request_is_empty() {
    assert_eq!(translated(Signal::Traces, " {\n} ").unwrap(), b"");
    assert_eq!(translated(Signal::Traces, r#"{"resourceSpans":[]}"#).unwrap(), b"");
    assert_eq!(translated(Signal::Traces, r#"{"resourceSpans":[{}]}"#).unwrap(), [0x0a, 0]);
}

/// Lengths that were guessed too short or too long come out as an ordinary encoder writes them, and no
/// allocation is made.
#[test]
fn lengths_of_all_sizes_are_canonical() {
    for len in [0, 100, 127, 128, 16_000, 16_384, 70_000, 2_100_000] {
        let text = "x".repeat(len);
        let json = format!(
            r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"attributes":[{{"key":"k","value":{{"stringValue":"{text}"}}}}]}}]}}]}}]}}"#
        );
        let mut out = vec![0; max_len(json.as_bytes())];
        let mut len = 0;
        let counted = allocation_counter::measure(|| {
            len = translate(Signal::Logs, json.as_bytes(), &mut out).unwrap().len
        });
        assert_eq!(counted.count_total, 0);
        let found = &out[..len];
        assert_eq!(Logs::decode(found).unwrap().encode_to_vec(), found);
    }
}

//! A real OpenTelemetry Collector behind the sinks `otlp` and `http`: each item that reaches it through the gateway is what
//! it understands of the same item sent to it directly; it is left alone for as long as it asks, and misses
//! nothing when it is killed and started again.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use tidegate_load::OnRefused;
use tidegate_load::otlp::{ExportRequest, OtlpProfile, Signal, Transport, drive_blocking};
use tidegate_tests::{Collector, Gateway, Program, SOON, collector_binary, free_address, http, until};

const TIME: &str = "1700000000123456789";

/// One of everything, as OTLP/JSON, with the path that it goes to.
fn everything() -> [(&'static str, Value); 3] {
    let kinds = json!([
        {"key": "text", "value": {"stringValue": "wörter"}}, {"key": "whole", "value": {"intValue": "-9007199254740993"}},
        {"key": "real", "value": {"doubleValue": 0.1}}, {"key": "yes", "value": {"boolValue": true}},
        {"key": "bytes", "value": {"bytesValue": "AAEC/w=="}}, {"key": "none", "value": {}},
        {"key": "list", "value": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "two"}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [{"key": "inner", "value": {"doubleValue": -1e300}}]}}},
    ]);
    let around = json!({"attributes": kinds, "droppedAttributesCount": 3});
    let scope =
        json!({"name": "library", "version": "1.2", "attributes": kinds, "droppedAttributesCount": 1});
    let (trace, span) = ("5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174");
    let exemplars = json!([{"timeUnixNano": TIME, "asDouble": 3.5, "traceId": trace, "spanId": span, "filteredAttributes": kinds}]);
    let spans = json!([{
        "traceId": trace, "spanId": span, "parentSpanId": "eee19b7ec3c1b173", "traceState": "a=b,c=d", "flags": 257,
        "name": "GET /", "kind": 3, "startTimeUnixNano": TIME, "endTimeUnixNano": "1700000000999999999",
        "attributes": kinds, "droppedAttributesCount": 1, "droppedEventsCount": 2, "droppedLinksCount": 3,
        "events": [{"timeUnixNano": TIME, "name": "event", "attributes": kinds, "droppedAttributesCount": 4}],
        "links": [{"traceId": trace, "spanId": span, "traceState": "e=f", "attributes": kinds, "flags": 1}],
        "status": {"code": 2, "message": "failed"},
    }]);
    let records = json!([
        {
            "timeUnixNano": TIME, "observedTimeUnixNano": "1700000000123456790", "severityNumber": 13,
            "severityText": "WARN", "body": {"kvlistValue": {"values": kinds}}, "attributes": kinds,
            "droppedAttributesCount": 1, "flags": 1, "traceId": trace, "spanId": span, "eventName": "happened",
        },
        {"body": {"stringValue": "only a body"}},
    ]);
    let point = json!({"attributes": kinds, "startTimeUnixNano": "1600000000000000001", "timeUnixNano": TIME, "flags": 1});
    let with = |more: Value| {
        let mut point = point.clone();
        point.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        point
    };
    let metrics = json!([
        {"name": "gauge", "description": "a gauge", "unit": "1", "gauge": {"dataPoints": [
            with(json!({"asInt": "-5", "exemplars": exemplars})), with(json!({"asDouble": 0.25})),
        ]}},
        {"name": "sum", "unit": "By", "metadata": kinds, "sum": {
            "aggregationTemporality": 1, "isMonotonic": true, "dataPoints": [with(json!({"asInt": "7"}))],
        }},
        {"name": "histogram", "histogram": {"aggregationTemporality": 2, "dataPoints": [with(json!({
            "count": "6", "sum": 90.5, "min": 1.0, "max": 50.0, "explicitBounds": [10.0, 20.0],
            "bucketCounts": ["1", "2", "3"], "exemplars": exemplars,
        }))]}},
        {"name": "exponential", "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [with(json!({
            "count": "9", "sum": 4.5, "scale": -3, "zeroCount": "2", "zeroThreshold": 1e-6, "min": -1.0, "max": 9.0,
            "positive": {"offset": -4, "bucketCounts": ["1", "0", "2"]},
            "negative": {"offset": 3, "bucketCounts": ["4"]},
        }))]}},
        {"name": "summary", "summary": {"dataPoints": [with(json!({
            "count": "4", "sum": 10.0, "quantileValues": [{"quantile": 0.5, "value": 2.0}, {"quantile": 1.0, "value": 5.0}],
        }))]}},
    ]);
    let schema = "https://opentelemetry.io/schemas/1.26.0";
    [
        (
            "/v1/traces",
            json!({"resourceSpans": [{"resource": around, "schemaUrl": schema, "scopeSpans": [
                {"scope": scope, "schemaUrl": schema, "spans": spans},
            ]}]}),
        ),
        (
            "/v1/logs",
            json!({"resourceLogs": [{"resource": around, "scopeLogs": [
                {"scope": scope, "logRecords": records}, {"logRecords": records},
            ]}]}),
        ),
        (
            "/v1/metrics",
            json!({"resourceMetrics": [{"resource": around, "scopeMetrics": [
                {"scope": scope, "metrics": metrics},
            ]}]}),
        ),
    ]
}

/// How many items [`say_all`] sends.
const SAID: usize = 1 + 4 + 6 + 3 * 300;

/// Sends one of everything as JSON, and many ordinary items as protobuf.
fn say_all(to: SocketAddr) {
    let post = |path: &str, content_type: &str, body: &[u8]| {
        let head = [format!("POST {path} HTTP/1.1"), format!("content-type: {content_type}")];
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        let answer = http::request(to, &head, body).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    for (path, body) in everything() {
        post(path, "application/json", body.to_string().as_bytes());
    }
    for signal in Signal::ALL {
        for first in [0, 100, 200] {
            let request = ExportRequest { signal, items: 100, first, time_ns: 1_700_000_000_000_000_000 };
            post(signal.path(), "application/x-protobuf", &request.encode());
        }
    }
}

fn gateway(collector: &Collector, transport: &str, more: Value) -> Gateway {
    let address = if transport == "grpc" { collector.grpc() } else { collector.http() };
    let (kind, setting) = if transport == "otlp_json" { ("http", "format") } else { ("otlp", "protocol") };
    let mut sink = json!({
        "type": kind, "endpoints": [format!("http://{address}")], setting: transport,
        // So that a collector that is gone is found again soon.
        "backoff": {"max": "200ms"},
    });
    sink.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Gateway::started(json!({"memory": "96MiB", "sinks": {"collector": sink}}))
}

/// Over both transports, as OTLP/JSON from the sink `http`, and in each compression, joined and recoded: item by item.
#[test]
fn each_item_arrives_unchanged() {
    let Some(collector) = Collector::started() else { return };
    say_all(collector.http());
    let direct = collector.items();
    assert_eq!(direct.len(), SAID);
    for transport in ["grpc", "http", "otlp_json"] {
        for compression in ["none", "gzip", "zstd"] {
            collector.forget();
            let gateway = gateway(&collector, transport, json!({"compression": compression}));
            say_all(gateway.http());
            gateway.at_rest(SOON);
            gateway.books_close();
            let arrived = collector.items();
            let missing = direct.iter().find(|item| !arrived.contains(item));
            assert_eq!(missing, None, "over {transport} with {compression}");
            assert_eq!(arrived, direct, "over {transport} with {compression}");
            let sink = gateway.sink("collector");
            assert_eq!((&sink["delivered"], &sink["dropped"]), (&json!(SAID), &json!({})), "{sink:#}");
        }
    }
}

/// UNAVAILABLE with RetryInfo, and 503 with Retry-After: it is left alone for so long, and then gets everything
/// once.
#[test]
fn the_collectors_retry_delay_is_honoured() {
    let Some(collector) = Collector::started() else { return };
    for (round, transport) in ["grpc", "http", "otlp_json"].into_iter().enumerate() {
        collector.forget();
        collector.refuse("1s");
        let before = collector.refused().len();
        let gateway = gateway(&collector, transport, json!({}));
        say_all(gateway.http());
        until(SOON, "three attempts", || collector.refused().len() >= before + 3);
        let attempts = collector.refused().split_off(before);
        // The first ones were under way at the same time.
        let last = attempts.last().unwrap() - attempts.first().unwrap();
        assert!(last >= 900, "{transport}: asked again after {last} ms, in round {round}: {attempts:?}");
        collector.accept();
        gateway.at_rest(SOON);
        gateway.books_close();
        let sink = gateway.sink("collector");
        assert_eq!((&sink["delivered"], &sink["dropped"]), (&json!(SAID), &json!({})), "{sink:#}");
        assert_eq!(collector.items().len(), SAID, "{transport}: what was refused came once");
    }
}

/// Killed in mid-flow and started again, twice, it has everything: some of it twice, where its answer was lost.
#[test]
fn a_restart_loses_nothing() {
    for transport in ["grpc", "http", "otlp_json"] {
        let Some(mut collector) = Collector::started() else { return };
        let gateway = gateway(&collector, transport, json!({"max_request_bytes": "64KiB"}));
        let profile = OtlpProfile {
            transport: Transport::Grpc,
            signal: Signal::Logs,
            connections: 4,
            requests: 100,
            items: 50,
            on_refused: OnRefused::Retry { at_most: SOON },
            ..OtlpProfile::default()
        };
        let target = gateway.otlp_target();
        let sending = {
            let (target, profile) = (target.clone(), profile.clone());
            std::thread::spawn(move || drive_blocking(&target, &profile).unwrap())
        };
        for _ in 0..2 {
            let before = collector.items().len();
            until(SOON, "items to flow", || {
                collector.items().len() > before || gateway.sink("collector")["lag"]["items"] == 0
            });
            collector.kill9();
            until(SOON, "the gateway to notice", || {
                gateway.sink("collector")["failures"].as_u64() > Some(0)
                    || gateway.sink("collector")["lag"]["items"] == 0
            });
            collector.start();
        }
        let report = sending.join().unwrap();
        assert_eq!((report.accepted, report.failed), (400, 0), "{:?}", report.reasons);
        gateway.at_rest(SOON);
        gateway.books_close();
        let sink = gateway.sink("collector");
        assert_eq!((&sink["delivered"], &sink["dropped"]), (&json!(20_000), &json!({})), "{sink:#}");
        let once: BTreeSet<String> = collector.items().into_iter().collect();
        assert_eq!(once.len(), 20_000, "over {transport}");
    }
}

/// Items that grpc-go's server reports as rejected are counted and not retried.
#[test]
fn partial_success_is_the_end_of_it() {
    let Some(binary) = collector_binary() else { return };
    let address = free_address();
    let gateway = Gateway::started(json!({"memory": "96MiB", "sinks": {"collector": {
        "type": "otlp", "endpoints": [format!("http://{address}")], "linger": "0s",
    }}}));
    let mut command = Command::new(binary);
    command.arg("partial").arg(address.to_string());
    let _server = Program::start("partial", command, gateway.folder());
    let profile = OtlpProfile {
        transport: Transport::Grpc,
        signal: Signal::Logs,
        connections: 1,
        requests: 5,
        items: 10,
        ..OtlpProfile::default()
    };
    let target = gateway.otlp_target();
    let report = drive_blocking(&target, &profile).unwrap();
    assert_eq!(report.accepted, 5, "{:?}", report.reasons);
    gateway.at_rest(SOON);
    gateway.books_close();
    let sink = gateway.sink("collector");
    // One of each request; how many records share one depends on when they came.
    let rejected = sink["dropped"]["rejected"].as_u64().unwrap_or_else(|| panic!("{sink:#}"));
    assert!((1..=5).contains(&rejected), "{sink:#}");
    assert_eq!(sink["delivered"], json!(50 - rejected), "{sink:#}");
    assert!(gateway.log().contains("one too many"), "the peer's words are in the log");
}

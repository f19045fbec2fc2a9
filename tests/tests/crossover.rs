//! Metrics cross over: what came as OTLP is in a Prometheus behind remote write, under the names that Prometheus
//! itself would have made of it, and what came as remote write is at a receiver of OTLP. The books close in items of
//! the protocol that each came in.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::sync::Arc;
use tidegate_load::otlp::{self, ContentCoding, OtlpSink, Transport};
use tidegate_load::remote_write::{RequestExtras, Version};
use tidegate_load::{Behaviour, LoadProfile, RunLimit, SeriesModel, Target, Timeline, drive_blocking};
use tidegate_tests::{Gateway, Prometheus, SOON, http, now_ms, until};

/// A counter, a delta sum and a histogram of one service, as OTLP/JSON. (A Prometheus takes exponential histograms only
/// where it has been told to.)
fn metrics() -> Value {
    let time = format!("{}000000", now_ms());
    let point = |more: Value| {
        let mut point = json!({"timeUnixNano": time, "attributes": [
            {"key": "http.route", "value": {"stringValue": "/buy"}},
        ]});
        point.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([point])
    };
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let metrics = json!([
        {"name": "orders", "unit": "1", "sum": {
            "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": point(json!({"asInt": "5"})),
        }},
        {"name": "parcels", "sum": {
            "aggregationTemporality": 1, "isMonotonic": true, "dataPoints": point(json!({"asInt": "5"})),
        }},
        {"name": "http.server.duration", "unit": "ms", "histogram": {
            "aggregationTemporality": 2, "dataPoints": point(json!({
                "count": "6", "sum": 90.5, "explicitBounds": [10.0, 20.0], "bucketCounts": ["1", "2", "3"],
            })),
        }},
    ]);
    json!({"resourceMetrics": [{
        "resource": {"attributes": [
            text("service.name", "shop"), text("service.namespace", "acme"), text("service.instance.id", "shop-1"),
            text("host.name", "node-7"),
        ]},
        "scopeMetrics": [{"scope": {"name": "test"}, "metrics": metrics}],
    }]})
}

/// Kinds of metrics, by either version, into a Prometheus.
#[test]
fn otlp_is_found_in_prometheus() {
    let prometheus = Prometheus::started("global: {}");
    for protocol in ["auto", "2.0"] {
        let gateway = Gateway::started(json!({"memory": "128MiB", "sinks": {"prometheus": {
            "type": "prometheus_remote_write", "url": prometheus.write_url(), "protocol": protocol,
        }}}));
        send(&gateway, &metrics());
        gateway.at_rest(SOON);
        gateway.books_close();
        let sink = gateway.sink("prometheus");
        assert_eq!(sink["delivered"], 2, "{sink:#}");
        assert_eq!(sink["dropped"]["untranslatable"], 1, "{sink:#}");
    }
    let found = |query: &str| prometheus.value(query);
    let route = "http_route=\"/buy\",job=\"acme/shop\",instance=\"shop-1\",otel_scope_name=\"test\"";
    assert_eq!(found(&format!("orders_total{{{route}}}")), Some(5.0));
    assert_eq!(found(&format!("http_server_duration_milliseconds_bucket{{le=\"20\",{route}}}")), Some(3.0));
    assert_eq!(found(&format!("http_server_duration_milliseconds_bucket{{le=\"+Inf\",{route}}}")), Some(6.0));
    assert_eq!(found(&format!("http_server_duration_milliseconds_sum{{{route}}}")), Some(90.5));
    assert_eq!(found("target_info{job=\"acme/shop\",host_name=\"node-7\"}"), Some(1.0));
    assert_eq!(found("parcels_total"), None);
}

/// Points that say how much came since the last time, of a sum and a histogram.
fn deltas(seconds_ago: i64, came: u64) -> Value {
    let nanoseconds = |seconds: i64| format!("{}000000", now_ms() - 1_000 * seconds);
    let (start, time) = (nanoseconds(seconds_ago + 10), nanoseconds(seconds_ago));
    let sum = json!({"aggregationTemporality": 1, "isMonotonic": true, "dataPoints": [
        {"startTimeUnixNano": start, "timeUnixNano": time, "asInt": came.to_string()},
    ]});
    let histogram = json!({"aggregationTemporality": 1, "dataPoints": [{
        "startTimeUnixNano": start, "timeUnixNano": time, "count": came.to_string(), "sum": 0.5,
        "explicitBounds": [10.0], "bucketCounts": ["1", (came - 1).to_string()],
    }]});
    let service = json!({"key": "service.name", "value": {"stringValue": "shop"}});
    json!({"resourceMetrics": [{
        "resource": {"attributes": [service]},
        "scopeMetrics": [{"metrics": [{"name": "parcels", "sum": sum}, {"name": "weight", "histogram": histogram}]}],
    }]})
}

fn send(gateway: &Gateway, metrics: &Value) {
    let head = ["POST /v1/metrics HTTP/1.1", "content-type: application/json"];
    let answer = http::request(gateway.http(), &head, metrics.to_string().as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Deltas become counters, where that is asked for: Prometheus sees all that came, also over a restart, after which
/// the counter begins again.
#[test]
fn deltas_are_counters_in_prometheus() {
    let prometheus = Prometheus::started("global: {}");
    let mut gateway = Gateway::started(json!({"memory": "128MiB", "sinks": {"prometheus": {
        "type": "prometheus_remote_write", "url": prometheus.write_url(), "linger": "0s",
        "otlp": {"deltas": "accumulate", "delta_series": 100},
    }}}));
    for (seconds_ago, came) in [(100, 5), (90, 7), (80, 9)] {
        send(&gateway, &deltas(seconds_ago, came));
        gateway.at_rest(SOON);
    }
    let now = |query: &str| prometheus.value(query);
    assert_eq!(now("parcels_total{job=\"shop\"}"), Some(21.0));
    assert_eq!(now("weight_bucket{le=\"10\"}"), Some(3.0));
    assert_eq!(now("weight_bucket{le=\"+Inf\"}"), Some(21.0));
    assert_eq!((now("weight_count"), now("weight_sum")), (Some(21.0), Some(1.5)));
    assert_eq!(gateway.sink("prometheus")["dropped"], json!({}));
    gateway.books_close();

    // 7 and 9 before, 6 and 8 after; nobody can know what the first came on top of.
    assert_eq!(gateway.term(), 0);
    gateway.start();
    for (seconds_ago, came) in [(70, 6), (60, 8)] {
        send(&gateway, &deltas(seconds_ago, came));
        gateway.at_rest(SOON);
    }
    assert_eq!(now("parcels_total"), Some(14.0));
    assert_eq!(now("resets(parcels_total[10m])"), Some(1.0));
    assert_eq!(prometheus.samples(("job", "shop"), 0, now_ms()).len(), 5);
}

/// A Prometheus that takes no native histograms, and answers 500 to them, gets everything else; what it does not
/// take is counted as rejected, and holds up nothing.
#[test]
fn native_histograms_do_not_delay_floats() {
    let prometheus = Prometheus::started("global: {}");
    let native = || {
        let point = json!({"timeUnixNano": format!("{}000000", now_ms()), "count": "3", "sum": 5.0, "scale": 2,
            "positive": {"offset": 1, "bucketCounts": ["1", "2"]}});
        json!({"name": "native", "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [point]}})
    };
    for (round, protocol) in ["auto", "2.0"].into_iter().enumerate() {
        for lanes in [1, 3] {
            let gateway = Gateway::started(json!({"memory": "128MiB", "sinks": {"prometheus": {
                "type": "prometheus_remote_write", "url": prometheus.write_url(), "protocol": protocol, "lanes": lanes,
            }}}));
            let mut all = metrics();
            all["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array_mut().unwrap().push(native());
            send(&gateway, &all);
            gateway.at_rest(SOON);
            // Remote write, with a histogram in every tenth series.
            let model = SeriesModel::with_histograms(
                9 + lanes + 10 * round as u64,
                100,
                Timeline { base_ms: now_ms(), interval_ms: 1 },
                10,
            );
            let profile =
                LoadProfile { limit: RunLimit::Passes(2), series_per_request: 50, ..LoadProfile::default() };
            let report = drive_blocking(&gateway.target(), &Arc::new(model), &profile).unwrap();
            assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
            gateway.at_rest(SOON);
            gateway.books_close();
            let sink = gateway.sink("prometheus");
            assert_eq!(sink["dropped"], json!({"untranslatable": 1, "rejected": 1 + 2 * 10}), "{sink:#}");
            assert_eq!(sink["delivered"], 2 + 2 * 90, "{sink:#}");
        }
    }
    assert_eq!(prometheus.value("native"), None);
    assert_eq!(prometheus.value("orders_total{job=\"acme/shop\"}"), Some(5.0));
}

/// Many points, over both transports and in all codings: each is a series of its own.
#[test]
fn points_arrive_once_each() {
    let prometheus = Prometheus::started("global: {}");
    let gateway = Gateway::started(json!({"memory": "128MiB", "sinks": {"prometheus": {
        "type": "prometheus_remote_write", "url": prometheus.write_url(), "max_request_samples": 500,
    }}}));
    let mut first = 0;
    for (transport, coding) in [
        (Transport::Http, ContentCoding::Identity),
        (Transport::Http, ContentCoding::Gzip),
        (Transport::Grpc, ContentCoding::Zstd),
    ] {
        let profile = otlp::OtlpProfile {
            transport,
            coding,
            signal: otlp::Signal::Metrics,
            connections: 2,
            requests: 5,
            items: 100,
            first,
            ..otlp::OtlpProfile::default()
        };
        let address = if transport == Transport::Grpc { gateway.grpc() } else { gateway.http() };
        let target = Target { authority: address.to_string(), path: String::new() };
        let report = otlp::drive_blocking(&target, &profile).unwrap();
        assert_eq!((report.accepted, report.failed), (10, 0), "{:?}", report.reasons);
        first = profile.end();
    }
    gateway.at_rest(SOON);
    gateway.books_close();
    let sink = gateway.sink("prometheus");
    assert_eq!(sink["delivered"], first, "{sink:#}");
    assert_eq!(prometheus.value("count(count by (load_number) ({load_number!=\"\"}))"), Some(3000.0));
}

/// Remote write of both versions, with all that comes with it, at a receiver of OTLP.
#[test]
fn remote_write_is_found_behind_otlp() {
    let model = Arc::new(SeriesModel::new(5, 200, Timeline { base_ms: now_ms(), interval_ms: 1000 }));
    for transport in ["http", "grpc"] {
        let collector = OtlpSink::start(Behaviour::Healthy, true).unwrap();
        let gateway = Gateway::started(json!({"memory": "128MiB", "sinks": {"collector": {
            "type": "otlp", "endpoints": [format!("http://{}", collector.address())], "protocol": transport,
        }}}));
        let extras = RequestExtras { exemplars: true, metadata: true, stale: true };
        let (mut first, mut samples) = (0, 0);
        for version in [Version::V1, Version::V2] {
            let profile = LoadProfile {
                version,
                extras,
                first,
                limit: RunLimit::Passes(3),
                series_per_request: 50,
                ..LoadProfile::default()
            };
            let report = drive_blocking(&gateway.target(), &model, &profile).unwrap();
            assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
            (first, samples) = (first + 3, samples + 3 * 200);
        }
        until(SOON, "all samples to arrive", || collector.report().unnumbered >= samples);
        gateway.at_rest(SOON);
        gateway.books_close();
        let arrived = collector.report();
        assert_eq!((arrived.malformed, arrived.stalled), (0, 0));
        // Stale markers come on top.
        assert!(arrived.unnumbered >= samples, "{} of {samples}", arrived.unnumbered);
        let sink = gateway.sink("collector");
        assert_eq!(sink["dropped"].as_object().map(|dropped| dropped.len()), Some(0), "{sink:#}");
    }
}

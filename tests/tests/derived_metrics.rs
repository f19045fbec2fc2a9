//! Derived metrics: the sums and buckets of the Collector's connectors, exact over kills, within a table that is far too small.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

mod derived_metrics {
    pub(crate) mod points;
    pub(crate) mod spans;
}

use derived_metrics::points::Points;
use derived_metrics::spans::{logs, requests, send};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tidegate_tests::{Collector, Gateway, SOON, free_address, http, until};

/// How long a whole run may take on a busy machine.
const LATE: Duration = Duration::from_secs(60);
const CALLS: &str = "traces.span.metrics.calls";

/// Connectors of the Collector, each with the key and the settings that ask a sink for the same metrics.
fn connectors() -> [(&'static str, &'static str, Value); 6] {
    let spanmetrics = "span_metrics";
    [
        ("spanmetrics", spanmetrics, json!({})),
        (
            "spanmetrics/rich",
            spanmetrics,
            json!({
                "namespace": "rich",
                "dimensions": [{"name": "http.method", "default": "GET"}, {"name": "n"}, {"name": "zone"}],
                "calls_dimensions": [{"name": "only.calls"}],
                "exclude_dimensions": ["status.code"],
                "histogram": {"unit": "s", "explicit": {"buckets": ["10ms", "100ms", "1s"]}, "dimensions": [{"name": "only.duration"}]},
                "events": {"enabled": true, "dimensions": [{"name": "exception.type"}]},
            }),
        ),
        (
            "spanmetrics/exponential",
            spanmetrics,
            json!({"namespace": "exponential", "histogram": {"exponential": {"max_size": 20}}}),
        ),
        (
            "count",
            "count",
            json!({
                "spans": {
                    "all.spans": {"description": "all of them"},
                    "some.spans": {
                        "conditions": ["kind == SPAN_KIND_SERVER", "attributes[\"n\"] != nil and attributes[\"n\"] > 2"],
                        "attributes": [{"key": "n", "default_value": 7}, {"key": "service.name"}],
                    },
                },
                "spanevents": {"exceptions": {
                    "conditions": ["name == \"exception\""], "attributes": [{"key": "exception.type"}],
                }},
                "logs": {"warnings": {"conditions": ["severity_number >= SEVERITY_NUMBER_WARN"], "attributes": [{"key": "team"}]}},
            }),
        ),
        (
            "signal_to_metrics",
            "signal_to_metrics",
            json!({
                "spans": [
                    {
                        "name": "s.histogram", "unit": "ms", "description": "durations",
                        "histogram": {
                            "value": "Milliseconds(end_time - start_time)", "count": "Int(AdjustedCount())", "buckets": [10, 100.5],
                        },
                        "attributes": [{"key": "n", "optional": true}],
                    },
                    {
                        "name": "s.exponential",
                        "exponential_histogram": {"value": "Milliseconds(end_time - start_time)"},
                        "include_resource_attributes": [{"key": "service.name"}, {"key": "absent", "default_value": "y"}],
                    },
                    {"name": "s.sum", "sum": {"value": "1", "monotonic": true}, "attributes": [{"key": "n", "default_value": 7}]},
                    {"name": "s.adjusted", "sum": {"value": "Int(AdjustedCount())", "monotonic": true}},
                    {
                        "name": "s.half", "sum": {"value": "1.5"}, "attributes": [{"key": "n"}],
                        "conditions": ["name == \"step 3\""],
                    },
                ],
                "logs": [{
                    "name": "l.size", "sum": {"value": "Len(body)"}, "attributes": [{"key": "team", "default_value": "none"}],
                }],
            }),
        ),
        (
            "servicegraph",
            "service_graph",
            json!({
                "latency_histogram_buckets": ["10ms", "100ms", "1s"],
                "dimensions": ["http.method", "n", "zone"],
                "virtual_node_extra_label": true,
            }),
        ),
    ]
}

/// A Collector has the connectors, the gateway the same settings, and both get the same spans and log records.
#[test]
fn sums_and_buckets_are_those_of_the_collector() {
    let (mut configured, mut pipelines) = (json!({}), json!({}));
    let mut sinks = json!({});
    let (mut from_traces, mut from_logs) = (Vec::new(), Vec::new());
    for (name, key, settings) in connectors() {
        configured[name] = settings.clone();
        let is_of_spans = matches!(key, "span_metrics" | "service_graph");
        if is_of_spans {
            configured[name]["metrics_flush_interval"] = json!("1s");
        }
        from_traces.push(name);
        if !is_of_spans {
            from_logs.push(name);
        }
        // The connector of service graphs has no other temporality.
        let is_cumulative = matches!(name, "spanmetrics/rich" | "servicegraph");
        let temporality = if is_cumulative { "cumulative" } else { "delta" };
        let sink = name.replace('/', "_");
        sinks[sink] = json!({"type": "derive", "interval": "1s", "temporality": temporality, key: settings});
        if !is_cumulative && key == "span_metrics" {
            configured[name]["aggregation_temporality"] = json!("AGGREGATION_TEMPORALITY_DELTA");
        }
    }
    pipelines["traces"] = json!({"receivers": ["otlp"], "exporters": from_traces});
    pipelines["logs"] = json!({"receivers": ["otlp"], "exporters": from_logs});
    pipelines["metrics"] = json!({"receivers": from_traces, "exporters": ["recorder"]});
    let configuration = json!({
        "receivers": {"otlp": {"protocols": {
            "grpc": {"endpoint": "GRPC_ADDRESS"}, "http": {"endpoint": "HTTP_ADDRESS"},
        }}},
        "connectors": configured,
        "exporters": {"recorder": {"folder": "FOLDER"}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}, "resource": {"service.instance.id": null}},
            "pipelines": pipelines,
        },
    });
    let Some(collector) = Collector::of(&configuration.to_string()) else { return };
    let receiver = Collector::started().unwrap();
    sinks["up"] = json!({
        "type": "otlp", "endpoints": [format!("http://{}", receiver.http())], "protocol": "http", "signals": ["metrics"],
    });
    let gateway = Gateway::started(json!({"memory": "256MiB", "sinks": sinks}));

    for request in requests(1, 600) {
        assert_eq!([send(collector.http(), &request), send(gateway.http(), &request)], [true; 2]);
    }
    for request in logs(200) {
        for to in [collector.http(), gateway.http()] {
            let head = ["POST /v1/logs HTTP/1.1", "content-type: application/json"];
            assert_eq!(http::request(to, &head, request.to_string().as_bytes()).unwrap().status, 200);
        }
    }
    let mut seen = (Points::default(), Points::default());
    let began = Instant::now();
    // It ends in any case, to say what the difference is.
    until(2 * LATE, "the points of both", || {
        seen = (Points::of(&collector.items()), Points::of(&receiver.items()));
        // The first cumulative point of a sum is zero in the Collector.
        let is_same = seen.0.len() > 300 && seen.0.difference(&seen.1).is_empty();
        is_same || began.elapsed() > LATE
    });
    let difference = seen.0.difference(&seen.1);
    let some = difference.iter().take(20).collect::<Vec<_>>();
    assert!(seen.0.len() > 300 && some.is_empty(), "{} series, and these differ: {some:#?}", seen.0.len());
    gateway.books_close();
    println!("{} series are the same", seen.0.len());
    for name in [
        CALLS,
        "rich.duration",
        "rich.events",
        "exponential.duration",
        "some.spans",
        "warnings",
        "s.exponential",
        "l.size",
        "traces_service_graph_request_total",
        "traces_service_graph_request_failed_total",
        "traces_service_graph_request_server",
        "traces_service_graph_request_client",
    ] {
        assert!(seen.0.names().contains(name), "{name} is compared");
    }
}

/// The sum of all calls in the lake, which has each record once.
fn calls(gateway: &Gateway) -> u64 {
    let rows = gateway.lake_rows("metric_points");
    let rows = rows.iter().filter(|row| row["metric_name"] == CALLS);
    rows.map(|row| row["value"].as_u64().unwrap()).sum()
}

fn deriving(more: &Value) -> Value {
    let mut sink = json!({"type": "derive", "interval": "1s", "temporality": "delta", "span_metrics": {}});
    sink.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sink
}

/// The gateway is killed again and again, at any point between what it reads, counts, keeps and appends. Each acknowledged span is counted once.
#[test]
fn counts_are_exact_over_kills() {
    // `TIDEGATE_TEST_KILLS=100` for more.
    let kills = std::env::var("TIDEGATE_TEST_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let mut gateway = Gateway::started(json!({"memory": "128MiB", "sinks": {
        "red": deriving(&json!({})),
        "total": deriving(&json!({"temporality": "cumulative", "expire": "0s", "span_metrics": {
            "namespace": "total", "resource_metrics_key_attributes": ["service.name"],
        }})),
        "lake": {"type": "lake", "file_age": "1s", "signals": ["metrics"]},
    }}));
    let mut sent = 0;
    for kill in 0..kills {
        let wait = Duration::from_millis(37 * (kill * 7 % 40));
        let until_killed = Instant::now() + wait;
        for request in requests(kill, 40) {
            let spans: usize = request
                .resource_spans
                .iter()
                .flat_map(|resource| &resource.scope_spans)
                .map(|scope| scope.spans.len())
                .sum();
            assert!(send(gateway.http(), &request), "what is acknowledged is not sent twice here");
            sent += spans as u64;
        }
        until(SOON, "the time to be killed", || Instant::now() >= until_killed);
        gateway.kill9();
        gateway.start();
    }
    gateway.at_rest(LATE);
    until(LATE, "the last flush to be in the lake", || calls(&gateway) >= adjusted(kills));
    gateway.at_rest(LATE);
    gateway.books_close();
    assert_eq!(calls(&gateway), adjusted(kills), "of {sent} spans");
    // A cumulative series never goes back, and ends with all.
    let mut last: BTreeMap<String, (String, u64)> = BTreeMap::new();
    let mut rows = gateway.lake_rows("metric_points");
    rows.sort_by_key(|row| row["time"].to_string());
    for row in rows.iter().filter(|row| row["metric_name"] == "total.calls") {
        let (time, value) = (row["time"].as_str().unwrap().to_owned(), row["value"].as_u64().unwrap());
        let newest = last.entry(row["attributes"].to_string()).or_default();
        assert!(time < newest.0 || value >= newest.1, "{row}");
        *newest = (*newest).clone().max((time, value));
    }
    assert_eq!(last.values().map(|(_, value)| value).sum::<u64>(), adjusted(kills));
    println!("{sent} spans, {kills} kills");
}

/// The calls that the spans of these requests stand for.
fn adjusted(kills: u64) -> u64 {
    let spans = (0..kills).flat_map(|kill| requests(kill, 40)).flat_map(|request| request.resource_spans);
    let spans = spans.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans);
    spans
        .map(|span| match span.trace_state.as_str() {
            "ot=th:8" => 2,
            "ot=th:c" => 4,
            _ => 1,
        })
        .sum()
}

/// Series beyond the table are counted together, for each tenant, and nothing is lost.
#[test]
fn a_table_that_is_too_small_counts_all() {
    let gateway = Gateway::started(json!({
        "memory": "96MiB",
        "tenants": {"header": "X-Scope-OrgID"},
        "sinks": {
            "red": deriving(&json!({"max_series": 10})),
            "lake": {"type": "lake", "file_age": "1s", "signals": ["metrics"]},
        },
    }));
    for tenant in ["a", "b"] {
        for number in 0..100 {
            let span = json!({"name": format!("{tenant} {number}"), "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331"});
            let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]});
            let body = json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]});
            let tenant = format!("x-scope-orgid: {tenant}");
            let head = ["POST /v1/traces HTTP/1.1", "content-type: application/json", &tenant];
            assert_eq!(
                http::request(gateway.http(), &head, body.to_string().as_bytes()).unwrap().status,
                200
            );
        }
    }
    until(LATE, "all calls to be in the lake", || calls(&gateway) == 200);
    gateway.at_rest(LATE);
    gateway.books_close();
    // One for each tenant in each flush.
    let rows = gateway.lake_rows("metric_points");
    let is_overflow = |row: &&Value| {
        row["metric_name"] == CALLS && row["attributes"].to_string().contains("otel.metric.overflow")
    };
    assert!(rows.iter().filter(is_overflow).count() >= 2, "{rows:#?}");
    let derived = gateway.sink("red")["derived"].clone();
    assert!(derived["overflowed"].as_u64().unwrap() >= 180, "{derived}");
    assert_eq!((&derived["observations"], &derived["lost"]), (&json!(200), &json!(0)));
}

/// Counts wait while the journal is full. It is full because of another sink: the cursor of the sink that counts moves on.
#[test]
fn a_full_journal_loses_no_count() {
    let nowhere = free_address();
    let slow = |address: &str| json!({"type": "http", "endpoints": [format!("http://{address}/")], "backoff": {"max": "200ms"}});
    let settings = |address: &str| {
        json!({
            "memory": "96MiB",
            "journal": {"quota": "16MiB", "segment": "1MiB"},
            "sinks": {"red": deriving(&json!({})), "slow": slow(address)},
        })
    };
    let mut gateway = Gateway::started(settings(&nowhere.to_string()));
    let mut accepted = 0_u64;
    let is_full = |answer: u16| answer != 200;
    let body = {
        let span = |number: u32| {
            json!({
                "name": "step", "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331",
                "attributes": [{"key": "filling", "value": {"stringValue": "x".repeat(300 + number as usize % 3)}}],
            })
        };
        let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]});
        let spans: Vec<Value> = (0..1000).map(span).collect();
        json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}).to_string()
    };
    let head = ["POST /v1/traces HTTP/1.1", "content-type: application/json"];
    until(LATE, "the journal to be full", || {
        let status = http::request(gateway.http(), &head, body.as_bytes()).unwrap().status;
        accepted += if is_full(status) { 0 } else { 1000 };
        is_full(status)
    });
    let server = tidegate_tests::Recorder::start();
    // Long enough for flushes to be due, and refused.
    until(LATE, "a flush to be refused", || gateway.sink("red")["failures"].as_u64() > Some(0));
    let server_address =
        server.url().trim_start_matches("http://").trim_end_matches("/api/v1/write").to_owned();
    gateway.configure(settings(&server_address));
    gateway.hangup();
    // A point that is sent again is the same.
    let counted = || -> u64 {
        let bodies = server.seen().into_iter().map(|seen| String::from_utf8(seen.body).unwrap());
        let points: BTreeSet<String> = bodies
            .flat_map(|body| {
                body.lines().filter(|line| line.contains(CALLS)).map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        let value = |point: &String| serde_json::from_str::<Value>(point).unwrap()["value"].as_u64().unwrap();
        points.iter().map(value).sum()
    };
    until(LATE, "all calls to arrive", || counted() >= accepted);
    gateway.at_rest(LATE);
    gateway.books_close();
    assert_eq!(counted(), accepted);
}

/// Items that a sink has not settled.
fn queued(gateway: &Gateway, sink: &str) -> u64 {
    let status = gateway.status();
    let books = status["books"]["sinks"].as_array().unwrap();
    let book = books.iter().find(|book| book["name"] == sink).unwrap_or_else(|| panic!("{status:#}"));
    book["queued"].as_u64().unwrap()
}

/// Records wait in the journal while the state cannot be written, over a kill as well, and each of their spans is counted once.
#[test]
fn a_state_that_cannot_be_written_loses_no_count() {
    let mut gateway = Gateway::started(json!({"memory": "96MiB", "sinks": {
        "red": deriving(&json!({})),
        "lake": {"type": "lake", "file_age": "1s", "signals": ["metrics"]},
    }}));
    // A folder where the file is to be made: nobody can write it, not even root.
    let blocked = gateway.data().join("derive/red.state.new");
    std::fs::create_dir(&blocked).unwrap();
    let is_refused = |gateway: &Gateway| {
        until(LATE, "the state to be refused", || {
            let error = gateway.sink("red")["last_error"].to_string();
            error.contains("keeping what was counted")
        });
    };
    for request in requests(0, 40) {
        assert!(send(gateway.http(), &request));
    }
    is_refused(&gateway);
    assert!(queued(&gateway, "red") > 0, "what is not in the state is not settled");
    gateway.kill9();
    gateway.start();
    is_refused(&gateway);
    std::fs::remove_dir(&blocked).unwrap();
    until(LATE, "the counts to be in the lake", || calls(&gateway) >= adjusted(1));
    gateway.at_rest(LATE);
    gateway.books_close();
    assert_eq!(calls(&gateway), adjusted(1));
}

//! Real OpenTelemetry SDKs, over both transports, into the lake: what an application said is what is kept,
//! attribute by attribute. Python speaks protobuf over HTTP (with gzip), JavaScript JSON.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_tests::{Gateway, SOON, finish, skip, until};

const SPANS: &str = "service_name,trace_id,span_id,parent_span_id,span_name,kind,status_code,status_message,scope_name,\
    scope_version,resource,attributes,events,duration_ns,http.request.method,http.response.status_code,db.system";
const LOGS: &str = "service_name,body,severity_number,trace_id,span_id,attributes";
const POINTS: &str = "metric_name,unit,attributes,value,value_int";
const HISTOGRAMS: &str = "metric_name,service_name,count,sum,bucket_counts";

#[test]
fn python_over_grpc() {
    python("grpc");
}

#[test]
fn python_over_http() {
    python("http");
}

#[test]
fn javascript_over_grpc() {
    javascript("grpc");
}

#[test]
fn javascript_over_http() {
    javascript("http");
}

fn python(transport: &str) {
    let Some(python) = tool("TIDEGATE_TEST_PYTHON") else { return };
    let mut sdk = Command::new(python);
    sdk.arg(script("python.py"));
    is_kept(transport, sdk);
}

fn javascript(transport: &str) {
    let Some(modules) = tool("TIDEGATE_TEST_NODE_MODULES") else { return };
    let mut sdk = Command::new("node");
    sdk.arg(script("node.mjs")).env("NODE_MODULES", modules);
    is_kept(transport, sdk);
}

fn tool(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if found.is_none() {
        skip(name, &format!("{name} is not set; `make test` sets it"));
    }
    found
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk").join(name)
}

/// Everything that the SDK reports as sent is in the lake.
fn is_kept(transport: &str, mut sdk: Command) {
    let mut gateway = Gateway::started(json!({
        "memory": "128MiB",
        "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
    }));
    // Each transport where its clients expect it.
    let address = if transport == "grpc" { gateway.grpc() } else { gateway.http() };
    let printed = finish(sdk.arg(transport).arg(format!("http://{address}"))).succeeded();
    let said: Value = serde_json::from_str(printed.trim()).unwrap();
    gateway.at_rest(SOON);
    until(SOON, "all tables to have rows", || {
        ["spans", "logs", "metric_points", "metric_histograms"].map(|table| gateway.lake_rows(table).len())
            == [2, 1, 3, 2]
    });
    spans(&gateway, &said);
    logs(&gateway, &said);
    metrics(&gateway, &said);
    gateway.books_close();
    assert_eq!(gateway.term(), 0);
}

fn spans(gateway: &Gateway, said: &Value) {
    let rows =
        gateway.lake_rows_with("spans", &["--columns", SPANS, "--trace", said["trace_id"].as_str().unwrap()]);
    assert_eq!(rows.len(), 2, "{rows:?}");
    let row = |name: &str| rows.iter().find(|row| row["span_name"] == name).unwrap();
    let (parent, child) = (row("parent"), row("child"));
    for row in [parent, child] {
        assert_eq!(row["service_name"], said["service"], "{row}");
        assert_eq!(row["trace_id"], said["trace_id"], "{row}");
        assert_eq!((&row["scope_name"], &row["scope_version"]), (&json!("tests"), &json!("0.1")), "{row}");
        assert_eq!(object(&row["resource"])["service.version"], "1.2.3", "{row}");
        assert!(row["duration_ns"].as_i64().unwrap() >= 0, "{row}");
    }
    assert_eq!((&parent["span_id"], &child["span_id"]), (&said["parent_id"], &said["child_id"]));
    assert_eq!((&parent["parent_span_id"], &child["parent_span_id"]), (&Value::Null, &said["parent_id"]));
    assert_eq!((&child["kind"], &child["status_code"]), (&json!(3), &json!(2)), "{child}");
    assert_eq!(child["status_message"], "timed out");
    assert_eq!(child["db.system"], "postgresql");
    // Columns of their own and the rest together are what was set.
    let mut kept = object(&parent["attributes"]);
    for promoted in ["http.request.method", "http.response.status_code"] {
        kept.insert(promoted.to_owned(), parent[promoted].clone());
    }
    assert_eq!(Value::Object(kept), said["attributes"], "{parent}");
    let events = parent["events"].as_array().unwrap();
    assert_eq!(events.len(), 1, "{parent}");
    assert_eq!(events[0]["name"], "cache miss");
    assert_eq!(object(&events[0]["attributes"]), *json!({"key": "user:7"}).as_object().unwrap());
}

fn logs(gateway: &Gateway, said: &Value) {
    let service = said["service"].as_str().unwrap();
    let filters = ["--columns", LOGS, "--service", service, "--contains", "took", "--severity", "warn"];
    let row = &gateway.lake_rows_with("logs", &filters)[0];
    assert_eq!((&row["service_name"], &row["body"]), (&said["service"], &json!("it took long")), "{row}");
    assert_eq!(row["severity_number"], 13, "{row}");
    assert_eq!((&row["trace_id"], &row["span_id"]), (&said["trace_id"], &said["child_id"]), "{row}");
    assert_eq!(object(&row["attributes"])["attempt"], 3, "{row}");
}

fn metrics(gateway: &Gateway, said: &Value) {
    let points = gateway.lake_rows_with("metric_points", &["--columns", POINTS]);
    let point = |name: &str| points.iter().find(|row| row["metric_name"] == name).unwrap();
    assert_eq!(number(point("requests")), 41.0, "{}", point("requests"));
    assert_eq!(object(&point("requests")["attributes"])["route"], "/a");
    assert_eq!(point("requests")["unit"], "{request}");
    assert_eq!(number(point("open")), -2.0);
    assert_eq!(number(point("temperature")), 21.5);
    let histograms = gateway.lake_rows_with("metric_histograms", &["--columns", HISTOGRAMS]);
    for name in ["latency", "sizes"] {
        let row = histograms.iter().find(|row| row["metric_name"] == name).unwrap();
        assert_eq!(row["service_name"], said["service"], "{row}");
        assert_eq!((&row["count"], &row["sum"]), (&json!(3), &json!(82.0)), "{row}");
    }
    let explicit = histograms.iter().find(|row| row["metric_name"] == "latency").unwrap();
    let counts = explicit["bucket_counts"].as_array().unwrap();
    assert_eq!(counts.iter().filter_map(Value::as_i64).sum::<i64>(), 3, "{explicit}");
}

fn object(text: &Value) -> Map<String, Value> {
    match text {
        Value::String(text) => serde_json::from_str(text).unwrap(),
        Value::Object(map) => map.clone(),
        other => panic!("{other} is not an object"),
    }
}

/// A point's value, whole or not.
fn number(row: &Value) -> f64 {
    row["value_int"].as_f64().or_else(|| row["value"].as_f64()).unwrap()
}

//! OTLP data is found in the lake: by trace, service, name, severity and text with `lake cat`, and under the names of
//! the ClickHouse exporter in DuckDB.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tidegate_tests::{Gateway, duckdb, http, tidegate};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn send(gateway: &Gateway, path: &str, body: &Value) {
    let request = format!("POST {path} HTTP/1.1");
    let head = [request.as_str(), "content-type: application/json"];
    let answer = http::request(gateway.http(), &head, body.to_string().as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn spans() -> Value {
    let span = |name: &str, id: &str, trace: &str, route: &str| {
        json!({
            "traceId": trace, "spanId": id, "name": name, "kind": 2,
            "startTimeUnixNano": "1700000000123456789", "endTimeUnixNano": "1700000000123956789",
            "attributes": [
                {"key": "http.route", "value": {"stringValue": route}},
                {"key": "n", "value": {"intValue": "9007199254740993"}},
            ],
        })
    };
    let resource =
        |service: &str| json!({"attributes": [{"key": "service.name", "value": {"stringValue": service}}]});
    let other = "1af7651916cd43dd8448eb211c80319c";
    json!({"resourceSpans": [
        {"resource": resource("shop"), "scopeSpans": [{"spans": [
            span("buy", "00f067aa0ba902b7", TRACE, "/buy"),
            span("look", "00f067aa0ba902b8", other, "/look"),
        ]}]},
        {"resource": resource("stock"), "scopeSpans": [{"spans": [span("take", "00f067aa0ba902b9", TRACE, "/take")]}]},
    ]})
}

fn records() -> Value {
    let record = |severity: u64, text: &str| {
        json!({
            "timeUnixNano": "1700000000123456789", "severityNumber": severity, "body": {"stringValue": text},
            "traceId": TRACE,
        })
    };
    json!({"resourceLogs": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
        "scopeLogs": [{"logRecords": [record(9, "bought a book"), record(17, "no books left"), record(17, "broken")]}],
    }]})
}

#[test]
fn spans_and_log_records_are_found() {
    let mut gateway = Gateway::started(json!({"memory": "128MiB", "sinks": {"lake": {"type": "lake"}}}));
    send(&gateway, "/v1/traces", &spans());
    send(&gateway, "/v1/logs", &records());
    assert_eq!(gateway.term(), 0);

    let found = |table: &str, column: &str, filter: &[&str]| {
        let rows = gateway.lake_rows_with(table, filter);
        let mut found: Vec<String> =
            rows.iter().map(|row| row[column].as_str().unwrap().to_owned()).collect();
        found.sort_unstable();
        found.join(",")
    };
    assert_eq!(found("spans", "span_name", &["--trace", TRACE]), "buy,take");
    assert_eq!(found("spans", "span_name", &["--service", "shop"]), "buy,look");
    assert_eq!(found("spans", "span_name", &["--name", "take"]), "take");
    assert_eq!(found("spans", "span_name", &["--label", "http.route=/look"]), "look");
    assert_eq!(found("spans", "span_name", &["--label", "n=9007199254740993", "--service", "stock"]), "take");
    assert_eq!(found("spans", "span_name", &["--last", "5m"]), "");
    assert_eq!(found("logs", "body", &["--contains", "book", "--severity", "error"]), "no books left");
    assert_eq!(found("logs", "body", &["--trace", TRACE, "--severity", "17"]), "broken,no books left");

    let data = gateway.data();
    let data = data.to_str().unwrap();
    let views = tidegate(&["lake", "views", "--duckdb", "--data", data]).succeeded();
    let query = "SELECT SpanName, SpanAttributes['n'], Duration FROM otel_traces \
                 WHERE ServiceName = 'stock' ORDER BY Timestamp";
    if let Some(rows) = duckdb(&format!("{views}{query}")) {
        assert_eq!(rows, [json!(["take", "9007199254740993", 500_000])]);
    }
    // A trace is a tree with times from its beginning, unless rows are asked for.
    let tree = tidegate(&["lake", "cat", "--trace", TRACE, "--data", data]).succeeded();
    let lines: Vec<&str> = tree.lines().collect();
    assert!(lines[0].starts_with("2 spans of "), "{tree}");
    assert!(lines[1..].iter().all(|line| line.trim_start().starts_with('+')), "{tree}");
    assert!(tree.contains(": buy") && tree.contains(": take"), "{tree}");

    let refused = tidegate(&["lake", "cat", "spans", "--trace", "12", "--data", data]);
    assert!(refused.stderr.contains("32 hexadecimal digits"), "{}", refused.stderr);

    // A file that somebody deleted is said, with what there is still.
    let folder = Path::new(data).join("lake/v1/spans");
    let file = parquet_below(&folder).expect("a file of spans");
    std::fs::remove_file(&file).unwrap();
    let torn = tidegate(&["lake", "cat", "spans", "--data", data]);
    assert_eq!(torn.code, Some(1), "{}", torn.stdout);
    assert!(
        torn.stderr.contains("missing") && torn.stderr.contains(file.to_str().unwrap()),
        "{}",
        torn.stderr
    );
}

/// A Parquet file somewhere below a folder.
fn parquet_below(folder: &Path) -> Option<PathBuf> {
    std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).find_map(|path| {
        if path.is_dir() {
            parquet_below(&path)
        } else {
            path.extension().is_some_and(|end| end == "parquet").then_some(path)
        }
    })
}

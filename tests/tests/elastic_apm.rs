//! Real agents of Elastic APM, into the lake: what they said is what is kept, event by event. And the bodies that
//! four agents sent, in the codings in which they sent them.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "support/agents.rs"]
mod agents;

use serde_json::{Map, Value, json};
use std::process::Command;
use tidegate_load::elastic_apm::AGENTS;
use tidegate_tests::{Gateway, SOON, finish, http, until};

const SPANS: &str =
    "service_name,trace_id,span_id,parent_span_id,span_name,kind,status_code,resource,attributes,duration_ns";
const LOGS: &str = "service_name,body,severity_number,trace_id,span_id,attributes,exception.type";

#[test]
fn python() {
    is_kept(agents::python);
}

#[test]
fn node() {
    is_kept(agents::node);
}

#[test]
fn go() {
    is_kept(agents::go);
}

#[test]
fn java() {
    is_kept(agents::java);
}

fn gateway() -> Gateway {
    Gateway::started(json!({
        "memory": "128MiB",
        "sources": {"elastic_apm": {"agents": {"all": {"settings": {"transaction_max_spans": "400"}}}}},
        "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
    }))
}

/// Everything that the agent reports as sent is in the lake.
fn is_kept(agent: impl Fn(&str) -> Option<Command>) {
    // Asked before the gateway is started, which is of no use without it.
    if agent("").is_none() {
        return;
    }
    let mut gateway = gateway();
    let mut agent = agent(&format!("http://{}", gateway.http())).unwrap();
    let printed = finish(&mut agent).succeeded();
    let said = printed.lines().find_map(|line| serde_json::from_str::<Value>(line).ok()).expect(&printed);
    gateway.at_rest(SOON);
    until(SOON, "all tables to have rows", || {
        ["spans", "logs", "metric_points"].iter().all(|table| !gateway.lake_rows(table).is_empty())
    });
    spans(&gateway, &said);
    errors(&gateway, &said);
    metrics(&gateway, &said);
    // They ask who is there, or for their settings, besides.
    let books = gateway.status()["books"].clone();
    let source = books["sources"].as_array().unwrap().iter().find(|source| source["name"] == "elastic_apm");
    assert_eq!(source.unwrap()["refused"], json!({}), "{books}");
    gateway.books_close();
    assert_eq!(gateway.term(), 0);
}

fn spans(gateway: &Gateway, said: &Value) {
    let rows =
        gateway.lake_rows_with("spans", &["--columns", SPANS, "--trace", said["trace_id"].as_str().unwrap()]);
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in &rows {
        assert_eq!((&row["service_name"], &row["trace_id"]), (&said["service"], &said["trace_id"]), "{row}");
        let resource = object(&row["resource"]);
        assert_eq!(resource["service.version"], "1.2.3", "{row}");
        assert_eq!(resource["deployment.environment.name"], "test", "{row}");
        assert_eq!(resource["labels.team"], "core", "{row}");
        let agent = said["service"].as_str().unwrap().replace("shop-", "elastic-apm-");
        assert_eq!(resource["telemetry.sdk.name"], agent, "{row}");
    }
    let transaction = rows.iter().find(|row| row["span_id"] == said["transaction_id"]).unwrap();
    assert_eq!(transaction["span_name"], "GET /item/{id}");
    assert_eq!((&transaction["kind"], &transaction["parent_span_id"]), (&json!(2), &Value::Null));
    let attributes = object(&transaction["attributes"]);
    assert_eq!(attributes["transaction.type"], "request", "{transaction}");
    assert_eq!(attributes["transaction.result"], "HTTP 2xx", "{transaction}");
    assert_eq!(attributes["transaction.span_count.started"], 3, "{transaction}");
    assert_eq!(
        (&attributes["labels.region"], &attributes["labels.ok"]),
        (&json!("eu"), &json!(true)),
        "{transaction}"
    );
    assert_eq!(attributes["labels.count"].as_f64(), Some(3.0), "{transaction}");
    assert_eq!(attributes["user.name"], "bob", "{transaction}");
    assert!(attributes["elastic.context.custom"].as_str().unwrap().contains("cart"), "{transaction}");
    for (number, id) in said["spans"].as_array().unwrap().iter().enumerate() {
        let span = rows.iter().find(|row| row["span_id"] == *id).unwrap();
        assert_eq!(span["span_name"], format!("SELECT t{number}"), "{span}");
        assert_eq!((&span["parent_span_id"], &span["kind"]), (&said["transaction_id"], &json!(3)), "{span}");
        assert!(span["duration_ns"].as_i64().unwrap() >= 0, "{span}");
        let attributes = object(&span["attributes"]);
        // Java's puts all of it into the type.
        let parts = ["span.type", "span.subtype", "span.action"]
            .map(|name| attributes.get(name).and_then(Value::as_str));
        assert_eq!(
            parts.into_iter().flatten().collect::<Vec<_>>().join("."),
            "db.postgresql.query",
            "{span}"
        );
        assert_eq!(attributes["labels.number"].as_f64(), Some(number as f64), "{span}");
        assert_eq!(attributes["transaction.id"], said["transaction_id"], "{span}");
    }
}

fn errors(gateway: &Gateway, said: &Value) {
    let service = said["service"].as_str().unwrap();
    let rows =
        gateway.lake_rows_with("logs", &["--columns", LOGS, "--service", service, "--contains", "boom"]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    let row = &rows[0];
    assert!(row["body"].as_str().unwrap().contains("boom"), "{row}");
    assert_eq!((&row["trace_id"], &row["span_id"]), (&said["trace_id"], &said["transaction_id"]), "{row}");
    assert_eq!(row["severity_number"], 17, "{row}");
    let attributes = object(&row["attributes"]);
    assert!(row["exception.type"].is_string(), "{row}");
    assert!(attributes["elastic.exception.stacktrace"].as_str().unwrap().starts_with('['), "{row}");
}

fn metrics(gateway: &Gateway, said: &Value) {
    let columns = ["--columns", "metric_name,service_name,value,value_int,attributes"];
    let rows = gateway.lake_rows_with("metric_points", &columns);
    assert!(rows.iter().all(|row| row["service_name"] == said["service"]), "{rows:?}");
    let memory = rows.iter().find(|row| row["metric_name"] == "system.memory.total").expect("such a metric");
    let bytes = memory["value"].as_f64().or(memory["value_int"].as_f64()).unwrap();
    assert!(bytes > 1e6, "{memory}");
}

fn object(text: &Value) -> Map<String, Value> {
    match text {
        Value::String(text) => serde_json::from_str(text).unwrap(),
        Value::Object(map) => map.clone(),
        other => panic!("{other} is not an object"),
    }
}

/// Bodies as they were captured, in their coding: each event is in the lake once, whichever table it is in.
#[test]
fn captured_bodies_are_kept() {
    for agent in AGENTS {
        let mut gateway = gateway();
        let mut events = [0, 0];
        for body in [agent.busy, agent.idle] {
            let sent = match agent.coding {
                "gzip" => encoded(flate2::read::GzEncoder::new(body.as_bytes(), flate2::Compression::new(6))),
                "deflate" => {
                    encoded(flate2::read::ZlibEncoder::new(body.as_bytes(), flate2::Compression::new(6)))
                }
                _ => body.as_bytes().to_vec(),
            };
            let coding = format!("Content-Encoding: {}", agent.coding);
            let head = [
                "POST /intake/v2/events?flushed=true HTTP/1.1",
                "Content-Type: application/x-ndjson",
                &coding,
            ];
            let answer = http::request(gateway.http(), &head, &sent).unwrap();
            assert_eq!((answer.status, answer.text().as_str()), (202, ""), "{}", agent.name);
            let count = |kinds: [&str; 2]| {
                let is = |line: &str| {
                    kinds.iter().any(|kind| line.replace(' ', "").starts_with(&format!("{{\"{kind}\":")))
                };
                body.lines().filter(|line| is(line)).count()
            };
            events = [events[0] + count(["transaction", "span"]), events[1] + count(["error", "log"])];
        }
        gateway.at_rest(SOON);
        until(SOON, "the events to be in the lake", || {
            ["spans", "logs"].map(|table| gateway.lake_rows(table).len()) == events
        });
        assert!(!gateway.lake_rows("metric_points").is_empty());
        gateway.books_close();
        assert_eq!(gateway.term(), 0);
    }
}

#[allow(clippy::disallowed_methods, reason = "what is read here was written here")]
fn encoded(mut coder: impl std::io::Read) -> Vec<u8> {
    let mut body = Vec::new();
    coder.read_to_end(&mut body).unwrap();
    body
}

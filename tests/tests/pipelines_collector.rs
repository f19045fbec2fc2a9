//! A Collector with processors and the gateway with the same statements leave the same items.
//!
//! Each configuration in `pipelines_collector/` is run twice over the same requests: by a Collector, and by the gateway,
//! which `tidegate import otelcol` converts it for and which stands between two Collectors that change nothing. What arrives
//! is compared item by item, each with its resource and its scope.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

#[path = "pipelines_collector/load.rs"]
mod load;

use load::{Request, requests};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use tidegate_load::otlp::NUMBER;
use tidegate_tests::{Collector, Gateway, SOON, binary, finish, http};

/// The version of the test's Collector, by which imports keep what its `set` does with absent values.
const VERSION: &str = "0.150";

fn send_all(to: SocketAddr) {
    for Request { path, content_type, body } in requests() {
        let head = [format!("POST {path} HTTP/1.1"), format!("content-type: {content_type}")];
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        let answer = http::request(to, &head, &body).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
}

/// Items that arrived at a Collector, in an order that does not depend on the way: without the order of keys, which the
/// Collector's `delete_key` changes.
fn arrived(collector: &Collector) -> Vec<String> {
    let normal = |item: &String| {
        let mut item: Value = serde_json::from_str(item).unwrap();
        sort_pairs(&mut item);
        item.to_string()
    };
    let mut items: Vec<String> = collector.items().iter().map(normal).collect();
    items.sort_unstable();
    items
}

/// Sorts attributes by their keys, at any depth.
fn sort_pairs(value: &mut Value) {
    match value {
        Value::Array(values) => {
            values.iter_mut().for_each(sort_pairs);
            if values.iter().all(|value| value["key"].is_string()) {
                values.sort_by(|one, other| one["key"].as_str().cmp(&other["key"].as_str()));
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(sort_pairs),
        _ => {}
    }
}

/// The items that are only in `one`, in order.
fn only<'a>(one: &'a [String], other: &[String]) -> Vec<&'a str> {
    let mut rest: Vec<&String> = other.iter().collect();
    let missing = |item: &&String| match rest.binary_search(item) {
        Ok(at) => {
            rest.remove(at);
            false
        }
        Err(_) => true,
    };
    one.iter().filter(missing).map(String::as_str).collect()
}

/// Differences in each item.
fn differences(there: &[&str], here: &[&str]) -> Vec<String> {
    let by_number = |items: &[&str]| -> BTreeMap<String, String> {
        items.iter().map(|item| (number(item), (*item).to_owned())).collect()
    };
    let (there, mut here) = (by_number(there), by_number(here));
    let mut found = Vec::new();
    for (number, item) in there {
        match here.remove(&number) {
            Some(other) => {
                let [item, other] = [item, other].map(|item| serde_json::from_str(&item).unwrap());
                let mut paths = Vec::new();
                different(&item, &other, "", &mut paths);
                found.push(format!("{number}: {}", paths.join("; ")));
            }
            None => found.push(format!("{number} is only there: {item}")),
        }
    }
    found.extend(here.into_iter().map(|(number, item)| format!("{number} is only here: {item}")));
    found
}

/// The number of an item, or all of one that has none.
fn number(item: &str) -> String {
    let mark = format!("{{\"key\":\"{NUMBER}\",\"value\":{{\"intValue\":\"");
    let found = item.split(&mark).nth(1).and_then(|rest| rest.split('"').next());
    found.unwrap_or(item).to_owned()
}

fn different(one: &Value, other: &Value, path: &str, paths: &mut Vec<String>) {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            pairs.for_each(|(at, (one, other))| different(one, other, &format!("{path}[{at}]"), paths));
        }
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            one.iter()
                .for_each(|(key, value)| different(value, &other[key], &format!("{path}.{key}"), paths));
        }
        _ if one == other => {}
        _ => paths.push(format!("{path}: {one} and {other}")),
    }
}

/// A Collector that passes everything on to a gateway.
fn forwarder(gateway: &Gateway) -> Option<Collector> {
    let pipeline = json!({"receivers": ["otlp"], "exporters": ["otlp"]});
    Collector::of(
        &json!({
            "receivers": {"otlp": {"protocols": {
                "grpc": {"endpoint": "GRPC_ADDRESS"}, "http": {"endpoint": "HTTP_ADDRESS"},
            }}},
            "exporters": {"otlp": {
                "endpoint": gateway.grpc().to_string(), "tls": {"insecure": true}, "sending_queue": {"enabled": false},
            }},
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {"traces": pipeline, "metrics": pipeline, "logs": pipeline},
            },
        })
        .to_string(),
    )
}

/// The gateway with what this configuration of a Collector is converted to.
fn imported(configuration: &str) -> Gateway {
    let mut gateway = Gateway::new(json!({}));
    let configuration = configuration
        .replace("GRPC_ADDRESS", &gateway.grpc().to_string())
        .replace("HTTP_ADDRESS", &gateway.http().to_string());
    let file = gateway.folder().join("collector.yaml");
    std::fs::write(&file, configuration).unwrap();
    let mut command = Command::new(binary());
    let converted = finish(command.args(["import", "otelcol", "--collector-version", VERSION]).arg(file));
    assert_eq!(converted.code, Some(0), "{converted:?}");
    assert!(!converted.stderr.contains("to be corrected"), "{}", converted.stderr);
    // Settings that a Collector's configuration does not have.
    let admin = format!("listen:\n  admin: {}\n", gateway.admin());
    let text = converted.stdout.replacen("listen:\n", &admin, 1);
    gateway.configure_text(&format!("{text}\nmemory: 96MiB\ndata: {}\n", gateway.data().display()));
    gateway.start();
    gateway
}

/// A configuration.
fn configuration(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pipelines_collector");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Compares what the two leave; returns the books of the gateway's sinks.
fn compare(text: &str) -> Option<Value> {
    let destination = Collector::started()?;
    let configuration = text.replace("DESTINATION", &destination.http().to_string());

    let collector = Collector::of(&configuration)?;
    send_all(collector.http());
    let expected = arrived(&destination);
    drop(collector);
    destination.forget();

    let gateway = imported(&configuration);
    let forwarder = forwarder(&gateway)?;
    send_all(forwarder.http());
    let status = gateway.at_rest(SOON);
    gateway.books_close();
    let found = arrived(&destination);
    let (missing, extra) = (only(&expected, &found), only(&found, &expected));
    println!("{} items are left, {} differ", expected.len(), missing.len().max(extra.len()));
    let differences = differences(&missing, &extra);
    let first: Vec<&str> = differences.iter().take(12).map(String::as_str).collect();
    assert!(differences.is_empty(), "{} differ; there and here:\n{}", differences.len(), first.join("\n"));
    let books = status["books"]["sinks"].clone();
    let delivered = count(&books, |book| &book["delivered"]);
    assert_eq!(delivered, found.len() as u64, "{books}");
    let filtered = count(&books, |book| &book["dropped"]["filtered"]);
    assert!(delivered > 500 && filtered > 100, "{books}");
    Some(books)
}

/// The sum of a number of all sinks, which some may not have.
fn count(books: &Value, number: impl Fn(&Value) -> &Value) -> u64 {
    books.as_array().unwrap().iter().filter_map(|book| number(book).as_u64()).sum()
}

/// Statements that public configurations use most, in all contexts.
#[test]
fn filtered_and_transformed_items_are_those_of_the_collector() {
    compare(&configuration("statements.yaml"));
}

/// Paths that name their contexts, groups with conditions, and statements on what is around their items.
#[test]
fn statements_in_many_contexts_leave_the_items_of_the_collector() {
    compare(&configuration("contexts.yaml"));
}

/// The samplers keep the same items, and write the same thresholds.
#[test]
fn sampled_items_are_those_of_the_collector() {
    for (traces, logs) in [
        (
            "sampling_percentage: 30, hash_seed: 22",
            "sampling_percentage: 40, hash_seed: 7, attribute_source: record, from_attribute: enduser.id, sampling_priority: priority",
        ),
        (
            "sampling_percentage: 30, mode: proportional",
            "sampling_percentage: 40, mode: proportional, sampling_priority: priority",
        ),
        (
            "sampling_percentage: 15.3, mode: equalizing, sampling_precision: 5",
            "sampling_percentage: 60, mode: equalizing, from_attribute: user.email, fail_closed: false",
        ),
    ] {
        let text = configuration("sampling.yaml").replace("TRACES", traces).replace("LOGS", logs);
        let Some(books) = compare(&text) else { return };
        assert!(count(&books, |book| &book["dropped"]["sampled_out"]) > 500, "{books}");
    }
}

//! Real programs on both sides of `_bulk`: the bulk helpers of the Python clients of Elasticsearch and OpenSearch
//! send through tidegate to an OpenSearch, which is restarted and has its queue filled meanwhile. Each document that
//! a client was told is taken is there, once, as it was sent.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;
use tidegate_load::elastic_apm::AGENTS;
use tidegate_tests::{Finished, Gateway, OpenSearch, Program, SOON, free_address, http, skip, until};

/// How long everything may take to arrive, on a busy machine.
const DRAINED: Duration = Duration::from_secs(240);

/// A gateway in front of `node`, with these settings of its sink besides; and where it is Elasticsearch alone.
fn gateway(node: &OpenSearch, sink: Value) -> (Gateway, String) {
    let mut out = json!({
        "type": "elasticsearch", "product": "opensearch", "endpoints": [node.url()],
        "backoff": {"min": "20ms", "max": "500ms"}, "linger": "20ms",
    });
    out.as_object_mut().unwrap().extend(sink.as_object().unwrap().clone());
    let gateway = Gateway::new(json!({}));
    let alone = free_address();
    gateway.configure(json!({
        "listen": {"http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(), "elasticsearch": alone},
        "sinks": {"out": out},
    }));
    let mut gateway = gateway;
    gateway.start();
    (gateway, format!("http://{alone}"))
}

/// A client that sends; nothing, said loudly, where Python is not set up.
fn client(gateway: &Gateway, name: &str, args: &[&str]) -> Option<Program> {
    let Some(python) = std::env::var_os("TIDEGATE_TEST_PYTHON").filter(|value| !value.is_empty()) else {
        skip("TIDEGATE_TEST_PYTHON", "TIDEGATE_TEST_PYTHON is not set; `make test` sets it");
        return None;
    };
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/elastic/bulk.py")).args(args);
    Some(Program::start(name, command, gateway.folder()))
}

fn count_accepted(mut client: Program) -> u64 {
    let code = client.wait(DRAINED).code();
    let finished = Finished { code, stdout: client.stdout(), stderr: client.stderr() };
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    finished.stdout.trim().parse().unwrap()
}

/// That an index has each of these documents once, as they were sent.
fn assert_has(node: &OpenSearch, index: &str, count: u64) -> Vec<String> {
    let documents = node.documents(index);
    let mut numbers = BTreeMap::new();
    for (id, document) in &documents {
        let number = document["n"].as_u64().unwrap();
        assert_eq!(document["message"], format!("é \"{number}\"\n"));
        *numbers.entry(number).or_insert(0) += 1;
        assert!(!id.is_empty());
    }
    let wanted: BTreeMap<u64, i32> = (0..count).map(|number| (number, 1)).collect();
    assert!(numbers == wanted, "{} documents, {} numbers, of {count}", documents.len(), numbers.len());
    documents.into_iter().map(|(id, _)| id).collect()
}

/// Two clients, with ids and without, compressed or not, under the prefix and alone: everything arrives, whatever
/// happens to the node meanwhile, and nothing twice.
#[test]
fn documents_arrive_once_through_a_restart_and_a_full_queue() {
    // A queue that two requests fill.
    let settings = ["thread_pool.write.queue_size=1", "thread_pool.write.size=1"];
    let Some(mut node) = OpenSearch::started(&settings) else { return };
    let (mut gateway, alone) = gateway(&node, json!({"max_request_bytes": "64KiB", "max_in_flight": 16}));
    let prefixed = format!("http://{}/elasticsearch", gateway.http());
    const EACH: u64 = 4000;
    let count = EACH.to_string();
    let senders = [
        ("one", vec!["elasticsearch", &alone, "made-es", "0", &count, "made"]),
        ("two", vec!["elasticsearch", &prefixed, "own-es", "0", &count, "own", "gzip"]),
        ("three", vec!["opensearch", &alone, "own-os", "0", &count, "own"]),
        ("four", vec!["opensearch", &prefixed, "made-os", "0", &count, "made", "gzip"]),
    ];
    let mut running = Vec::new();
    for (name, args) in &senders {
        let Some(client) = client(&gateway, name, args) else { return };
        running.push(client);
    }
    until(DRAINED, "the first documents to arrive", || gateway.sink("out")["requests"] != 0);
    node.kill9();
    // Acknowledged items survive the end of the gateway, too.
    until(DRAINED, "the sink to notice", || gateway.sink("out")["failures"] != 0);
    node.start();
    for client in running {
        assert_eq!(count_accepted(client), EACH);
    }
    gateway.kill9();
    gateway.start();
    gateway.at_rest(DRAINED);
    let own: Vec<String> = (0..EACH).map(|number| format!("own-{number}")).collect();
    for (index, is_own) in [("made-es", false), ("own-es", true), ("own-os", true), ("made-os", false)] {
        let ids = assert_has(&node, index, EACH);
        if is_own {
            let mut ids = ids;
            ids.sort();
            let mut own = own.clone();
            own.sort();
            assert_eq!(ids, own);
        }
    }
    gateway.books_close();
    let sink = gateway.sink("out");
    println!("{sink}");
    let dropped = sink["dropped"].as_object().into_iter().flatten();
    assert_eq!(dropped.filter_map(|(_, items)| items.as_u64()).sum::<u64>(), 0, "{sink}");
}

/// Documents that OpenSearch does not want are kept with its reason; their neighbours are delivered. What is set up
/// by `tidegate elasticsearch setup` is there afterwards.
#[test]
fn rejected_documents_are_kept_and_templates_are_installed() {
    let Some(node) = OpenSearch::started(&[]) else { return };
    node.ask("PUT", "/strict", r#"{"mappings":{"dynamic":"strict","properties":{"n":{"type":"integer"}}}}"#);
    let (gateway, _) = gateway(&node, json!({}));
    let body = (0..10).fold(String::new(), |body, number| {
        let document = if number == 3 { json!({"other": number}) } else { json!({"n": number}) };
        format!("{body}{{\"index\":{{}}}}\n{document}\n")
    });
    let head = ["POST /elasticsearch/strict/_bulk HTTP/1.1", "Content-Type: application/x-ndjson"];
    let answer = http::request(gateway.http(), &head, body.as_bytes()).unwrap();
    assert_eq!((answer.status, &answer.json()["errors"]), (200, &json!(false)));
    gateway.at_rest(SOON);
    let mut numbers: Vec<u64> =
        node.documents("strict").iter().map(|(_, document)| document["n"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    let config = gateway.config().display().to_string();
    let letters = tidegate_tests::tidegate(&["journal", "dead-letters", "--config", &config]);
    assert!(
        letters.stdout.contains("strict_dynamic_mapping_exception"),
        "{}{}",
        letters.stdout,
        letters.stderr
    );
    let setup = tidegate_tests::tidegate(&["elasticsearch", "setup", "--config", &config]);
    assert_eq!(setup.code, Some(0), "{}", setup.stderr);
    for name in setup.stdout.lines() {
        assert_eq!(node.ask("GET", &format!("/_index_template/{name}"), "").status, 200, "{name}");
    }
    assert_eq!(setup.stdout.lines().count(), 6);
    // On the same node, since one takes long to start.
    documents_are_once_where_a_pattern_says(&node);
}

/// Documents made by tidegate go to the index named by a pattern, once although two sinks send them: both make the
/// same documents of a record.
fn documents_are_once_where_a_pattern_says(node: &OpenSearch) {
    let sink = json!({
        "type": "elasticsearch", "product": "opensearch", "endpoints": [node.url()], "linger": "20ms",
        "index": "telemetry-{service.name}-{type}-{yyyy.MM}",
    });
    let mut gateway = Gateway::started(json!({"memory": "128MiB", "sinks": {"one": sink, "two": sink}}));
    let head = ["POST /intake/v2/events HTTP/1.1", "Content-Type: application/x-ndjson"];
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for agent in AGENTS {
        let answer = http::request(gateway.http(), &head, agent.busy.as_bytes()).unwrap();
        assert_eq!(answer.status, 202, "{}", answer.text());
        let lines: Vec<Value> = agent.busy.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let service = lines[0]["metadata"]["service"]["name"].as_str().unwrap().to_lowercase();
        for line in &lines[1..] {
            let (kind, event) = line.as_object().unwrap().iter().next().unwrap();
            let kind = match kind.as_str() {
                "transaction" | "span" => "traces",
                "metricset" => "metrics",
                _ => "logs",
            };
            // Microseconds; all of them are of this month.
            let time = event["timestamp"].as_f64().unwrap();
            assert!((1_793_500_800e6..1_796_083_200e6).contains(&time), "{time}");
            *expected.entry(format!("telemetry-{service}-{kind}-2026.11")).or_default() += 1;
        }
    }
    gateway.at_rest(DRAINED);
    for (index, count) in &expected {
        let documents = node.documents(index);
        assert_eq!(documents.len() as u64, *count, "{index}");
        assert!(documents.iter().all(|(id, _)| !id.is_empty()));
    }
    let all: u64 = expected.values().sum();
    assert_eq!(node.documents("telemetry-*").len() as u64, all);
    for name in ["one", "two"] {
        let sink = gateway.sink(name);
        let dropped = sink["dropped"].as_object().into_iter().flatten();
        assert_eq!(dropped.filter_map(|(_, items)| items.as_u64()).sum::<u64>(), 0, "{sink}");
    }
    gateway.books_close();
    assert_eq!(gateway.term(), 0);
}

//! Elasticsearch itself, of the last version whose parts are published, as the one that receives, and as the one that
//! shows how a `_bulk` is answered.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;
use tidegate_tests::{Gateway, OpenSearch, Program, SOON, free_address, http, skip, until};

/// How long everything may take to arrive, on a busy machine.
const DRAINED: Duration = Duration::from_secs(240);
const EACH: u64 = 3000;

/// A gateway in front of `node`, and where it is Elasticsearch alone.
fn gateway(node: &OpenSearch) -> (Gateway, SocketAddr) {
    let mut gateway = Gateway::new(json!({}));
    let alone = free_address();
    gateway.configure(json!({
        "listen": {"http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(), "elasticsearch": alone},
        "access": {"bulk": ["update", "delete", "script", "pipeline"]},
        "sinks": {"out": {
            "type": "elasticsearch", "endpoints": [node.url()], "max_request_bytes": "64KiB", "linger": "20ms",
            "backoff": {"min": "20ms", "max": "500ms"},
        }},
    }));
    gateway.start();
    (gateway, alone)
}

/// Documents with ids and without arrive once, through a queue that two requests fill, and the end of the node and of
/// the gateway.
#[test]
fn documents_arrive_once_through_restarts_and_a_full_queue() {
    let Some(shippers) = std::env::var_os("TIDEGATE_TEST_SHIPPERS").filter(|value| !value.is_empty()) else {
        skip("TIDEGATE_TEST_SHIPPERS", "TIDEGATE_TEST_SHIPPERS is not set; `make test` sets it");
        return;
    };
    let settings = ["thread_pool.write.queue_size=1", "thread_pool.write.size=1"];
    let Some(mut node) = OpenSearch::elasticsearch(&settings) else { return };
    let (mut gateway, alone) = gateway(&node);
    let client = |ids: &str| {
        let mut command = Command::new(std::path::Path::new(&shippers).join("bin/go"));
        command.args([&format!("http://{alone}"), ids, &EACH.to_string(), ids]);
        Program::start(ids, command, gateway.folder())
    };
    let clients = [client("own"), client("made")];
    until(DRAINED, "the first documents to arrive", || gateway.sink("out")["requests"] != 0);
    node.kill9();
    for mut client in clients {
        assert_eq!(client.wait(DRAINED).code(), Some(0), "{}", client.stderr());
    }
    gateway.kill9();
    gateway.start();
    until(DRAINED, "the sink to miss the node", || gateway.sink("out")["failures"] != 0);
    node.start();
    gateway.at_rest(DRAINED);
    for index in ["own", "made"] {
        let documents = node.documents(index);
        let mut times = BTreeMap::new();
        for (id, document) in &documents {
            let number = document["n"].as_u64().unwrap();
            assert_eq!(document["message"], format!("é \"{number}\"\n"));
            assert!(index == "made" || *id == format!("own-{number}"), "{id} of {number}");
            *times.entry(number).or_insert(0_u32) += 1;
        }
        assert!(times.keys().copied().eq(0..EACH), "{index}: {} of {EACH}", times.len());
        assert_eq!(documents.len() as u64, EACH, "{index}");
    }
    gateway.books_close();
    println!("{}", gateway.sink("out"));
}

const GOOD: &str = "{\"create\":{\"_index\":\"a\"}}\n{\"n\":1}\n";
const LINES: &str = "application/x-ndjson";

/// The request to both servers: the request line, its Content-Type, its body.
const TABLE: &[(&str, &str, &str)] = &[
    ("POST /_bulk", LINES, GOOD),
    ("POST /_bulk", "application/json; charset=UTF-8", GOOD),
    ("POST /_bulk", "application/vnd.elasticsearch+x-ndjson;compatible-with=7", GOOD),
    (
        "POST /_bulk",
        LINES,
        "{\"index\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{}\n{\"delete\":{\"_index\":\"a\",\"_id\":\"1\"}}\n",
    ),
    ("POST /_bulk", LINES, "{\"index\":{\"_index\":\"a\",\"_id\":7}}\n{\"n\":1}\n"),
    ("POST /_bulk", LINES, "{\"index\":{\"_index\":\"a\",\"_id\":null,\"routing\":null}}\n{\"n\":1}\n"),
    (
        "POST /_bulk",
        LINES,
        "{\"index\":{\"_index\":\"a\",\"_id\":\"u\"}}\n{\"n\":1}\n{\"update\":{\"_index\":\"a\",\"_id\":\"u\"}}\n{\"doc\":{\"n\":2}}\n",
    ),
    ("POST /a/_bulk", LINES, "{\"create\":{}}\n{\"n\":1}\n"),
    ("PUT /a/_bulk", LINES, "{\"create\":{}}\n{\"n\":1}\n"),
    ("POST /_bulk", LINES, "{\"create\":{\"_index\":\"a\"}}\r\n{\"n\":1}\r\n"),
    (
        "POST /_bulk",
        LINES,
        "{\"create\":{\"_index\":\"a\"}}\n{\"n\":1}\n\n{\"create\":{\"_index\":\"a\"}}\n{\"n\":2}\n",
    ),
    (
        "POST /_bulk",
        LINES,
        "{\"create\":{\"_index\":\"a\"}}\n{\"n\":}\n{\"create\":{\"_index\":\"a\"}}\n{\"n\":1}\n",
    ),
    ("POST /_bulk", LINES, "{\"create\":{\"_index\":\"a\"}}\n[1]\n"),
    ("POST /_bulk", LINES, "{\"create\":{\"_index\":\"a\"}}\n\n"),
    ("POST /_bulk?pretty&refresh=wait_for&timeout=1m", LINES, GOOD),
    ("POST /_bulk?filter_path=items.*.error", LINES, GOOD),
    ("POST /_bulk?filter_path=nothing", LINES, GOOD),
    ("POST /_bulk?filter_path=took,items.create._id", LINES, GOOD),
    (
        "POST /_bulk?filter_path=errors,items.*.error,items.*.status",
        LINES,
        "{\"create\":{\"_index\":\"a\"}}\n{\"n\":}\n{\"create\":{\"_index\":\"a\"}}\n{\"n\":1}\n",
    ),
    ("POST /_bulk?filter_path=-took,-items.*._shards", LINES, GOOD),
    ("POST /_bulk", LINES, ""),
    ("POST /_bulk", LINES, "\n"),
    ("POST /_bulk", LINES, "nonsense\n"),
    ("POST /_bulk", LINES, "{\"create\":{\"_index\":\"a\"}}\n{\"n\":1}"),
    ("POST /_bulk", LINES, "{\"create\":{}}\n{\"n\":1}\n"),
    ("POST /_bulk", LINES, "{\"upsert\":{\"_index\":\"a\"}}\n{\"n\":1}\n"),
    ("POST /_bulk", LINES, "{\"delete\":{\"_index\":\"a\"}}\n"),
    ("POST /_bulk", LINES, "{\"update\":{\"_index\":\"a\"}}\n{\"doc\":{}}\n"),
    ("POST /_bulk", LINES, "{\"create\":{\"_index\":\"a\"}}\n"),
    ("GET /_bulk", LINES, ""),
    ("GET /_cluster/health", LINES, ""),
    ("GET /_nodes/http", LINES, ""),
];

/// Each request has the same status as from Elasticsearch, and each of its items; the answer has the same fields, and
/// both say who they are.
#[test]
fn answers_are_those_of_elasticsearch() {
    let Some(node) = OpenSearch::elasticsearch(&[]) else { return };
    let (gateway, alone) = gateway(&node);
    for (line, content_type, body) in TABLE {
        let [theirs, ours] = [node.address(), alone].map(|address| {
            let line = format!("{line} HTTP/1.1");
            let content_type = format!("Content-Type: {content_type}");
            let answer =
                http::request(address, &[&line, &content_type, "Connection: close"], body.as_bytes())
                    .unwrap();
            assert_eq!(answer.header("x-elastic-product"), Some("Elasticsearch"), "{line} {body:?}");
            (answer.status, serde_json::from_slice(&answer.body).ok().map(|json| outline(&json)))
        });
        assert_eq!(ours, theirs, "{line} {content_type} {body:?}");
    }
    gateway.at_rest(SOON);
    gateway.books_close();
}

/// The fields that clients depend on: the names of fields, the verdict, and each item's action, index and status.
fn outline(answer: &Value) -> Value {
    let names = |object: &Value| -> Vec<String> {
        object
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .filter(|name| name != "_type")
            .collect()
    };
    let items = answer["items"].as_array().into_iter().flatten().map(|item| {
        let item: &Map<String, Value> = item.as_object().unwrap();
        let (kind, entry) = item.iter().next().unwrap();
        json!([kind, entry["_index"], entry["status"], names(entry)])
    });
    json!({"names": names(answer), "errors": answer["errors"], "status": answer["status"].as_u64(), "items": items.collect::<Vec<_>>()})
}

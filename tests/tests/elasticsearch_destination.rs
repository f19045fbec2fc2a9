//! `acknowledge: destination`: a client of `_bulk` gets the cluster's own answer to each item, and many clients share few
//! requests to it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

#[path = "support/cluster.rs"]
mod cluster;

use cluster::Cluster;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tidegate_tests::http::{self, Answer};
use tidegate_tests::{Finished, Gateway, OpenSearch, Program, free_address, skip, until};

/// How long everything may take, on a busy machine.
const DRAINED: Duration = Duration::from_secs(240);

/// A gateway in front of `url`, with these settings of its sink besides; and where it is Elasticsearch alone.
fn gateway(url: &str, sink: Value) -> (Gateway, std::net::SocketAddr) {
    let mut out = json!({
        "type": "elasticsearch", "product": "opensearch", "endpoints": [url],
        "backoff": {"min": "20ms", "max": "500ms"}, "linger": "20ms",
    });
    out.as_object_mut().unwrap().extend(sink.as_object().unwrap().clone());
    let gateway = Gateway::new(json!({}));
    let alone = free_address();
    gateway.configure(json!({
        "listen": {"http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(), "elasticsearch": alone},
        "access": {"bulk": ["update", "delete", "script", "pipeline"]},
        "sources": {"elasticsearch": {"acknowledge": "destination"}},
        "sinks": {"out": out},
    }));
    let mut gateway = gateway;
    gateway.start();
    (gateway, alone)
}

fn post(address: std::net::SocketAddr, path: &str, body: &str) -> Answer {
    let line = format!("POST {path} HTTP/1.1");
    let head = [line.as_str(), "Content-Type: application/x-ndjson", "Connection: close"];
    http::request(address, &head, body.as_bytes()).unwrap()
}

/// The forwarded column of the books.
fn forwarded(gateway: &Gateway) -> Value {
    let books = gateway.status()["books"].clone();
    let sources = books["sources"].as_array().unwrap().clone();
    sources.into_iter().find(|source| source["name"] == "elasticsearch").unwrap()
}

/// An answer without what differs from index to index and from time to time.
fn comparable(mut answer: Value, index: &str) -> Value {
    answer["took"] = json!(0);
    let text = answer.to_string().replace(index, "INDEX");
    // Identifiers of indexes, and positions in parsers' words.
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    for item in answer["items"].as_array_mut().into_iter().flatten() {
        for (_, entry) in item.as_object_mut().unwrap() {
            if entry.get("_id").and_then(Value::as_str).is_some_and(|id| id.len() == 20) {
                entry["_id"] = json!("MADE");
            }
            if let Some(error) = entry.get_mut("error").and_then(Value::as_object_mut) {
                error.remove("index_uuid");
            }
        }
    }
    answer
}

/// The answers are OpenSearch's own, field by field: compared with those that it gives when it is asked directly.
#[test]
fn each_item_gets_the_destinations_own_answer() {
    let Some(mut node) = OpenSearch::started(&[]) else { return };
    let (mut gateway, alone) = gateway(&node.url(), json!({}));
    let body = |index: &str| {
        [
            format!(r#"{{"create":{{"_index":"{index}","_id":"1"}}}}"#),
            r#"{"n":1}"#.to_owned(),
            format!(r#"{{"create":{{"_index":"{index}","_id":"1"}}}}"#),
            r#"{"n":2}"#.to_owned(),
            format!(r#"{{"index":{{"_index":"{index}","_id":"1"}}}}"#),
            r#"{"n":3}"#.to_owned(),
            format!(r#"{{"update":{{"_index":"{index}","_id":"1","_source":true}}}}"#),
            r#"{"doc":{"m":"é"}}"#.to_owned(),
            format!(r#"{{"update":{{"_index":"{index}","_id":"none"}}}}"#),
            r#"{"doc":{}}"#.to_owned(),
            format!(r#"{{"delete":{{"_index":"{index}","_id":"none"}}}}"#),
            format!(r#"{{"index":{{"_index":"{index}","_id":"bad"}}}}"#),
            r#"{"n":"no number"}"#.to_owned(),
            format!(r#"{{"index":{{"_index":"{index}"}}}}"#),
            r#"{"n":4}"#.to_owned(),
            format!(r#"{{"index":{{"_index":"{index}","_id":"1","if_seq_no":99,"if_primary_term":1}}}}"#),
            r#"{"n":5}"#.to_owned(),
            r#"{"index":{"_index":"-No Index"}}"#.to_owned(),
            r#"{"n":6}"#.to_owned(),
            format!(r#"{{"delete":{{"_index":"{index}","_id":"1"}}}}"#),
        ]
        .join("\n")
            + "\n"
    };
    for (number, query) in
        ["", "?refresh=true", "?refresh=wait_for", "?filter_path=errors,items.*.status,items.*.error"]
            .iter()
            .enumerate()
    {
        let (direct, through) = (format!("direct-{number}"), format!("throu-{number}"));
        for index in [&direct, &through] {
            let mapping = json!({"mappings": {"properties": {"n": {"type": "integer"}}}, "settings": {"number_of_replicas": 0}});
            assert_eq!(node.ask("PUT", &format!("/{index}"), &mapping.to_string()).status, 200);
        }
        let wanted = post(node.address(), &format!("/_bulk{query}"), &body(&direct));
        let got = post(alone, &format!("/_bulk{query}"), &body(&through));
        assert_eq!((wanted.status, got.status), (200, 200), "{}", got.text());
        assert_eq!(got.header("x-elastic-product"), Some("Elasticsearch"));
        assert_eq!(comparable(got.json(), &through), comparable(wanted.json(), &direct), "{query}");
    }
    // The URL's parameters reach the destination; an invalid document is refused alone.
    let got = post(
        alone,
        "/addressed/_bulk?routing=r&refresh=true",
        "{\"index\":{\"_id\":\"a\"}}\n{\"n\":1}\n{\"index\":{}}\nno json\n",
    );
    let items = got.json()["items"].clone();
    assert_eq!(items[0]["index"]["result"], "created", "{items}");
    assert_eq!(
        (&items[0]["index"]["forced_refresh"], &items[1]["index"]["status"]),
        (&json!(true), &json!(400))
    );
    let routed = node.ask("GET", "/addressed/_doc/a?routing=r", "").json();
    assert_eq!((&routed["_routing"], &routed["_source"]), (&json!("r"), &json!({"n": 1})));
    let missing = post(alone, "/missing/_bulk?require_alias=true", "{\"index\":{}}\n{}\n").json();
    assert_eq!(missing["items"][0]["index"]["status"], 404, "{missing}");

    // Nothing of it was journalled.
    let books = forwarded(&gateway);
    assert_eq!(books["items"], json!({}), "{books}");
    assert_eq!(gateway.status()["books"]["journal"]["appended"], 0);
    assert_eq!(books["forwarded"], 4 * 11 + 1 + 1, "{books}");
    gateway.books_close();

    // A node that is gone is said so, within the time that the client gives, and soon to whoever comes then.
    node.kill9();
    let since = Instant::now();
    let late = post(alone, "/gone/_bulk?timeout=2s", "{\"index\":{}}\n{}\n");
    println!("{} after {:?}: {}", late.status, since.elapsed(), late.text());
    assert_eq!(late.status, 503);
    assert_eq!(late.json()["status"], 503);
    assert!(since.elapsed() < Duration::from_secs(20));
    node.start();
    until(DRAINED, "the destination to be used again", || {
        post(alone, "/back/_bulk", "{\"index\":{\"_id\":\"b\"}}\n{}\n").status == 200
    });
    gateway.books_close();
    let books = forwarded(&gateway);
    println!("{books}");
    assert_eq!(books["forwarded_open"], 0);
    assert_eq!(gateway.term(), 0);
}

/// Many clients with one document each share few requests.
#[test]
fn many_small_clients_share_requests() {
    const CLIENTS: u64 = 400;
    let Some(node) = OpenSearch::started(&[]) else { return };
    let (gateway, alone) = gateway(&node.url(), json!({"max_in_flight": 2}));
    assert_eq!(node.ask("PUT", "/shared", r#"{"settings": {"number_of_replicas": 0}}"#).status, 200);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            std::thread::spawn(move || {
                let body = format!("{{\"create\":{{\"_id\":\"{number}\"}}}}\n{{\"n\":{number}}}\n");
                post(alone, "/shared/_bulk", &body)
            })
        })
        .collect();
    for (number, client) in clients.into_iter().enumerate() {
        let answer = client.join().unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let entry = &answer.json()["items"][0]["create"];
        assert_eq!((&entry["_id"], &entry["result"]), (&json!(number.to_string()), &json!("created")));
    }
    assert_eq!(node.documents("shared").len() as u64, CLIENTS);
    let requests = gateway.metrics()["tidegate_bulk_batch_items_count{kind=\"write\"}"];
    println!("{CLIENTS} documents in {requests} requests");
    assert!(requests * 4.0 < CLIENTS as f64, "{requests} requests");
    gateway.books_close();
}

/// The bulk helpers of the clients for Python, Node.js and Go, with ids of their own and without, through a restart of the
/// cluster: each document is there, and once where it has an id.
#[test]
fn real_clients_through_a_restart_of_the_cluster() {
    const EACH: u64 = 500;
    let Some(mut node) = OpenSearch::started(&[]) else { return };
    let (gateway, alone) = gateway(&node.url(), json!({}));
    let url = format!("http://{alone}");
    let count = EACH.to_string();
    let mut running = Vec::new();
    let mut start = |name: &'static str, own, mut command: Command, args: &[&str]| {
        command.args(args);
        running.push((name, own, Program::start(name, command, gateway.folder())));
    };
    let shippers = tool("TIDEGATE_TEST_SHIPPERS");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if let (Some(python), Some(shippers)) = (tool("TIDEGATE_TEST_PYTHON"), &shippers) {
        for (name, module, path, ids) in [
            ("python-8", "elasticsearch", "", "own"),
            ("python-9", "elasticsearch", "python-9", "made"),
            ("python-opensearch", "opensearchpy", "", "own"),
        ] {
            let mut command = Command::new(&python);
            command.arg(root.join("shippers/bulk.py")).arg(module).env("PYTHONPATH", shippers.join(path));
            start(name, ids == "own", command, &[&url, name, &count, ids]);
        }
    }
    if let Some(modules) = tool("TIDEGATE_TEST_NODE_MODULES") {
        for (name, package, ids) in [
            ("node-9", "@elastic/elasticsearch", "own"),
            ("node-opensearch", "@opensearch-project/opensearch", "made"),
        ] {
            let mut command = Command::new("node");
            command.arg(root.join("shippers/bulk.cjs")).arg(package).env("NODE_MODULES", &modules);
            start(name, ids == "own", command, &[&url, name, &count, ids]);
        }
    }
    if let Some(shippers) = &shippers {
        start("go", true, Command::new(shippers.join("bin/go")), &[&url, "go", &count, "own"]);
    }
    until(DRAINED, "the first documents to arrive", || forwarded(&gateway)["forwarded"] != 0);
    node.kill9();
    until(DRAINED, "somebody to be refused", || forwarded(&gateway)["refused"]["destination"] != Value::Null);
    node.start();
    for (name, own, mut client) in running {
        let code = client.wait(DRAINED).code();
        let finished = Finished { code, stdout: client.stdout(), stderr: client.stderr() };
        println!("{name}: {}", finished.succeeded().trim());
        let mut times = BTreeMap::new();
        for (_, document) in node.documents(name) {
            *times.entry(document["n"].as_u64().unwrap()).or_insert(0) += 1;
        }
        assert!(times.keys().copied().eq(0..EACH), "{name}: {} of {EACH}", times.len());
        // Requests in flight when the node was killed may have succeeded, and were sent again.
        assert!(!own || times.values().all(|times| *times == 1), "{name}");
    }
    println!("{}", forwarded(&gateway));
    gateway.books_close();
}

/// A change of the sink's endpoints is a change of the destination; and whoever waits when the gateway is stopped is answered.
#[test]
fn the_destination_follows_its_sink_and_an_end_is_answered() {
    let (first, second) = (Cluster::start(), Cluster::start());
    let (mut gateway, alone) = gateway(&first.url(), json!({}));
    let one = "{\"index\":{}}\n{}\n";
    assert_eq!(post(alone, "/i/_bulk", one).status, 200);
    assert_eq!((first.arrived(), second.arrived()), ((1, 1), (0, 0)));
    let text = std::fs::read_to_string(gateway.config()).unwrap();
    std::fs::write(gateway.config(), text.replace(&first.url(), &second.url())).unwrap();
    gateway.hangup();
    until(DRAINED, "the other cluster to be sent to", || {
        assert_eq!(post(alone, "/i/_bulk", one).status, 200);
        second.arrived().0 > 0
    });

    second.stall(true);
    let waiting: Vec<_> = (0..20).map(|_| std::thread::spawn(move || post(alone, "/i/_bulk", one))).collect();
    until(DRAINED, "all of them to wait", || forwarded(&gateway)["forwarded_open"] == 20);
    let since = Instant::now();
    assert_eq!(gateway.term(), 0);
    println!("stopped within {:?}", since.elapsed());
    for client in waiting {
        let answer = client.join().unwrap();
        assert_eq!((answer.status, &answer.json()["status"]), (503, &json!(503)), "{}", answer.text());
    }
}

/// A cluster that refuses everything, or answers nothing that can be read, shows in the state, the pages, the metrics and the
/// log, and its clients learn of it before their own timeouts. When it works again, that shows as well.
#[test]
fn a_failing_destination_shows() {
    let cluster = Cluster::start();
    let (mut gateway, alone) = gateway(&cluster.url(), json!({}));
    let one = "{\"index\":{}}\n{}\n";
    let failing = || gateway.metrics()["tidegate_destination_failing{sink=\"out\"}"];
    assert_eq!((post(alone, "/i/_bulk", one).status, failing()), (200, 0.0));

    cluster.respond(Some(("503 Service Unavailable", "busy")));
    let since = Instant::now();
    let refused = post(alone, "/i/_bulk", one);
    println!("{} after {:?}: {}", refused.status, since.elapsed(), refused.text());
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    let status = gateway.status();
    let destination = &status["destination"];
    println!("{destination}");
    assert_eq!((&destination["sink"], &destination["source"]), (&json!("out"), &json!("elasticsearch")));
    assert!(destination["failures"].as_u64() >= Some(2) && destination["last_success"].is_string());
    assert!(destination["failing_since"].is_string());
    let error = destination["last_error"]["message"].as_str().unwrap();
    assert_eq!(error, "the cluster refuses requests: status 503: busy");
    until(DRAINED, "the state to show it", || gateway.status()["state"] == "pushing_back");
    let reason = gateway.status()["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("destination `out` of `elasticsearch` has failed for"), "{reason}");
    assert!(reason.contains("status 503: busy"), "{reason}");
    assert_eq!(failing(), 1.0);
    until(DRAINED, "the log to say it", || gateway.log().contains("the destination of `_bulk` is failing"));

    for body in ["hello", "{\"errors\":false,\"items\":[]}"] {
        cluster.respond(Some(("200 OK", body)));
        // The time of a request may end before it is tried again; what is shown then is older.
        until(DRAINED, "what cannot be read to show", || {
            assert_eq!(post(alone, "/i/_bulk", one).status, 503, "{body}");
            let error = gateway.status()["destination"]["last_error"]["message"].clone();
            error.as_str().unwrap().starts_with("the cluster did not answer: ")
        });
    }
    assert_eq!(failing(), 1.0);

    cluster.respond(None);
    assert_eq!(post(alone, "/i/_bulk", one).status, 200);
    until(DRAINED, "the state to be well again", || gateway.status()["state"] == "flowing");
    assert_eq!(failing(), 0.0);
    until(DRAINED, "the log to say so", || gateway.log().contains("the destination of `_bulk` works again"));
    gateway.books_close();
    assert_eq!(gateway.term(), 0);
}

fn tool(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    if found.is_none() {
        skip(name, &format!("{name} is not set; `make test` sets it"));
    }
    found
}

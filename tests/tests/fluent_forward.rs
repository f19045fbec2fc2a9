//! Clients of Fluentd's forward protocol, and bytes that none of them sends: every record that was acknowledged arrives, with
//! its time and its members, also where the gateway is killed.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "splunk_hec/collector.rs"]
#[allow(dead_code, reason = "it can do more than is needed here")]
mod collector;

use collector::{Splunk, TOKEN};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use tidegate_tests::{Gateway, Program, SOON, finish, free_address, until};

/// A gateway with this source, which sends to Splunk.
fn gateway(splunk: &Splunk, source: Value) -> Gateway {
    gateway_with(splunk, source, json!({}))
}

/// The same with these limits.
fn gateway_with(splunk: &Splunk, source: Value, limits: Value) -> Gateway {
    Gateway::started(json!({
        "memory": "96MiB",
        "limits": limits,
        "sources": {"fluent_forward": source},
        "sinks": {"splunk": {
            "type": "splunk_hec", "endpoints": [format!("http://{}", splunk.address())], "token": TOKEN,
            "linger": "50ms", "backoff": {"max": "200ms"},
        }},
    }))
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/shippers/fluent"))
}

/// Sends as `forward.py` is told.
fn python(address: SocketAddr, arguments: &[&str]) -> Command {
    let python = std::env::var_os("TIDEGATE_TEST_PYTHON").expect("TIDEGATE_TEST_PYTHON: `make test` sets it");
    let mut command = Command::new(python);
    command.arg(folder().join("forward.py")).arg(address.to_string()).args(arguments);
    command
}

/// Posts with the logger for Go, which waits for the acknowledgement of each record.
fn go(network: &str, address: &str, count: u32) -> Command {
    let tools = std::env::var("TIDEGATE_TEST_SHIPPERS").expect("TIDEGATE_TEST_SHIPPERS: `make test` sets it");
    let mut command = Command::new(format!("{tools}/bin/fluent"));
    command.args([network, address, "0", &count.to_string()]);
    command
}

fn numbers(splunk: &Splunk) -> BTreeSet<u64> {
    splunk.state().events.iter().map(|event| event["fields"]["number"].as_u64().unwrap()).collect()
}

#[test]
fn go_records_arrive_over_tcp_and_unix() {
    let splunk = Splunk::start(false);
    let address = free_address();
    let socket = tempfile::tempdir().unwrap();
    let socket = socket.path().join("forward.sock").display().to_string();
    let gateway = gateway(&splunk, json!({"address": address, "unix": format!("unix:{socket}")}));
    for (network, address) in [("tcp", address.to_string()), ("unix", socket)] {
        let acknowledged = finish(&mut go(network, &address, 50)).succeeded();
        assert_eq!(acknowledged.lines().count(), 50, "{network}");
        gateway.at_rest(SOON);
        let arrived = splunk.state().events.len();
        assert_eq!((arrived, numbers(&splunk)), (50, (0..50).collect()), "{network}");
        let event =
            splunk.state().events.iter().find(|event| event["fields"]["number"] == 7).unwrap().clone();
        let fields = json!({
            "fluent.tag": "go.app", "number": 7, "nested": "{\"list\":[1,\"two\",3.5,null]}",
            "otel.scope.name": "fluent_forward",
        });
        assert_eq!((&event["event"], &event["fields"]), (&json!("record 7"), &fields));
        assert_eq!(event["time"].as_f64(), Some(1_700_000_000.000_000_007));
        splunk.state().events.clear();
    }
    gateway.books_close();
}

/// Acknowledged records are there after a kill; the client sends the others again.
#[test]
fn nothing_acknowledged_is_lost_when_the_gateway_is_killed() {
    let splunk = Splunk::start(false);
    let address = free_address();
    let mut gateway = gateway(&splunk, json!({"address": address}));
    let mut client = Program::start("go", go("tcp", &address.to_string(), 400), gateway.folder());
    for part in [50, 200] {
        until(SOON, "records to arrive", || numbers(&splunk).len() >= part);
        gateway.kill9();
        gateway.start();
    }
    assert!(client.wait(SOON).success(), "{}", client.stderr());
    gateway.at_rest(SOON);
    assert_eq!(numbers(&splunk), (0..400).collect());
}

/// A message of MessagePack without a chunk, which nobody sends again: `["t", [[1, {"number": N}], …]]`.
fn message(numbers: std::ops::Range<u16>) -> Vec<u8> {
    let count = u16::try_from(numbers.len()).unwrap();
    let mut message = vec![0x92, 0xa1, b't', 0xdc];
    message.extend(count.to_be_bytes());
    for number in numbers {
        message.extend([0x92, 0x01, 0x81, 0xa6]);
        message.extend(b"number");
        message.push(0xcd);
        message.extend(number.to_be_bytes());
    }
    message
}

/// A message that a limit holds up when the stop begins is appended all the same.
#[test]
fn a_stop_loses_no_message_that_waits_for_a_limit() {
    let splunk = Splunk::start(false);
    let address = free_address();
    let limits = json!({"sources": {"fluent_forward": {"items_per_second": 4}}});
    let mut gateway = gateway_with(&splunk, json!({"address": address}), limits);
    let mut stream = TcpStream::connect(address).unwrap();
    // More than the allowance, which the next message waits for.
    stream.write_all(&message(0..40)).unwrap();
    let of_source = |gateway: &Gateway, name: &str| {
        let name = format!("tidegate_{name}_total{{source=\"fluent_forward\"");
        let metrics = gateway.metrics();
        metrics.iter().filter(|(known, _)| known.starts_with(&name)).map(|(_, count)| *count).sum::<f64>()
    };
    until(SOON, "the first message", || of_source(&gateway, "items_accepted") == 40.0);
    stream.write_all(&message(40..45)).unwrap();
    until(SOON, "the second to be held up", || of_source(&gateway, "requests_refused") >= 1.0);
    assert_eq!(gateway.term(), 0);
    gateway.start();
    gateway.at_rest(SOON);
    assert_eq!(numbers(&splunk), (0..45).collect());
}

#[test]
fn python_loggers_arrive_with_their_times() {
    let splunk = Splunk::start(false);
    let address = free_address();
    let gateway = gateway(&splunk, json!({"address": address}));
    finish(&mut python(address, &["logger", "100"])).succeeded();
    until(SOON, "all records", || splunk.state().events.len() >= 200);
    gateway.at_rest(SOON);
    gateway.books_close();
    let events = splunk.state().events.clone();
    for tag in ["logger.coarse", "logger.precise"] {
        let of_tag: Vec<&Value> =
            events.iter().filter(|event| event["fields"]["fluent.tag"] == tag).collect();
        let numbers: BTreeSet<u64> =
            of_tag.iter().map(|event| event["fields"]["number"].as_u64().unwrap()).collect();
        assert_eq!((of_tag.len(), numbers), (100, (0..100).collect()));
        let is_precise = of_tag.iter().any(|event| event["time"].as_f64().unwrap().fract() != 0.0);
        assert_eq!(is_precise, tag == "logger.precise");
    }
}

#[test]
fn every_mode_is_acknowledged_and_arrives() {
    let splunk = Splunk::start(false);
    let address = free_address();
    let gateway = gateway(&splunk, json!({"address": address}));
    finish(&mut python(address, &["modes"])).succeeded();
    gateway.at_rest(SOON);
    gateway.books_close();
    let events = splunk.state().events.clone();
    for (mode, count) in [
        ("single", 1),
        ("forward", 3),
        ("packed", 3),
        ("gzip", 3),
        ("large", 50_000),
        ("silent", 1),
        ("last", 1),
    ] {
        let numbers: Vec<u64> = events
            .iter()
            .filter(|event| event["fields"]["mode"] == mode)
            .map(|event| {
                let number = event["fields"]["number"].as_u64().unwrap();
                assert_eq!(event["event"], format!("{mode} {number}"));
                assert_eq!(event["fields"]["fluent.tag"], format!("py.{mode}"));
                number
            })
            .collect();
        assert_eq!(numbers.len(), count, "{mode}");
        assert_eq!(numbers.into_iter().collect::<BTreeSet<_>>().len(), count, "{mode}");
    }
}

#[test]
fn the_shared_key_and_the_password_decide_who_sends() {
    let splunk = Splunk::start(false);
    let address = free_address();
    let users = json!({"anna": "one"});
    let gateway = gateway(&splunk, json!({"address": address, "shared_key": "secret", "users": users}));
    let outcome = |arguments: &[&str]| finish(&mut python(address, arguments)).succeeded().trim().to_owned();
    assert_eq!(outcome(&["login", "secret", "anna", "one"]), "accepted");
    assert_eq!(outcome(&["login", "other", "anna", "one"]), "refused: shared_key mismatch");
    assert_eq!(outcome(&["login", "secret", "anna", "two"]), "refused: username/password mismatch");
    assert_eq!(outcome(&["login", "secret", "ben", "one"]), "refused: username/password mismatch");
    gateway.at_rest(SOON);
    assert_eq!(splunk.state().events.len(), 1);
    assert_eq!(gateway.metrics()["tidegate_fluent_forward_failed_handshakes_total"], 3.0);
}

/// A message that cannot be read ends its connection, what came before it is accepted, and others go on.
#[test]
fn malformed_and_oversize_messages_end_their_connection() {
    let splunk = Splunk::start(false);
    let address = free_address();
    let gateway = gateway(&splunk, json!({"address": address, "max_body": "64KiB"}));
    // ["a", 1, {"log": "b"}, {"chunk": "c"}], and {"ack": "c"}.
    let good = "94a1610181a36c6f67a16281a56368756e6ba163";
    let ack = "81a361636bda000163";
    for (what, bytes, answer) in [
        ("no MessagePack", "c1".to_owned(), ""),
        ("no message", "a161".to_owned(), ""),
        ("a length of 4 GiB", "92a161dbffffffff".to_owned(), ""),
        ("a good message before", format!("{good}c1"), ack),
        ("damaged gzip", "93a161c4021f8b81aa636f6d70726573736564a4677a6970".to_owned(), ""),
    ] {
        let printed = finish(&mut python(address, &["bytes", &bytes])).succeeded();
        assert_eq!(printed.trim(), answer, "{what}");
    }
    gateway.at_rest(SOON);
    gateway.books_close();
    assert_eq!(splunk.state().events.len(), 1);
    assert_eq!(gateway.metrics()["tidegate_fluent_forward_malformed_messages_total"], 5.0);
}

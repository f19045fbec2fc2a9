//! The sink `http` before a server that reads JSON as anybody would: every item arrives, as what it was, whether the server
//! fails, is slow, or finds requests too long, and whether the gateway is killed.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tidegate_load::otlp::{Signal, drive_blocking};
use tidegate_tests::{Gateway, SOON, http, otlp_profile, until};
use tidegate_wire::coding::Decode;
use tidegate_wire::zstd;

/// How a server answers.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Well,
    Slow,
    Busy,
    /// 413 to what is longer than this, decompressed.
    AtMost(usize),
}

/// A server on loopback; it serves until the test's end.
struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    mood: Mood,
    items: Vec<Value>,
    /// Requests that were answered, whatever with.
    requests: usize,
    /// The longest body that was accepted, decompressed.
    longest: usize,
}

impl Server {
    fn start(mood: Mood) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { mood, items: vec![], requests: 0, longest: 0 }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &state));
            }
        });
        Server { address, state }
    }

    fn set(&self, mood: Mood) {
        self.state.lock().unwrap().mood = mood;
    }

    fn requests(&self) -> usize {
        self.state.lock().unwrap().requests
    }

    fn items(&self) -> Vec<Value> {
        self.state.lock().unwrap().items.clone()
    }
}

/// Serves a connection until its end.
fn serve(stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? <= 2 {
                break;
            }
            head.push(line.trim().to_ascii_lowercase());
        }
        let header = |name: &str| head.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        let mut body = vec![0; header("content-length")?.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        assert_eq!(head.first()?, "post /in?key=1 http/1.1");
        let body = match header("content-encoding") {
            None => body,
            Some("gzip") => {
                let mut plain = Vec::new();
                flate2::read::GzDecoder::new(&body[..]).take(64 << 20).read_to_end_of(&mut plain);
                plain
            }
            Some("zstd") => unzstd(&body),
            other => panic!("{other:?}"),
        };
        let items: Vec<Value> = match header("content-type")? {
            "application/x-ndjson" => str::from_utf8(&body)
                .unwrap()
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            "application/json" => serde_json::from_slice(&body).unwrap(),
            other => panic!("{other}"),
        };
        let mood = state.lock().unwrap().mood;
        if matches!(mood, Mood::Slow) {
            thread::sleep(Duration::from_millis(100));
        }
        let status = match mood {
            Mood::Busy => "503 Service Unavailable",
            Mood::AtMost(most) if body.len() > most => "413 Content Too Large",
            _ => {
                let mut state = state.lock().unwrap();
                state.items.extend(items);
                state.longest = state.longest.max(body.len());
                "202 Accepted"
            }
        };
        state.lock().unwrap().requests += 1;
        writer.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok").as_bytes()).ok()?;
    }
}

trait ReadToEndOf {
    fn read_to_end_of(self, out: &mut Vec<u8>);
}

impl<R: Read> ReadToEndOf for R {
    fn read_to_end_of(mut self, out: &mut Vec<u8>) {
        std::io::copy(&mut self, out).unwrap();
    }
}

fn unzstd(body: &[u8]) -> Vec<u8> {
    let (mut decoder, mut plain, mut rest) = (zstd::Decoder::new(u64::MAX), vec![0; 64 << 20], body);
    let mut len = 0;
    while !rest.is_empty() {
        let progress = decoder.step(rest, &mut plain[len..]).unwrap();
        len += progress.written;
        rest = &rest[progress.read..];
    }
    plain.truncate(len);
    plain
}

fn gateway(server: &Server, more: Value) -> Gateway {
    let mut sink = json!({
        "type": "http", "endpoints": [format!("http://{}/in?key=1", server.address)],
        "linger": "50ms", "backoff": {"max": "200ms"}, "timeout": "10s",
    });
    sink.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Gateway::started(json!({"memory": "96MiB", "sinks": {"app": sink}}))
}

fn distinct(items: &[Value]) -> BTreeSet<String> {
    items.iter().map(Value::to_string).collect()
}

/// Each signal in both formats and each compression: each item once.
#[test]
fn every_item_arrives_once() {
    for format in ["ndjson", "json_array"] {
        for compression in ["none", "gzip", "zstd"] {
            let server = Server::start(Mood::Well);
            let gateway = gateway(&server, json!({"format": format, "compression": compression}));
            let mut sent = 0;
            for signal in Signal::ALL {
                let report = drive_blocking(&gateway.otlp_target(), &otlp_profile(signal, 20)).unwrap();
                sent += report.accepted * 50;
            }
            gateway.at_rest(SOON);
            gateway.books_close();
            let items = server.items();
            let delivered = gateway.sink("app")["delivered"].as_u64();
            assert_eq!((delivered, items.len() as u64), (Some(sent), sent), "{format} {compression}");
            assert_eq!(distinct(&items).len() as u64, sent);
            for item in &items {
                let signal = item["signal"].as_str().unwrap();
                assert!(item["resource"]["attributes"].is_object(), "{item}");
                let time = if signal == "traces" { &item["start_time"] } else { &item["time"] };
                assert!(time.as_str().unwrap().ends_with('Z'), "{item}");
            }
            let signals: BTreeSet<_> = items.iter().map(|item| item["signal"].as_str().unwrap()).collect();
            assert_eq!(signals, BTreeSet::from(["logs", "metrics", "traces"]));
        }
    }
}

/// Every field of an item is in its line, with its type.
#[test]
fn a_line_has_every_field_of_its_item() {
    let server = Server::start(Mood::Well);
    let gateway = gateway(&server, json!({}));
    let record = json!({
        "timeUnixNano": "1700000000123456789", "severityNumber": 13, "severityText": "WARN",
        "body": {"stringValue": "wörter \"quoted\"\n"}, "traceId": "5b8efff798038103d269b633813fc60c",
        "attributes": [
            {"key": "whole", "value": {"intValue": "-9007199254740993"}}, {"key": "real", "value": {"doubleValue": 2.0}},
            {"key": "bytes", "value": {"bytesValue": "AAEC/w=="}},
            {"key": "list", "value": {"arrayValue": {"values": [{"boolValue": true}, {}]}}},
        ],
    });
    let request = json!({"resourceLogs": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "checkout"}}]},
        "schemaUrl": "https://a", "scopeLogs": [{"scope": {"name": "lib"}, "logRecords": [record]}],
    }]});
    let head = ["POST /v1/logs HTTP/1.1", "content-type: application/json"];
    assert_eq!(http::request(gateway.http(), &head, request.to_string().as_bytes()).unwrap().status, 200);
    // Documents, and samples of remote write, become the same.
    let bulk = "{\"create\":{\"_index\":\"logs\"}}\n{\"@timestamp\":\"2026-01-01T00:00:00Z\",\"message\":\"hello\"}\n";
    let head = ["POST /elasticsearch/_bulk HTTP/1.1", "content-type: application/x-ndjson"];
    assert_eq!(http::request(gateway.http(), &head, bulk.as_bytes()).unwrap().status, 200);
    gateway.at_rest(SOON);
    gateway.books_close();
    let mut items = server.items();
    items.sort_by_key(|item| item["body"] == "hello");
    let [line, document] = items.try_into().unwrap();
    assert_eq!(
        line,
        json!({
            "signal": "logs", "time": "2023-11-14T22:13:20.123456789Z", "severity_number": 13, "severity_text": "WARN",
            "body": "wörter \"quoted\"\n", "trace_id": "5b8efff798038103d269b633813fc60c",
            "attributes": {"whole": -9_007_199_254_740_993_i64, "real": 2.0, "bytes": "AAEC/w==", "list": [true, null]},
            "resource": {"attributes": {"service.name": "checkout"}, "schema_url": "https://a"}, "scope": {"name": "lib"},
        })
    );
    assert_eq!(document["time"], "2026-01-01T00:00:00.000Z");
}

/// A server that is busy, then slow, and a gateway that is killed meanwhile: everything arrives, and most of it once.
#[test]
fn nothing_is_lost_when_the_gateway_is_killed() {
    let server = Server::start(Mood::Busy);
    let mut gateway =
        gateway(&server, json!({"max_request_bytes": "64KiB", "compression": "gzip", "max_in_flight": 2}));
    let report = drive_blocking(&gateway.otlp_target(), &otlp_profile(Signal::Logs, 100)).unwrap();
    assert_eq!((report.accepted, report.failed), (100, 0), "{:?}", report.reasons);
    until(SOON, "refusals", || server.requests() > 3);
    server.set(Mood::Slow);
    until(SOON, "items to flow", || !server.items().is_empty());
    gateway.kill9();
    gateway.start();
    until(SOON, "items to flow again", || server.items().len() > 1000);
    gateway.kill9();
    server.set(Mood::Well);
    gateway.start();
    gateway.at_rest(SOON);
    gateway.books_close();
    let items = server.items();
    assert_eq!(distinct(&items).len(), 5000);
    assert!(items.len() < 10_000, "{} of 5000 came", items.len());
    assert_eq!(gateway.sink("app")["dropped"], json!({}));
}

/// A server that takes short requests only gets all of them, and what is in no request short enough is told.
#[test]
fn requests_become_as_short_as_the_server_wants_them() {
    let server = Server::start(Mood::AtMost(3000));
    let gateway = gateway(&server, json!({}));
    drive_blocking(&gateway.otlp_target(), &otlp_profile(Signal::Traces, 10)).unwrap();
    let long = "x".repeat(5000);
    let record = json!({"body": {"stringValue": long}});
    let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record, {"body": {"stringValue": "short"}}]}]}]});
    let head = ["POST /v1/logs HTTP/1.1", "content-type: application/json"];
    assert_eq!(http::request(gateway.http(), &head, request.to_string().as_bytes()).unwrap().status, 200);
    gateway.at_rest(Duration::from_secs(60));
    gateway.books_close();
    let items = server.items();
    assert_eq!((items.len(), distinct(&items).len()), (501, 501));
    let sink = gateway.sink("app");
    assert_eq!((&sink["delivered"], &sink["dropped"]), (&json!(501), &json!({"too_large": 1})), "{sink:#}");
    assert!(server.state.lock().unwrap().longest <= 3000);
}

//! Sinks behind a proxy that the environment names: every kind of sink reaches its endpoint, and nothing is lost while the
//! proxy refuses.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::net::SocketAddr;
use tidegate_tests::http::request;
use tidegate_tests::{Gateway, Proxy, SOON, certificates, until};

/// `user:hunter2`.
const CREDENTIALS: &str = "Basic dXNlcjpodW50ZXIy";

/// A sink of each kind, whose endpoints only the proxy knows.
fn sinks(direct: SocketAddr) -> Value {
    let quick = json!({"min": "20ms", "max": "200ms"});
    json!({
        "grpc": {"type": "otlp", "endpoints": ["http://collector.test:4317"], "backoff": quick},
        "otlp": {"type": "otlp", "protocol": "http", "endpoints": ["http://collector.test"], "backoff": quick},
        "json": {"type": "http", "endpoints": ["http://app.test/ingest/logs"], "signals": ["logs"], "backoff": quick},
        "write": {
            "type": "prometheus_remote_write", "url": "http://receiver.test:9090/api/v1/write", "backoff": quick,
        },
        "search": {
            "type": "elasticsearch", "endpoints": ["http://search.test:9200/elasticsearch"], "signals": ["logs"],
            "backoff": quick,
        },
        "direct": {"type": "otlp", "protocol": "http", "endpoints": [format!("http://{direct}")], "backoff": quick},
    })
}

/// A gateway that takes everything.
fn receiver() -> Gateway {
    Gateway::started(json!({"memory": "96MiB", "sinks": {"nowhere": {"type": "blackhole"}}}))
}

fn proxy(receiver: &Gateway) -> Proxy {
    let hosts = [
        ("collector.test:4317", receiver.grpc()),
        ("collector.test:80", receiver.http()),
        ("app.test:80", receiver.http()),
        ("receiver.test:9090", receiver.http()),
        ("search.test:9200", receiver.http()),
    ];
    Proxy::start(&hosts, CREDENTIALS)
}

/// A gateway whose environment names the proxy.
fn sender(receiver: &Gateway, proxy: &Proxy) -> Gateway {
    let mut gateway = Gateway::new(json!({"memory": "128MiB", "sinks": sinks(receiver.http())}));
    gateway.set_variable("http_proxy", &format!("http://user:hunter2@{}", proxy.address()));
    gateway.set_variable("HTTP_PROXY", "http://127.0.0.1:1");
    gateway.start();
    gateway
}

fn send(gateway: &Gateway) {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos().to_string();
    let log = json!({"timeUnixNano": now, "severityNumber": 9, "body": {"stringValue": "paid"}});
    let point = json!({"timeUnixNano": now, "asDouble": 1.5});
    for (path, body) in [
        ("/v1/logs", json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]})),
        (
            "/v1/metrics",
            json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [
                {"name": "load", "gauge": {"dataPoints": [point]}},
            ]}]}]}),
        ),
    ] {
        let head = [&*format!("POST {path} HTTP/1.1"), "Content-Type: application/json"];
        let answer = request(gateway.http(), &head, body.to_string().as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

/// Items that each sink has delivered, and dropped.
fn delivered(gateway: &Gateway) -> Vec<(String, u64, u64)> {
    let status = gateway.status();
    let books = status["books"]["sinks"].as_array().unwrap();
    let line = |book: &Value| {
        let dropped = book["dropped"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        (book["name"].as_str().unwrap().to_owned(), book["delivered"].as_u64().unwrap(), dropped)
    };
    books.iter().map(line).collect()
}

#[test]
fn every_sink_reaches_its_endpoint_through_the_proxy() {
    let receiver = receiver();
    let proxy = proxy(&receiver);
    let gateway = sender(&receiver, &proxy);
    send(&gateway);
    gateway.at_rest(SOON);
    for (sink, delivered, dropped) in delivered(&gateway) {
        let expected = if ["json", "search", "write"].contains(&&*sink) { 1 } else { 2 };
        assert_eq!((delivered, dropped), (expected, 0), "{sink}");
    }
    let mut seen = proxy.seen();
    seen.sort();
    seen.dedup();
    let all = seen.join("\n");
    for line in [
        "CONNECT collector.test:4317",
        "POST http://app.test/ingest/logs",
        "POST http://collector.test/v1/logs",
        "POST http://collector.test/v1/metrics",
        "POST http://receiver.test:9090/api/v1/write",
        "POST http://search.test:9200/elasticsearch/_bulk",
    ] {
        assert!(seen.iter().any(|known| known.starts_with(line)), "{line} in\n{all}");
    }
    // Neither the endpoint on loopback, nor anything by the variable in capitals.
    assert!(!all.contains("127.0.0.1"), "{all}");
    assert!(!gateway.log().contains("hunter2"), "{}", gateway.log());
    gateway.books_close();
    receiver.books_close();
}

/// P2: what the proxy refuses, the endpoint has not seen.
#[test]
fn a_proxy_that_wants_other_credentials_loses_nothing() {
    let receiver = receiver();
    let proxy = proxy(&receiver);
    proxy.demand("Basic b3RoZXI6b25l");
    let gateway = sender(&receiver, &proxy);
    send(&gateway);
    until(SOON, "every sink but the direct one to be refused", || {
        let failing = |name| gateway.sink(name)["failures"].as_u64() > Some(1);
        ["grpc", "otlp", "json", "write", "search"].into_iter().all(failing)
    });
    assert!(proxy.refused() > 0 && proxy.seen().is_empty(), "{:?}", proxy.seen());
    let direct = delivered(&gateway).into_iter().find(|(sink, ..)| sink == "direct").unwrap();
    assert_eq!(direct, ("direct".to_owned(), 2, 0));
    proxy.demand(CREDENTIALS);
    gateway.at_rest(SOON);
    assert!(delivered(&gateway).iter().all(|(_, delivered, dropped)| *delivered > 0 && *dropped == 0));
    gateway.books_close();
}

/// TLS ends at the endpoint: the proxy carries it, for HTTP/1.1 and for gRPC.
#[test]
fn tls_goes_through_a_tunnel() {
    let mut receiver = Gateway::new(json!({}));
    let folder = receiver.folder().to_owned();
    certificates::authority(&folder, "ca");
    certificates::sign(&folder, "ca", "server", "/CN=server");
    receiver.configure(json!({
        "memory": "96MiB",
        "listen": {
            "http": receiver.http(), "grpc": receiver.grpc(), "admin": receiver.admin(),
            "tls": {"cert_file": folder.join("server.pem"), "key_file": folder.join("server.key")},
        },
        "sinks": {"nowhere": {"type": "blackhole"}},
    }));
    receiver.start();
    let hosts = [("secure.test:443", receiver.http()), ("secure.test:4317", receiver.grpc())];
    let proxy = Proxy::start(&hosts, CREDENTIALS);
    let sink = |protocol, url| {
        let tls = json!({"ca_file": folder.join("ca.pem"), "server_name": "localhost"});
        json!({"type": "otlp", "protocol": protocol, "endpoints": [url], "tls": tls})
    };
    let mut gateway = Gateway::new(json!({"memory": "96MiB", "sinks": {
        "http": sink("http", "https://secure.test"), "grpc": sink("grpc", "https://secure.test:4317"),
    }}));
    gateway.set_variable("https_proxy", &format!("http://user:hunter2@{}", proxy.address()));
    gateway.start();
    send(&gateway);
    gateway.at_rest(SOON);
    assert!(delivered(&gateway).iter().all(|(_, delivered, dropped)| (*delivered, *dropped) == (2, 0)));
    let mut seen = proxy.seen();
    seen.sort();
    seen.dedup();
    assert_eq!(seen, ["CONNECT secure.test:4317", "CONNECT secure.test:443"]);
    gateway.books_close();
}

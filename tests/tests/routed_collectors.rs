//! `route_by` before real OpenTelemetry Collectors: three of them share the items by a key. One is killed and comes back, and the gateway
//! is killed meanwhile: in the end every item is there, and all items with one key are at one Collector.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_tests::{Collector, Gateway, SOON, http, until};

const TIME_NS: u64 = 1_700_000_000_000_000_000;
const SERVICES: usize = 7;
const KEYS: usize = 40;

/// A way to route: what has keys, and which items share one.
struct Way {
    route_by: &'static str,
    transport: &'static str,
    signal: &'static Signal,
    /// The key of an item as a Collector writes it down.
    key: fn(&Value) -> String,
}

/// The names of a signal's lists in OTLP/JSON.
struct Signal {
    path: &'static str,
    lists: [&'static str; 3],
    item: fn(round: usize, number: usize) -> Value,
}

const TRACES: Signal = Signal {
    path: "/v1/traces",
    lists: ["resourceSpans", "scopeSpans", "spans"],
    item: |round, number| {
        let (trace, span) = (format!("{:032x}", 1 + number), format!("{:016x}", 1 + round * KEYS + number));
        json!({"traceId": trace, "spanId": span, "name": "work", "startTimeUnixNano": TIME_NS.to_string(),
               "endTimeUnixNano": (TIME_NS + 5).to_string()})
    },
};

const LOGS: Signal = Signal {
    path: "/v1/logs",
    lists: ["resourceLogs", "scopeLogs", "logRecords"],
    item: |round, number| {
        let body = json!({"stringValue": format!("line {number} of round {round}")});
        json!({"timeUnixNano": (TIME_NS + round as u64).to_string(), "body": body})
    },
};

const METRICS: Signal = Signal {
    path: "/v1/metrics",
    lists: ["resourceMetrics", "scopeMetrics", "metrics"],
    item: |round, number| {
        let time = (TIME_NS + round as u64).to_string();
        json!({"name": format!("metric_{number}"), "gauge": {"dataPoints": [{"timeUnixNano": time, "asDouble": 1.5}]}})
    },
};

fn service(item: &Value) -> String {
    item[0][0]["resource"]["attributes"][0]["value"]["stringValue"].as_str().unwrap().to_owned()
}

/// The sink with Collectors that all take what they are sent.
struct Rig {
    gateway: Gateway,
    collectors: Vec<Collector>,
    signal: &'static Signal,
    /// Requests sent so far.
    rounds: usize,
}

impl Rig {
    fn of(way: &Way, collectors: Vec<Collector>) -> Rig {
        let is_grpc = way.transport == "grpc";
        let address = |one: &Collector| if is_grpc { one.grpc() } else { one.http() };
        let endpoints: Vec<_> = collectors.iter().map(|one| format!("http://{}", address(one))).collect();
        let gateway = Gateway::started(json!({
            "memory": "96MiB",
            "sinks": { "collectors": {
                "type": "otlp", "protocol": way.transport, "endpoints": endpoints, "route_by": way.route_by,
                "backoff": { "max": "200ms" }, "handoff": { "after": "200ms" },
            } },
        }));
        Rig { gateway, collectors, signal: way.signal, rounds: 0 }
    }

    /// Sends each key once from each service.
    fn write(&mut self) {
        let [resources, scopes, items] = self.signal.lists;
        let each: Vec<Value> = (0..SERVICES)
            .map(|service| {
                let list: Vec<_> = (0..KEYS)
                    .map(|number| (self.signal.item)(self.rounds * SERVICES + service, number))
                    .collect();
                let name =
                    json!({"key": "service.name", "value": {"stringValue": format!("service-{service}")}});
                json!({"resource": {"attributes": [name]}, scopes: [{items: list}]})
            })
            .collect();
        let head = [&format!("POST {} HTTP/1.1", self.signal.path), "content-type: application/json"];
        let body = json!({ resources: each }).to_string();
        let answer = http::request(self.gateway.http(), &head, body.as_bytes()).unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        self.rounds += 1;
    }

    fn members(&self) -> Vec<Value> {
        self.gateway.sink("collectors")["members"].as_array().unwrap().clone()
    }

    fn all_sent(&self) {
        self.gateway.at_rest(SOON);
        until(SOON, "the Collectors to have what waited for them", || {
            self.members().iter().all(|member| member["handed_off_requests"] == 0 && member["in_flight"] == 0)
        });
        self.gateway.books_close();
    }

    /// Checks that everything that was sent is there; what was sent again may be there twice.
    fn all_there(&self) {
        let items: BTreeSet<String> = self.collectors.iter().flat_map(Collector::items).collect();
        assert_eq!(items.len(), self.rounds * SERVICES * KEYS);
    }

    /// Checks that all items with one key are at one Collector.
    fn each_key_is_at_one(&self, key: fn(&Value) -> String) {
        let mut holders = BTreeMap::<String, BTreeSet<usize>>::new();
        for (number, collector) in self.collectors.iter().enumerate() {
            for item in collector.items() {
                let item = serde_json::from_str(&item).unwrap();
                holders.entry(key(&item)).or_default().insert(number);
            }
        }
        let shared: Vec<_> = holders.iter().filter(|(_, holders)| holders.len() != 1).collect();
        assert!(shared.is_empty(), "at several Collectors: {shared:?}");
        let used: BTreeSet<_> = holders.values().flatten().collect();
        assert!(used.len() > 1, "the keys are spread");
    }
}

fn goes_and_comes_back(way: &Way) {
    let Some(collectors) = (0..3).map(|_| Collector::started()).collect() else { return };
    let mut rig = Rig::of(way, collectors);
    for _ in 0..3 {
        rig.write();
    }
    rig.all_sent();
    rig.all_there();
    // One that has keys, so that something waits for it.
    let gone = rig.collectors.iter().position(|collector| !collector.items().is_empty()).unwrap();
    rig.collectors[gone].kill9();
    for _ in 0..3 {
        rig.write();
    }
    until(SOON, "what the Collector is to get to be on disk", || {
        rig.members().iter().any(|member| member["handed_off_requests"].as_u64() > Some(0))
    });
    rig.gateway.kill9();
    rig.gateway.start();
    rig.write();
    rig.collectors[gone].start();
    rig.all_sent();
    rig.all_there();
    rig.each_key_is_at_one(way.key);
}

#[test]
fn a_trace_is_at_one_collector() {
    let key = |item: &Value| item[1]["traceId"].as_str().unwrap().to_owned();
    goes_and_comes_back(&Way { route_by: "trace_id", transport: "grpc", signal: &TRACES, key });
}

#[test]
fn the_logs_of_a_service_are_at_one_collector() {
    goes_and_comes_back(&Way { route_by: "service", transport: "http", signal: &LOGS, key: service });
}

#[test]
fn a_metric_is_at_one_collector() {
    let key = |item: &Value| item[1][0][0]["name"].as_str().unwrap().to_owned();
    goes_and_comes_back(&Way { route_by: "metric", transport: "grpc", signal: &METRICS, key });
}

/// A Collector refuses what is longer than its limit, and gets all of it in pieces.
#[test]
fn a_collector_with_a_short_limit_gets_everything() {
    let pipeline = json!({"receivers": ["otlp"], "exporters": ["recorder"]});
    let limited = json!({
        "receivers": {"otlp": {"protocols": {
            "grpc": {"endpoint": "GRPC_ADDRESS"},
            "http": {"endpoint": "HTTP_ADDRESS", "max_request_body_size": 8192},
        }}},
        "exporters": {"recorder": {"folder": "FOLDER"}},
        "service": {"telemetry": {"metrics": {"level": "none"}}, "pipelines": {"traces": pipeline}},
    });
    let Some(collectors) = (0..2).map(|_| Collector::of(&limited.to_string())).collect() else { return };
    let key = |item: &Value| item[1]["traceId"].as_str().unwrap().to_owned();
    let mut rig = Rig::of(&Way { route_by: "trace_id", transport: "http", signal: &TRACES, key }, collectors);
    for _ in 0..20 {
        rig.write();
    }
    rig.all_sent();
    let sink = rig.gateway.sink("collectors");
    assert_eq!(sink["dropped"], json!({}), "{sink:#}");
    rig.all_there();
    rig.each_key_is_at_one(key);
}

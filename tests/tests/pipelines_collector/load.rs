//! Requests as SDKs and agents send them: captured ones, and made ones with what public configurations look at.

use std::ops::Range;

use serde_json::{Value, json};
use tidegate_load::otlp::{ExportRequest, NUMBER, Signal};

/// A request.
pub(crate) struct Request {
    pub(crate) path: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

const TIME: u64 = 1_700_000_000_000_000_000;
/// Items that an SDK for Python sent.
const CAPTURED: [(&str, &[u8]); 3] = [
    ("/v1/traces", include_bytes!("../../../crates/wire/tests/data/otlp/python-traces.pb")),
    ("/v1/metrics", include_bytes!("../../../crates/wire/tests/data/otlp/python-metrics.pb")),
    ("/v1/logs", include_bytes!("../../../crates/wire/tests/data/otlp/python-logs.pb")),
];
/// Requests of each signal of each kind of made ones.
const REQUESTS: usize = 12;
/// Items of each of them.
const ITEMS: u64 = 40;

pub(crate) fn requests() -> Vec<Request> {
    let protobuf = "application/x-protobuf";
    let captured = CAPTURED.map(|(path, body)| Request { path, content_type: protobuf, body: body.to_vec() });
    let mut numbers = (0..).step_by(usize::try_from(ITEMS).unwrap());
    let ordinary: Vec<Request> = Signal::ALL
        .into_iter()
        .flat_map(|signal| {
            numbers
                .by_ref()
                .take(REQUESTS)
                .map(move |first| {
                    let request = ExportRequest { signal, items: ITEMS, first, time_ns: TIME };
                    Request { path: signal.path(), content_type: protobuf, body: request.encode() }
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let mut made = Vec::new();
    for seed in 1..=REQUESTS as u64 {
        let mut random = Random(seed);
        for (path, body) in [
            ("/v1/traces", traces as fn(&mut Random, Range<u64>) -> Value),
            ("/v1/logs", logs),
            ("/v1/metrics", metrics),
        ] {
            let first = numbers.next().unwrap();
            let body = body(&mut random, first..first + ITEMS).to_string().into_bytes();
            made.push(Request { path, content_type: "application/json", body });
        }
    }
    captured.into_iter().chain(ordinary).chain(made).collect()
}

/// A linear congruential generator: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }

    fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from_digit(u32::try_from(self.below(16)).unwrap(), 16).unwrap()).collect()
    }
}

/// OTLP/JSON of a value.
fn any(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        Value::Array(values) => json!({"arrayValue": {"values": values.iter().map(any).collect::<Vec<_>>()}}),
        Value::Object(_) => json!({"kvlistValue": {"values": pairs(value)}}),
    }
}

fn pairs(map: &Value) -> Value {
    map.as_object().unwrap().iter().map(|(key, value)| json!({"key": key, "value": any(value)})).collect()
}

/// Adds fields to an object.
fn extend(object: &mut Value, more: Value) {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
}

fn resource(random: &mut Random) -> Value {
    let at = random.below(12);
    let service = random.pick(&["checkout", "cart", "loadgenerator", "payment-service", "ad", "kubelet"]);
    let mut attributes = json!({
        "service.name": service, "service.version": "1.14.3", "service.instance.id": random.hex(12),
        "k8s.pod.name": format!("{service}-{}", random.hex(5)), "k8s.pod.uid": random.hex(32),
        "k8s.namespace.name": random.pick(&["shop", "kube-system", "default"]),
        "k8s.container.restart_count": at, "host.name": format!("node-{at}.eu.example.com"),
        "cloud.region": "eu-central-1", "os.description": "Linux 6.1.0", "process.pid": 17 + at,
    });
    if at.is_multiple_of(2) {
        let line = "java -Xmx512m -jar shop.jar --password=hunter2 --port 8080";
        extend(&mut attributes, json!({"process.command_line": line, "deployment.environment": "Staging"}));
    }
    if at.is_multiple_of(3) {
        let tags = json!({"team": "payments", "cost": {"center": 12, "tags": ["a", "b"]}});
        extend(&mut attributes, json!({"labels": tags, "host.ip": ["10.0.0.7", "fe80::1"]}));
    }
    json!({"attributes": pairs(&attributes)})
}

/// Items in two scopes of a resource.
fn scopes(random: &mut Random, items: Vec<Value>, list: &str) -> Value {
    let (first, second) = items.split_at(items.len() / 3);
    let names = ["io.opentelemetry.netty-4.1", "otelhttp", "noisy.library"];
    let scope = |random: &mut Random, items: &[Value]| {
        let attributes = json!({"scope.kind": "auto", "secret": "x"});
        let scope =
            json!({"name": random.pick(&names), "version": "2.1.0", "attributes": pairs(&attributes)});
        json!({"scope": scope, list: items, "schemaUrl": "https://opentelemetry.io/schemas/1.26.0"})
    };
    json!([scope(random, first), scope(random, second)])
}

fn traces(random: &mut Random, numbers: Range<u64>) -> Value {
    let resource = resource(random);
    let spans = numbers.map(|number| span(random, number)).collect();
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": scopes(random, spans, "spans")}]})
}

fn span(random: &mut Random, number: u64) -> Value {
    let route = random.pick(&["/healthz", "/readyz", "/api/v1/orders/{id}", "/user/{id}/list", "/metrics"]);
    let user = random.below(9_000);
    let mut attributes = json!({
        NUMBER: number, "http.request.method": random.pick(&["GET", "POST", "get"]), "http.route": route,
        "http.target": format!("/user/{user}/list/{}?token={}", random.below(90), random.hex(8)),
        "url.full": format!("https://shop.example.com:8443/orders/{user}?session={}", random.hex(6)),
        "http.status_code": random.pick(&["200", "404", "500", "many"]), "http.response.status_code": random.pick(&[200, 404, 503]),
        "enduser.id": format!("user-{user}@example.com"), "client.address": random.pick(&["10.1.2.3", "192.168.7.1", "8.8.8.8"]),
    });
    match random.below(4) {
        0 => extend(
            &mut attributes,
            json!({
                "db.system": "mysql", "db.statement": format!("SELECT * FROM users WHERE id = {user} AND name = 'joe'"),
                "db.user": "root", "db.operation": "SELECT",
            }),
        ),
        1 => extend(
            &mut attributes,
            json!({
                "rpc.system": "grpc", "rpc.method": "GetCart", "rpc.grpc.status_code": random.pick(&[0, 2, 14]),
                "http.request.header.authorization": ["Bearer abc.def.ghi"], "http.request.header.x_b3": ["1"],
            }),
        ),
        2 => extend(
            &mut attributes,
            json!({"messaging.system": "kafka", "messaging.kafka.partition": 3, "retry": true, "ratio": 0.25}),
        ),
        _ => {}
    }
    if random.below(8) == 0 {
        extend(&mut attributes, json!({"sampling.priority": random.pick(&[0, 1, 100])}));
    }
    let exception = json!({
        "exception.type": "java.net.SocketTimeoutException", "exception.message": format!("timed out for user {user}"),
        "exception.stacktrace": "java.net.SocketTimeoutException: timed out\n\tat Main.main(Main.java:7)".repeat(3),
    });
    let mut events = Vec::new();
    if random.below(3) == 0 {
        events.push(json!({"timeUnixNano": (TIME + number).to_string(), "name": "exception", "attributes": pairs(&exception)}));
    }
    if random.below(2) == 0 {
        let message = json!({"message.id": number, "message.type": "SENT"});
        events.push(json!({"timeUnixNano": (TIME + 5).to_string(), "name": "grpc.message", "attributes": pairs(&message)}));
    }
    let name = random.pick(&[
        "GET",
        "GET /orders/123456/items",
        "grpc.health.v1.Health/Check",
        "SELECT shop.users",
        "HTTP POST",
    ]);
    let start = TIME + number * 1_000_000;
    let mut span = json!({
        "traceId": random.hex(32), "spanId": random.hex(16), "name": name, "kind": random.below(6),
        "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + random.pick(&[500, 40_000_000, 2_500_000_000])).to_string(),
        "attributes": pairs(&attributes), "events": events, "flags": 257,
        "traceState": random.pick(&["", "vendor=1", "ot=th:8", "ot=rv:9b8233f7e3a151", "ot=th:c;rv:0b8233f7e3a151"]),
    });
    if random.below(2) == 0 {
        extend(&mut span, json!({"parentSpanId": random.hex(16)}));
    }
    if random.below(3) == 0 {
        extend(&mut span, json!({"status": {"code": random.below(3), "message": "deadline exceeded"}}));
    }
    if random.below(4) == 0 {
        extend(&mut span, json!({"links": [{"traceId": random.hex(32), "spanId": random.hex(16)}]}));
    }
    span
}

fn logs(random: &mut Random, numbers: Range<u64>) -> Value {
    let resource = resource(random);
    let records = numbers.map(|number| record(random, number)).collect();
    json!({"resourceLogs": [{"resource": resource, "scopeLogs": scopes(random, records, "logRecords")}]})
}

fn record(random: &mut Random, number: u64) -> Value {
    let level = random.pick(&["debug", "info", "warn", "error", "fatal"]);
    let user = random.below(9_000);
    let body = match random.below(8) {
        0 | 1 => json!(
            json!({
                "level": level, "msg": format!("order {user} placed"), "time": "2023-11-14T22:13:20Z", "trace_id": random.hex(32),
                "user": {"email": format!("joe{user}@example.com"), "roles": ["admin", "dev"]}, "took": 12.5, "ok": true, "none": null,
            })
            .to_string()
        ),
        2 => json!(format!("level={level} msg=\"cache miss\" key=user-{user} duration=15ms")),
        3 => json!(format!(
            "10.1.2.{} - joe [14/Nov/2023:22:13:20 +0000] \"GET /orders/{user} HTTP/1.1\" 200 512",
            user % 256
        )),
        4 => json!(format!("payment with card 4111 1111 1111 {:04} by joe@example.com failed: ERROR", user)),
        5 => json!({"event": "login", "user": {"id": user, "password": "hunter2"}, "tags": ["a", "b", "a"]}),
        6 => json!(format!("the password is hunter2 of {user}")),
        _ => json!(format!("GET /healthz 200 {user}")),
    };
    let mut attributes = json!({
        NUMBER: number, "log.iostream": random.pick(&["stdout", "stderr"]), "log.file.path": "/var/log/pods/shop_cart-1_u/app/0.log",
        "user.email": format!("joe{user}@example.com"), "account.password": "hunter2", "count": format!("{user}"), "Mixed.Case": "Some Text",
    });
    if random.below(3) == 0 {
        extend(
            &mut attributes,
            json!({"http": {"request": {"method": "GET", "size": 17}, "status": 200}, "list": [3, 1, 2]}),
        );
    }
    match random.below(8) {
        0 => {
            extend(&mut attributes, json!({"sampling.threshold": "8", "sampling.randomness": random.hex(14)}))
        }
        1 => extend(&mut attributes, json!({"sampling.threshold": "c"})),
        2 => extend(&mut attributes, json!({"priority": random.pick(&[0, 50, 100])})),
        _ => {}
    }
    let mut record = json!({
        "observedTimeUnixNano": (TIME + number).to_string(), "body": any(&body), "attributes": pairs(&attributes),
    });
    if random.below(3) > 0 {
        extend(&mut record, json!({"timeUnixNano": (TIME + number * 1_000).to_string()}));
    }
    if random.below(3) > 0 {
        let (text, severity) =
            random.pick(&[("INFO", 9), ("WARN", 13), ("ERROR", 17), ("", 0), ("DEBUG", 5)]);
        extend(&mut record, json!({"severityText": text, "severityNumber": severity}));
    }
    if random.below(2) == 0 {
        extend(&mut record, json!({"traceId": random.hex(32), "spanId": random.hex(16), "flags": 1}));
    }
    record
}

fn metrics(random: &mut Random, numbers: Range<u64>) -> Value {
    let resource = resource(random);
    let metrics = numbers.map(|number| metric(random, number)).collect();
    json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": scopes(random, metrics, "metrics")}]})
}

/// A metric of one point.
fn metric(random: &mut Random, number: u64) -> Value {
    let names = [
        "system.cpu.time",
        "go_goroutines",
        "http.server.duration",
        "process_open_fds",
        "k8s.pod.cpu.usage",
        "jvm.memory.used",
    ];
    let attributes = json!({
        NUMBER: number, "state": random.pick(&["idle", "user", "system"]), "url": format!("/orders/{}", random.below(900)),
        "k8s.namespace.name": random.pick(&["shop", "kube-system"]), "pod": random.hex(5), "instance": "10.0.0.7:9100",
    });
    let mut point = json!({
        "attributes": pairs(&attributes), "startTimeUnixNano": TIME.to_string(), "timeUnixNano": (TIME + number).to_string(),
    });
    let monotonic = random.below(2) == 0;
    let (kind, more) = match random.below(6) {
        0 => ("gauge", json!({"asDouble": 0.25 + number as f64})),
        1 => ("gauge", json!({"asInt": number.to_string()})),
        2 => ("sum", json!({"asInt": random.pick(&["0", "7", "-3"])})),
        3 => (
            "histogram",
            json!({"count": "6", "sum": 90.5, "min": 1.0, "max": 50.0, "explicitBounds": [10.0, 20.0], "bucketCounts": ["1", "2", "3"]}),
        ),
        4 => (
            "exponentialHistogram",
            json!({"count": "9", "sum": 4.5, "scale": 2, "zeroCount": "2", "positive": {"offset": -4, "bucketCounts": ["1", "4", "2"]}}),
        ),
        _ => (
            "summary",
            json!({"count": "4", "sum": 10.0, "quantileValues": [{"quantile": 0.5, "value": 2.0}]}),
        ),
    };
    extend(&mut point, more);
    let mut data = json!({"dataPoints": [point]});
    match kind {
        "sum" => extend(
            &mut data,
            json!({"aggregationTemporality": 1 + random.below(2), "isMonotonic": monotonic}),
        ),
        "histogram" | "exponentialHistogram" => {
            extend(&mut data, json!({"aggregationTemporality": 1 + random.below(2)}))
        }
        _ => {}
    }
    let unit = random.pick(&["s", "By", "1", ""]);
    json!({"name": random.pick(&names), "description": "what it counts", "unit": unit, kind: data})
}

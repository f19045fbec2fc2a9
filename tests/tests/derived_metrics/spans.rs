//! Spans and log records with what derived metrics ask for, by chance.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tidegate_tests::http;

fn attribute(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Any::StringValue(value.to_owned()))
}

fn span(random: &mut SmallRng) -> Span {
    let start = 1_700_000_000_000_000_000 + random.random_range(0..400_000_000_u64);
    let mut attributes = Vec::new();
    if random.random_ratio(2, 3) {
        attributes.push(text("http.method", ["GET", "POST", "PUT"][random.random_range(0..3)]));
    }
    if random.random_ratio(1, 3) {
        attributes.push(attribute("n", Any::IntValue(random.random_range(0..6))));
    }
    if random.random_ratio(1, 4) {
        attributes.push(text("only.calls", ["x", "y"][random.random_range(0..2)]));
    }
    if random.random_ratio(1, 4) {
        attributes.push(attribute("only.duration", Any::BoolValue(random.random_ratio(1, 2))));
    }
    if random.random_ratio(1, 5) {
        attributes.push(text("peer.service", ["mail", "sms"][random.random_range(0..2)]));
    }
    if random.random_ratio(1, 8) {
        attributes.push(text("db.name", ["orders", "users"][random.random_range(0..2)]));
    }
    let mut events = Vec::new();
    if random.random_ratio(1, 6) {
        let attributes = vec![text("exception.type", ["Boom", "Bang"][random.random_range(0..2)])];
        events.push(Event { name: "exception".to_owned(), attributes, ..Event::default() });
    }
    if random.random_ratio(1, 9) {
        events.push(Event { name: "other".to_owned(), ..Event::default() });
    }
    // A span that ends before it begins took no time. In the Collector's service graph it took 584 years, so it is of no client or server.
    let kind = random.random_range(0..6);
    let took = random.random_range(0..1_800_000_000_u64);
    let end = if kind < 2 && random.random_ratio(1, 7) { start - 5 } else { start + took };
    let states = ["", "", "", "vendor=a", "ot=th:8", "ot=th:c", "ot=rv:00000000000001"];
    Span {
        trace_id: random.random::<[u8; 16]>().to_vec(),
        span_id: random.random::<[u8; 8]>().to_vec(),
        trace_state: states[random.random_range(0..states.len())].to_owned(),
        name: format!("step {}", random.random_range(0..5)),
        kind,
        start_time_unix_nano: start,
        end_time_unix_nano: end,
        attributes,
        events,
        status: Some(Status { code: [0, 0, 0, 1, 2][random.random_range(0..5)], ..Status::default() }),
        ..Span::default()
    }
}

/// Makes two spans one of a client, or a producer, and one of its server, or a consumer.
fn pair(client: &mut Span, server: &mut Span, random: &mut SmallRng) {
    server.trace_id.clone_from(&client.trace_id);
    server.parent_span_id.clone_from(&client.span_id);
    client.kind = [3, 3, 4][random.random_range(0..3)];
    server.kind = [2, 2, 5][random.random_range(0..3)];
    for span in [client, server] {
        span.end_time_unix_nano = span.end_time_unix_nano.max(span.start_time_unix_nano);
    }
}

/// Pairs of spans of two services in one request: no half waits for another request, which may be late. Of some the server's span comes first.
fn pair_up(spans: &mut [Vec<Span>; 2], random: &mut SmallRng) {
    let [first, second] = spans;
    for (one, other) in first.iter_mut().zip(second) {
        match random.random_range(0..4) {
            0 => pair(one, other, random),
            1 => pair(other, one, random),
            _ => {}
        }
    }
}

/// Requests with so many spans in all.
pub(crate) fn requests(seed: u64, spans: usize) -> Vec<ExportTraceServiceRequest> {
    let mut random = SmallRng::seed_from_u64(seed);
    let services = [Some("checkout"), Some("cart")];
    (0..spans / 20)
        .map(|number| {
            let mut spans = [(); 2].map(|()| (0..10).map(|_| span(&mut random)).collect::<Vec<_>>());
            pair_up(&mut spans, &mut random);
            let resource_spans = services.iter().zip(spans).map(|(service, spans)| {
                let zone = attribute("zone", Any::IntValue(number as i64 % 2));
                let name = service.map(|service| text("service.name", service));
                let attributes = name.into_iter().chain([zone]).collect();
                ResourceSpans {
                    resource: Some(Resource { attributes, ..Resource::default() }),
                    scope_spans: vec![ScopeSpans { spans, ..ScopeSpans::default() }],
                    ..ResourceSpans::default()
                }
            });
            ExportTraceServiceRequest { resource_spans: resource_spans.collect() }
        })
        .collect()
}

/// Requests of OTLP/JSON with so many log records in all.
pub(crate) fn logs(records: usize) -> Vec<Value> {
    let mut random = SmallRng::seed_from_u64(9);
    (0..records / 20)
        .map(|_| {
            let record = |_| {
                let team = ["a", "b"][random.random_range(0..2)];
                let attributes = match random.random_ratio(2, 3) {
                    true => json!([{"key": "team", "value": {"stringValue": team}}]),
                    false => json!([]),
                };
                let body = "x".repeat(random.random_range(0..30));
                let severity = random.random_range(1..25);
                json!({"severityNumber": severity, "attributes": attributes, "body": {"stringValue": body}})
            };
            let records: Vec<Value> = (0..20).map(record).collect();
            let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]});
            json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]})
        })
        .collect()
}

/// Whether the request was accepted.
pub(crate) fn send(to: SocketAddr, request: &ExportTraceServiceRequest) -> bool {
    let head = ["POST /v1/traces HTTP/1.1", "content-type: application/x-protobuf"];
    let answer = http::request(to, &head, &request.encode_to_vec());
    answer.is_ok_and(|answer| answer.status == 200 || panic!("{}", answer.text()))
}

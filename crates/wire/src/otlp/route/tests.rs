//! Runs have all items, each by its key; what they are put together to is what prost makes of the same items.

#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")]

use super::*;
use crate::otlp::tests::strategies;
use crate::otlp::{check, items};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use proptest::prelude::*;
use prost::Message;
use std::collections::{BTreeMap, HashMap};

const KEYS: [RouteKey; 4] = [RouteKey::TraceId, RouteKey::Service, RouteKey::Resource, RouteKey::MetricName];
const MEMBERS: u64 = 3;

/// An item with all that encloses it, encoded; its key as text.
type Flat = Vec<(Vec<u8>, String)>;

fn key_of(key: RouteKey, resource: Option<&Resource>, own: &[u8]) -> String {
    let attributes = resource.map(|resource| resource.attributes.as_slice()).unwrap_or_default();
    let identity = || {
        let mut all: Vec<_> = attributes.iter().map(Message::encode_to_vec).collect();
        all.sort();
        format!("resource {all:?}")
    };
    match key {
        RouteKey::TraceId if own.iter().all(|byte| *byte == 0) => identity(),
        RouteKey::TraceId | RouteKey::MetricName => format!("own {own:?}"),
        RouteKey::Resource => identity(),
        RouteKey::Service => {
            let value = attributes.iter().find(|attribute| attribute.key == "service.name");
            match value.and_then(|attribute| attribute.value.as_ref()?.value.as_ref()) {
                Some(Value::StringValue(name)) => format!("service {name}"),
                _ => "service ".to_owned(),
            }
        }
    }
}

/// Decodes with prost, and groups by the key.
macro_rules! flat {
    ($raw:expr, $key:expr, $request:ty, $resources:ident, $scopes:ident, $items:ident, $own:expr) => {{
        let mut flat = Flat::new();
        for mut resource in <$request>::decode($raw).unwrap().$resources {
            for mut scope in std::mem::take(&mut resource.$scopes) {
                for item in std::mem::take(&mut scope.$items) {
                    let key = key_of($key, resource.resource.as_ref(), $own(&item));
                    let all =
                        [resource.encode_to_vec(), scope.encode_to_vec(), item.encode_to_vec()].concat();
                    flat.push((all, key));
                }
            }
        }
        flat
    }};
}

fn flat(signal: Signal, raw: &[u8], key: RouteKey) -> Flat {
    match signal {
        Signal::Traces => {
            flat!(raw, key, ExportTraceServiceRequest, resource_spans, scope_spans, spans, |span: &Span| {
                span.trace_id.clone().leak()
            })
        }
        Signal::Logs => {
            use opentelemetry_proto::tonic::logs::v1::LogRecord;
            flat!(
                raw,
                key,
                ExportLogsServiceRequest,
                resource_logs,
                scope_logs,
                log_records,
                |record: &LogRecord| { record.trace_id.clone().leak() }
            )
        }
        _ => {
            use opentelemetry_proto::tonic::metrics::v1::Metric;
            flat!(
                raw,
                key,
                ExportMetricsServiceRequest,
                resource_metrics,
                scope_metrics,
                metrics,
                |metric: &Metric| { metric.name.clone().leak().as_bytes() }
            )
        }
    }
}

/// The requests of members, by the remainder of the hash.
fn routed(signal: Signal, bodies: &[Vec<u8>], key: RouteKey) -> BTreeMap<u64, Vec<u8>> {
    let mut requests: BTreeMap<u64, (RouteWriter, Vec<u8>)> = BTreeMap::new();
    for (number, body) in (0..).zip(bodies) {
        for run in route(signal, body, key) {
            let (writer, request) = requests.entry(run.hash % MEMBERS).or_default();
            let (at, needed) = (request.len(), writer.len_of(&run, number));
            assert!(run.len() <= needed);
            request.resize(at + needed, 0xff);
            if needed > 0 {
                let mut short = vec![0; needed - 1];
                assert!(writer.write(&run, number, at, &mut short).is_err());
            }
            assert_eq!(writer.write(&run, number, at, &mut request[at..]), Ok(needed));
            writer.close(request);
        }
    }
    requests.into_iter().map(|(member, (_, request))| (member, request)).collect()
}

/// All items are at one member each, in order, with what encloses them; those of one key at one member.
fn holds(signal: Signal, bodies: &[Vec<u8>]) {
    for key in KEYS.into_iter().filter(|key| key.is_of(signal)) {
        let mut expected: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
        for (item, of) in bodies.iter().flat_map(|body| flat(signal, body, key)) {
            expected.entry(of).or_default().push(item);
        }
        let mut found: HashMap<String, (u64, Vec<Vec<u8>>)> = HashMap::new();
        let mut count = 0;
        for (member, request) in routed(signal, bodies, key) {
            let counts = check(signal, &request).unwrap();
            count += counts.items;
            for (item, of) in flat(signal, &request, key) {
                let entry = found.entry(of).or_insert((member, Vec::new()));
                assert_eq!(entry.0, member, "a key is at one member");
                entry.1.push(item);
            }
        }
        let found: HashMap<_, _> = found.into_iter().map(|(key, (_, items))| (key, items)).collect();
        assert_eq!(found, expected);
        assert_eq!(count, bodies.iter().map(|body| items(signal, body)).sum::<u64>());
        let runs: u64 = bodies.iter().flat_map(|body| route(signal, body, key)).map(|run| run.items).sum();
        assert_eq!(runs, count);
    }
}

proptest! {
    #[test]
    fn spans_are_routed_as_prost_groups_them(requests in prop::collection::vec(strategies::traces(), 1..3)) {
        holds(Signal::Traces, &requests.iter().map(Message::encode_to_vec).collect::<Vec<_>>());
    }

    #[test]
    fn log_records_are_routed_as_prost_groups_them(requests in prop::collection::vec(strategies::logs(), 1..3)) {
        holds(Signal::Logs, &requests.iter().map(Message::encode_to_vec).collect::<Vec<_>>());
    }

    #[test]
    fn metrics_are_routed_as_prost_groups_them(requests in prop::collection::vec(strategies::metrics(), 1..3)) {
        holds(Signal::Metrics, &requests.iter().map(Message::encode_to_vec).collect::<Vec<_>>());
    }
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::StringValue(value.to_owned())) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

/// A request with these attributes, and a span for each trace.
fn request(attributes: Vec<KeyValue>, traces: &[u8]) -> Vec<u8> {
    let spans = traces.iter().map(|trace| Span { trace_id: vec![*trace; 16], ..Span::default() }).collect();
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource = Some(Resource { attributes, ..Resource::default() });
    let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
    ExportTraceServiceRequest { resource_spans }.encode_to_vec()
}

fn hashes(body: &[u8], key: RouteKey) -> Vec<u64> {
    route(Signal::Traces, body, key).map(|run| run.hash).collect()
}

#[test]
fn items_in_a_row_with_one_key_are_one_run() {
    let body = request(Vec::new(), &[1, 1, 1, 2, 2, 1]);
    let runs: Vec<_> =
        route(Signal::Traces, &body, RouteKey::TraceId).map(|run| (run.hash, run.items)).collect();
    let [first, second, third] = runs[..] else { panic!("{runs:?}") };
    assert_eq!((first.1, second.1, third.1), (3, 2, 1));
    assert!(first.0 == third.0 && first.0 != second.0);
}

#[test]
fn the_order_of_attributes_does_not_change_a_resource() {
    let (a, b) = (attribute("a", "1"), attribute("b", "2"));
    let one = hashes(&request(vec![a.clone(), b.clone()], &[1]), RouteKey::Resource);
    assert_eq!(one, hashes(&request(vec![b.clone(), a.clone()], &[2]), RouteKey::Resource));
    assert_ne!(one, hashes(&request(vec![a.clone()], &[1]), RouteKey::Resource));
    // Pairs do not cancel each other out.
    let twice = hashes(&request(vec![a.clone(), a], &[1]), RouteKey::Resource);
    assert_ne!(twice, hashes(&request(vec![b.clone(), b], &[1]), RouteKey::Resource));
}

#[test]
fn a_service_is_its_name_alone() {
    let one = request(vec![attribute("service.name", "shop"), attribute("pod", "1")], &[1, 2]);
    let two = request(vec![attribute("pod", "2"), attribute("service.name", "shop")], &[3]);
    assert_eq!(hashes(&one, RouteKey::Service), hashes(&two, RouteKey::Service));
    let nameless = hashes(&request(Vec::new(), &[1]), RouteKey::Service);
    assert_eq!(nameless, [xxh64(b"", 0)]);
}

#[test]
fn long_runs_are_cut() {
    let body = request(Vec::new(), &[7; 10_000]);
    let runs: Vec<_> = route(Signal::Traces, &body, RouteKey::TraceId).collect();
    assert!(runs.len() > 1 && runs.iter().all(|run| run.len() <= LONGEST_RUN));
    assert_eq!(runs.iter().map(|run| run.items).sum::<u64>(), 10_000);
    // The resource and the scope are there once all the same.
    let requests = routed(Signal::Traces, &[body], RouteKey::TraceId);
    let [request] = &requests.values().collect::<Vec<_>>()[..] else { panic!("one member") };
    let decoded = ExportTraceServiceRequest::decode(&request[..]).unwrap();
    assert_eq!((decoded.resource_spans.len(), decoded.resource_spans[0].scope_spans.len()), (1, 1));
}

//! Tail sampling: the traces that the Collector keeps, whole, over kills and with a table that is far too small.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, any_value::Value as Any,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_load::Behaviour;
use tidegate_load::otlp::{NUMBER, OtlpSink, Signal};
use tidegate_tests::{Collector, Gateway, SOON, http, tidegate, until};

/// How long a whole run may take on a busy machine.
const LATE: Duration = Duration::from_secs(60);

fn receiver() -> OtlpSink {
    OtlpSink::start(Behaviour::Healthy, true).unwrap()
}

/// A sink that samples.
fn sampled(receiver: &OtlpSink, tail: &Value) -> Value {
    json!({
        "type": "otlp", "endpoints": [format!("http://{}", receiver.address())], "protocol": "http",
        "compression": "none", "signals": ["traces"], "backoff": {"max": "200ms"}, "sample": {"tail": tail},
    })
}

fn attribute(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// A span of the trace `trace`, with what policies ask for, by chance.
fn span(random: &mut SmallRng, trace: u32, number: u64, is_root: bool) -> Span {
    // As random as those of SDKs: what hashes them may mix them badly.
    let trace_id: [u8; 16] = SmallRng::seed_from_u64(trace.into()).random();
    let start = 1_700_000_000_000_000_000 + random.random_range(0..400_000_000_u64);
    let mut attributes = vec![attribute(NUMBER, Any::IntValue(i64::try_from(number).unwrap()))];
    let texts = ["checkout", "checkout-eu", "cart", "", "search"];
    if random.random_ratio(1, 5) {
        let text = texts[random.random_range(0..texts.len())].to_owned();
        attributes.push(attribute("team", Any::StringValue(text)));
    }
    if random.random_ratio(1, 8) {
        attributes.push(match random.random_range(0..4) {
            0 => attribute("team.size", Any::DoubleValue(7.5)),
            1 => attribute("team.size", Any::StringValue("7".to_owned())),
            _ => attribute("team.size", Any::IntValue(random.random_range(-5..20))),
        });
    }
    if random.random_ratio(1, 8) {
        attributes.push(match random.random_range(0..3) {
            0 => attribute("cached", Any::StringValue("true".to_owned())),
            truth => attribute("cached", Any::BoolValue(truth == 1)),
        });
    }
    let states = ["", "vendor=a", "vendor=b,other=c", "no state", "other=vendor"];
    let mut events = Vec::new();
    if random.random_ratio(1, 10) {
        events.push(Event { name: "exception".to_owned(), ..Event::default() });
    }
    Span {
        trace_id: trace_id.to_vec(),
        span_id: number.to_be_bytes().to_vec(),
        parent_span_id: if is_root { Vec::new() } else { vec![1; 8] },
        trace_state: states[random.random_range(0..states.len() * 3) % (states.len())].to_owned(),
        flags: u32::from(random.random_ratio(1, 6)),
        name: format!("step {}", random.random_range(0..9)),
        start_time_unix_nano: start,
        end_time_unix_nano: start + random.random_range(0..300_000_000),
        attributes,
        events,
        status: Some(Status { code: [0, 0, 0, 0, 1, 1, 2][random.random_range(0..7)], ..Status::default() }),
        ..Span::default()
    }
}

/// So many traces of 1 to 9 spans, their spans in any order, in requests with resources of different services.
fn requests(seed: u64, traces: u32) -> (Vec<ExportTraceServiceRequest>, BTreeMap<u32, Vec<u64>>) {
    let mut random = SmallRng::seed_from_u64(seed);
    let (mut spans, mut numbers, mut number) = (Vec::new(), BTreeMap::new(), 0);
    for trace in 0..traces {
        for place in 0..random.random_range(1..10) {
            spans.push(span(&mut random, trace, number, place == 0));
            numbers.entry(trace).or_insert_with(Vec::new).push(number);
            number += 1;
        }
    }
    spans.shuffle(&mut random);
    let requests = spans.chunks(60).map(|spans| {
        let parts = spans.chunks(20).enumerate().map(|(part, spans)| {
            let service = ["checkout", "cart", "search"][part % 3].to_owned();
            let resource = Resource {
                attributes: vec![
                    attribute("service.name", Any::StringValue(service)),
                    attribute("zone", Any::IntValue(i64::from(random.random_range(0..400)))),
                ],
                ..Resource::default()
            };
            let scope = InstrumentationScope { name: "test".to_owned(), ..InstrumentationScope::default() };
            let scope_spans =
                vec![ScopeSpans { scope: Some(scope), spans: spans.to_vec(), ..ScopeSpans::default() }];
            ResourceSpans { resource: Some(resource), scope_spans, ..ResourceSpans::default() }
        });
        ExportTraceServiceRequest { resource_spans: parts.collect() }
    });
    (requests.collect(), numbers)
}

/// Whether the request was accepted.
fn send(to: SocketAddr, request: &ExportTraceServiceRequest) -> bool {
    let head = ["POST /v1/traces HTTP/1.1", "content-type: application/x-protobuf"];
    http::request(to, &head, &request.encode_to_vec()).is_ok_and(|answer| answer.status == 200)
}

/// Each policy alone, with others where it is about the order of votes.
fn policies() -> Vec<(&'static str, Value)> {
    let status = json!({"name": "status", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}});
    let team = |invert: bool| {
        json!({"name": "team", "type": "string_attribute", "string_attribute": {
            "key": "team", "values": ["checkout", ""], "invert_match": invert,
        }})
    };
    let count =
        json!({"name": "count", "type": "span_count", "span_count": {"min_spans": 3, "max_spans": 6}});
    let half = json!({"name": "half", "type": "probabilistic", "probabilistic": {"sampling_percentage": 50}});
    vec![
        ("always", json!([{"name": "all", "type": "always_sample"}])),
        ("latency", json!([{"name": "slow", "type": "latency", "latency": {"threshold_ms": 400}}])),
        ("status", json!([status])),
        (
            "unset",
            json!([{"name": "a", "type": "status_code", "status_code": {"status_codes": ["OK", "UNSET"]}}]),
        ),
        ("text", json!([team(false)])),
        ("no-text", json!([team(true)])),
        ("no-text-or-status", json!([team(true), status])),
        (
            "pattern",
            json!([{"name": "a", "type": "string_attribute", "string_attribute": {
                "key": "team", "values": ["^check.*eu$", "ear"], "enabled_regex_matching": true, "cache_max_size": 10,
            }}]),
        ),
        (
            "service",
            json!([{"name": "a", "type": "string_attribute", "string_attribute": {
                "key": "service.name", "values": ["cart"],
            }}]),
        ),
        (
            "number",
            json!([{"name": "a", "type": "numeric_attribute", "numeric_attribute": {
                "key": "team.size", "min_value": 3, "max_value": 9,
            }}]),
        ),
        (
            "zero",
            json!([{"name": "a", "type": "numeric_attribute", "numeric_attribute": {
                "key": "team.size", "min_value": -1, "max_value": 1, "invert_match": true,
            }}]),
        ),
        (
            "truth",
            json!([{"name": "a", "type": "boolean_attribute", "boolean_attribute": {
                "key": "cached", "value": true,
            }}]),
        ),
        (
            "lie",
            json!([{"name": "a", "type": "boolean_attribute", "boolean_attribute": {
                "key": "cached", "value": false, "invert_match": true,
            }}]),
        ),
        (
            "state",
            json!([{"name": "a", "type": "trace_state", "trace_state": {"key": "vendor", "values": ["a", "b"]}}]),
        ),
        ("flags", json!([{"name": "a", "type": "trace_flags"}])),
        ("count", json!([count])),
        ("half", json!([half])),
        (
            "salted",
            json!([{"name": "a", "type": "probabilistic", "probabilistic": {
                "hash_salt": "pepper", "sampling_percentage": 12.5,
            }}]),
        ),
        (
            "condition",
            json!([{"name": "a", "type": "ottl_condition", "ottl_condition": {
                "error_mode": "ignore",
                "span": ["attributes[\"team\"] == \"cart\" and name != \"step 3\"", "resource.attributes[\"zone\"] == 17"],
            }}]),
        ),
        (
            "event",
            json!([{"name": "a", "type": "ottl_condition", "ottl_condition": {
                "spanevent": ["name == \"exception\""],
            }}]),
        ),
        ("and", json!([{"name": "a", "type": "and", "and": {"and_sub_policy": [status, count]}}])),
        ("not", json!([{"name": "a", "type": "not", "not": {"not_sub_policy": status}}])),
        ("not-inverted", json!([{"name": "a", "type": "not", "not": {"not_sub_policy": team(true)}}])),
        (
            "drop",
            json!([
                {"name": "all", "type": "always_sample"},
                {"name": "a", "type": "drop", "drop": {"drop_sub_policy": [status, half]}},
            ]),
        ),
        (
            "composite",
            json!([{"name": "a", "type": "composite", "composite": {
                // So much that rates decide nothing.
                "max_total_spans_per_second": 1_000_000, "policy_order": ["status", "both"],
                "composite_sub_policy": [
                    status,
                    {"name": "both", "type": "and", "and": {"and_sub_policy": [team(false), half]}},
                ],
                "rate_allocation": [{"policy": "status", "percent": 50}, {"policy": "both", "percent": 50}],
            }}]),
        ),
    ]
}

/// A Collector and the gateway have the same policies, each by itself, and get the same spans.
#[test]
fn the_traces_are_those_of_the_collector() {
    let policies = policies();
    let expected: Vec<OtlpSink> = policies.iter().map(|_| receiver()).collect();
    let (mut processors, mut exporters, mut pipelines) = (json!({}), json!({}), json!({}));
    for ((name, policies), receiver) in policies.iter().zip(&expected) {
        let (sampling, to) = (format!("tail_sampling/{name}"), format!("otlp_http/{name}"));
        processors[&sampling] = json!({"decision_wait": "8s", "policies": policies});
        exporters[&to] = json!({
            "endpoint": format!("http://{}", receiver.address()), "compression": "none",
            "sending_queue": {"enabled": false},
        });
        pipelines[format!("traces/{name}")] =
            json!({"receivers": ["otlp"], "processors": [sampling], "exporters": [to]});
    }
    let configuration = json!({
        "receivers": {"otlp": {"protocols": {
            "grpc": {"endpoint": "GRPC_ADDRESS"}, "http": {"endpoint": "HTTP_ADDRESS"},
        }}},
        "processors": processors,
        "exporters": exporters,
        "service": {"telemetry": {"metrics": {"level": "none"}}, "pipelines": pipelines},
    });
    let Some(collector) = Collector::of(&configuration.to_string()) else { return };

    let found: Vec<OtlpSink> = policies.iter().map(|_| receiver()).collect();
    let sinks: serde_json::Map<String, Value> = policies
        .iter()
        .zip(&found)
        .map(|((name, policies), receiver)| {
            let tail = json!({"wait": "8s", "max_traces": 5000, "policies": policies});
            ((*name).to_owned(), sampled(receiver, &tail))
        })
        .collect();
    let gateway = Gateway::started(json!({"memory": "1GiB", "sinks": sinks}));

    let (requests, numbers) = requests(1, 600);
    for request in &requests {
        assert!(send(collector.http(), request) && send(gateway.http(), request));
    }
    gateway.at_rest(LATE);
    gateway.books_close();
    let all = numbers.values().map(Vec::len).sum::<usize>() as u64;
    for (((name, _), expected), found) in policies.iter().zip(&expected).zip(&found) {
        let kept = found.report().of(Signal::Traces).clone();
        let is_same = expected.wait_for(SOON, |arrived| arrived.of(Signal::Traces).ranges() == kept.ranges());
        let there = expected.report();
        let there = there.of(Signal::Traces);
        assert!(
            is_same,
            "{name}: {} here, {} there of {all}; only there {:?}, only here {:?}",
            kept.len(),
            there.len(),
            there.missing_from(&kept),
            kept.missing_from(there)
        );
        println!("{name}: {} of {all} spans", kept.len());
        assert!(*name == "always" || (kept.len() > 20 && kept.len() < all), "{name} decides nothing");
    }
}

/// Spans of one trace come over a second, and the gateway is killed again and again. A trace is kept where one of its spans failed: with
/// all of its spans, those from before a kill among them; and nothing of any other.
#[test]
fn kills_change_no_decision() {
    const ROUNDS: u64 = 8;
    let receiver = receiver();
    let tail = json!({"wait": "6s", "policies": [
        {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}},
    ]});
    let mut gateway =
        Gateway::started(json!({"memory": "96MiB", "sinks": {"up": sampled(&receiver, &tail)}}));
    let mut random = SmallRng::seed_from_u64(7);
    let (mut kept, mut dropped, mut number) = (Vec::new(), Vec::new(), 0);
    for round in 0..ROUNDS {
        let mut parts: Vec<Vec<Span>> = vec![Vec::new(); 12];
        for trace in 0..60_u32 {
            let mut numbers = Vec::new();
            let mut has_failed = false;
            for place in 0..4 {
                let made =
                    span(&mut random, u32::try_from(round).unwrap() * 1000 + trace, number, place == 0);
                has_failed |= made.status.as_ref().unwrap().code == 2;
                let part = random.random_range(0..parts.len());
                parts[part].push(made);
                numbers.push(number);
                number += 1;
            }
            if has_failed { kept.extend(numbers) } else { dropped.extend(numbers) }
        }
        let killed_before = random.random_range(0..parts.len());
        for (place, spans) in parts.into_iter().enumerate() {
            let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
            let resource_spans = vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }];
            let request = ExportTraceServiceRequest { resource_spans };
            assert!(send(gateway.http(), &request), "what is acknowledged is not sent twice here");
            if place == killed_before {
                gateway.kill9();
                gateway.start();
            }
        }
        // And once while decisions are made and sent.
        if round % 2 == 1 {
            let before = receiver.report().of(Signal::Traces).len();
            receiver.wait_for(LATE, |arrived| arrived.of(Signal::Traces).len() > before);
            gateway.kill9();
            gateway.start();
        }
    }
    gateway.at_rest(LATE);
    gateway.books_close();
    let arrived = receiver.report();
    let arrived = arrived.of(Signal::Traces);
    let missing: Vec<_> = kept.iter().filter(|number| arrived.within(**number, **number + 1) == 0).collect();
    let extra: Vec<_> = dropped.iter().filter(|number| arrived.within(**number, **number + 1) == 1).collect();
    println!("{} kept, {} dropped, {} duplicates", kept.len(), dropped.len(), receiver.report().duplicates);
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, and not to be sent {extra:?}");
}

/// Ten times as many traces as the table holds, with a receiver that stalls meanwhile: every trace is decided by its id as it would be with
/// room for all, and all of its spans follow.
#[test]
fn a_table_that_is_too_small_loses_nothing() {
    let receiver = receiver();
    let tail = json!({"wait": "2s", "max_traces": 1000, "policies": [
        {"name": "half", "type": "probabilistic", "probabilistic": {"sampling_percentage": 50}},
    ]});
    let plain = OtlpSink::start(Behaviour::Healthy, true).unwrap();
    let wide = json!({"wait": "2s", "max_traces": 50_000, "policies": tail["policies"]});
    let gateway = Gateway::started(json!({
        "memory": "128MiB",
        "sinks": {"narrow": sampled(&receiver, &tail), "wide": sampled(&plain, &wide)},
    }));
    receiver.set(Behaviour::Stall);
    let (requests, numbers) = requests(3, 10_000);
    for request in &requests {
        assert!(send(gateway.http(), request));
    }
    receiver.set(Behaviour::Healthy);
    gateway.at_rest(LATE);
    gateway.books_close();
    let (narrow, wide) = (receiver.report(), plain.report());
    let (narrow, wide) = (narrow.of(Signal::Traces), wide.of(Signal::Traces));
    let all = numbers.values().map(Vec::len).sum::<usize>() as u64;
    println!("{} and {} of {all} spans", narrow.len(), wide.len());
    let metrics = gateway.metrics();
    let early: f64 = metrics
        .iter()
        .filter(|(name, _)| name.starts_with("tidegate_sink_traces_decided_early_total{sink=\"narrow\""))
        .map(|(_, count)| count)
        .sum();
    assert!(early > 1_000.0, "{early} were decided early");
    assert_eq!(wide.missing_from(narrow), None, "a span of a kept trace is missing");
    assert_eq!(narrow.missing_from(wide), None, "a span of a dropped trace was sent");
    assert!(wide.len() > all / 3 && wide.len() < all * 2 / 3);
}

/// Logs do not wait for traces to be decided longer than those before them; the cursor that reads ahead keeps no journal that nobody needs; and
/// it goes when its sink samples no more.
#[test]
fn the_cursor_that_reads_ahead_goes_with_the_sampling() {
    let receiver = receiver();
    let tail = json!({"wait": "1s", "policies": [{"name": "all", "type": "always_sample"}]});
    let mut settings = sampled(&receiver, &tail);
    settings["signals"] = json!(["traces", "logs"]);
    let mut gateway =
        Gateway::started(json!({"memory": "96MiB", "journal": {"keep": "1h"}, "sinks": {"up": settings}}));
    let (requests, _) = requests(5, 50);
    for request in &requests {
        assert!(send(gateway.http(), request));
    }
    let head = ["POST /v1/logs HTTP/1.1", "content-type: application/json"];
    let log = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}, "attributes": [
        {"key": NUMBER, "value": {"intValue": "1"}},
    ]}]}]}]});
    for _ in 0..20 {
        assert_eq!(http::request(gateway.http(), &head, log.to_string().as_bytes()).unwrap().status, 200);
    }
    gateway.at_rest(LATE);
    // Kept for a while, so that it can be asked for.
    let span = &requests[0].resource_spans[0].scope_spans[0].spans[0];
    let trace: String = span.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let config = gateway.config();
    let explain = ["sample", "explain", "--json", "--config", config.to_str().unwrap(), "--trace", &trace];
    let explained: Value = serde_json::from_str(&tidegate(&explain).succeeded()).unwrap();
    assert_eq!((&explained["kept"], &explained["policy"]), (&json!(true), &json!("all")), "{explained}");
    assert_eq!((&explained["decided"], &explained["facts"]["late_spans"]), (&json!(true), &json!(0)));
    until(SOON, "the cursor that reads ahead to be where its sink is", || {
        let held = gateway.metrics().into_iter().find(|(name, _)| name.contains("sink_held_back_bytes"));
        held.is_some_and(|(_, bytes)| bytes == 0.0)
    });
    let cursor = gateway.data().join("journal/up.tail.cursor");
    assert!(cursor.exists());
    let mut plain = sampled(&receiver, &tail);
    plain.as_object_mut().unwrap().remove("sample");
    gateway.configure(json!({"memory": "96MiB", "journal": {"keep": "1h"}, "sinks": {"up": plain}}));
    gateway.hangup();
    until(SOON, "the cursor to be gone", || !cursor.exists());
}

/// A lake settles when it closes a file. Its rows are the kept traces, over kills, and each of them once.
#[test]
fn a_lake_has_whole_traces_once() {
    let tail = json!({"wait": "4s", "policies": [
        {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}},
    ]});
    let mut gateway = Gateway::started(json!({
        "memory": "128MiB",
        "sinks": {"lake": {"type": "lake", "file_age": "2s", "sample": {"tail": tail}}},
    }));
    let mut expected = Vec::new();
    for round in 0..3 {
        let (requests, _) = requests(11 + round, 150);
        let mut failed: BTreeMap<Vec<u8>, (bool, Vec<Vec<u8>>)> = BTreeMap::new();
        for request in &requests {
            let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
            for span in scopes.flat_map(|scope| &scope.spans) {
                let (has_failed, spans) = failed.entry(span.trace_id.clone()).or_default();
                *has_failed |= span.status.as_ref().is_some_and(|status| status.code == 2);
                spans.push(span.span_id.clone());
            }
            assert!(send(gateway.http(), request));
        }
        expected
            .extend(failed.into_values().filter(|(has_failed, _)| *has_failed).flat_map(|(_, spans)| spans));
        gateway.at_rest(LATE);
        gateway.kill9();
        gateway.start();
    }
    gateway.at_rest(LATE);
    gateway.books_close();
    let mut found: Vec<String> =
        gateway.lake_rows("spans").iter().map(|row| row["span_id"].as_str().unwrap().to_owned()).collect();
    let mut expected: Vec<String> =
        expected.iter().map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert!(expected.len() > 100);
    assert_eq!(found, expected);
}

/// Spans that were received while the sink took others are decided as the sink took them then, also when they are sent behind the change.
#[test]
fn a_change_of_what_the_sink_takes_leaves_no_trace_undecided() {
    let receiver = receiver();
    let tail = json!({"wait": "8s", "policies": [{"name": "all", "type": "always_sample"}]});
    let settings = |service: &str| {
        let mut sink = sampled(&receiver, &tail);
        sink["when"] = json!(format!("resource.attributes[\"service.name\"] == \"{service}\""));
        json!({"memory": "128MiB", "sinks": {"up": sink}})
    };
    let mut gateway = Gateway::started(settings("checkout"));
    let (requests, _) = requests(17, 300);
    let before = &requests[..requests.len() / 2];
    before.iter().for_each(|request| assert!(send(gateway.http(), request)));
    gateway.configure(settings("cart"));
    gateway.hangup();
    until(SOON, "the change to be in effect", || gateway.log().contains("the configuration was read again"));
    requests[before.len()..].iter().for_each(|request| assert!(send(gateway.http(), request)));
    gateway.at_rest(LATE);
    gateway.books_close();
    let of_service = |requests: &[ExportTraceServiceRequest], service: &str| -> Vec<i64> {
        let wanted = Some(Any::StringValue(service.to_owned()));
        let resources = requests.iter().flat_map(|request| request.resource_spans.clone());
        let is_wanted = |resource: &ResourceSpans| {
            let name = &resource.resource.as_ref().unwrap().attributes[0];
            name.value.as_ref().unwrap().value == wanted
        };
        let spans =
            resources.filter(is_wanted).flat_map(|resource| resource.scope_spans).flat_map(|it| it.spans);
        let number = |span: Span| match span.attributes[0].value.as_ref().unwrap().value {
            Some(Any::IntValue(number)) => number,
            ref other => panic!("{other:?}"),
        };
        spans.map(number).collect()
    };
    let mut expected = of_service(before, "checkout");
    expected.extend(of_service(&requests[before.len()..], "cart"));
    let arrived = receiver.report().of(Signal::Traces).clone();
    let missing: Vec<_> =
        expected.iter().filter(|at| arrived.within(**at as u64, **at as u64 + 1) == 0).collect();
    println!("{} of {} spans", arrived.len(), expected.len());
    assert!(missing.is_empty() && arrived.len() == expected.len() as u64, "missing {missing:?}");
    let metrics = gateway.metrics();
    let unknown =
        metrics.iter().find(|(name, _)| name.starts_with("tidegate_sink_undecided_spans_kept_total"));
    assert_eq!(unknown.map(|(_, spans)| *spans), Some(0.0), "spans were sent without a decision");
}

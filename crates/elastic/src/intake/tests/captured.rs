//! Bodies as four agents sent them.

use super::*;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use prost::Message;
use tidegate_load::elastic_apm::AGENTS;
use tidegate_wire::otlp::check;

fn of<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a Any> {
    let found = attributes.iter().find(|pair| pair.key == name)?;
    found.value.as_ref()?.value.as_ref()
}

fn text(attributes: &[KeyValue], name: &str) -> String {
    match of(attributes, name) {
        Some(Any::StringValue(text)) => text.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

/// Every event becomes what a receiver of OTLP takes, in about the room that was foreseen, without an allocation.
#[test]
fn captured_bodies_become_valid_otlp() {
    for agent in AGENTS {
        for body in [agent.busy, agent.idle] {
            let mut events = 0;
            let mut bytes = 0;
            for signal in [Signal::Traces, Signal::Metrics, Signal::Logs] {
                let (request, count) = said(body.as_bytes(), signal);
                check(signal, &request).unwrap();
                events += count;
                bytes += request.len();
                let mut out = vec![0; request.len()];
                let used = allocation_counter::measure(|| {
                    to_otlp(body.as_bytes(), RECEIVED, signal, &mut out).unwrap();
                });
                assert_eq!(used.count_total, 0);
                assert_eq!(out, request, "in exactly the room that it takes");
                if let Some(short) = request.len().checked_sub(1) {
                    assert_eq!(to_otlp(body.as_bytes(), RECEIVED, signal, &mut out[..short]), Err(Full));
                }
            }
            let lines = body.lines().filter(|line| !line.is_empty()).count() as u64;
            assert_eq!(events, lines - 1, "{}", agent.name);
            assert!(bytes < usual_len(body.len()) + 8000, "{}: {bytes} of {}", agent.name, body.len());
        }
    }
}

#[test]
fn spans_have_the_fields_of_otlp() {
    let python = AGENTS[3];
    let (request, _) = said(python.busy.as_bytes(), Signal::Traces);
    let request = ExportTraceServiceRequest::decode(&request[..]).unwrap();
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), "shop-py");
    assert_eq!(text(&resource.attributes, "telemetry.sdk.name"), "elastic-apm-python");
    assert_eq!(text(&resource.attributes, "host.name"), "host-1");
    assert_eq!(text(&resource.attributes, "labels.tier"), "1");
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    let transaction =
        spans.iter().find(|span| span.span_id == [0x13, 0xd4, 0xb2, 0xef, 0x74, 0x31, 0xdf, 0x4b]).unwrap();
    assert_eq!((transaction.name.as_str(), transaction.kind), ("GET /item/{id}", 2));
    assert_eq!(transaction.start_time_unix_nano, 1_795_201_839_545_086_000);
    assert_eq!(transaction.end_time_unix_nano - transaction.start_time_unix_nano, 205_823_000);
    assert_eq!(transaction.trace_state, "es=s:1.0");
    assert!(transaction.status.is_none() && transaction.parent_span_id.is_empty());
    assert_eq!(text(&transaction.attributes, "transaction.result"), "HTTP 2xx");
    assert_eq!(of(&transaction.attributes, "user.id"), Some(&Any::IntValue(7)));
    assert_eq!(of(&transaction.attributes, "labels.ok"), Some(&Any::BoolValue(true)));
    assert_eq!(text(&transaction.attributes, "elastic.context.custom"), "{\"cart\": [1, 2]}");
    assert_eq!(of(&transaction.attributes, "transaction.span_count.started"), Some(&Any::IntValue(10)));
    let span = spans.iter().find(|span| span.name == "SELECT FROM t0").unwrap();
    assert_eq!((span.kind, span.status.as_ref().unwrap().code), (3, 1));
    assert_eq!(text(&span.attributes, "db.query.text"), "SELECT * FROM t0 WHERE id = 0");
    assert_eq!(of(&span.attributes, "server.port"), Some(&Any::IntValue(5432)));
    assert!(text(&span.attributes, "elastic.span.stacktrace").starts_with("[{\"abs_path\""));
}

#[test]
fn errors_have_the_fields_of_otlp() {
    let node = AGENTS[2];
    let (request, count) = said(node.busy.as_bytes(), Signal::Logs);
    let request = ExportLogsServiceRequest::decode(&request[..]).unwrap();
    let records = &request.resource_logs[0].scope_logs[0].log_records;
    assert_eq!(records.len() as u64, count);
    let record = &records[0];
    assert_eq!((record.severity_number, record.event_name.as_str()), (17, "exception"));
    assert_eq!(record.body.as_ref().unwrap().value, Some(Any::StringValue("boom".into())));
    assert_eq!(text(&record.attributes, "exception.type"), "Error");
    assert_eq!(record.trace_id.len(), 16);
    assert_eq!(record.span_id, [0xfe, 0x68, 0xfa, 0x42, 0x55, 0xc6, 0xa0, 0xcf]);
    assert_eq!(text(&record.attributes, "transaction.id"), "fe68fa4255c6a0cf");
}

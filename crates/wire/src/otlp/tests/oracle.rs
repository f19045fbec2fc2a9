//! Whatever happens to a request on its way: no panic, and what is accepted means what prost says.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

use super::{captured, normal, shown, strategies};
use crate::damage::{apply, damage};
use crate::otlp::{LogsRequest, MetricsRequest, ProfilesRequest, Signal, TracesRequest, check};

/// That an accepted body shows what prost decodes.
fn agrees(signal: Signal, raw: &[u8]) {
    let (shown, decoded) = match signal {
        Signal::Traces => {
            let decoded = ExportTraceServiceRequest::decode(raw).unwrap();
            (shown::traces(raw).encode_to_vec(), normal::traces(decoded).encode_to_vec())
        }
        Signal::Logs => {
            let decoded = ExportLogsServiceRequest::decode(raw).unwrap();
            (shown::logs(raw).encode_to_vec(), normal::logs(decoded).encode_to_vec())
        }
        Signal::Metrics => {
            let decoded = ExportMetricsServiceRequest::decode(raw).unwrap();
            (shown::metrics(raw).encode_to_vec(), normal::metrics(decoded).encode_to_vec())
        }
        Signal::Profiles => return,
    };
    assert_eq!(shown, decoded);
}

/// Everything that reads a body, checked or not: none of it may panic.
fn read_all(raw: &[u8]) {
    for group in TracesRequest::new(raw).resources().flat_map(|group| group.scopes()) {
        for span in group.items() {
            let _ = (span.attributes().count(), span.events().count(), span.links().count());
        }
    }
    for group in LogsRequest::new(raw).resources().flat_map(|group| group.scopes()) {
        let _ = group.items().map(|record| record.attributes().count()).sum::<usize>();
    }
    for group in MetricsRequest::new(raw).resources().flat_map(|group| group.scopes()) {
        let _ = format!("{:?}", group.items().next());
    }
    let _ = ProfilesRequest::new(raw).resources().flat_map(|group| group.scopes()).count();
}

const SIGNALS: [Signal; 4] = [Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn traces_are_accepted_and_shown(request in strategies::traces()) {
        let raw = request.encode_to_vec();
        let counts = check(Signal::Traces, &raw).unwrap();
        let spans: Vec<_> =
            request.resource_spans.iter().flat_map(|group| &group.scope_spans).flat_map(|group| &group.spans).collect();
        prop_assert_eq!(counts.items, spans.len() as u64);
        prop_assert_eq!(counts.events, spans.iter().map(|span| span.events.len() as u64).sum::<u64>());
        prop_assert_eq!(counts.links, spans.iter().map(|span| span.links.len() as u64).sum::<u64>());
        prop_assert_eq!(counts.resources, request.resource_spans.len() as u64);
        agrees(Signal::Traces, &raw);
    }

    #[test]
    fn logs_are_accepted_and_shown(request in strategies::logs()) {
        let raw = request.encode_to_vec();
        let counts = check(Signal::Logs, &raw).unwrap();
        let scopes: Vec<_> = request.resource_logs.iter().flat_map(|group| &group.scope_logs).collect();
        prop_assert_eq!(counts.items, scopes.iter().map(|group| group.log_records.len() as u64).sum::<u64>());
        prop_assert_eq!(counts.scopes, scopes.len() as u64);
        agrees(Signal::Logs, &raw);
    }

    #[test]
    fn metrics_are_accepted_and_shown(request in strategies::metrics()) {
        let raw = request.encode_to_vec();
        check(Signal::Metrics, &raw).unwrap();
        agrees(Signal::Metrics, &raw);
    }

    #[test]
    fn traces_survive_damage(request in strategies::traces(), damages in vec(damage(), 1..4)) {
        let mut raw = request.encode_to_vec();
        apply(&mut raw, &damages);
        read_all(&raw);
        if check(Signal::Traces, &raw).is_ok() {
            agrees(Signal::Traces, &raw);
        }
    }

    #[test]
    fn logs_survive_damage(request in strategies::logs(), damages in vec(damage(), 1..4)) {
        let mut raw = request.encode_to_vec();
        apply(&mut raw, &damages);
        read_all(&raw);
        if check(Signal::Logs, &raw).is_ok() {
            agrees(Signal::Logs, &raw);
        }
    }

    #[test]
    fn metrics_survive_damage(request in strategies::metrics(), damages in vec(damage(), 1..4)) {
        let mut raw = request.encode_to_vec();
        apply(&mut raw, &damages);
        read_all(&raw);
        if check(Signal::Metrics, &raw).is_ok() {
            agrees(Signal::Metrics, &raw);
        }
    }

    /// Of bodies as an SDK sends them.
    #[test]
    fn captured_bodies_survive_damage(which in 0..3usize, damages in vec(damage(), 0..4)) {
        let (signal, body) = [
            (Signal::Traces, captured::TRACES),
            (Signal::Metrics, captured::METRICS),
            (Signal::Logs, captured::LOGS),
        ][which];
        let mut raw = body.to_vec();
        apply(&mut raw, &damages);
        if check(signal, &raw).is_ok() {
            agrees(signal, &raw);
        }
    }

    /// Bytes that never were a request do not panic either, and an error's text stays short.
    #[test]
    fn noise_is_survived(raw in vec(prop_oneof![any::<u8>(), 0u8..0x30], 0..300)) {
        read_all(&raw);
        for signal in SIGNALS {
            if let Err(error) = check(signal, &raw) {
                prop_assert!(error.to_string().len() < 600);
            }
        }
    }
}

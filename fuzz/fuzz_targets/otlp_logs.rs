//! A body that passes the check for logs is one that prost decodes, with as many records.
#![no_main]

use libfuzzer_sys::fuzz_target;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use prost::Message;
use tidegate_wire::otlp::{LogsRequest, Signal, check};

fuzz_target!(|raw: &[u8]| {
    let shown = LogsRequest::new(raw).resources().flat_map(|group| group.scopes());
    let shown = shown.flat_map(|group| group.items());
    let records =
        shown.map(|record| drop(format!("{:?}", (record.body, record.attributes().last())))).count();
    let Ok(counts) = check(Signal::Logs, raw) else {
        return;
    };
    assert_eq!(counts.items, records as u64);
    let decoded = match ExportLogsServiceRequest::decode(raw) {
        Ok(decoded) => decoded,
        // It stops at a hundred messages in each other, and here is room for a thousand arrays and maps.
        Err(error) if error.to_string().contains("recursion limit") => return,
        Err(error) => panic!("what is accepted is a valid message: {error}"),
    };
    let groups = decoded.resource_logs.iter().flat_map(|group| &group.scope_logs);
    assert_eq!(records, groups.map(|group| group.log_records.len()).sum::<usize>());
});

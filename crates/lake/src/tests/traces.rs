//! OTLP data reads back as written: spans, attribute by attribute.

use super::body::{bytes, fixed64, varint};
use super::otlp::{self, Attr, START_NS, span, trace_id, traces};
use super::*;
use crate::{BatchPosition, Format, Output};
use tidegate_wire::otlp::{Signal, check};

pub(crate) fn push_otlp(writer: &mut Writer, sequence: u64, signal: Signal, raw: &[u8]) -> BatchResult {
    check(signal, raw).unwrap();
    writer.push_otlp(&BatchPosition { sequence, received_at_ns: NOW_NS }, signal, raw, NOW_NS).unwrap()
}

/// All columns of all rows, as NDJSON shows them.
pub(crate) fn rows(dir: &Path, table: Table) -> Vec<serde_json::Value> {
    let query = Query { columns: table.column_names(), ..Query::new(table) };
    let mut output = Output::new(Format::Ndjson, Vec::new(), table.column_names());
    for batch in scan(dir, &query).unwrap() {
        output.write(&batch.unwrap()).unwrap();
    }
    let text = String::from_utf8(output.finish().unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_field_of_a_span_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let mut full = span(
        1,
        "GET /é",
        &[
            ("http.route", Attr::Text("/é/{id}")),
            ("http.response.status_code", Attr::Int(200)),
            ("http.request.method", Attr::Int(7)),
            ("z", Attr::Bytes(&[0, 255])),
            ("a", Attr::Array(vec![Attr::Int(1), Attr::Double(1.0), Attr::Empty, Attr::Bool(true)])),
        ],
    );
    bytes(&mut full, 3, b"k=v");
    bytes(&mut full, 4, &[9; 8]);
    varint(&mut full, 10, 3);
    varint(&mut full, 14, 5);
    let (mut status, mut event, mut link) = (Vec::new(), Vec::new(), Vec::new());
    bytes(&mut status, 2, b"broken");
    varint(&mut status, 3, 2);
    bytes(&mut full, 15, &status);
    fixed64(&mut event, 1, START_NS + 7);
    bytes(&mut event, 2, b"exception");
    otlp::attributes(&mut event, 3, &[("exception.type", Attr::Text("Io"))]);
    varint(&mut event, 4, 1);
    bytes(&mut full, 11, &event);
    bytes(&mut link, 1, &trace_id(2));
    bytes(&mut link, 2, &[2; 8]);
    bytes(&mut link, 3, b"l=1");
    otlp::attributes(&mut link, 4, &[("why", Attr::Text("retry"))]);
    bytes(&mut full, 13, &link);
    let resource = [("service.name", Attr::Text("shop")), ("pid", Attr::Int(12))];
    let pushed = push_otlp(&mut writer, 1, Signal::Traces, &traces(&resource, &[full, span(2, "b", &[])]));
    assert_eq!((pushed.rows, pushed.dropped.items()), (2, 0));
    writer.close_files().unwrap();
    let rows = rows(dir.path(), Table::Spans);
    assert_eq!(rows.len(), 2);
    let expected = serde_json::json!({
        "service_name": "shop", "start_time": "2023-11-14T22:13:20.123456790Z", "start_ns": 790,
        "duration_ns": 1_500_000, "trace_id": "00000070000000000000000000000001", "span_id": "0000000000000001",
        "parent_span_id": "0909090909090909", "span_name": "GET /é", "kind": 2, "status_code": 2,
        "status_message": "broken", "scope_name": "library", "scope_version": "1.2.3", "trace_state": "k=v",
        "flags": 0, "resource": {"pid": 12, "service.name": "shop"},
        "attributes": {"a": [1, 1.0, null, true], "http.request.method": 7, "z": {"$bytes": "AP8="}},
        "events": [{"time": "2023-11-14T22:13:20.123456796Z", "time_ns": 796, "name": "exception",
            "attributes": {"exception.type": "Io"}, "dropped_attributes": 1}],
        "links": [{"trace_id": "00000070000000000000000000000002", "span_id": "0202020202020202",
            "trace_state": "l=1", "attributes": {"why": "retry"}, "flags": 0, "dropped_attributes": 0}],
        "dropped": {"attributes": 3, "events": 0, "links": 5},
        "http.route": "/é/{id}", "http.response.status_code": 200, "http.request.method": null,
    });
    for (column, value) in expected.as_object().unwrap() {
        assert_eq!(&rows[0][column], value, "{column}");
    }
    assert_eq!(rows[0]["batch_id"].as_str().unwrap()[16..], *"0000000000000001");
    assert_eq!(rows[1]["events"], serde_json::Value::Null);
    assert_eq!(rows[1]["parent_span_id"], serde_json::Value::Null);
}

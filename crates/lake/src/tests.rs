//! Data reads back as written. Crashes and commits are tested beside the writer.

#[path = "../tests/support/body.rs"]
pub(crate) mod body;
mod columns;
#[path = "../tests/support/otlp.rs"]
pub(crate) mod otlp;
mod otlp_tables;
mod roundtrip;
mod skipping;
pub(crate) mod traces;

use crate::{BatchResult, Query, Table, Writer, WriterSettings, scan};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int32Type, TimestampMicrosecondType};
use body::{Body, Labels};
use std::collections::BTreeMap;
use std::path::Path;
use tidegate_wire::remote_write::{Symbols, Version, view};

/// 2023-11-14T22:13:20Z.
pub(crate) const NOW_NS: u64 = 1_700_000_000_000_000_000;
pub(crate) const NOW_MS: i64 = 1_700_000_000_000;
pub(crate) const HOUR_NS: u64 = 3_600_000_000_000;

pub(crate) fn writer(dir: &Path) -> Writer {
    Writer::open(WriterSettings::new(dir, Writer::smallest_slice(), "test")).unwrap().0
}

pub(crate) fn push(writer: &mut Writer, sequence: u64, received_at_ns: u64, body: &Body) -> BatchResult {
    try_push(writer, sequence, received_at_ns, body).unwrap()
}

pub(crate) fn try_push(
    writer: &mut Writer,
    sequence: u64,
    received_at_ns: u64,
    body: &Body,
) -> Result<BatchResult, crate::Error> {
    let mut symbols = Symbols::new();
    let request = view(Version::V1, &body.0, &mut symbols).unwrap();
    writer.push(&crate::BatchPosition { sequence, received_at_ns }, &request, received_at_ns)
}

/// A row of `metric_points` with the labels put together again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) labels: Labels,
    pub(crate) time_us: i64,
    pub(crate) bits: Option<u64>,
    pub(crate) flags: i32,
}

pub(crate) fn batches(dir: &Path, table: Table) -> Vec<RecordBatch> {
    let query = Query { columns: table.column_names(), ..Query::new(table) };
    scan(dir, &query).unwrap().map(Result::unwrap).collect()
}

pub(crate) fn points(dir: &Path) -> Vec<Point> {
    let mut points = Vec::new();
    for batch in batches(dir, Table::MetricPoints) {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let values = column("value").as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            points.push(Point {
                labels: labels_of(&batch, row),
                time_us: column("time").as_primitive::<TimestampMicrosecondType>().value(row),
                bits: values.is_valid(row).then(|| values.value(row).to_bits()),
                flags: column("flags").as_primitive::<Int32Type>().value(row),
            });
        }
    }
    points
}

fn labels_of(batch: &RecordBatch, row: usize) -> Labels {
    let text = |name: &str| {
        let column = batch.column_by_name(name).unwrap().as_string_view();
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let mut labels: BTreeMap<String, String> = serde_json::from_str(&text("attributes").unwrap()).unwrap();
    for promoted in crate::table::PROMOTED {
        labels.extend(text(promoted).map(|value| (promoted.to_owned(), value)));
    }
    let name = text("metric_name").unwrap();
    if !name.is_empty() {
        labels.insert("__name__".to_owned(), name);
    }
    labels.into_iter().collect()
}

pub(crate) fn fixed32(out: &mut Vec<u8>, field: u8, value: u32) {
    out.push(field << 3 | 5);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A point of a histogram with these counts and bounds.
pub(crate) fn histogram_point(time: u64, counts: &[u64], bounds: &[f64], exemplar: &[u8]) -> Vec<u8> {
    let mut point = Vec::new();
    body::fixed64(&mut point, 3, time);
    body::fixed64(&mut point, 4, 9);
    body::fixed64(&mut point, 5, 4.5_f64.to_bits());
    let packed: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    body::bytes(&mut point, 6, &packed);
    let packed: Vec<u8> = bounds.iter().flat_map(|bound| bound.to_le_bytes()).collect();
    body::bytes(&mut point, 7, &packed);
    body::bytes(&mut point, 8, exemplar);
    body::fixed64(&mut point, 11, 0.25_f64.to_bits());
    point
}

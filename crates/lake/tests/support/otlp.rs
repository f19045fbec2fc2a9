//! OTLP requests for tests, written field by field.
#![allow(dead_code, reason = "each test needs some of it")]

use super::body::{bytes, fixed64, varint};

/// A value of an attribute.
#[derive(Debug, Clone)]
pub(crate) enum Attr<'a> {
    Empty,
    Text(&'a str),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(&'a [u8]),
    Array(Vec<Attr<'a>>),
    Map(Vec<(&'a str, Attr<'a>)>),
}

pub(crate) type Attrs<'a> = [(&'a str, Attr<'a>)];

impl Attr<'_> {
    /// An `AnyValue`.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = Vec::new();
        match self {
            Attr::Empty => {}
            Attr::Text(text) => bytes(&mut value, 1, text.as_bytes()),
            Attr::Bool(is) => varint(&mut value, 2, u64::from(*is)),
            Attr::Int(number) => varint(&mut value, 3, number.cast_unsigned()),
            Attr::Double(number) => fixed64(&mut value, 4, number.to_bits()),
            Attr::Array(values) => {
                let mut array = Vec::new();
                values.iter().for_each(|element| bytes(&mut array, 1, &element.encode()));
                bytes(&mut value, 5, &array);
            }
            Attr::Map(entries) => {
                let mut map = Vec::new();
                attributes(&mut map, 1, entries);
                bytes(&mut value, 6, &map);
            }
            Attr::Bytes(all) => bytes(&mut value, 7, all),
        }
        value
    }
}

/// Appends attributes as the repeated field `field`.
pub(crate) fn attributes(out: &mut Vec<u8>, field: u64, all: &Attrs<'_>) {
    for (key, value) in all {
        let mut pair = Vec::new();
        bytes(&mut pair, 1, key.as_bytes());
        bytes(&mut pair, 2, &value.encode());
        bytes(out, field, &pair);
    }
}

/// A request of one resource and one scope.
pub(crate) fn request(resource: &Attrs<'_>, scope: &[u8], items: &[Vec<u8>]) -> Vec<u8> {
    let (mut encoded_resource, mut scope_group, mut group, mut raw) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    attributes(&mut encoded_resource, 1, resource);
    bytes(&mut scope_group, 1, scope);
    items.iter().for_each(|item| bytes(&mut scope_group, 2, item));
    bytes(&mut group, 1, &encoded_resource);
    bytes(&mut group, 2, &scope_group);
    bytes(&mut raw, 1, &group);
    raw
}

fn scope() -> Vec<u8> {
    let mut scope = Vec::new();
    bytes(&mut scope, 1, b"library");
    bytes(&mut scope, 2, b"1.2.3");
    scope
}

pub(crate) fn traces(resource: &Attrs<'_>, spans: &[Vec<u8>]) -> Vec<u8> {
    request(resource, &scope(), spans)
}

pub(crate) fn logs(resource: &Attrs<'_>, records: &[Vec<u8>]) -> Vec<u8> {
    request(resource, &scope(), records)
}

pub(crate) fn metrics(resource: &Attrs<'_>, metrics: &[Vec<u8>]) -> Vec<u8> {
    request(resource, &scope(), metrics)
}

pub(crate) fn trace_id(serial: u64) -> [u8; 16] {
    (u128::from(serial) + (7 << 100)).to_be_bytes()
}

pub(crate) const START_NS: u64 = 1_700_000_000_123_456_789;

/// A span of 1.5 ms.
pub(crate) fn span(serial: u64, name: &str, all: &Attrs<'_>) -> Vec<u8> {
    let mut span = Vec::new();
    bytes(&mut span, 1, &trace_id(serial));
    bytes(&mut span, 2, &serial.to_be_bytes());
    bytes(&mut span, 5, name.as_bytes());
    varint(&mut span, 6, 2);
    fixed64(&mut span, 7, START_NS + serial);
    fixed64(&mut span, 8, START_NS + serial + 1_500_000);
    attributes(&mut span, 9, all);
    span
}

pub(crate) fn log_record(serial: u64, body: Attr<'_>, all: &Attrs<'_>) -> Vec<u8> {
    let mut record = Vec::new();
    fixed64(&mut record, 1, START_NS + serial);
    fixed64(&mut record, 11, START_NS + serial + 5);
    varint(&mut record, 2, 9);
    bytes(&mut record, 3, b"INFO");
    bytes(&mut record, 5, &body.encode());
    attributes(&mut record, 6, all);
    bytes(&mut record, 9, &trace_id(serial));
    bytes(&mut record, 10, &serial.to_be_bytes());
    record
}

/// Metrics of one gauge with one integer point.
pub(crate) fn gauge(value: u64) -> Vec<u8> {
    let (mut point, mut gauge, mut metric) = (Vec::new(), Vec::new(), Vec::new());
    fixed64(&mut point, 3, START_NS);
    fixed64(&mut point, 6, value);
    bytes(&mut gauge, 1, &point);
    bytes(&mut metric, 1, b"gauge");
    bytes(&mut metric, 5, &gauge);
    metrics(&[], &[metric])
}

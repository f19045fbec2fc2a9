//! Attributes of any depth become objects, and JSON in a text below that.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use super::*;
use tidegate_wire::otlp::{LogsRequest, Signal, check};
use tidegate_wire::output::SliceOutput;

fn field(tag: u8, payload: &[u8]) -> Vec<u8> {
    let mut field = vec![tag];
    let mut len = payload.len();
    while len >= 0x80 {
        field.push(len as u8 & 0x7f | 0x80);
        len >>= 7;
    }
    field.push(len as u8);
    field.extend_from_slice(payload);
    field
}

/// A request with a record whose attribute `k` is a text in so many lists and maps.
fn deep(depth: usize) -> Vec<u8> {
    let value = (0..depth).fold(field(0x0a, b"x"), |value, level| match level % 2 {
        0 => field(0x2a, &[field(0x0a, &[0x18, 1]), field(0x0a, &value)].concat()),
        _ => {
            let entry = |key: &[u8], value: &[u8]| [field(0x0a, key), field(0x12, value)].concat();
            let entries = [field(0x0a, &entry(b"a", &[0x18, 2])), field(0x0a, &entry(b"b", &value))];
            field(0x32, &entries.concat())
        }
    });
    let attribute = field(0x32, &[field(0x0a, b"k"), field(0x12, &value)].concat());
    [0x12, 0x12, 0x0a].into_iter().fold(attribute, |inner, tag| field(tag, &inner))
}

/// The expected output: objects down to a depth, and JSON texts below it.
fn nested(depth: usize) -> serde_json::Value {
    use serde_json::{Value, json};
    let value = |levels: std::ops::Range<usize>, inner: Value| {
        levels.fold(inner, |value, level| match level % 2 {
            0 => json!([1, value]),
            _ => json!({"a": 2, "b": value}),
        })
    };
    value(0..depth, json!("x"))
}

/// Puts what is JSON within a text back where it stands for.
fn unfolded(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) if text.starts_with(['[', '{']) => serde_json::from_str(text).unwrap(),
        Value::Array(values) => values.iter().map(unfolded).collect(),
        Value::Object(all) => {
            Value::Object(all.iter().map(|(key, value)| (key.clone(), unfolded(value))).collect())
        }
        other => other.clone(),
    }
}

/// Nothing calls itself for each level, so a small stack is enough for whatever is taken in.
#[test]
fn values_may_nest_deep() {
    let write = |depth: usize| {
        let raw = deep(depth);
        assert_eq!(check(Signal::Logs, &raw).unwrap().items, 1);
        let group = LogsRequest::new(&raw).resources().next().unwrap();
        let record = group.scopes().next().unwrap().items().next().unwrap();
        let mut space = vec![0; 1 << 20];
        let mut out = SliceOutput::new(&mut space);
        let mut objects = ObjectWriter::new();
        objects.is_free = true;
        objects.object(record.attributes(), &mut out).unwrap();
        assert!(objects.pairs.is_empty() && objects.open.is_empty() && objects.lost == 0);
        let len = out.len();
        space.truncate(len);
        String::from_utf8(space).unwrap()
    };
    for depth in [1, 2, MAX_OBJECT_DEPTH - 1, MAX_OBJECT_DEPTH, MAX_OBJECT_DEPTH + 1, 40] {
        let found: serde_json::Value = serde_json::from_str(&write(depth)).unwrap();
        assert_eq!(unfolded(&found), serde_json::json!({"k": nested(depth)}), "{depth}");
    }
    let deepest = std::thread::Builder::new().stack_size(192 << 10).spawn(move || write(MAX_DEPTH));
    let text = deepest.unwrap().join().unwrap();
    assert_eq!(text.matches("[1,").count(), MAX_DEPTH / 2);
}

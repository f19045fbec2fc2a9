//! `KeyValue` and `AnyValue`.

use super::proto::{bytes_field, bytes_field_len, fixed64_field, message_head, varint, varint_len};
use crate::encode::text;
use crate::record::{Attributes, Value};
use crate::ring::EventOutput;

/// Lists in maps in lists, and so on, at most; what is deeper is written as empty.
const DEPTH: u32 = 8;

/// All attributes as repeated field `field`.
pub(super) fn attributes<O: EventOutput>(out: &mut O, field: u32, attributes: &dyn Attributes) {
    pairs(out, field, attributes, DEPTH);
}

/// A value as field `field`.
pub(super) fn value_field<O: EventOutput>(out: &mut O, field: u32, value: Value<'_>) {
    let len = value_len(value, DEPTH);
    message_head(out, field, len);
    any_value(out, value, len, DEPTH);
}

fn pairs<O: EventOutput>(out: &mut O, field: u32, attributes: &dyn Attributes, depth: u32) {
    attributes.each(&mut |key, value| {
        let value_len = value_len(value, depth);
        message_head(out, field, pair_len(key, value_len));
        bytes_field(out, 1, key.as_bytes());
        message_head(out, 2, value_len);
        any_value(out, value, value_len, depth);
    });
}

fn pair_len(key: &str, value: usize) -> usize {
    bytes_field_len(1, key.len()) + bytes_field_len(2, value)
}

fn value_len(value: Value<'_>, depth: u32) -> usize {
    match value {
        Value::Empty => 0,
        Value::Str(text) => bytes_field_len(1, text.len()),
        Value::Bool(_) => 2,
        Value::Int(number) => 1 + varint_len(number as u64),
        Value::Double(_) => 9,
        Value::Bytes(bytes) => bytes_field_len(7, bytes.len()),
        Value::Display(shown) => bytes_field_len(1, text::shown_len(shown)),
        Value::List(_) | Value::Map(_) if depth == 0 => 0,
        Value::List(_) => bytes_field_len(5, inner_len(value, depth)),
        Value::Map(_) => bytes_field_len(6, inner_len(value, depth)),
    }
}

/// Length of the `ArrayValue` or `KeyValueList` inside.
fn inner_len(value: Value<'_>, depth: u32) -> usize {
    let mut sum = 0;
    match value {
        Value::List(values) => {
            values.each(&mut |value| sum += bytes_field_len(1, value_len(value, depth - 1)));
        }
        Value::Map(pairs) => pairs.each(&mut |key, value| {
            sum += bytes_field_len(1, pair_len(key, value_len(value, depth - 1)));
        }),
        _ => (),
    }
    sum
}

/// `len` is [`value_len`].
fn any_value<O: EventOutput>(out: &mut O, value: Value<'_>, len: usize, depth: u32) {
    match value {
        Value::Empty => (),
        Value::Str(text) => bytes_field(out, 1, text.as_bytes()),
        Value::Bool(truth) => out.put(&[2 << 3, u8::from(truth)]),
        Value::Int(number) => {
            out.put(&[3 << 3]);
            varint(out, number as u64);
        }
        Value::Double(number) => fixed64_field(out, 4, number.to_bits()),
        Value::Bytes(bytes) => bytes_field(out, 7, bytes),
        Value::Display(shown) => {
            // The rest of `len` without tag and length; the length's own size depends on it.
            let text = (1..=10)
                .map(|head| len.saturating_sub(1 + head))
                .find(|text| bytes_field_len(1, *text) == len);
            let text = text.unwrap_or(0);
            message_head(out, 1, text);
            text::show(out, shown, text);
        }
        Value::List(_) | Value::Map(_) if depth == 0 => (),
        Value::List(values) => {
            message_head(out, 5, inner_len(value, depth));
            values.each(&mut |value| {
                let len = value_len(value, depth - 1);
                message_head(out, 1, len);
                any_value(out, value, len, depth - 1);
            });
        }
        Value::Map(map) => {
            message_head(out, 6, inner_len(value, depth));
            pairs(out, 1, map, depth - 1);
        }
    }
}

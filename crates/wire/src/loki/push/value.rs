//! Writes values as text: scalars as they are, arrays and maps as JSON.

use crate::json::write as json;
use crate::otlp::{AnyValue, KeyValue};
use crate::output::{Full, Output};

/// Arrays and maps may be so deep in each other; deeper ones are `null`.
const MAX_DEPTH: usize = 64;

/// Writes a value as text.
pub(super) fn text(value: AnyValue<'_>, out: &mut impl Output) -> Result<(), Full> {
    match value {
        AnyValue::Empty => Ok(()),
        AnyValue::Text(text) => out.put(text),
        AnyValue::Bytes(bytes) => json::base64(bytes, out),
        AnyValue::Double(bits) => double(bits, out),
        value => any(value, out, 0),
    }
}

/// Writes a value as JSON. It recurses, at most [`MAX_DEPTH`] deep.
fn any(value: AnyValue<'_>, out: &mut impl Output, depth: usize) -> Result<(), Full> {
    match value {
        AnyValue::Array(_) | AnyValue::Map(_) if depth >= MAX_DEPTH => out.put(b"null"),
        AnyValue::Empty => out.put(b"null"),
        AnyValue::Text(text) => json::string(text, out),
        AnyValue::Bool(value) => out.put(if value { b"true" } else { b"false" }),
        AnyValue::Int(value) => json::int(value, out),
        AnyValue::Double(bits) if f64::from_bits(bits).is_finite() => double(bits, out),
        AnyValue::Double(bits) => {
            out.put(b"\"")?;
            double(bits, out)?;
            out.put(b"\"")
        }
        AnyValue::Bytes(bytes) => {
            out.put(b"\"")?;
            json::base64(bytes, out)?;
            out.put(b"\"")
        }
        AnyValue::Array(array) => {
            let mut before: &[u8] = b"[";
            for value in array.values() {
                out.put(before)?;
                any(value, out, depth + 1)?;
                before = b",";
            }
            out.put(if before == b"[" { b"[]" } else { b"]" })
        }
        AnyValue::Map(map) => {
            let mut before: &[u8] = b"{";
            for KeyValue { key, value } in map.entries() {
                out.put(before)?;
                json::string(key, out)?;
                out.put(b":")?;
                any(value, out, depth + 1)?;
                before = b",";
            }
            out.put(if before == b"{" { b"{}" } else { b"}" })
        }
    }
}

/// A double with the shortest digits that mean it, without a point where it is whole.
fn double(bits: u64, out: &mut impl Output) -> Result<(), Full> {
    let value = f64::from_bits(bits);
    if value.is_finite() {
        let is_short = value.fract() == 0.0 && value.abs() < 1e15;
        return if is_short {
            json::formatted(format_args!("{value}"), out)
        } else {
            json::formatted(format_args!("{value:?}"), out)
        };
    }
    out.put(if value.is_nan() {
        b"NaN"
    } else if value > 0.0 {
        b"+Inf"
    } else {
        b"-Inf"
    })
}

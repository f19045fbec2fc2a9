//! Values of attributes as text, as the Collector's `pcommon.Value.AsString` has them: strings as they are, bytes in base64, lists and maps as
//! JSON. Maps keep the order of their keys, where the Collector sorts them.

use tidegate_wire::json::write;
use tidegate_wire::otlp::AnyValue;
use tidegate_wire::output::{Full, Output, SliceOutput};

/// The levels of lists and maps that are written; deeper ones are `null`.
const DEEPEST: usize = 16;

/// Writes the text of a value.
pub(crate) fn put(value: AnyValue<'_>, out: &mut impl Output) -> Result<(), Full> {
    match value {
        AnyValue::Empty => Ok(()),
        AnyValue::Text(text) => out.put(text),
        AnyValue::Bytes(bytes) => write::base64(bytes, out),
        AnyValue::Double(bits) if !f64::from_bits(bits).is_finite() => out.put(not_finite(bits)),
        value => json(value, DEEPEST, out),
    }
}

/// Whether the text of a value is empty.
pub(crate) fn is_empty(value: AnyValue<'_>) -> bool {
    matches!(value, AnyValue::Empty | AnyValue::Text([]) | AnyValue::Bytes([]))
}

fn json(value: AnyValue<'_>, levels: usize, out: &mut impl Output) -> Result<(), Full> {
    match value {
        AnyValue::Text(text) => write::string(text, out),
        AnyValue::Bool(value) => out.put(if value { b"true" } else { b"false" }),
        AnyValue::Int(value) => write::int(value, out),
        AnyValue::Double(bits) if f64::from_bits(bits).is_finite() => double(f64::from_bits(bits), out),
        AnyValue::Bytes(bytes) => {
            out.put(b"\"")?;
            write::base64(bytes, out)?;
            out.put(b"\"")
        }
        AnyValue::Array(array) if levels > 0 => {
            let mut before: &[u8] = b"[";
            for value in array.values() {
                out.put(before)?;
                json(value, levels - 1, out)?;
                before = b",";
            }
            out.put(if before == b"[" { b"[]" } else { b"]" })
        }
        AnyValue::Map(map) if levels > 0 => {
            let mut before: &[u8] = b"{";
            for entry in map.entries() {
                out.put(before)?;
                write::string(entry.key, out)?;
                out.put(b":")?;
                json(entry.value, levels - 1, out)?;
                before = b",";
            }
            out.put(if before == b"{" { b"{}" } else { b"}" })
        }
        AnyValue::Empty | AnyValue::Double(_) | AnyValue::Array(_) | AnyValue::Map(_) => out.put(b"null"),
    }
}

/// As Go's encoder of JSON writes doubles: with an exponent below 1e-6 and from 1e21 on.
fn double(value: f64, out: &mut impl Output) -> Result<(), Full> {
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return write::formatted(format_args!("{value}"), out);
    }
    let mut digits = [0; 40];
    let mut text = SliceOutput::new(&mut digits);
    write::formatted(format_args!("{value:e}"), &mut text)?;
    let mut parts = text.written().splitn(2, |byte| *byte == b'e');
    out.put(parts.next().unwrap_or_default())?;
    out.put(if size < 1.0 { b"e" } else { b"e+" })?;
    out.put(parts.next().unwrap_or_default())
}

fn not_finite(bits: u64) -> &'static [u8] {
    match f64::from_bits(bits) {
        f64::INFINITY => b"Infinity",
        f64::NEG_INFINITY => b"-Infinity",
        _ => b"NaN",
    }
}

//! Writes values as JSON. Nothing here calls itself: a list holds the open arrays and maps.

use crate::json::write as json;
use crate::otlp::{AnyValue, Array, Attributes, MAX_DEPTH, Values};
use crate::output::{Full, Output};

/// Most heap bytes of an encoder: for deeply nested values.
pub const VALUE_BYTES: usize = MAX_DEPTH.next_power_of_two() * size_of::<(OpenValue<'_>, bool)>();

/// An array or a map of which some members are written.
enum OpenValue<'a> {
    Array(Values<'a>),
    Map(Attributes<'a>),
}

/// Writes one value at a time.
#[derive(Default)]
pub(super) struct ValueWriter<'a> {
    /// The open arrays and maps, innermost last, and whether their first member is still to come.
    open: Vec<(OpenValue<'a>, bool)>,
}

impl<'a> ValueWriter<'a> {
    /// Writes the value of an indexed field: a scalar, a list of scalars, or a text with the JSON of anything else.
    pub(super) fn write_field(&mut self, value: AnyValue<'a>, out: &mut impl Output) -> Result<(), Full> {
        let is_plain = match value {
            AnyValue::Map(_) => false,
            AnyValue::Array(array) => is_list_of_scalars(array),
            _ => true,
        };
        if is_plain {
            return self.write(value, out);
        }
        out.put(b"\"")?;
        self.write(value, &mut json::StringContent(out))?;
        out.put(b"\"")
    }

    /// Writes a value as JSON.
    pub(super) fn write(&mut self, value: AnyValue<'a>, out: &mut impl Output) -> Result<(), Full> {
        self.open.clear();
        let mut next = Some(value);
        loop {
            if let Some(value) = next.take() {
                self.begin(value, out)?;
            }
            let Some((open, is_first)) = self.open.last_mut() else { return Ok(()) };
            let comma: &[u8] = if std::mem::take(is_first) { b"" } else { b"," };
            let end: &[u8] = match open {
                OpenValue::Array(values) => {
                    next = values.next();
                    b"]"
                }
                OpenValue::Map(entries) => {
                    next = match entries.next() {
                        None => None,
                        Some(entry) => {
                            out.put(comma)?;
                            json::string(entry.key, out)?;
                            out.put(b":")?;
                            self.begin(entry.value, out)?;
                            continue;
                        }
                    };
                    b"}"
                }
            };
            if next.is_some() {
                out.put(comma)?;
            } else {
                self.open.pop();
                out.put(end)?;
            }
        }
    }

    /// Writes a scalar, or the beginning of an array or a map. Deeper than any check lets through, a value is `null`.
    fn begin(&mut self, value: AnyValue<'a>, out: &mut impl Output) -> Result<(), Full> {
        let is_deep = self.open.len() >= MAX_DEPTH;
        match value {
            AnyValue::Array(array) if !is_deep => {
                self.open.push((OpenValue::Array(array.values()), true));
                out.put(b"[")
            }
            AnyValue::Map(map) if !is_deep => {
                self.open.push((OpenValue::Map(map.entries()), true));
                out.put(b"{")
            }
            AnyValue::Empty | AnyValue::Array(_) | AnyValue::Map(_) => out.put(b"null"),
            AnyValue::Text(text) => json::string(text, out),
            AnyValue::Bool(value) => out.put(if value { b"true" } else { b"false" }),
            AnyValue::Int(value) => json::int(value, out),
            AnyValue::Double(bits) => double(bits, out),
            AnyValue::Bytes(bytes) => {
                out.put(b"\"")?;
                json::base64(bytes, out)?;
                out.put(b"\"")
            }
        }
    }
}

/// A double; one that JSON has no number for is a text, as in the JSON of protobuf.
fn double(bits: u64, out: &mut impl Output) -> Result<(), Full> {
    match f64::from_bits(bits) {
        value if value.is_nan() => out.put(b"\"NaN\""),
        f64::INFINITY => out.put(b"\"Infinity\""),
        f64::NEG_INFINITY => out.put(b"\"-Infinity\""),
        _ => json::double(bits, out).map(|_| ()),
    }
}

/// Whether Splunk takes an array as a field with several values.
fn is_list_of_scalars(array: Array<'_>) -> bool {
    let mut values = array.values().peekable();
    values.peek().is_some()
        && values.all(|value| !matches!(value, AnyValue::Empty | AnyValue::Array(_) | AnyValue::Map(_)))
}

//! Lists: of numbers, of messages, of attributes and of values.

use super::scalar::{Scalar, base64, double};
use super::{DEEPEST, Encoder, Members, StackFrame};
use crate::json::write as json;
use crate::otlp::json::schema::{Field, Kind, Message};
use crate::otlp::{AnyValue, KeyValue};
use crate::output::{Full, Output, SliceOutput};
use crate::proto::{Doubles, Messages, Varints};

impl<'a> Encoder<'a> {
    /// Writes a list of scalars, of which the first occurrence is at the start of `rest`.
    pub(super) fn numbers(&self, out: &mut SliceOutput<'_>, field: &Field, rest: &[u8]) -> Result<(), Full> {
        let number = u32::from(field.number);
        let mut start: &[u8] = b"[";
        let mut put = |value| {
            out.put(std::mem::replace(&mut start, b","))?;
            self.scalar(out, field, value)
        };
        match field.kind {
            Kind::Double | Kind::Fixed64 => Doubles::new(rest, number).map(Scalar::Bits).try_for_each(put)?,
            Kind::String => Messages::new(rest, number).map(Scalar::Bytes).try_for_each(put)?,
            _ => Varints::new(rest, number).map(Scalar::Bits).try_for_each(&mut put)?,
        }
        // A list of nothing is packed in no bytes.
        out.put(if start == b"[" { b"[]" } else { b"]" })
    }

    /// Writes the next member of a list, or its end.
    pub(super) fn member(
        &mut self,
        out: &mut SliceOutput<'_>,
        mut members: Members<'a>,
        is_first: bool,
        after: &'static str,
    ) -> Result<(), Full> {
        enum Member<'a> {
            Message(&'static Message, &'a [u8]),
            Pair(KeyValue<'a>),
            Value(AnyValue<'a>),
        }
        let next = match &mut members {
            Members::Messages(table, messages) => messages.next().map(|body| Member::Message(table, body)),
            Members::Pairs(pairs) => pairs.next().map(Member::Pair),
            Members::Values(values) => values.next().map(Member::Value),
        };
        let Some(next) = next else { return out.put(after.as_bytes()) };
        self.open.push(StackFrame::List { members, is_first: false, after });
        if !is_first {
            out.put(b",")?;
        }
        match next {
            Member::Message(table, body) => {
                self.open.push(StackFrame::Begin { table, body, before: "{", schema_url: &[], after: "}" });
                Ok(())
            }
            Member::Value(value) => self.value(out, value, false),
            Member::Pair(KeyValue { key, value }) if self.is_plain() => {
                json::string(key, out)?;
                out.put(b":")?;
                self.value(out, value, false)
            }
            Member::Pair(KeyValue { key, value }) => {
                // Readers want a key, even where it is empty.
                out.put(b"{\"key\":")?;
                json::string(key, out)?;
                if matches!(value, AnyValue::Empty) {
                    return out.put(b"}");
                }
                out.put(b",\"value\":")?;
                self.value(out, value, true)
            }
        }
    }

    /// Writes a value; `in_pair` also closes the pair around it.
    pub(super) fn value(
        &mut self,
        out: &mut SliceOutput<'_>,
        value: AnyValue<'a>,
        in_pair: bool,
    ) -> Result<(), Full> {
        let value = match value {
            AnyValue::Array(_) | AnyValue::Map(_) if self.open.len() >= DEEPEST => AnyValue::Empty,
            value => value,
        };
        let is_plain = self.is_plain();
        let name: &[u8] = match value {
            _ if is_plain => b"",
            AnyValue::Empty => b"{",
            AnyValue::Text(_) => b"{\"stringValue\":",
            AnyValue::Bool(_) => b"{\"boolValue\":",
            AnyValue::Int(_) => b"{\"intValue\":",
            AnyValue::Double(_) => b"{\"doubleValue\":",
            AnyValue::Bytes(_) => b"{\"bytesValue\":",
            AnyValue::Array(_) => b"{\"arrayValue\":{\"values\":",
            AnyValue::Map(_) => b"{\"kvlistValue\":{\"values\":",
        };
        out.put(name)?;
        match value {
            AnyValue::Empty => out.put(if is_plain { b"null" } else { b"" })?,
            AnyValue::Text(text) => json::string(text, out)?,
            AnyValue::Bool(value) => out.put(if value { b"true" } else { b"false" })?,
            AnyValue::Int(value) => self.long(out, |out| json::int(value, out))?,
            AnyValue::Double(bits) => double(bits, out)?,
            AnyValue::Bytes(bytes) => base64(bytes, out)?,
            AnyValue::Array(array) => {
                let after = if is_plain {
                    "]"
                } else if in_pair {
                    "]}}}"
                } else {
                    "]}}"
                };
                self.open.push(StackFrame::List {
                    members: Members::Values(array.values()),
                    is_first: true,
                    after,
                });
                return out.put(b"[");
            }
            AnyValue::Map(map) => {
                let after = if is_plain {
                    "}"
                } else if in_pair {
                    "]}}}"
                } else {
                    "]}}"
                };
                self.open.push(StackFrame::List {
                    members: Members::Pairs(map.entries()),
                    is_first: true,
                    after,
                });
                return out.put(if is_plain { b"{" } else { b"[" });
            }
        }
        let after: &[u8] = if is_plain {
            b""
        } else if in_pair {
            b"}}"
        } else {
            b"}"
        };
        out.put(after)
    }
}

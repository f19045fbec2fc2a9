//! Lists: of numbers, of messages, of attributes and of values.

use super::scalar::{Notation, Scalar, double};
use super::{DEEPEST, Encoder, LONGEST_STEP, MOST_NUMBERS, Members, StackFrame};
use crate::json::write as json;
use crate::otlp::json::schema::{Field, Kind, Message};
use crate::otlp::{AnyValue, KeyValue};
use crate::output::{Full, Output, SliceOutput};
use crate::proto::{Doubles, Messages, Varints};

/// The scalars of one repeated field.
#[derive(Clone)]
pub(super) enum Numbers<'a> {
    Doubles(Doubles<'a>),
    Varints(Varints<'a>),
    Texts(Messages<'a>),
}

impl<'a> Numbers<'a> {
    /// Those of `field`, whose first occurrence is at the start of `rest`.
    pub(super) fn new(field: &Field, rest: &'a [u8]) -> Self {
        let number = u32::from(field.number);
        match field.kind {
            Kind::Double | Kind::Fixed64 => Numbers::Doubles(Doubles::new(rest, number)),
            Kind::String => Numbers::Texts(Messages::new(rest, number)),
            _ => Numbers::Varints(Varints::new(rest, number)),
        }
    }
}

impl<'a> Iterator for Numbers<'a> {
    type Item = Scalar<'a>;

    fn next(&mut self) -> Option<Scalar<'a>> {
        match self {
            Numbers::Doubles(doubles) => doubles.next().map(Scalar::Bits),
            Numbers::Varints(varints) => varints.next().map(Scalar::Bits),
            Numbers::Texts(texts) => texts.next().map(Scalar::Bytes),
        }
    }
}

impl<'a> Encoder<'a> {
    /// Writes the next numbers of a list, or its end.
    fn numbers(
        &mut self,
        out: &mut SliceOutput<'_>,
        (field, mut numbers): (&'static Field, Numbers<'a>),
        is_first: bool,
        after: &'static str,
    ) -> Result<(), Full> {
        for at in 0..MOST_NUMBERS {
            let Some(number) = numbers.next() else { return out.put(after.as_bytes()) };
            if at > 0 || !is_first {
                out.put(b",")?;
            }
            match number {
                Scalar::Bytes(text) if text.len() > LONGEST_STEP => {
                    let members = Members::Numbers(field, numbers);
                    self.open.push(StackFrame::List { members, is_first: false, after });
                    return self.text(out, text, Notation::Text, "\"");
                }
                number => self.scalar(out, field, number)?,
            }
        }
        let members = Members::Numbers(field, numbers);
        self.open.push(StackFrame::List { members, is_first: false, after });
        Ok(())
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
            Members::Numbers(field, numbers) => {
                return self.numbers(out, (*field, numbers.clone()), is_first, after);
            }
        };
        let Some(next) = next else { return out.put(after.as_bytes()) };
        self.open.push(StackFrame::List { members, is_first: false, after });
        if !is_first {
            out.put(b",")?;
        }
        match next {
            Member::Message(table, body) => {
                self.open.push(StackFrame::message(table, body, "{", "}"));
                Ok(())
            }
            Member::Value(value) => self.value(out, value, false),
            Member::Pair(KeyValue { key, value }) => {
                let is_plain = self.is_plain();
                // Readers want a key, even where it is empty.
                out.put(if is_plain { b"" } else { b"{\"key\":" })?;
                let (after, value) = match value {
                    value if is_plain => ("\":", Some(value)),
                    AnyValue::Empty => ("\"}", None),
                    value => ("\",\"value\":", Some(value)),
                };
                if key.len() > LONGEST_STEP {
                    self.open.extend(value.map(|value| StackFrame::Value(value, !is_plain)));
                    return self.text(out, key, Notation::Text, after);
                }
                self.text(out, key, Notation::Text, after)?;
                value.map_or(Ok(()), |value| self.value(out, value, !is_plain))
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
            _ if self.open.len() >= DEEPEST - 2 => AnyValue::Empty,
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
        let [after, after_text, after_array, after_map] = match (is_plain, in_pair) {
            (true, _) => ["", "\"", "]", "}"],
            (false, false) => ["}", "\"}", "]}}", "]}}"],
            (false, true) => ["}}", "\"}}", "]}}}", "]}}}"],
        };
        match value {
            AnyValue::Text(text) => return self.text(out, text, Notation::Text, after_text),
            AnyValue::Bytes(bytes) => return self.text(out, bytes, Notation::Base64, after_text),
            AnyValue::Empty => out.put(if is_plain { b"null" } else { b"" })?,
            AnyValue::Bool(value) => out.put(if value { b"true" } else { b"false" })?,
            AnyValue::Int(value) => self.long(out, |out| json::int(value, out))?,
            AnyValue::Double(bits) => double(bits, out)?,
            AnyValue::Array(array) => {
                let members = Members::Values(array.values());
                self.open.push(StackFrame::List { members, is_first: true, after: after_array });
                return out.put(b"[");
            }
            AnyValue::Map(map) => {
                let members = Members::Pairs(map.entries());
                self.open.push(StackFrame::List { members, is_first: true, after: after_map });
                return out.put(if is_plain { b"{" } else { b"[" });
            }
        }
        out.put(after.as_bytes())
    }
}

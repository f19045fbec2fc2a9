//! Reads attributes as encoders write them: short, a key before its value. The others are left to [`crate::any_value`].

use super::message::body;
use crate::memory::Slice;
use crate::value::Value;
use std::ops::Range;
use tidegate_wire::proto::Reader;

/// The attributes in a range of the body: fields of one number.
pub(super) struct Attributes<'a> {
    body: &'a [u8],
    at: usize,
    end: usize,
    number: u32,
}

/// An attribute.
pub(super) enum Attribute {
    Read(Slice, Value),
    /// A `KeyValue` message that is still to be read.
    Message(Slice),
}

impl<'a> Attributes<'a> {
    pub(super) fn new(body: &'a [u8], range: Range<usize>, number: u32) -> Attributes<'a> {
        Attributes { body, at: range.start, end: range.end.min(body.len()), number }
    }

    /// The next one, with the range of its field.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(Range<usize>, Attribute)> {
        loop {
            let start = self.at;
            let rest = self.body.get(start..self.end)?;
            // A tag and a length of one byte each.
            if let [tag @ 8..0x80, len @ 0..0x80, behind @ ..] = rest
                && tag & 7 == 2
                && let Some(payload) = behind.get(..usize::from(*len))
            {
                self.at = start + 2 + payload.len();
                if u32::from(*tag >> 3) != self.number {
                    continue;
                }
                let message = start + 2..self.at;
                let attribute = short(payload, message.start);
                return Some((start..self.at, attribute.unwrap_or(Attribute::Message(body(&message)))));
            }
            let mut reader = Reader::new(rest);
            let key = reader.key().ok()??;
            if key.field != self.number {
                reader.skip(key).ok()?;
                self.at = start + reader.offset();
                continue;
            }
            let len = reader.bytes(key).ok()?.len();
            self.at = start + reader.offset();
            return Some((start..self.at, Attribute::Message(body(&(self.at - len..self.at)))));
        }
    }
}

/// A key and a value of the usual kinds, in this order, of less than 128 bytes.
#[inline]
fn short(payload: &[u8], start: usize) -> Option<Attribute> {
    let [0x0a, key_len @ 0..0x80, rest @ ..] = payload else { return None };
    let (key, rest) = rest.split_at_checked(usize::from(*key_len))?;
    let [0x12, value_len @ 0..0x80, value @ ..] = rest else { return None };
    if value.len() != usize::from(*value_len) {
        return None;
    }
    let value_start = start + 4 + key.len();
    let value = match value {
        [0x0a, len @ 0..0x80, text @ ..] if text.len() == usize::from(*len) => {
            Value::Text(body(&(value_start + 2..value_start + 2 + text.len())))
        }
        [0x10, flag @ 0..0x80] => Value::Bool(*flag != 0),
        [0x18, number @ 0..0x80] => Value::Int(i64::from(*number)),
        [] => Value::Nil,
        _ => return None,
    };
    Some(Attribute::Read(body(&(start + 2..start + 2 + key.len())), value))
}

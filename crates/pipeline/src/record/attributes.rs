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

/// A short attribute with a text, as numbers: a [`Value`] that several branches make is put together in memory.
pub(super) struct TextAttribute {
    start: usize,
    key_len: usize,
    text_len: usize,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(body: &'a [u8], range: Range<usize>, number: u32) -> Attributes<'a> {
        Attributes { body, at: range.start, end: range.end.min(body.len()), number }
    }

    /// Passes fields of other numbers, where that takes no more than a look.
    #[inline(always)]
    pub(super) fn pass_others(&mut self) {
        while let Some(rest @ [tag, ..]) = self.body.get(self.at..self.end)
            && u32::from(*tag >> 3) != self.number
            && let Some(len) = short_field(rest)
        {
            self.at += len;
        }
    }

    /// The next field, if that is an attribute with a text, all of whose lengths are below 128: nearly all are.
    #[inline(always)]
    pub(super) fn next_text(&mut self) -> Option<TextAttribute> {
        let rest = self.body.get(self.at..self.end)?;
        let [tag, len @ 4..0x80, payload @ ..] = rest else { return None };
        let [0x0a, key_len @ 0..0x80, behind @ ..] = payload.get(..usize::from(*len))? else { return None };
        let [0x12, any_len @ 2..0x80, 0x0a, text_len @ 0..0x80, text @ ..] =
            behind.get(usize::from(*key_len)..)?
        else {
            return None;
        };
        let is_whole = text.len() == usize::from(*text_len) && *any_len == *text_len + 2;
        if u32::from(*tag) != self.number << 3 | 2 || !is_whole {
            return None;
        }
        let start = self.at;
        self.at += 2 + usize::from(*len);
        Some(TextAttribute { start, key_len: usize::from(*key_len), text_len: text.len() })
    }

    /// The next one, with the range of its field.
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

impl TextAttribute {
    /// Its field.
    #[inline(always)]
    pub(super) fn field(&self) -> Range<usize> {
        self.start..self.start + 8 + self.key_len + self.text_len
    }

    #[inline(always)]
    pub(super) fn key(&self) -> Slice {
        let start = self.start + 4;
        body(&(start..start + self.key_len))
    }

    #[inline(always)]
    pub(super) fn text(&self) -> Slice {
        let start = self.start + 8 + self.key_len;
        body(&(start..start + self.text_len))
    }
}

/// The length of the field that comes first, where its tag, and its length or number, have one byte each.
#[inline(always)]
fn short_field(rest: &[u8]) -> Option<usize> {
    let [tag @ 8..0x80, next, ..] = rest else { return None };
    let len = match (tag & 7, next) {
        (0, 0..0x80) => 2,
        (1, _) => 9,
        (2, len @ 0..0x80) => 2 + usize::from(*len),
        (5, _) => 5,
        _ => return None,
    };
    (len <= rest.len()).then_some(len)
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

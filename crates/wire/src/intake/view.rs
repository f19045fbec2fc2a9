//! Values of checked lines, as they stand in the text.

use super::check::{MAX_DEPTH, NESTING_WORDS};
use crate::json::{self, BadEscape, Cursor, RawString, SyntaxError, ValueType};

/// A value of a checked line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// `null`, which says the same as leaving the field out.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number<'a>),
    /// A string.
    Text(Text<'a>),
    /// A list.
    Array(Array<'a>),
    /// An object.
    Object(Object<'a>),
}

/// A number, as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number<'a>(&'a [u8]);

/// A string, as it was written: with its escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    raw: &'a [u8],
    escaped: bool,
}

/// A list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array<'a>(&'a [u8]);

/// An object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object<'a>(&'a [u8]);

impl<'a> Value<'a> {
    /// The value that `json` is. What is no JSON reads as `null`, or ends where it breaks off.
    #[must_use]
    pub fn of(json: &'a [u8]) -> Value<'a> {
        next(&mut Cursor::new(json)).unwrap_or(Value::Null)
    }

    /// The object that it is.
    #[must_use]
    pub fn object(self) -> Option<Object<'a>> {
        if let Value::Object(object) = self { Some(object) } else { None }
    }

    /// The list that it is.
    #[must_use]
    pub fn array(self) -> Option<Array<'a>> {
        if let Value::Array(array) = self { Some(array) } else { None }
    }

    /// The string that it is.
    #[must_use]
    pub fn text(self) -> Option<Text<'a>> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The number that it is.
    #[must_use]
    pub fn number(self) -> Option<Number<'a>> {
        if let Value::Number(number) = self { Some(number) } else { None }
    }
}

impl<'a> From<RawString<'a>> for Text<'a> {
    fn from(RawString { raw, is_escaped }: RawString<'a>) -> Text<'a> {
        Text { raw, escaped: is_escaped }
    }
}

/// Passes a value of a text that was checked.
fn skip(cursor: &mut Cursor<'_>) -> Result<(), SyntaxError> {
    cursor.skip::<NESTING_WORDS>(MAX_DEPTH)
}

/// The value at the cursor, which moves behind it.
fn next<'a>(cursor: &mut Cursor<'a>) -> Option<Value<'a>> {
    let value_type = cursor.value_type().ok()?;
    Some(match value_type {
        ValueType::String => Value::Text(cursor.string().ok()?.into()),
        ValueType::Number => Value::Number(Number(cursor.number().ok()?)),
        ValueType::True | ValueType::False => {
            skip(cursor).ok()?;
            Value::Bool(value_type == ValueType::True)
        }
        ValueType::Null => {
            skip(cursor).ok()?;
            Value::Null
        }
        ValueType::Array | ValueType::Object => {
            let from = cursor.offset();
            skip(cursor).ok()?;
            let raw = cursor.since(from);
            if value_type == ValueType::Array { Value::Array(Array(raw)) } else { Value::Object(Object(raw)) }
        }
    })
}

impl<'a> Number<'a> {
    /// As it was written.
    #[must_use]
    pub fn raw(self) -> &'a [u8] {
        self.0
    }

    /// The integer that it is, if it was written without a fraction and an exponent and fits.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        str::from_utf8(self.0).ok()?.parse().ok()
    }

    /// As a double: the nearest to it.
    #[must_use]
    pub fn double(self) -> f64 {
        str::from_utf8(self.0).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

impl<'a> Text<'a> {
    pub(super) fn new(raw: &'a [u8], escaped: bool) -> Text<'a> {
        Text { raw, escaped }
    }

    /// A text of nothing.
    pub const EMPTY: Text<'static> = Text { raw: &[], escaped: false };

    /// As it was written, between the quotes.
    #[must_use]
    pub fn raw(self) -> &'a [u8] {
        self.raw
    }

    /// The text, if it was written without escapes.
    #[must_use]
    pub fn plain(self) -> Option<&'a [u8]> {
        (!self.escaped).then_some(self.raw)
    }

    /// Whether it is `text`.
    #[must_use]
    pub fn is(self, text: &[u8]) -> bool {
        if self.escaped {
            let mut rest = Some(text);
            self.pieces(|piece| rest = rest.and_then(|rest| rest.strip_prefix(piece)));
            rest == Some(&[])
        } else {
            self.raw == text
        }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// How many bytes the text has without its escapes.
    #[must_use]
    pub fn len(self) -> usize {
        let mut len = 0usize;
        if self.escaped {
            self.pieces(|piece| len = len.saturating_add(piece.len()));
        } else {
            len = self.raw.len();
        }
        len
    }

    /// Gives the text without its escapes, in pieces. Half of a surrogate pair becomes U+FFFD.
    pub fn pieces(self, mut put: impl FnMut(&[u8])) {
        if !self.escaped {
            return put(self.raw);
        }
        let mut rest = self.raw;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            let (before, from) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            if !before.is_empty() {
                put(before);
            }
            let (piece, after) = unescaped(from);
            put(piece.encode_utf8(&mut [0; 4]).as_bytes());
            rest = after;
        }
        if !rest.is_empty() {
            put(rest);
        }
    }
}

/// The character of the escape that `text` begins with, and what is behind it.
fn unescaped(text: &[u8]) -> (char, &[u8]) {
    match json::decode_escape(text.get(1..).unwrap_or_default()) {
        Ok(found) => found,
        Err(BadEscape::Half(rest)) => (char::REPLACEMENT_CHARACTER, rest),
        // No checked string has one.
        Err(BadEscape::Unknown) => (char::REPLACEMENT_CHARACTER, text.get(2..).unwrap_or_default()),
    }
}

impl<'a> Array<'a> {
    /// As it was written, with its brackets.
    #[must_use]
    pub fn raw(self) -> &'a [u8] {
        self.0
    }

    /// Its values, in order.
    #[must_use]
    pub fn values(self) -> Values<'a> {
        let mut cursor = Cursor::new(self.0);
        let begun = cursor.take(b'[');
        Values { cursor, ended: !begun || cursor.take(b']') }
    }
}

impl<'a> Object<'a> {
    pub(super) fn new(raw: &'a [u8]) -> Object<'a> {
        Object(raw)
    }

    /// As it was written, with its braces.
    #[must_use]
    pub fn raw(self) -> &'a [u8] {
        self.0
    }

    /// Its members, in order.
    #[must_use]
    pub fn members(self) -> Members<'a> {
        let mut cursor = Cursor::new(self.0);
        let begun = cursor.take(b'{');
        Members { cursor, ended: !begun || cursor.take(b'}') }
    }

    /// The value of the last member of this name that is not `null`.
    #[must_use]
    pub fn find(self, name: &[u8]) -> Option<Value<'a>> {
        self.members()
            .filter(|(key, value)| *value != Value::Null && key.is(name))
            .last()
            .map(|(_, value)| value)
    }

    /// The value under this path of names.
    #[must_use]
    pub fn at(self, path: &[&[u8]]) -> Option<Value<'a>> {
        let (first, rest) = path.split_first()?;
        let mut value = self.find(first)?;
        for name in rest {
            value = value.object()?.find(name)?;
        }
        Some(value)
    }

    /// Whether it has no members.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.members().next().is_none()
    }
}

/// The values of a list.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    cursor: Cursor<'a>,
    ended: bool,
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.ended {
            return None;
        }
        let value = next(&mut self.cursor);
        self.ended = value.is_none() || !self.cursor.take(b',');
        value
    }
}

/// The members of an object.
#[derive(Debug, Clone, Copy)]
pub struct Members<'a> {
    cursor: Cursor<'a>,
    ended: bool,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Text<'a>, Value<'a>);

    fn next(&mut self) -> Option<(Text<'a>, Value<'a>)> {
        if self.ended {
            return None;
        }
        let name = self.cursor.name().ok().map(Text::from);
        let member = name.and_then(|name| next(&mut self.cursor).map(|value| (name, value)));
        self.ended = member.is_none() || !self.cursor.take(b',');
        member
    }
}

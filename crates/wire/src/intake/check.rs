//! One walk over a line: that it is JSON, what it holds, and that what is required is there.

use super::error::{EventError, EventErrorKind};
use super::schema::{Fields, Rule, SAMPLE, fields_of};
use super::{Event, EventKind};
use crate::json::{Cursor, Expected, RawString, SyntaxError, ValueType};

/// The most characters of a keyword.
const LONGEST_KEYWORD: usize = 1024;

/// The most objects and arrays around a value.
pub const MAX_DEPTH: usize = 128;
/// Words with a bit for each of them.
pub(super) const NESTING_WORDS: usize = MAX_DEPTH / 64;

impl From<SyntaxError> for EventErrorKind {
    fn from(SyntaxError { at, expected, .. }: SyntaxError) -> EventErrorKind {
        if expected == Expected::LessDepth { EventErrorKind::Depth(at) } else { EventErrorKind::Json(at) }
    }
}

/// Passes a value, around which there are `depth` objects and arrays.
#[inline]
fn skip(cursor: &mut Cursor<'_>, depth: usize) -> Result<(), EventErrorKind> {
    Ok(cursor.skip::<NESTING_WORDS>(MAX_DEPTH.saturating_sub(depth))?)
}

/// Reads a line that is UTF-8: its kind, and where its event is.
pub(super) fn event(line: &[u8]) -> Result<Event<'_>, EventError> {
    let mut cursor = Cursor::new(line);
    let of_line = |problem| EventError { event: None, kind: problem };
    if !cursor.take(b'{') {
        return Err(of_line(skip(&mut cursor, 0).err().unwrap_or(EventErrorKind::NoEvent)));
    }
    if cursor.peek() == Some(b'}') {
        return Err(of_line(EventErrorKind::NoEvent));
    }
    let name = cursor.name().map_err(|error| of_line(error.into()))?.raw;
    let Some(kind) = EventKind::named(name) else {
        let problem = skip(&mut cursor, 1).err().unwrap_or(EventErrorKind::Unknown);
        return Err(of_line(problem));
    };
    let of_event = |problem| EventError { event: Some(kind), kind: problem };
    let not_json = |error: SyntaxError| of_event(error.into());
    cursor.peek();
    let from = cursor.offset();
    match cursor.value_type().map_err(not_json)? {
        ValueType::Object => {}
        _ => return Err(of_event(EventErrorKind::Type(kind.name()))),
    }
    object(&mut cursor, fields_of(kind), 1).map_err(of_event)?;
    let raw = cursor.since(from);
    // Unknown members beside it are ignored, but must be JSON.
    while cursor.take(b',') {
        cursor.name().map_err(not_json)?;
        skip(&mut cursor, 1).map_err(of_event)?;
    }
    cursor.expect(b'}').map_err(not_json)?;
    cursor.end().map_err(not_json)?;
    Ok(Event { kind, raw })
}

/// Reads an object with these fields, around which there are `depth` others. False when it says nothing, which is as
/// good as no object: whether that may be is for the one around it to say.
fn object(cursor: &mut Cursor<'_>, known: &'static Fields, depth: usize) -> Result<bool, EventErrorKind> {
    cursor.expect(b'{')?;
    // Which were given with a value.
    let mut set = 0u64;
    if !cursor.take(b'}') {
        loop {
            let name = cursor.name()?.raw;
            match known.find(name) {
                None => skip(cursor, depth + 1)?,
                Some((at, field)) => {
                    if value(cursor, field.name, field.rule, depth + 1)? {
                        set |= 1_u64 << at;
                    }
                }
            }
            if !cursor.take(b',') {
                break;
            }
        }
        cursor.expect(b'}')?;
    }
    if set != 0 || depth == 1 {
        complete(known, set)?;
    }
    Ok(set != 0)
}

fn complete(known: &'static Fields, set: u64) -> Result<(), EventErrorKind> {
    let name = |bits: u64| {
        let at = bits.trailing_zeros() as usize;
        known.fields.get(at).map_or("", |field| field.name)
    };
    let missing = known.required & !set;
    if missing != 0 {
        return Err(EventErrorKind::Required(name(missing)));
    }
    let (one_of, words) = known.one_of;
    if one_of != 0 && set & one_of == 0 {
        return Err(EventErrorKind::OneOf(words));
    }
    let (given, required) = known.with;
    if set & given != 0 && required & !set != 0 {
        return Err(EventErrorKind::Required(name(required & !set)));
    }
    Ok(())
}

/// Reads a value by its rule, around which there are `depth` objects. False when it is `null`.
fn value(
    cursor: &mut Cursor<'_>,
    name: &'static str,
    rule: Rule,
    depth: usize,
) -> Result<bool, EventErrorKind> {
    let value_type = cursor.value_type()?;
    if value_type == ValueType::Null {
        cursor.literal(b"null")?;
        return Ok(false);
    }
    match (rule, value_type) {
        (Rule::Text, ValueType::String) | (Rule::TextOrNumber, ValueType::String) => _ = cursor.string()?,
        (Rule::Keyword, ValueType::String) => {
            let RawString { raw: text, is_escaped: escaped } = cursor.string()?;
            if text.len() > LONGEST_KEYWORD && characters(text, escaped) > LONGEST_KEYWORD {
                return Err(EventErrorKind::TooManyCharacters(name));
            }
        }
        (Rule::ServiceName, ValueType::String) => {
            let text = cursor.string()?.raw;
            let permitted = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-');
            if text.is_empty() || !text.iter().all(permitted) {
                return Err(EventErrorKind::Value(name));
            }
            if text.len() > LONGEST_KEYWORD {
                return Err(EventErrorKind::TooManyCharacters(name));
            }
        }
        (Rule::Outcome, ValueType::String) => {
            let text = cursor.string()?.raw;
            if !matches!(text, b"success" | b"failure" | b"unknown") {
                return Err(EventErrorKind::Value(name));
            }
        }
        (Rule::Number | Rule::TextOrNumber, ValueType::Number) => _ = cursor.number()?,
        (Rule::Positive, ValueType::Number) => {
            if cursor.number()?.first() == Some(&b'-') {
                return Err(EventErrorKind::Value(name));
            }
        }
        (Rule::Integer, ValueType::Number) => {
            let text = cursor.number()?;
            if !text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-') {
                return Err(EventErrorKind::Type(name));
            }
        }
        (Rule::Bool, ValueType::True | ValueType::False)
        | (Rule::Array, ValueType::Array)
        | (Rule::Object, ValueType::Object) => {
            skip(cursor, depth)?;
        }
        (Rule::Labels, ValueType::Object) => return labels(cursor, name),
        (Rule::Samples, ValueType::Object) => return samples(cursor, name, depth),
        (Rule::Fields(known), ValueType::Object) => return object(cursor, known, depth),
        _ => return Err(EventErrorKind::Type(name)),
    }
    Ok(true)
}

/// Reads an object of plain values. Whether it has any does not matter.
fn labels(cursor: &mut Cursor<'_>, name: &'static str) -> Result<bool, EventErrorKind> {
    cursor.expect(b'{')?;
    if cursor.take(b'}') {
        return Ok(true);
    }
    loop {
        cursor.name()?;
        match cursor.value_type()? {
            ValueType::Object | ValueType::Array => return Err(EventErrorKind::Type(name)),
            ValueType::String => _ = cursor.string()?,
            ValueType::Number => _ = cursor.number()?,
            _ => skip(cursor, 0)?,
        }
        if !cursor.take(b',') {
            break;
        }
    }
    cursor.expect(b'}')?;
    Ok(true)
}

fn samples(cursor: &mut Cursor<'_>, name: &'static str, depth: usize) -> Result<bool, EventErrorKind> {
    cursor.expect(b'{')?;
    if cursor.take(b'}') {
        return Ok(true);
    }
    loop {
        let sample = cursor.name()?.raw;
        if sample.iter().any(|byte| matches!(byte, b'*' | b'"')) {
            return Err(EventErrorKind::Value(name));
        }
        match cursor.value_type()? {
            ValueType::Object if object(cursor, &SAMPLE, depth + 1)? => {}
            ValueType::Object => return Err(EventErrorKind::OneOf(SAMPLE.one_of.1)),
            _ => return Err(EventErrorKind::Type(name)),
        }
        if !cursor.take(b',') {
            break;
        }
    }
    cursor.expect(b'}')?;
    Ok(true)
}

/// How many characters a text has that is written like this.
fn characters(text: &[u8], escaped: bool) -> usize {
    let count = |text: &[u8]| text.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    if !escaped {
        return count(text);
    }
    let mut characters = 0;
    super::view::Text::new(text, true).pieces(|piece| characters += count(piece));
    characters
}

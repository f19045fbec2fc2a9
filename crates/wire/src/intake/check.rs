//! One walk over a line: that it is JSON, what it holds, and that what is required is there.

use super::cursor::{Cursor, Shape};
use super::error::{EventError, EventErrorKind};
use super::schema::{Fields, Rule, SAMPLE, fields_of};
use super::{Event, EventKind};

/// The most characters of a keyword.
const LONGEST_KEYWORD: usize = 1024;

/// Reads a line that is UTF-8: its kind, and where its event is.
pub(super) fn event(line: &[u8]) -> Result<Event<'_>, EventError> {
    let mut cursor = Cursor::new(line);
    let of_line = |problem| EventError { event: None, kind: problem };
    if !cursor.take_if(b'{') {
        return Err(of_line(cursor.skip(0).err().unwrap_or(EventErrorKind::NoEvent)));
    }
    if cursor.peek() == Some(b'}') {
        return Err(of_line(EventErrorKind::NoEvent));
    }
    let (name, _) = cursor.name().map_err(of_line)?;
    let Some(kind) = EventKind::named(name) else {
        let problem = cursor.skip(1).err().unwrap_or(EventErrorKind::Unknown);
        return Err(of_line(problem));
    };
    let of_event = |problem| EventError { event: Some(kind), kind: problem };
    cursor.peek();
    let start = cursor;
    match cursor.shape().map_err(of_event)? {
        Shape::Object => {}
        _ => return Err(of_event(EventErrorKind::Type(kind.name()))),
    }
    object(&mut cursor, fields_of(kind), 1).map_err(of_event)?;
    let raw = start.until(&cursor);
    // Unknown members beside it are ignored, but must be JSON.
    while cursor.take_if(b',') {
        cursor.name().map_err(of_event)?;
        cursor.skip(1).map_err(of_event)?;
    }
    cursor.take(b'}').map_err(of_event)?;
    cursor.end().map_err(of_event)?;
    Ok(Event { kind, raw })
}

/// Reads an object with these fields, around which there are `depth` others. False when it says nothing, which is as
/// good as no object: whether that may be is for the one around it to say.
fn object(cursor: &mut Cursor<'_>, known: &'static Fields, depth: u32) -> Result<bool, EventErrorKind> {
    cursor.take(b'{')?;
    // Which were given with a value.
    let mut set = 0u64;
    if !cursor.take_if(b'}') {
        loop {
            let (name, _) = cursor.name()?;
            match known.find(name) {
                None => cursor.skip(depth + 1)?,
                Some((at, field)) => {
                    if value(cursor, field.name, field.rule, depth + 1)? {
                        set |= 1_u64 << at;
                    }
                }
            }
            if !cursor.take_if(b',') {
                break;
            }
        }
        cursor.take(b'}')?;
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
    depth: u32,
) -> Result<bool, EventErrorKind> {
    let shape = cursor.shape()?;
    if shape == Shape::Null {
        cursor.literal(b"null")?;
        return Ok(false);
    }
    match (rule, shape) {
        (Rule::Text, Shape::Text) | (Rule::TextOrNumber, Shape::Text) => drop(cursor.text()?),
        (Rule::Keyword, Shape::Text) => {
            let (text, escaped) = cursor.text()?;
            if text.len() > LONGEST_KEYWORD && characters(text, escaped) > LONGEST_KEYWORD {
                return Err(EventErrorKind::TooManyCharacters(name));
            }
        }
        (Rule::ServiceName, Shape::Text) => {
            let (text, _) = cursor.text()?;
            let permitted = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-');
            if text.is_empty() || !text.iter().all(permitted) {
                return Err(EventErrorKind::Value(name));
            }
            if text.len() > LONGEST_KEYWORD {
                return Err(EventErrorKind::TooManyCharacters(name));
            }
        }
        (Rule::Outcome, Shape::Text) => {
            let (text, _) = cursor.text()?;
            if !matches!(text, b"success" | b"failure" | b"unknown") {
                return Err(EventErrorKind::Value(name));
            }
        }
        (Rule::Number | Rule::TextOrNumber, Shape::Number) => drop(cursor.number()?),
        (Rule::Positive, Shape::Number) => {
            if cursor.number()?.first() == Some(&b'-') {
                return Err(EventErrorKind::Value(name));
            }
        }
        (Rule::Integer, Shape::Number) => {
            let text = cursor.number()?;
            if !text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-') {
                return Err(EventErrorKind::Type(name));
            }
        }
        (Rule::Bool, Shape::True | Shape::False)
        | (Rule::Array, Shape::Array)
        | (Rule::Object, Shape::Object) => {
            cursor.skip(depth)?;
        }
        (Rule::Labels, Shape::Object) => return labels(cursor, name),
        (Rule::Samples, Shape::Object) => return samples(cursor, name, depth),
        (Rule::Fields(known), Shape::Object) => return object(cursor, known, depth),
        _ => return Err(EventErrorKind::Type(name)),
    }
    Ok(true)
}

/// Reads an object of plain values. Whether it has any does not matter.
fn labels(cursor: &mut Cursor<'_>, name: &'static str) -> Result<bool, EventErrorKind> {
    cursor.take(b'{')?;
    if cursor.take_if(b'}') {
        return Ok(true);
    }
    loop {
        cursor.name()?;
        match cursor.shape()? {
            Shape::Object | Shape::Array => return Err(EventErrorKind::Type(name)),
            Shape::Text => drop(cursor.text()?),
            Shape::Number => drop(cursor.number()?),
            _ => cursor.skip(0)?,
        }
        if !cursor.take_if(b',') {
            break;
        }
    }
    cursor.take(b'}')?;
    Ok(true)
}

fn samples(cursor: &mut Cursor<'_>, name: &'static str, depth: u32) -> Result<bool, EventErrorKind> {
    cursor.take(b'{')?;
    if cursor.take_if(b'}') {
        return Ok(true);
    }
    loop {
        let (sample, _) = cursor.name()?;
        if sample.iter().any(|byte| matches!(byte, b'*' | b'"')) {
            return Err(EventErrorKind::Value(name));
        }
        match cursor.shape()? {
            Shape::Object if object(cursor, &SAMPLE, depth + 1)? => {}
            Shape::Object => return Err(EventErrorKind::OneOf(SAMPLE.one_of.1)),
            _ => return Err(EventErrorKind::Type(name)),
        }
        if !cursor.take_if(b',') {
            break;
        }
    }
    cursor.take(b'}')?;
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

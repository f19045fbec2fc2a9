//! Reads the canonical JSON of the tables back into OpenTelemetry's values.
//!
//! It is the inverse of `json.rs`, whose table says which JSON stands for which value. Keys keep their order, and those
//! that come twice stay twice. Nothing here calls itself: what is open is on a list, [`MAX_DEPTH`] long at most.

use super::message::{Message, Open};
use tidegate_wire::json::{Cursor, Expected, SyntaxError, ValueType, decode_escape};
use tidegate_wire::otlp::MAX_DEPTH;
use tidegate_wire::{base64, json::RawString};

/// Why a text is not the JSON of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValueError {
    #[error("it is no JSON from byte {} on", .0.at)]
    Syntax(SyntaxError),
    #[error("it has a number that is neither an integer of 64 bits nor a double")]
    Number,
    #[error("it has a tagged value that the lake does not write")]
    Tag,
}

impl From<SyntaxError> for ValueError {
    fn from(error: SyntaxError) -> ValueError {
        ValueError::Syntax(error)
    }
}

/// Fields of `AnyValue`.
mod field {
    pub(super) const STRING: u32 = 1;
    pub(super) const BOOL: u32 = 2;
    pub(super) const INT: u32 = 3;
    pub(super) const DOUBLE: u32 = 4;
    pub(super) const ARRAY: u32 = 5;
    pub(super) const MAP: u32 = 6;
    pub(super) const BYTES: u32 = 7;
}

/// Writes the members of an object as attributes in `field`, and tells `seen` their keys, as far as they need no escapes.
pub(super) fn write_attributes(
    json: &str,
    field: u32,
    out: &mut Message,
    mut seen: impl FnMut(&[u8]),
) -> Result<(), ValueError> {
    let mut cursor = Cursor::new(json.as_bytes());
    cursor.expect(b'{')?;
    if !cursor.take(b'}') {
        loop {
            let attribute = out.begin(field);
            let key = cursor.name()?;
            seen(key.raw);
            write_string(key, 1, out)?;
            let value = out.begin(2);
            write_value_at(&mut cursor, out)?;
            out.end(value);
            out.end(attribute);
            if !cursor.take(b',') {
                break;
            }
        }
        cursor.take(b'}').then_some(()).ok_or_else(|| cursor.error(Expected::CommaOr(b'}')))?;
    }
    Ok(cursor.end()?)
}

/// Writes an attribute whose value is a string.
pub(super) fn write_text_attribute(field: u32, key: &str, text: &str, out: &mut Message) {
    let attribute = out.begin(field);
    out.bytes(1, key.as_bytes());
    let value = out.begin(2);
    out.bytes(field::STRING, text.as_bytes());
    out.end(value);
    out.end(attribute);
}

/// Writes an attribute whose value is an integer.
pub(super) fn write_int_attribute(field: u32, key: &str, number: i64, out: &mut Message) {
    let attribute = out.begin(field);
    out.bytes(1, key.as_bytes());
    let value = out.begin(2);
    out.varint(field::INT, number.cast_unsigned());
    out.end(value);
    out.end(attribute);
}

/// Writes a value, the content of an `AnyValue`.
pub(super) fn write_value(json: &str, out: &mut Message) -> Result<(), ValueError> {
    let mut cursor = Cursor::new(json.as_bytes());
    write_value_at(&mut cursor, out)?;
    Ok(cursor.end()?)
}

/// The members of an object whose values are all strings, as labels are; `None` when one is something else.
pub(super) fn labels(json: &str) -> Result<Option<Vec<(String, String)>>, ValueError> {
    let mut cursor = Cursor::new(json.as_bytes());
    let mut labels = Vec::new();
    cursor.expect(b'{')?;
    if !cursor.take(b'}') {
        loop {
            let name = unescaped(cursor.name()?)?;
            if cursor.value_type()? != ValueType::String {
                return Ok(None);
            }
            labels.push((name, unescaped(cursor.string()?)?));
            if !cursor.take(b',') {
                break;
            }
        }
        cursor.expect(b'}')?;
    }
    cursor.end()?;
    Ok(Some(labels))
}

fn unescaped(string: RawString<'_>) -> Result<String, ValueError> {
    let mut text = Message::default();
    put_unescaped(string, &mut text)?;
    String::from_utf8(text.into_bytes()).map_err(|_| ValueError::Tag)
}

fn write_string(string: RawString<'_>, field: u32, out: &mut Message) -> Result<(), ValueError> {
    if !string.is_escaped {
        out.bytes(field, string.raw);
        return Ok(());
    }
    let open = out.begin(field);
    put_unescaped(string, out)?;
    out.end(open);
    Ok(())
}

fn put_unescaped(string: RawString<'_>, out: &mut Message) -> Result<(), ValueError> {
    let mut rest = string.raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.put(rest.get(..at).unwrap_or_default());
        let escape = rest.get(at + 1..).unwrap_or_default();
        let (character, behind) = decode_escape(escape).map_err(|_| ValueError::Tag)?;
        out.put(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = behind;
    }
    out.put(rest);
    Ok(())
}

/// An array or object that is open, with the messages that are open for its present member.
enum Container {
    Array {
        all: Open,
        value: Open,
    },
    Map {
        all: Open,
        entry: Open,
        value: Open,
    },
    /// `{"$kvlist":[[key,value],…]}`
    List {
        all: Open,
        entry: Open,
        value: Open,
    },
}

/// Writes the value that comes next.
fn write_value_at(cursor: &mut Cursor<'_>, out: &mut Message) -> Result<(), ValueError> {
    let mut open: Vec<Container> = Vec::new();
    loop {
        if let Some(container) = begin(cursor, out)? {
            if open.len() == MAX_DEPTH {
                return Err(cursor.error(Expected::LessDepth).into());
            }
            open.push(container);
            continue;
        }
        // Behind a value: on to the next one, out of as many containers as end here.
        loop {
            let Some(innermost) = open.last_mut() else { return Ok(()) };
            if next(innermost, cursor, out)? {
                break;
            }
            open.pop();
        }
    }
}

/// Writes a value that has no others in it, an empty container included, or begins one that has.
fn begin(cursor: &mut Cursor<'_>, out: &mut Message) -> Result<Option<Container>, ValueError> {
    match cursor.value_type()? {
        ValueType::String => write_string(cursor.string()?, field::STRING, out)?,
        ValueType::Number => write_number(cursor.number()?, out)?,
        ValueType::True => {
            cursor.literal(b"true")?;
            out.varint(field::BOOL, 1);
        }
        ValueType::False => {
            cursor.literal(b"false")?;
            out.varint(field::BOOL, 0);
        }
        ValueType::Null => cursor.literal(b"null")?,
        ValueType::Array => {
            cursor.expect(b'[')?;
            let all = out.begin(field::ARRAY);
            if !cursor.take(b']') {
                return Ok(Some(Container::Array { all, value: out.begin(1) }));
            }
            out.end(all);
        }
        ValueType::Object => return begin_object(cursor, out),
    }
    Ok(None)
}

fn begin_object(cursor: &mut Cursor<'_>, out: &mut Message) -> Result<Option<Container>, ValueError> {
    cursor.expect(b'{')?;
    if cursor.take(b'}') {
        let all = out.begin(field::MAP);
        out.end(all);
        return Ok(None);
    }
    let key = cursor.name()?;
    match key.raw {
        b"$double" => {
            out.fixed64(field::DOUBLE, tagged_double(cursor.string()?.raw)?);
            cursor.expect(b'}')?;
            Ok(None)
        }
        b"$bytes" => {
            let mut bytes = Vec::new();
            if !base64::decode(cursor.string()?.raw, &mut bytes) {
                return Err(ValueError::Tag);
            }
            out.bytes(field::BYTES, &bytes);
            cursor.expect(b'}')?;
            Ok(None)
        }
        b"$kvlist" => {
            cursor.expect(b'[')?;
            let all = out.begin(field::MAP);
            let (entry, value) = begin_pair(cursor, out)?;
            Ok(Some(Container::List { all, entry, value }))
        }
        _ => {
            let all = out.begin(field::MAP);
            let entry = out.begin(1);
            write_string(key, 1, out)?;
            Ok(Some(Container::Map { all, entry, value: out.begin(2) }))
        }
    }
}

/// Begins `[key,value]`.
fn begin_pair(cursor: &mut Cursor<'_>, out: &mut Message) -> Result<(Open, Open), ValueError> {
    cursor.expect(b'[')?;
    let entry = out.begin(1);
    write_string(cursor.string()?, 1, out)?;
    cursor.expect(b',')?;
    Ok((entry, out.begin(2)))
}

/// Ends the member of a container that was written last. Begins the next one, or ends the container; whether there is a
/// next one.
fn next(container: &mut Container, cursor: &mut Cursor<'_>, out: &mut Message) -> Result<bool, ValueError> {
    match container {
        Container::Array { all, value } => {
            out.end(*value);
            if cursor.take(b',') {
                *value = out.begin(1);
                return Ok(true);
            }
            cursor.expect(b']')?;
            out.end(*all);
        }
        Container::Map { all, entry, value } => {
            out.end(*value);
            out.end(*entry);
            if cursor.take(b',') {
                *entry = out.begin(1);
                write_string(cursor.name()?, 1, out)?;
                *value = out.begin(2);
                return Ok(true);
            }
            cursor.expect(b'}')?;
            out.end(*all);
        }
        Container::List { all, entry, value } => {
            out.end(*value);
            out.end(*entry);
            cursor.expect(b']')?;
            if cursor.take(b',') {
                (*entry, *value) = begin_pair(cursor, out)?;
                return Ok(true);
            }
            cursor.expect(b']')?;
            cursor.expect(b'}')?;
            out.end(*all);
        }
    }
    Ok(false)
}

/// A number with a point or an exponent is a double, any other an integer.
fn write_number(digits: &[u8], out: &mut Message) -> Result<(), ValueError> {
    let text = str::from_utf8(digits).map_err(|_| ValueError::Number)?;
    if text.contains(['.', 'e', 'E']) {
        let value: f64 = text.parse().map_err(|_| ValueError::Number)?;
        out.fixed64(field::DOUBLE, value.to_bits());
    } else {
        let value: i64 = text.parse().map_err(|_| ValueError::Number)?;
        out.varint(field::INT, value.cast_unsigned());
    }
    Ok(())
}

fn tagged_double(text: &[u8]) -> Result<u64, ValueError> {
    Ok(match text {
        b"NaN" => f64::NAN.to_bits(),
        b"Infinity" => f64::INFINITY.to_bits(),
        b"-Infinity" => f64::NEG_INFINITY.to_bits(),
        bits => {
            let digits = bits.strip_prefix(b"0x").and_then(|digits| str::from_utf8(digits).ok());
            let bits = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            bits.ok_or(ValueError::Tag)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_the_lake_does_not_write() {
        for json in [
            "",
            "{",
            "[1,2",
            "[1 2]",
            "{\"a\":1,}",
            "1 2",
            "9223372036854775808",
            "1e",
            "nul",
            "\"\\ud800\"",
            "{\"$bytes\":\"Z\"}",
            "{\"$bytes\":1}",
            "{\"$double\":\"0xz\"}",
            "{\"$double\":\"NaN\",\"b\":1}",
            "{\"$kvlist\":[]}",
            "{\"$kvlist\":[[\"a\"]]}",
            "{\"$kvlist\":[[\"a\",1,2]]}",
        ] {
            assert!(write_value(json, &mut Message::default()).is_err(), "{json}");
        }
        assert_eq!(labels("{\"a\":\"b\",\"c\":1}"), Ok(None));
        assert!(labels("{\"a\":\"b\"").is_err());
    }

    #[test]
    fn depth_is_bounded_and_takes_no_stack() {
        let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let read = move || {
            assert_eq!(write_value(&deep(MAX_DEPTH), &mut Message::default()), Ok(()));
            assert!(write_value(&deep(MAX_DEPTH + 1), &mut Message::default()).is_err());
        };
        std::thread::Builder::new().stack_size(192 << 10).spawn(read).unwrap().join().unwrap();
    }

    proptest! {
        /// Whatever a damaged column has, it is read or refused.
        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]{},:\"$a1.e\\\\-]{0,12}|\\PC{0,20}") {
            let _ = write_value(&text, &mut Message::default());
            let _ = write_attributes(&text, 1, &mut Message::default(), |_| ());
            let _ = labels(&text);
        }
    }
}

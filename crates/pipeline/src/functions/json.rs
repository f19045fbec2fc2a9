//! `ParseJSON`: from JSON text straight to an encoded map or list.

use super::encoded::{
    ARRAY, ELEMENT, KEY, MAP, Opening, STRING, VALUE, close, open, put_text_entry, put_text_item,
};
use super::members::{Known, Names, remove, remove_same};
use super::{all, converter, required};
use crate::memory::Room;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};
use tidegate_wire::json::{BadEscape, Cursor, RawString, SyntaxError, ValueType, decode_escape};
use tidegate_wire::output::Output;
use tidegate_wire::proto::write;

pub(super) static CONVERTERS: &[&Signature] = &[&PARSE_JSON];

/// How many objects and arrays may be in each other; Go takes 10,000, of which attributes keep 128.
const MAX_DEPTH: usize = 128;
/// The most members of an object, as in a table of attributes.
const MAX_MEMBERS: usize = 4096;

const NOT_JSON: Failure = Failure::Invalid("the string is not JSON");

impl From<SyntaxError> for Failure {
    fn from(_: SyntaxError) -> Failure {
        NOT_JSON
    }
}

/// The map of an object, or the list of an array. Every number is a double, as in Go, and the last of members with the same
/// name is the one. Output: at most 16 times the target.
static PARSE_JSON: Signature =
    converter("ParseJSON", &[required("target", Type::Text)], Type::Any, |machine, arguments| {
        let [target] = all(arguments)?;
        let target = machine.text(target)?;
        let mark = machine.memory.mark();
        let (contents, mut room) = machine.memory.split();
        let mut cursor = Cursor::new(contents.get(target));
        let kind = cursor.value_type()?;
        match kind {
            ValueType::Object => object(&mut cursor, &mut room, MAX_DEPTH)?,
            ValueType::Array => array(&mut cursor, &mut room, MAX_DEPTH)?,
            _ => return Err(Failure::Invalid("the JSON is neither an object nor an array")),
        }
        cursor.end()?;
        let content = machine.memory.since(mark);
        Ok(if kind == ValueType::Object { Value::Map(content) } else { Value::List(content) })
    });

/// Reads an object, and appends the content of its `KeyValueList`.
fn object(cursor: &mut Cursor<'_>, room: &mut Room<'_>, depth: usize) -> Result<(), Failure> {
    let depth = depth.checked_sub(1).ok_or(Failure::Invalid("the JSON is nested too deeply"))?;
    let start = room.len();
    let mut names = Names::default();
    let mut members = 0;
    cursor.expect(b'{')?;
    if cursor.take(b'}') {
        return Ok(());
    }
    loop {
        let name = cursor.name()?;
        members += 1;
        if members > MAX_MEMBERS {
            return Err(Failure::TooLarge);
        }
        if name.is_escaped {
            escaped_member(name, start, &mut names, cursor, room, depth)?;
        } else {
            if names.add(name.raw) == Known::Maybe {
                remove(room, start, name.raw);
            }
            member(name.raw, cursor, room, depth)?;
        }
        if !cursor.take(b',') {
            cursor.expect(b'}')?;
            return names.settle(room, start);
        }
    }
}

/// Reads the value of a member, and appends its `KeyValue`.
fn member(name: &[u8], cursor: &mut Cursor<'_>, room: &mut Room<'_>, depth: usize) -> Result<(), Failure> {
    // Name and value in one step where their lengths are known.
    match cursor.value_type()? {
        ValueType::String => {
            let text = cursor.string()?;
            if !text.is_escaped {
                return put_text_entry(room, name, text.raw);
            }
            let message = begin(name, room)?;
            let (value, string) = (open(room, VALUE)?, open(room, STRING)?);
            unescape(text, room)?;
            close(room, string)?;
            close(room, value)?;
            close(room, message)
        }
        ValueType::Number => {
            let number = number(cursor)?;
            write::length(room, ELEMENT, write::bytes_len(name.len() as u64) + 11)?;
            write::bytes(room, KEY, name)?;
            let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
            Ok(room.put(&[0x12, 9, 0x21, a, b, c, d, e, f, g, h])?)
        }
        _ => {
            let message = begin(name, room)?;
            let value = open(room, VALUE)?;
            any_value(cursor, room, depth)?;
            close(room, value)?;
            close(room, message)
        }
    }
}

fn begin(name: &[u8], room: &mut Room<'_>) -> Result<Opening, Failure> {
    let message = open(room, ELEMENT)?;
    write::bytes(room, KEY, name)?;
    Ok(message)
}

/// As [`member`], for one whose name has escapes.
fn escaped_member(
    name: RawString<'_>,
    start: usize,
    names: &mut Names,
    cursor: &mut Cursor<'_>,
    room: &mut Room<'_>,
    depth: usize,
) -> Result<(), Failure> {
    // The name is written behind the object, to be compared, and once more where it belongs.
    let end = room.len();
    unescape(name, room)?;
    let len = room.len() - end;
    let removed = match names.add(room.written().get(end..).unwrap_or_default()) {
        Known::New => 0,
        Known::Maybe => remove_same(room, start..end, end..end + len),
    };
    finish_escaped(end - removed, len, cursor, room, depth)
}

/// Makes a member of the name that was written at `at`.
fn finish_escaped(
    at: usize,
    len: usize,
    cursor: &mut Cursor<'_>,
    room: &mut Room<'_>,
    depth: usize,
) -> Result<(), Failure> {
    let length = write::Varint::new(len as u64);
    let head = [0x0a, 0, 0x0a];
    room.put(&head)?;
    room.put(length.as_bytes())?;
    let before = head.len() + length.as_bytes().len();
    room.written().get_mut(at..).unwrap_or_default().rotate_right(before);
    let message = Opening::at(at + 2);
    let value = open(room, VALUE)?;
    any_value(cursor, room, depth)?;
    close(room, value)?;
    close(room, message)
}

/// Reads an array, and appends the content of its `ArrayValue`.
fn array(cursor: &mut Cursor<'_>, room: &mut Room<'_>, depth: usize) -> Result<(), Failure> {
    let depth = depth.checked_sub(1).ok_or(Failure::Invalid("the JSON is nested too deeply"))?;
    cursor.expect(b'[')?;
    if cursor.take(b']') {
        return Ok(());
    }
    loop {
        match cursor.value_type()? {
            ValueType::String => {
                let text = cursor.string()?;
                if text.is_escaped {
                    let (value, string) = (open(room, ELEMENT)?, open(room, STRING)?);
                    unescape(text, room)?;
                    close(room, string)?;
                    close(room, value)?;
                } else {
                    put_text_item(room, text.raw)?;
                }
            }
            _ => {
                let value = open(room, ELEMENT)?;
                any_value(cursor, room, depth)?;
                close(room, value)?;
            }
        }
        if !cursor.take(b',') {
            return Ok(cursor.expect(b']')?);
        }
    }
}

/// Reads a value, and appends the content of its `AnyValue`.
fn any_value(cursor: &mut Cursor<'_>, room: &mut Room<'_>, depth: usize) -> Result<(), Failure> {
    match cursor.value_type()? {
        ValueType::Null => cursor.literal(b"null")?,
        ValueType::True => {
            cursor.literal(b"true")?;
            room.put(&[0x10, 1])?;
        }
        ValueType::False => {
            cursor.literal(b"false")?;
            room.put(&[0x10, 0])?;
        }
        ValueType::Number => write::fixed64(room, 4, number(cursor)?.to_bits())?,
        ValueType::String => {
            let text = cursor.string()?;
            let string = open(room, STRING)?;
            unescape(text, room)?;
            close(room, string)?;
        }
        ValueType::Object => {
            let map = open(room, MAP)?;
            object(cursor, room, depth)?;
            close(room, map)?;
        }
        ValueType::Array => {
            let list = open(room, ARRAY)?;
            array(cursor, room, depth)?;
            close(room, list)?;
        }
    }
    Ok(())
}

/// A number. Short integers, the usual ones, are computed here.
fn number(cursor: &mut Cursor<'_>) -> Result<f64, Failure> {
    let digits = cursor.number()?;
    if digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit) {
        return Ok(digits.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit & 15)) as f64);
    }
    let number: f64 = str::from_utf8(digits).unwrap_or_default().parse().map_err(|_| NOT_JSON)?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(Failure::Invalid("a number of the JSON is out of range"))
    }
}

/// Appends a string without its escapes. Half a surrogate pair becomes U+FFFD.
fn unescape(text: RawString<'_>, room: &mut Room<'_>) -> Result<(), Failure> {
    let mut rest = text.raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        room.put(plain)?;
        let (character, behind) = match decode_escape(escape.get(1..).unwrap_or_default()) {
            Ok(decoded) => decoded,
            Err(BadEscape::Half(behind)) => (char::REPLACEMENT_CHARACTER, behind),
            Err(BadEscape::Unknown) => return Err(NOT_JSON),
        };
        room.put(character.encode_utf8(&mut [0; 4]).as_bytes())?;
        rest = behind;
    }
    Ok(room.put(rest)?)
}

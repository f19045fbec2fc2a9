//! `ParseJSON`: from JSON text straight to an encoded map or list.

mod number;
mod pairs;

pub(super) use pairs::map_and_pairs;

use super::encoded::{
    ARRAY, ELEMENT, KEY, MAP, Opening, STRING, Text, VALUE, close, open, put_entry, put_item, put_text_entry,
    put_text_item,
};
use super::members::{Known, Names, remove, remove_same};
use super::{all, converter, required};
use crate::machine::Machine;
use crate::memory::Room;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};
use number::{double, number};
use pairs::{Notes, Written};
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
        parse(machine, target, None)
    });

fn parse(
    machine: &mut Machine<'_>,
    target: &Argument,
    mut notes: Option<&mut Notes<'_>>,
) -> Result<Value, Failure> {
    let target = machine.text(target)?;
    let mark = machine.memory.mark();
    if let Some(notes) = &mut notes {
        notes.start = mark;
    }
    let (contents, mut room) = machine.memory.split();
    let mut cursor = Cursor::new(contents.get(target));
    let kind = cursor.value_type()?;
    match kind {
        ValueType::Object => object(&mut cursor, &mut room, MAX_DEPTH, notes)?,
        ValueType::Array => array(&mut cursor, &mut room, MAX_DEPTH)?,
        _ => return Err(Failure::Invalid("the JSON is neither an object nor an array")),
    }
    cursor.end()?;
    let content = machine.memory.since(mark);
    Ok(if kind == ValueType::Object { Value::Map(content) } else { Value::List(content) })
}

/// Reads an object, and appends the content of its `KeyValueList`.
fn object(
    cursor: &mut Cursor<'_>,
    room: &mut Room<'_>,
    depth: usize,
    mut notes: Option<&mut Notes<'_>>,
) -> Result<(), Failure> {
    let depth = depth.checked_sub(1).ok_or(Failure::Invalid("the JSON is nested too deeply"))?;
    let start = room.len();
    let mut names = Names::default();
    let mut members = 0;
    cursor.expect(b'{')?;
    if cursor.take(b'}') {
        return Ok(());
    }
    loop {
        let (name, is_escaped) = string(cursor)?;
        cursor.expect(b':')?;
        members += 1;
        if members > MAX_MEMBERS {
            return Err(Failure::TooLarge);
        }
        let is_whole = if is_escaped {
            escaped_member(name.bytes(), start, &mut names, cursor, room, depth)?;
            false
        } else {
            let end = room.len();
            if names.add(name.bytes()) == Known::Maybe {
                remove(room, start, name.bytes());
            }
            let from = room.len();
            let written = member(name, cursor, room, depth)?;
            if let Some(notes) = &mut notes {
                notes.note(room, from, name, &written);
            }
            // Otherwise pairs that were noted have moved.
            from == end
        };
        if let Some(notes) = &mut notes {
            notes.is_whole &= is_whole;
        }
        if !cursor.take(b',') {
            cursor.expect(b'}')?;
            if let Some(notes) = notes {
                notes.is_whole &= names.is_settled();
                notes.keys = names.filter();
            }
            return names.settle(room, start);
        }
    }
}

/// Passes the string that comes next. Whether it has escapes.
#[inline(always)]
fn string<'a>(cursor: &mut Cursor<'a>) -> Result<(Text<'a>, bool), Failure> {
    cursor.peek();
    let source = cursor.rest().get(1..).unwrap_or_default();
    if let Some(plain) = cursor.plain_string() {
        return Ok((Text::first(source, plain.len()), false));
    }
    let RawString { raw, is_escaped } = cursor.string()?;
    Ok((Text::first(source, raw.len()), is_escaped))
}

/// Reads the value of a member, and appends its `KeyValue`.
#[inline(always)]
fn member(
    name: Text<'_>,
    cursor: &mut Cursor<'_>,
    room: &mut Room<'_>,
    depth: usize,
) -> Result<Written, Failure> {
    // Name and value in one step where their lengths are known.
    let (value, encoded) = match cursor.value_type()? {
        ValueType::String => {
            let (text, is_escaped) = string(cursor)?;
            if !is_escaped {
                put_text_entry(room, name, text)?;
                return Ok(Written::Text(text.len()));
            }
            let message = begin(name, room)?;
            let (value, string) = (open(room, VALUE)?, open(room, STRING)?);
            let start = room.len();
            unescape(text.bytes(), room)?;
            let len = room.len() - start;
            close(room, string)?;
            close(room, value)?;
            close(room, message)?;
            return Ok(Written::Text(len));
        }
        ValueType::Number => {
            let number = number(cursor)?;
            put_entry(room, name, double(number))?;
            return Ok(Written::Plain(Value::Double(number)));
        }
        ValueType::True => {
            cursor.literal(b"true")?;
            (true, [0x10, 1])
        }
        ValueType::False => {
            cursor.literal(b"false")?;
            (false, [0x10, 0])
        }
        ValueType::Null => {
            cursor.literal(b"null")?;
            put_entry(room, name, [])?;
            return Ok(Written::Plain(Value::Nil));
        }
        nested @ (ValueType::Object | ValueType::Array) => {
            let is_map = nested == ValueType::Object;
            let message = begin(name, room)?;
            let (value, content) = (open(room, VALUE)?, open(room, if is_map { MAP } else { ARRAY })?);
            let start = room.len();
            if is_map {
                object(cursor, room, depth, None)?;
            } else {
                array(cursor, room, depth)?;
            }
            let len = room.len() - start;
            close(room, content)?;
            close(room, value)?;
            close(room, message)?;
            return Ok(if is_map { Written::Map(len) } else { Written::List(len) });
        }
    };
    put_entry(room, name, encoded)?;
    Ok(Written::Plain(Value::Bool(value)))
}

fn begin(name: Text<'_>, room: &mut Room<'_>) -> Result<Opening, Failure> {
    let message = open(room, ELEMENT)?;
    write::bytes(room, KEY, name.bytes())?;
    Ok(message)
}

/// As [`member`], for one whose name has escapes.
fn escaped_member(
    name: &[u8],
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
                let (text, is_escaped) = string(cursor)?;
                if is_escaped {
                    let (value, string) = (open(room, ELEMENT)?, open(room, STRING)?);
                    unescape(text.bytes(), room)?;
                    close(room, string)?;
                    close(room, value)?;
                } else {
                    put_text_item(room, text)?;
                }
            }
            ValueType::Number => put_item(room, double(number(cursor)?))?,
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
            unescape(text.raw, room)?;
            close(room, string)?;
        }
        ValueType::Object => {
            let map = open(room, MAP)?;
            object(cursor, room, depth, None)?;
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

/// Appends a string without its escapes. Half a surrogate pair becomes U+FFFD.
fn unescape(text: &[u8], room: &mut Room<'_>) -> Result<(), Failure> {
    let mut rest = text;
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

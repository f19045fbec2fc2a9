//! Texts of pairs, like `a=1 b=2`, and maps.

use super::encoded::{ELEMENT, KEY, STRING, VALUE};
use super::members::{Known, Names, remove_same};
use super::{all, converter, optional, order, required};
use crate::any_value::{Pairs, read_pair};
use crate::machine::Machine;
use crate::machine::arguments::literal;
use crate::memory::{Contents, Room, Slice};
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};
use std::ops::Range;
use tidegate_wire::output::{Full, Output};
use tidegate_wire::proto::write;

pub(super) static CONVERTERS: &[&Signature] = &[&PARSE_KEY_VALUE, &TO_KEY_VALUE_STRING];

/// Checks that the delimiters, the second and third argument, are neither empty nor equal.
fn check_delimiters(arguments: &[Argument], constants: &[u8]) -> Result<(), (usize, String)> {
    let text = |at: usize, default: &'static [u8]| match literal(arguments, at) {
        Some(Value::Text(text)) => {
            constants.get(text.start as usize..(text.start + text.len) as usize).unwrap_or_default()
        }
        _ => default,
    };
    let (delimiter, pair_delimiter) = (text(1, b"="), text(2, b" "));
    if delimiter.is_empty() {
        return Err((1, "the delimiter is empty".into()));
    }
    if pair_delimiter.is_empty() {
        return Err((2, "the delimiter of pairs is empty".into()));
    }
    if delimiter == pair_delimiter {
        let at = if matches!(arguments.get(2), Some(Argument::Value(_))) { 2 } else { 1 };
        return Err((at, "the delimiter of pairs equals that of keys and values".into()));
    }
    Ok(())
}

/// The delimiters of a call.
fn delimiters<'m>(contents: Contents<'m>, arguments: &[Argument]) -> (&'m [u8], &'m [u8]) {
    let text = |at: usize, default: &'static [u8]| match literal(arguments, at) {
        Some(Value::Text(text)) => contents.get(text),
        _ => default,
    };
    (text(1, b"="), text(2, b" "))
}

/// A map of the pairs in a text. Quotes keep delimiters together, a backslash keeps the quote behind it. Output: the target,
/// and 28 bytes for each pair.
static PARSE_KEY_VALUE: Signature = Signature {
    complete: |arguments, constants, _| check_delimiters(arguments, constants),
    ..converter(
        "ParseKeyValue",
        &[
            required("target", Type::Text),
            optional("delimiter", Type::LiteralText),
            optional("pair_delimiter", Type::LiteralText),
        ],
        Type::Map,
        |machine, arguments| {
            let [target, ..] = all::<3>(arguments)?;
            let target = machine.text(target)?;
            let mark = machine.memory.mark();
            let (contents, mut room) = machine.memory.split();
            let (delimiter, pair_delimiter) = delimiters(contents, arguments);
            let source = contents.get(target);
            if source.is_empty() {
                return Err(Failure::Invalid("the string is empty"));
            }
            pairs(source, delimiter, pair_delimiter, &mut room)?;
            Ok(Value::Map(machine.memory.since(mark)))
        },
    )
};

const NO_PAIR: Failure = Failure::Invalid("a part of the string has no delimiter between key and value");

/// Appends the pairs of `source`: each is written without its quotes behind the map, and taken apart there.
fn pairs(source: &[u8], delimiter: &[u8], pair_delimiter: &[u8], room: &mut Room<'_>) -> Result<(), Failure> {
    let mut rest = source;
    let (mut quote, mut escaped) = (None, false);
    let mut names = Names::default();
    let mut start = room.len();
    while let [byte, behind @ ..] = rest {
        if quote.is_none()
            && let Some(behind) = rest.strip_prefix(pair_delimiter)
        {
            rest = behind;
            start = pair(start, delimiter, &mut names, room)?;
            continue;
        }
        rest = behind;
        if !escaped {
            match quote {
                None if matches!(byte, b'"' | b'\'') => {
                    quote = Some(*byte);
                    continue;
                }
                Some(begun) if begun == *byte => {
                    quote = None;
                    continue;
                }
                _ => escaped = *byte == b'\\',
            }
        } else {
            escaped = false;
        }
        room.put(&[*byte])?;
    }
    if quote.is_some() {
        return Err(Failure::Invalid("a quote does not end"));
    }
    pair(start, delimiter, &mut names, room)?;
    names.settle(room, 0)
}

/// Makes an entry of the pair that was written at `start`, unless it is empty; returns the end of the map.
fn pair(start: usize, delimiter: &[u8], names: &mut Names, room: &mut Room<'_>) -> Result<usize, Failure> {
    let end = room.len();
    if start == end {
        return Ok(end);
    }
    // The entry is built behind the pair, from copies of its parts, and moved to its place.
    let written = room.written().get(start..end).unwrap_or_default();
    let at = memchr::memmem::find(written, delimiter).ok_or(NO_PAIR)?;
    let trim = |bytes: &[u8]| {
        let text = str::from_utf8(bytes).unwrap_or_default();
        let from = text.len() - text.trim_start().len();
        from..from + text.trim().len()
    };
    let key = trim(written.get(..at).unwrap_or_default());
    let value = trim(written.get(at + delimiter.len()..).unwrap_or_default());
    let value = value.start + at + delimiter.len()..value.end + at + delimiter.len();
    let removed = match names.add(written.get(key.clone()).unwrap_or_default()) {
        Known::New => 0,
        Known::Maybe => remove_same(room, 0..start, start + key.start..start + key.end),
    };
    place(start - removed, key, value, room)?;
    Ok(room.len())
}

/// Replaces what is written from `start` by an entry of the parts of it.
fn place(start: usize, key: Range<usize>, value: Range<usize>, room: &mut Room<'_>) -> Result<(), Failure> {
    let end = room.len();
    let (key_len, value_len) = (key.len() as u64, value.len() as u64);
    let any_len = write::bytes_len(value_len);
    write::length(room, ELEMENT, write::bytes_len(key_len) + write::bytes_len(any_len))?;
    write::length(room, KEY, key_len)?;
    copy(room, start + key.start..start + key.end)?;
    write::length(room, VALUE, any_len)?;
    write::length(room, STRING, value_len)?;
    copy(room, start + value.start..start + value.end)?;
    let all = room.len();
    room.written().copy_within(end..all, start);
    room.truncate(start + all - end);
    Ok(())
}

/// Appends a copy of what is written.
fn copy(room: &mut Room<'_>, mut from: Range<usize>) -> Result<(), Full> {
    while !from.is_empty() {
        let mut piece = [0; 64];
        let len = from.len().min(piece.len());
        let piece = piece.get_mut(..len).unwrap_or_default();
        piece.copy_from_slice(room.written().get(from.start..from.start + len).unwrap_or_default());
        room.put(piece)?;
        from.start += len;
    }
    Ok(())
}

/// The entries of a map as a text, in their order or that of their keys. Output: twice the map, as text, and the delimiters.
static TO_KEY_VALUE_STRING: Signature = Signature {
    complete: |arguments, constants, _| check_delimiters(arguments, constants),
    ..converter(
        "ToKeyValueString",
        &[
            required("target", Type::Map),
            optional("delimiter", Type::LiteralText),
            optional("pair_delimiter", Type::LiteralText),
            optional("sort_output", Type::LiteralBool),
        ],
        Type::Text,
        |machine, arguments| {
            let [target, ..] = all::<4>(arguments)?;
            let map = machine.map_content(target)?;
            if literal(arguments, 3) == Some(Value::Bool(true)) {
                let order = order::by_key(&mut machine.memory, map)?;
                let mark = machine.memory.mark();
                for (position, entry) in order.elements().enumerate() {
                    let entry = order.element(&machine.memory, entry);
                    let (key, value) = read_pair(&machine.memory, entry);
                    put_pair(machine, arguments, position == 0, key, value)?;
                }
                return Ok(Value::Text(machine.memory.since(mark)));
            }
            let mark = machine.memory.mark();
            let mut pairs = Pairs::new(map);
            let mut is_first = true;
            while let Some(pair) = pairs.next(&machine.memory) {
                put_pair(machine, arguments, is_first, pair.key, pair.value)?;
                is_first = false;
            }
            Ok(Value::Text(machine.memory.since(mark)))
        },
    )
};

/// Appends a pair to the text.
fn put_pair(
    machine: &mut Machine<'_>,
    arguments: &[Argument],
    is_first: bool,
    key: Slice,
    value: Value,
) -> Result<(), Failure> {
    // The text of a value that is none is appended first, and taken out of the way at the end.
    let mark = machine.memory.mark();
    let value = machine.as_text(value)?;
    let text_len = machine.memory.since(mark).len as usize;
    let (contents, mut room) = machine.memory.split();
    let (delimiter, pair_delimiter) = delimiters(contents, arguments);
    if !is_first {
        room.put(pair_delimiter)?;
    }
    escaped(contents.get(key), delimiter, pair_delimiter, &mut room)?;
    room.put(delimiter)?;
    escaped(contents.get(value), delimiter, pair_delimiter, &mut room)?;
    machine.memory.remove(mark, 0..text_len);
    Ok(())
}

/// Appends `text` with its quotes escaped; between quotes when it has a delimiter.
fn escaped(text: &[u8], delimiter: &[u8], pair_delimiter: &[u8], room: &mut Room<'_>) -> Result<(), Full> {
    let start = room.len();
    for (position, part) in text.split(|byte| *byte == b'"').enumerate() {
        if position > 0 {
            room.put(b"\\\"")?;
        }
        room.put(part)?;
    }
    let written = room.written().get(start..).unwrap_or_default();
    let has = |delimiter| memchr::memmem::find(written, delimiter).is_some();
    if has(pair_delimiter) || has(delimiter) {
        room.put(b"\"\"")?;
        room.written().get_mut(start..).unwrap_or_default().rotate_right(1);
    }
    Ok(())
}

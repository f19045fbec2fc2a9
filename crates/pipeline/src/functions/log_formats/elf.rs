//! `ParseELF`: the W3C Extended Log Format, a block of lines.

use super::{Texts, all, close_all, converter, open_entry, open_map, required};
use crate::functions::encoded::{ARRAY, put_text_entry, put_text_item};
use crate::memory::Room;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};

/// The directives and the entries of a block of lines. Output: the text, the names of the fields for each entry, and 28 bytes for
/// each field.
pub(super) static PARSE_ELF: Signature =
    converter("ParseELF", &[required("target", Type::Text)], Type::Map, |machine, arguments| {
        let [target] = all::<1>(arguments)?;
        let target = machine.text(target)?;
        let mark = machine.memory.mark();
        let (contents, mut room) = machine.memory.split();
        block(str::from_utf8(contents.get(target)).unwrap_or_default(), &mut room)?;
        Ok(Value::Map(machine.memory.since(mark)))
    });

/// Directives with a value, and their names in the map.
const DIRECTIVES: [(&str, &[u8]); 6] = [
    ("version", b"elf.version"),
    ("software", b"elf.software"),
    ("date", b"elf.date"),
    ("start-date", b"elf.start_date"),
    ("end-date", b"elf.end_date"),
    ("remark", b"elf.remark"),
];

/// The most fields of a line: as many as the members of a map in JSON.
const FIELDS: usize = 4096;

const NOT_CLOSED: Failure = Failure::Invalid("a quoted value of the ELF entry does not end");

fn block(text: &str, room: &mut Room<'_>) -> Result<(), Failure> {
    let mut values: [Option<&str>; DIRECTIVES.len()] = [None; DIRECTIVES.len()];
    let (mut fields, mut count) = ("", 0);
    // The values that lines may still have. A line fills all of its fields, also with names that repeat, which leave no
    // trace in the output: without a bound the work is that of fields times lines. A value takes two bytes of a line.
    let mut left = text.len() + FIELDS;
    let list = open_entry(room, b"elf.entries", ARRAY)?;
    for line in text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()) {
        let Some(directive) = line.strip_prefix('#') else {
            let map = open_map(room)?;
            left = left.checked_sub(count).ok_or(Failure::TooLarge)?;
            entry(line.as_bytes(), fields, room)?;
            close_all(room, map)?;
            continue;
        };
        let Some((name, value)) = directive.split_once(':') else {
            let name = directive.trim();
            if name.get(..6).is_some_and(|name| name.eq_ignore_ascii_case("fields")) {
                return Err(Failure::Invalid("the directive `#Fields` has no colon"));
            }
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        if name.eq_ignore_ascii_case("fields") {
            fields = value;
            count = fields.split_whitespace().count();
            if count > FIELDS {
                return Err(Failure::TooLarge);
            }
        }
        for ((known, _), place) in DIRECTIVES.iter().zip(&mut values) {
            if name.eq_ignore_ascii_case(known) {
                *place = Some(value);
            }
        }
    }
    close_all(room, list)?;
    if let [None, ..] = values {
        return Err(Failure::Invalid("the ELF text has no directive `#Version`"));
    }
    for ((_, name), value) in DIRECTIVES.iter().zip(values) {
        if let Some(value) = value {
            put_text_entry(room, (*name).into(), value.as_bytes().into())?;
        }
    }
    let list = open_entry(room, b"elf.fields", ARRAY)?;
    fields.split_whitespace().try_for_each(|field| put_text_item(room, field.as_bytes().into()))?;
    close_all(room, list)
}

/// Appends a value for each field: `-` where the line has fewer. Values without a field are left out.
fn entry(line: &[u8], fields: &str, room: &mut Room<'_>) -> Result<(), Failure> {
    if fields.split_whitespace().next().is_none() {
        return Err(Failure::Invalid("an ELF entry stands before `#Fields`"));
    }
    let mut rest = line;
    let mut texts = Texts::new(room);
    for field in fields.split_whitespace() {
        if !value(&mut rest, &mut texts)? {
            texts.text(b"-")?;
        }
        texts.entry(field.as_bytes())?;
    }
    let end = texts.room.len();
    while value(&mut rest, &mut texts)? {}
    texts.room.truncate(end);
    texts.end()
}

/// Appends the next value of a line; false at its end.
fn value(rest: &mut &[u8], texts: &mut Texts<'_, '_>) -> Result<bool, Failure> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = rest.iter().position(|byte| !is_space(byte)).unwrap_or(rest.len());
    let text = rest.get(start..).unwrap_or_default();
    match text {
        [] => {
            *rest = text;
            Ok(false)
        }
        [b'"', quoted @ ..] => {
            let mut quoted = quoted;
            loop {
                let end = memchr::memchr(b'"', quoted).ok_or(NOT_CLOSED)?;
                let (plain, behind) = quoted.split_at(end);
                texts.text(plain)?;
                match behind {
                    [_, b'"', behind @ ..] => {
                        texts.text(b"\"")?;
                        quoted = behind;
                    }
                    behind => {
                        *rest = behind.get(1..).unwrap_or_default();
                        return Ok(true);
                    }
                }
            }
        }
        text => {
            let end = text.iter().position(is_space).unwrap_or(text.len());
            let (plain, behind) = text.split_at(end);
            texts.text(plain)?;
            *rest = behind;
            Ok(true)
        }
    }
}

//! Texts: parts of them, their ends, and lists joined to one.

use super::{all, converter, encoded, optional, required, with_elements};
use crate::machine::Machine;
use crate::machine::arguments::literal;
use crate::memory::Slice;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};

pub(super) static CONVERTERS: &[&Signature] =
    &[&CONCAT, &HAS_PREFIX, &HAS_SUFFIX, &SPLIT, &SUBSTRING, &TRIM, &TRIM_PREFIX, &TRIM_SUFFIX];

/// The values as texts, with the delimiter between them; `<nil>` for nil. Output: the texts of the values, and a delimiter
/// for each.
static CONCAT: Signature = converter(
    "Concat",
    &[required("vals", Type::Elements), required("delimiter", Type::Text)],
    Type::Text,
    |machine, arguments| {
        let [vals, delimiter] = all(arguments)?;
        let delimiter = machine.text(delimiter)?;
        with_elements(machine, vals, |machine, base| {
            let mark = machine.memory.mark();
            for at in base.. {
                let Some(value) = machine.values_since(at).first().copied() else { break };
                if at > base {
                    machine.memory.push_slice(delimiter)?;
                }
                match value {
                    Value::Text(text) => machine.memory.push_slice(text)?,
                    Value::Nil => machine.memory.push(b"<nil>")?,
                    value => _ = machine.like_text(value)?,
                }
            }
            Ok(Value::Text(machine.memory.since(mark)))
        })
    },
);

/// The parts between the delimiters; the characters where the delimiter is empty. Output: at most 6 bytes for each of the
/// target's, and 6.
static SPLIT: Signature = converter(
    "Split",
    &[required("target", Type::Text), required("delimiter", Type::Text)],
    Type::List,
    |machine, arguments| {
        let [target, delimiter] = all(arguments)?;
        let (target, delimiter) = (machine.text(target)?, machine.text(delimiter)?);
        let mark = machine.memory.mark();
        let (contents, mut room) = machine.memory.split();
        let (mut rest, delimiter) = (contents.get(target), contents.get(delimiter));
        if delimiter.is_empty() {
            for character in str::from_utf8(rest).unwrap_or_default().chars() {
                encoded::put_text_item(&mut room, character.encode_utf8(&mut [0; 4]).as_bytes().into())?;
            }
        } else {
            while let Some(at) = memchr::memmem::find(rest, delimiter) {
                encoded::put_text_item(&mut room, encoded::Text::first(rest, at))?;
                rest = rest.get(at + delimiter.len()..).unwrap_or_default();
            }
            encoded::put_text_item(&mut room, rest.into())?;
        }
        Ok(Value::List(machine.memory.since(mark)))
    },
);

/// `length` bytes from `start`. A character that would be cut is left out, whether or not `utf8_safe` is set: what is no
/// UTF-8 could not be sent. No output.
static SUBSTRING: Signature = converter(
    "Substring",
    &[
        required("target", Type::Text),
        required("start", Type::Int),
        required("length", Type::Int),
        optional("utf8_safe", Type::LiteralBool),
    ],
    Type::Text,
    |machine, arguments| {
        let [target, start, length, _] = all(arguments)?;
        let start = machine.int(start)?;
        let length = machine.int(length)?;
        let target = machine.text(target)?;
        let bytes = machine.memory.get(target);
        let range =
            substring(bytes, start, length).ok_or(Failure::Invalid("the range is not in the string"))?;
        Ok(Value::Text(target.part(range.start, range.end)))
    },
);

/// The bytes of a substring, on the edges of characters; nothing where it is not within `text`.
fn substring(text: &[u8], start: i64, length: i64) -> Option<std::ops::Range<usize>> {
    let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
    let end = start.checked_add(length).filter(|end| length > 0 && *end <= text.len())?;
    let inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let start = (start..end).find(|at| !inside(*at)).unwrap_or(end);
    let end = (start..=end).rev().find(|at| !inside(*at)).unwrap_or(start);
    Some(start..end)
}

/// The target without the characters of `replacement` at its ends; without spaces by default. No output.
static TRIM: Signature = converter(
    "Trim",
    &[required("target", Type::Text), optional("replacement", Type::LiteralText)],
    Type::Text,
    |machine, arguments| {
        let [target, _] = all(arguments)?;
        let target = machine.text(target)?;
        let bytes = machine.memory.get(target);
        let characters = match literal(arguments, 1) {
            Some(Value::Text(characters)) => {
                str::from_utf8(machine.memory.get(characters)).unwrap_or_default()
            }
            _ => " ",
        };
        let text = str::from_utf8(bytes).unwrap_or_default();
        let rest = text.trim_start_matches(|character| characters.contains(character));
        let start = text.len() - rest.len();
        let rest = rest.trim_end_matches(|character| characters.contains(character));
        Ok(Value::Text(target.part(start, start + rest.len())))
    },
);

const TWO_TEXTS: [crate::ottl::signature::Parameter; 2] =
    [required("target", Type::Text), required("prefix", Type::Text)];
const TEXT_AND_SUFFIX: [crate::ottl::signature::Parameter; 2] =
    [required("target", Type::Text), required("suffix", Type::Text)];

/// Whether the target begins with the prefix. No output.
static HAS_PREFIX: Signature = converter("HasPrefix", &TWO_TEXTS, Type::Bool, |machine, arguments| {
    let (target, end) = target_and_end(machine, arguments)?;
    Ok(Value::Bool(machine.memory.get(target).starts_with(machine.memory.get(end))))
});

/// Whether the target ends with the suffix. No output.
static HAS_SUFFIX: Signature = converter("HasSuffix", &TEXT_AND_SUFFIX, Type::Bool, |machine, arguments| {
    let (target, end) = target_and_end(machine, arguments)?;
    Ok(Value::Bool(machine.memory.get(target).ends_with(machine.memory.get(end))))
});

/// The target without the prefix, if it has it. No output.
static TRIM_PREFIX: Signature = converter("TrimPrefix", &TWO_TEXTS, Type::Text, |machine, arguments| {
    let (target, end) = target_and_end(machine, arguments)?;
    let has = machine.memory.get(target).starts_with(machine.memory.get(end));
    let from = if has { end.len as usize } else { 0 };
    Ok(Value::Text(target.part(from, target.len as usize)))
});

/// The target without the suffix, if it has it. No output.
static TRIM_SUFFIX: Signature =
    converter("TrimSuffix", &TEXT_AND_SUFFIX, Type::Text, |machine, arguments| {
        let (target, end) = target_and_end(machine, arguments)?;
        let has = machine.memory.get(target).ends_with(machine.memory.get(end));
        let to = if has { target.len - end.len } else { target.len };
        Ok(Value::Text(target.part(0, to as usize)))
    });

fn target_and_end(machine: &mut Machine<'_>, arguments: &[Argument]) -> Result<(Slice, Slice), Failure> {
    let [target, end] = all(arguments)?;
    Ok((machine.text(target)?, machine.text(end)?))
}

//! Checking attributes and values, resources and scopes.

use super::field::{SeenFields, text};
use crate::otlp::attribute::{MAX_DEPTH, plain_parts};
use crate::otlp::error::{OtlpError, OtlpErrorKind};
use crate::proto::{Key, Reader};
use crate::utf8::is_utf8;

/// Checks the attributes that come next and have this one-byte tag, as far as they are encoded as every
/// known encoder does it when they are short; the cursor stands behind those then. The rest is for
/// [`key_value`].
///
/// Their texts are checked together, see [`is_utf8`]: a stretch ends only at numbers that are not ASCII.
#[inline(always)]
pub(super) fn attributes(message: &mut Reader<'_>, tag: u8) -> Result<(), OtlpError> {
    if message.rest().first() == Some(&tag) { stretch(message, tag) } else { Ok(()) }
}

#[inline(never)]
fn stretch(message: &mut Reader<'_>, tag: u8) -> Result<(), OtlpError> {
    let mut cursor = *message;
    let mut start = cursor;
    loop {
        let mut ahead = cursor;
        let Some(value) = ahead.take_short(tag).and_then(plain_parts).map(|(_, value)| value) else { break };
        match value {
            [0x0a, len, text @ ..] if *len < 0x80 && usize::from(*len) == text.len() => {}
            [0x10 | 0x18, number] if *number < 0x80 => {}
            [] => {}
            [0x18, number @ .., last] if *last < 0x80 && is_long_varint(number) => {
                texts(start, ahead, value.len(), tag)?;
                start = ahead;
            }
            [0x21, _, _, _, _, _, _, _, _] => {
                texts(start, ahead, value.len(), tag)?;
                start = ahead;
            }
            _ => break,
        }
        cursor = ahead;
    }
    texts(start, cursor, 0, tag)?;
    *message = cursor;
    Ok(())
}

/// Whether these are all bytes but the last of a number with at most nine bytes.
#[inline(always)]
fn is_long_varint(bytes: &[u8]) -> bool {
    bytes.len() < 9 && bytes.iter().all(|byte| *byte >= 0x80)
}

/// That the texts of the attributes from `start` up to `end` are UTF-8, of which the last `number` bytes are
/// no text.
#[inline(always)]
fn texts(start: Reader<'_>, end: Reader<'_>, number: usize, tag: u8) -> Result<(), OtlpError> {
    let run = start.until(&end);
    let run = run.get(..run.len().saturating_sub(number)).unwrap_or_default();
    if is_utf8(run) { Ok(()) } else { each(start, end.offset(), tag) }
}

#[cold]
#[inline(never)]
fn each(mut start: Reader<'_>, end: usize, tag: u8) -> Result<(), OtlpError> {
    while start.offset() < end {
        let Some(key) = start.key()? else { break };
        debug_assert_eq!(key.field, u32::from(tag >> 3));
        key_value(start.message(key)?)?;
    }
    Ok(())
}

/// Checks any attribute.
#[inline(never)]
pub(super) fn key_value(message: Reader<'_>) -> Result<(), OtlpError> {
    key_value_at(message, 0)
}

/// Checks a value.
pub(super) fn value(message: Reader<'_>) -> Result<(), OtlpError> {
    value_at(message, 0)
}

/// How many levels of arrays and maps are checked by functions that call each other.
const FEW: usize = 8;

/// Checks an attribute that is in so many arrays and maps.
#[inline(never)]
fn key_value_at(mut message: Reader<'_>, depth: usize) -> Result<(), OtlpError> {
    let mut once = SeenFields::default();
    while let Some(key) = message.key()? {
        match key.field {
            1 => text(&mut message, key, "an attribute's key")?,
            2 => {
                once.first(key, &message, "an attribute's value")?;
                value_at(message.message(key)?, depth)?;
            }
            3 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

/// Checks a value that is in so many arrays and maps. This and [`key_value_at`] call each other, at most so often as
/// there are [`FEW`] levels.
fn value_at(mut message: Reader<'_>, depth: usize) -> Result<(), OtlpError> {
    if depth >= FEW {
        return deep(message, depth);
    }
    let mut nested = false;
    while let Some(key) = message.key()? {
        match key.field {
            5 | 6 => {
                let mut members = message.message(key)?;
                twice(&mut nested, &members)?;
                while let Some(member) = members.key()? {
                    match (member.field, key.field) {
                        (1, 5) => value_at(members.message(member)?, depth + 1)?,
                        (1, _) => key_value_at(members.message(member)?, depth + 1)?,
                        _ => members.skip(member)?,
                    }
                }
            }
            _ => scalar(&mut message, key)?,
        }
    }
    Ok(())
}

/// Checks a field of a value that has no other values in it.
#[inline(always)]
fn scalar(message: &mut Reader<'_>, key: Key) -> Result<(), OtlpError> {
    match key.field {
        1 => text(message, key, "a string value")?,
        2 | 3 | 8 => drop(message.varint(key)?),
        4 => drop(message.fixed64(key)?),
        7 => drop(message.bytes(key)?),
        _ => message.skip(key)?,
    }
    Ok(())
}

/// Notes that there is an array or a map, of which a value has one.
fn twice(nested: &mut bool, at: &Reader<'_>) -> Result<(), OtlpError> {
    match std::mem::replace(nested, true) {
        true => Err(OtlpError::new(at.offset(), OtlpErrorKind::Twice("an array or map of a value"))),
        false => Ok(()),
    }
}

/// An open message in [`deep`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Value,
    Array,
    Map,
    Entry,
}

/// A message that is open there.
struct Open {
    kind: Kind,
    /// Whether it has its value already, if it may have one.
    has_value: bool,
    end: u32,
}

/// Heap bytes for checking a deeply nested value: each level of maps has a value, its map, and an entry open.
pub(in crate::otlp) const DEEP_BYTES: usize = (3 * MAX_DEPTH).next_power_of_two() * size_of::<Open>();

/// Checks a value that is in so many arrays and maps without a call for each level.
#[cold]
#[inline(never)]
fn deep(value: Reader<'_>, around: usize) -> Result<(), OtlpError> {
    let (root, base) = (value.rest(), value.offset());
    let (mut depth, mut at) = (around, 0);
    // Bodies are shorter than 4 GiB.
    let opened = |kind: Kind, end: usize| {
        let end = u32::try_from(end).unwrap_or(u32::MAX);
        Open { kind, has_value: false, end }
    };
    let mut open = vec![opened(Kind::Value, root.len())];
    while let Some(innermost) = open.last_mut() {
        let (kind, end) = (innermost.kind, innermost.end as usize);
        if at >= end {
            depth -= usize::from(matches!(kind, Kind::Array | Kind::Map));
            open.pop();
            continue;
        }
        let mut reader = Reader::within(root, at..end).rebased(base);
        let Some(key) = reader.key()? else { break };
        let inner = match (kind, key.field) {
            (Kind::Value, 5) => Some(Kind::Array),
            (Kind::Value, 6) => Some(Kind::Map),
            (Kind::Array, 1) | (Kind::Entry, 2) => Some(Kind::Value),
            (Kind::Map, 1) => Some(Kind::Entry),
            _ => None,
        };
        let Some(inner) = inner else {
            match (kind, key.field) {
                (Kind::Value, _) => scalar(&mut reader, key)?,
                (Kind::Entry, 1) => text(&mut reader, key, "an attribute's key")?,
                (Kind::Entry, 3) => drop(reader.varint(key)?),
                _ => reader.skip(key)?,
            }
            at = end - reader.rest().len();
            continue;
        };
        let message = reader.message(key)?;
        if matches!(inner, Kind::Array | Kind::Map) {
            depth += 1;
            if depth > MAX_DEPTH {
                return Err(OtlpError::new(message.offset(), OtlpErrorKind::Depth));
            }
            twice(&mut innermost.has_value, &message)?;
        } else if kind == Kind::Entry && std::mem::replace(&mut innermost.has_value, true) {
            return Err(OtlpError::new(message.offset(), OtlpErrorKind::Twice("an attribute's value")));
        }
        let inner_end = end - reader.rest().len();
        at = inner_end - message.rest().len();
        open.push(opened(inner, inner_end));
    }
    Ok(())
}

/// Checks a resource.
pub(super) fn resource(mut message: Reader<'_>) -> Result<(), OtlpError> {
    loop {
        attributes(&mut message, 0x0a)?;
        let Some(key) = message.key()? else { return Ok(()) };
        match key.field {
            1 => key_value(message.message(key)?)?,
            2 => drop(message.varint(key)?),
            3 => entity(message.message(key)?)?,
            _ => message.skip(key)?,
        }
    }
}

fn entity(mut message: Reader<'_>) -> Result<(), OtlpError> {
    while let Some(key) = message.key()? {
        match key.field {
            1..=4 => text(&mut message, key, "a text of an entity")?,
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

/// Checks a scope.
pub(super) fn scope(mut message: Reader<'_>) -> Result<(), OtlpError> {
    loop {
        attributes(&mut message, 0x1a)?;
        let Some(key) = message.key()? else { return Ok(()) };
        match key.field {
            1 => text(&mut message, key, "the scope's name")?,
            2 => text(&mut message, key, "the scope's version")?,
            3 => key_value(message.message(key)?)?,
            4 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
}

//! Checking attributes and values, resources and scopes.

use super::field::{Once, text};
use crate::otlp::attribute::{MAX_DEPTH, plain_parts};
use crate::otlp::fault::{Fault, Reason};
use crate::proto::Reader;
use crate::utf8::is_utf8;

/// Checks the attributes that come next and have this one-byte tag, as far as they are encoded as every
/// known encoder does it when they are short; the cursor stands behind those then. The rest is for
/// [`key_value`].
///
/// Their texts are checked together, see [`is_utf8`]: a stretch ends only at numbers that are not ASCII.
#[inline(always)]
pub(super) fn attributes(message: &mut Reader<'_>, tag: u8) -> Result<(), Fault> {
    if message.rest().first() == Some(&tag) { stretch(message, tag) } else { Ok(()) }
}

#[inline(never)]
fn stretch(message: &mut Reader<'_>, tag: u8) -> Result<(), Fault> {
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
fn texts(start: Reader<'_>, end: Reader<'_>, number: usize, tag: u8) -> Result<(), Fault> {
    let run = start.until(&end);
    let run = run.get(..run.len().saturating_sub(number)).unwrap_or_default();
    if is_utf8(run) { Ok(()) } else { each(start, end.offset(), tag) }
}

#[cold]
#[inline(never)]
fn each(mut start: Reader<'_>, end: usize, tag: u8) -> Result<(), Fault> {
    while start.offset() < end {
        let Some(key) = start.key()? else { break };
        debug_assert_eq!(key.field, u32::from(tag >> 3));
        key_value(start.message(key)?, MAX_DEPTH)?;
    }
    Ok(())
}

/// Checks any attribute, whose value may have `depth` levels of arrays and maps.
#[inline(never)]
pub(super) fn key_value(mut message: Reader<'_>, depth: usize) -> Result<(), Fault> {
    let mut once = Once::default();
    while let Some(key) = message.key()? {
        match key.field {
            1 => text(&mut message, key, "an attribute's key")?,
            2 => {
                once.take(key, &message, "an attribute's value")?;
                value(message.message(key)?, depth)?;
            }
            3 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

/// Checks a value, which may have `depth` levels of arrays and maps. This and [`key_value`] call each other,
/// at most so often.
pub(super) fn value(mut message: Reader<'_>, depth: usize) -> Result<(), Fault> {
    let mut nested = false;
    while let Some(key) = message.key()? {
        match key.field {
            1 => text(&mut message, key, "a string value")?,
            2 | 3 | 8 => drop(message.varint(key)?),
            4 => drop(message.fixed64(key)?),
            5 | 6 => {
                let mut members = message.message(key)?;
                let Some(depth) = depth.checked_sub(1) else {
                    return Err(Fault::new(members.offset(), Reason::Depth));
                };
                if std::mem::replace(&mut nested, true) {
                    return Err(Fault::new(members.offset(), Reason::Twice("an array or map of a value")));
                }
                while let Some(member) = members.key()? {
                    match (member.field, key.field) {
                        (1, 5) => value(members.message(member)?, depth)?,
                        (1, _) => key_value(members.message(member)?, depth)?,
                        _ => members.skip(member)?,
                    }
                }
            }
            7 => drop(message.bytes(key)?),
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

/// Checks a resource.
pub(super) fn resource(mut message: Reader<'_>) -> Result<(), Fault> {
    loop {
        attributes(&mut message, 0x0a)?;
        let Some(key) = message.key()? else { return Ok(()) };
        match key.field {
            1 => key_value(message.message(key)?, MAX_DEPTH)?,
            2 => drop(message.varint(key)?),
            3 => entity(message.message(key)?)?,
            _ => message.skip(key)?,
        }
    }
}

fn entity(mut message: Reader<'_>) -> Result<(), Fault> {
    while let Some(key) = message.key()? {
        match key.field {
            1..=4 => text(&mut message, key, "a text of an entity")?,
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

/// Checks a scope.
pub(super) fn scope(mut message: Reader<'_>) -> Result<(), Fault> {
    loop {
        attributes(&mut message, 0x1a)?;
        let Some(key) = message.key()? else { return Ok(()) };
        match key.field {
            1 => text(&mut message, key, "the scope's name")?,
            2 => text(&mut message, key, "the scope's version")?,
            3 => key_value(message.message(key)?, MAX_DEPTH)?,
            4 => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
}

//! The structure of a native histogram, and that its buckets are as many as its spans say.

use crate::proto::{Key, Malformed, Problem, Reader, Wire, low32};
use crate::remote_write::fault::{Fault, Reason};
use crate::remote_write::histogram::field;

/// Buckets on one side of zero.
#[derive(Default)]
struct Side {
    covered: u64,
    deltas: u64,
    counts: u64,
}

/// Checks a histogram message; `with_start` says whether the version knows the start timestamp.
#[inline(never)]
pub(super) fn check(mut message: Reader<'_>, with_start: bool) -> Result<(), Fault> {
    let start = message.offset();
    let (mut positive, mut negative) = (Side::default(), Side::default());
    let mut float = false;
    while let Some(key) = message.key()? {
        match key.field {
            field::COUNT_INT => {
                message.varint(key)?;
                float = false;
            }
            field::COUNT_FLOAT => {
                message.fixed64(key)?;
                float = true;
            }
            field::ZERO_COUNT_INT | field::SCHEMA | field::RESET_HINT | field::TIMESTAMP => {
                message.varint(key)?;
            }
            field::START_TIMESTAMP if with_start => drop(message.varint(key)?),
            field::SUM | field::ZERO_THRESHOLD | field::ZERO_COUNT_FLOAT => drop(message.fixed64(key)?),
            field::NEGATIVE_SPANS => negative.covered += span(message.message(key)?)?,
            field::NEGATIVE_DELTAS => negative.deltas += varints(&mut message, key)?,
            field::NEGATIVE_COUNTS => negative.counts += doubles(&mut message, key)?,
            field::POSITIVE_SPANS => positive.covered += span(message.message(key)?)?,
            field::POSITIVE_DELTAS => positive.deltas += varints(&mut message, key)?,
            field::POSITIVE_COUNTS => positive.counts += doubles(&mut message, key)?,
            field::CUSTOM_VALUES => drop(doubles(&mut message, key)?),
            _ => message.skip(key)?,
        }
    }
    for (side, Side { covered, deltas, counts }) in [("positive", positive), ("negative", negative)] {
        let given = if float { counts } else { deltas };
        if covered != given {
            return Err(Fault::new(start, Reason::Buckets { side, covered, given }));
        }
    }
    Ok(())
}

/// The length of a span.
fn span(mut message: Reader<'_>) -> Result<u64, Malformed> {
    let mut length = 0;
    while let Some(key) = message.key()? {
        match key.field {
            1 => drop(message.varint(key)?),
            2 => length = low32(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
    Ok(u64::from(length))
}

/// How many numbers stand behind `key`, packed or not.
fn varints(message: &mut Reader<'_>, key: Key) -> Result<u64, Malformed> {
    if key.wire == Wire::Varint {
        return message.varint(key).map(|_| 1);
    }
    let mut packed = message.message(key)?;
    let mut found = 0;
    while !packed.rest().is_empty() {
        packed.raw_varint(key.field)?;
        found += 1;
    }
    Ok(found)
}

/// How many doubles stand behind `key`, packed or not.
fn doubles(message: &mut Reader<'_>, key: Key) -> Result<u64, Malformed> {
    if key.wire == Wire::Fixed64 {
        return message.fixed64(key).map(|_| 1);
    }
    let packed = message.message(key)?;
    match packed.rest().len() {
        len if len % 8 == 0 => Ok(len as u64 / 8),
        _ => Err(packed.malformed(key.field, Problem::Truncated)),
    }
}

//! Fields within a field's message, and repeated numbers.

use super::message::{FieldRanges, body};
use crate::any_value::{self, Elements};
use crate::memory::{Memory, Slice};
use crate::value::{Failure, Value};
use tidegate_wire::proto::write::Varint;
use tidegate_wire::proto::{Reader, WireType};

/// The last occurrence of a field of `message`: its number or its bytes.
pub(super) fn field(memory: &Memory<'_>, message: Slice, number: u32) -> (u64, Slice) {
    let mut found = (0, Slice::EMPTY);
    let mut reader = Reader::new(memory.get(message));
    while let Ok(Some(key)) = reader.key() {
        if key.field != number {
            if reader.skip(key).is_err() {
                break;
            }
            continue;
        }
        found = match key.wire {
            WireType::Length => {
                let len = reader.bytes(key).map_or(0, <[u8]>::len);
                (0, message.part(reader.offset().saturating_sub(len), reader.offset()))
            }
            _ => (reader.varint(key).unwrap_or_default(), Slice::EMPTY),
        };
    }
    found
}

/// How many messages of a repeated field there are.
pub(super) fn count(memory: &Memory<'_>, message: Slice, number: u32) -> usize {
    let mut messages = any_value::RepeatedField::new(message, number);
    std::iter::from_fn(|| messages.next(memory)).count()
}

/// Appends all fields of `message` but this one.
pub(super) fn push_others(memory: &mut Memory<'_>, message: Slice, number: u32) -> Result<(), Failure> {
    let mut from = 0;
    loop {
        let mut reader = Reader::new(memory.get(message.part(from, message.len as usize)));
        let Ok(Some(key)) = reader.key() else { return Ok(()) };
        if reader.skip(key).is_err() {
            return Ok(());
        }
        let to = from + reader.offset();
        if key.field != number {
            memory.push_slice(message.part(from, to))?;
        }
        from = to;
    }
}

/// Appends a number with its tag.
pub(super) fn push_varint(memory: &mut Memory<'_>, field: u32, number: u64) -> Result<(), Failure> {
    memory.push(Varint::new(u64::from(field) << 3).as_bytes())?;
    memory.push(Varint::new(number).as_bytes())
}

/// The varints in a field of `message`, packed or not, as a list.
pub(super) fn varints(memory: &mut Memory<'_>, message: Slice, number: u32) -> Result<Slice, Failure> {
    let mark = memory.mark();
    let mut from = 0;
    loop {
        let mut reader = Reader::new(memory.get(message.part(from, message.len as usize)));
        let Ok(Some(key)) = reader.key() else { break };
        let start = from + reader.offset();
        if reader.skip(key).is_err() {
            break;
        }
        let end = from + reader.offset();
        from = end;
        if key.field != number {
            continue;
        }
        let mut at = match key.wire {
            WireType::Length => end - packed_len(memory.get(message), start, end),
            _ => start,
        };
        while at < end {
            let mut packed = Reader::new(memory.get(message.part(at, end)));
            let Ok(bits) = packed.raw_varint(number) else { break };
            at += packed.offset();
            any_value::write_element(Value::Int(bits.cast_signed()), memory)?;
        }
    }
    Ok(memory.since(mark))
}

/// The numbers of eight bytes in a field, packed or not, as a list; `set` is what a statement set it to.
pub(super) fn numbers(
    memory: &mut Memory<'_>,
    fields: &FieldRanges,
    set: Option<Slice>,
    number: u32,
    is_double: bool,
) -> Result<Slice, Failure> {
    let mark = memory.mark();
    if let Some(packed) = set {
        push_elements(memory, packed, is_double)?;
        return Ok(memory.since(mark));
    }
    for range in fields.ranges() {
        let mut at = range.start;
        loop {
            let mut reader = Reader::new(memory.body.get(at..range.end).unwrap_or_default());
            let Ok(Some(key)) = reader.key() else { break };
            let start = at + reader.offset();
            if reader.skip(key).is_err() {
                break;
            }
            at += reader.offset();
            if key.field == number {
                let len = if key.wire == WireType::Length {
                    packed_len(memory.body, start, at)
                } else {
                    at - start
                };
                push_elements(memory, body(&(at - len..at)), is_double)?;
            }
        }
    }
    Ok(memory.since(mark))
}

/// The length of the payload of the length-delimited value at `start..end` of `bytes`.
fn packed_len(bytes: &[u8], start: usize, end: usize) -> usize {
    let mut reader = Reader::new(bytes.get(start..end).unwrap_or_default());
    reader.raw_varint(0).ok().and_then(|len| usize::try_from(len).ok()).unwrap_or(0).min(end - start)
}

fn push_elements(memory: &mut Memory<'_>, packed: Slice, is_double: bool) -> Result<(), Failure> {
    for at in (0..packed.len as usize).step_by(8) {
        let bytes = memory.get(packed.part(at, at + 8)).first_chunk();
        let bits = bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let value =
            if is_double { Value::Double(f64::from_bits(bits)) } else { Value::Int(bits.cast_signed()) };
        any_value::write_element(value, memory)?;
    }
    Ok(())
}

/// The integers of a list, as packed varints.
pub(super) fn pack_varints(memory: &mut Memory<'_>, list: Slice) -> Result<Slice, Failure> {
    let mark = memory.mark();
    let mut elements = Elements::new(list);
    while let Some(element) = elements.next(memory) {
        memory.push(Varint::new(integer(element)?).as_bytes())?;
    }
    Ok(memory.since(mark))
}

/// The numbers of a list, as packed numbers of eight bytes.
pub(super) fn pack_numbers(memory: &mut Memory<'_>, list: Slice, is_double: bool) -> Result<Slice, Failure> {
    let mark = memory.mark();
    let mut elements = Elements::new(list);
    while let Some(element) = elements.next(memory) {
        let bits = match (element, is_double) {
            (Value::Double(number), true) => number.to_bits(),
            (_, true) => return Err(Failure::Invalid("expected a list of doubles")),
            (_, false) => integer(element)?,
        };
        memory.push(&bits.to_le_bytes())?;
    }
    Ok(memory.since(mark))
}

fn integer(value: Value) -> Result<u64, Failure> {
    match value {
        Value::Int(number) => Ok(number.cast_unsigned()),
        _ => Err(Failure::Invalid("expected a list of integers")),
    }
}

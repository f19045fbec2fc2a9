//! Ids of traces and spans, and new unique ones.

use super::{all, converter, required};
use crate::machine::Machine;
use crate::ottl::field::{Context, Field};
use crate::ottl::program::{Argument, Expression};
use crate::ottl::signature::{Effect, Parameter, Signature, Type};
use crate::regex::Regexes;
use crate::value::{Failure, Value};
use tidegate_wire::output::Output;

pub(super) static CONVERTERS: &[&Signature] = &[&IS_ROOT_SPAN, &SPAN_ID, &TRACE_ID, &UUID, &UUID_V7];

const TARGET: [Parameter; 1] = [required("target", Type::BytesLike)];

/// An id of 16 bytes, or of 32 hexadecimal digits. Output: 16 bytes.
static TRACE_ID: Signature =
    Signature { complete: check_literal::<16>, ..converter("TraceID", &TARGET, Type::Id, id::<16>) };

/// An id of 8 bytes, or of 16 hexadecimal digits. Output: 8 bytes.
static SPAN_ID: Signature =
    Signature { complete: check_literal::<8>, ..converter("SpanID", &TARGET, Type::Id, id::<8>) };

/// Refuses a literal that is no id.
fn check_literal<const N: usize>(
    arguments: &mut [Argument],
    constants: &[u8],
    _: &mut Regexes,
) -> Result<(), (usize, String)> {
    let [Argument::Value(Expression::Literal(value))] = arguments else { return Ok(()) };
    let valid = match value {
        Value::Text(slice) | Value::Bytes(slice) => {
            let start = slice.start as usize;
            let bytes = constants.get(start..start + slice.len as usize).unwrap_or_default();
            bytes.len() == N || bytes.len() == 2 * N && bytes.iter().all(u8::is_ascii_hexdigit)
        }
        // As bytes, numbers have eight.
        Value::Int(_) | Value::Double(_) => N == 8,
        _ => false,
    };
    let refused = || (0, format!("this id has to have {N} bytes, or {} hexadecimal digits", 2 * N));
    valid.then_some(()).ok_or_else(refused)
}

fn id<const N: usize>(machine: &mut Machine<'_>, arguments: &[Argument]) -> Result<Value, Failure> {
    let [target] = all(arguments)?;
    let target = machine.bytes_like(target)?.unwrap_or(crate::memory::Slice::EMPTY);
    let bytes = machine.memory.get(target);
    if bytes.len() == N {
        return Ok(Value::Id(target));
    }
    if bytes.len() != 2 * N {
        return Err(Failure::Invalid(
            "an id has 16 bytes or 32 digits for a trace, 8 bytes or 16 digits for a span",
        ));
    }
    let mut id = [0; N];
    for (byte, digits) in id.iter_mut().zip(bytes.as_chunks::<2>().0) {
        let digit = |digit: u8| {
            char::from(digit).to_digit(16).ok_or(Failure::Invalid("an id has hexadecimal digits"))
        };
        let [high, low] = *digits;
        *byte = (digit(high)? << 4 | digit(low)?).to_le_bytes()[0];
    }
    machine.memory.store(&id).map(Value::Id)
}

/// Whether the current span has no parent. No output.
static IS_ROOT_SPAN: Signature = Signature {
    effects: &[Effect::Reads(Context::Span, Field::ParentSpanId)],
    ..converter("IsRootSpan", &[], Type::Bool, |machine, _| {
        let parent = machine.record.get(&mut machine.memory, Context::Span, Field::ParentSpanId)?;
        Ok(Value::Bool(match parent {
            Value::Id(id) => machine.memory.get(id).iter().all(|byte| *byte == 0),
            _ => true,
        }))
    })
};

/// A random UUID (RFC 9562, version 4). Output: 36 bytes.
static UUID: Signature =
    converter("UUID", &[], Type::Text, |machine, _| uuid(machine, rand::random::<u128>(), 4));

/// A random UUID that begins with the time in milliseconds (RFC 9562, version 7). Output: 36 bytes.
static UUID_V7: Signature = converter("UUIDv7", &[], Type::Text, |machine, _| {
    let milliseconds = u128::from((machine.now_ns / 1_000_000).cast_unsigned());
    uuid(machine, milliseconds << 80 | rand::random::<u128>() >> 48, 7)
});

/// The text of a UUID with these bits, of a version.
fn uuid(machine: &mut Machine<'_>, bits: u128, version: u128) -> Result<Value, Failure> {
    let bits = bits & !(0xf << 76) | version << 76;
    let bits = bits & !(0b11 << 62) | 0b10 << 62;
    let mark = machine.memory.mark();
    let (_, mut room) = machine.memory.split();
    let mut text = [b'-'; 36];
    let mut digit = 128;
    for (at, place) in text.iter_mut().enumerate() {
        if !matches!(at, 8 | 13 | 18 | 23) {
            digit -= 4;
            let value = (bits >> digit & 15).to_le_bytes()[0];
            *place = if value < 10 { b'0' + value } else { b'a' + value - 10 };
        }
    }
    room.put(&text)?;
    Ok(Value::Text(machine.memory.since(mark)))
}

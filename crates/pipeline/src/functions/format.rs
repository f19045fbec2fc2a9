//! `Format`: values in a text, as Go's `fmt.Sprintf` puts them there.

mod template;

use super::{Prepared, all, converter, required, with_elements};
use crate::machine::Machine;
use crate::memory::Room;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Kind, Value};
pub(crate) use template::Template;
use template::{Piece, Verb};
use tidegate_wire::json::write;
use tidegate_wire::output::{Full, Output};

pub(super) static CONVERTERS: &[&Signature] = &[&FORMAT];

/// The values in the format. Maps and lists are JSON, which Go prints as addresses. Output: the format, the texts of the
/// values, and for each at most its width.
static FORMAT: Signature = Signature {
    prepare: |position, literal, _| (position == 0).then(|| Template::new(literal).map(Prepared::Format)),
    ..converter(
        "Format",
        &[required("format", Type::LiteralText), required("vals", Type::Values)],
        Type::Text,
        |machine, arguments| {
            let [template, vals] = all(arguments)?;
            let Argument::Prepared(Prepared::Format(template)) = template else {
                return Err(Failure::Invalid("the format is not a literal"));
            };
            with_elements(machine, vals, |machine, base| {
                let mark = machine.memory.mark();
                let mut next = base;
                for piece in &template.0 {
                    match piece {
                        Piece::Literal(text) => machine.memory.push(text.as_bytes())?,
                        Piece::Verb(verb) => {
                            let value = machine.values_since(next).first().copied();
                            next += 1;
                            match value {
                                Some(value) => put(machine, verb, value)?,
                                None => {
                                    let (_, mut room) = machine.memory.split();
                                    write::formatted(format_args!("%!{}(MISSING)", verb.letter), &mut room)?;
                                }
                            }
                        }
                    }
                }
                extra(machine, next)?;
                Ok(Value::Text(machine.memory.since(mark)))
            })
        },
    )
};

/// Appends what Go says of values that the format has no verb for.
fn extra(machine: &mut Machine<'_>, from: usize) -> Result<(), Failure> {
    let mut at = from;
    while let Some(value) = machine.values_since(at).first().copied() {
        machine.memory.push(if at == from { b"%!(EXTRA " } else { b", " })?;
        typed(machine, value)?;
        at += 1;
    }
    if at > from { machine.memory.push(b")") } else { Ok(()) }
}

/// Appends a value with the name of its type in Go.
fn typed(machine: &mut Machine<'_>, value: Value) -> Result<(), Failure> {
    let name: &[u8] = match value.kind() {
        Kind::Nil => return machine.memory.push(b"<nil>"),
        Kind::Bool => b"bool=",
        Kind::Int => b"int64=",
        Kind::Double => b"float64=",
        Kind::Text => b"string=",
        Kind::Bytes => b"[]uint8=",
        Kind::Map => b"pcommon.Map=",
        Kind::List => b"pcommon.Slice=",
        Kind::Id => b"pcommon.TraceID=",
        Kind::Time => b"time.Time=",
        Kind::Duration => b"time.Duration=",
    };
    machine.memory.push(name)?;
    plain(machine, value)
}

/// Appends a value for a verb, as wide as it says.
fn put(machine: &mut Machine<'_>, verb: &Verb, value: Value) -> Result<(), Failure> {
    let mark = machine.memory.mark();
    let fits = formatted(machine, verb, value)?;
    if !fits {
        machine.memory.release(mark);
        let (_, mut room) = machine.memory.split();
        write::formatted(format_args!("%!{}(", verb.letter), &mut room)?;
        typed(machine, value)?;
        return machine.memory.push(b")");
    }
    pad(machine, verb, mark)
}

/// Appends a value without its width. Whether the verb takes such a value.
fn formatted(machine: &mut Machine<'_>, verb: &Verb, value: Value) -> Result<bool, Failure> {
    let (contents, mut room) = machine.memory.split();
    match (verb.letter, value) {
        ('v', _) => {
            if let Value::Int(int) = value {
                sign(verb, int < 0, &mut room)?;
            }
            plain(machine, value)?;
        }
        ('s', Value::Text(text)) => {
            let bytes = contents.get(text);
            let text = str::from_utf8(bytes).unwrap_or_default();
            let end = verb
                .precision
                .and_then(|most| text.char_indices().nth(most))
                .map_or(text.len(), |(at, _)| at);
            room.put(text.get(..end).unwrap_or_default().as_bytes())?;
        }
        ('s', Value::Bytes(bytes)) => {
            let text = str::from_utf8(contents.get(bytes))
                .map_err(|_| Failure::Invalid("bytes that are not UTF-8"))?;
            room.put(text.as_bytes())?;
        }
        ('s', Value::Id(_) | Value::Time(_) | Value::Duration(_) | Value::Map(_) | Value::List(_)) => {
            plain(machine, value)?;
        }
        ('d', Value::Int(int) | Value::Duration(int)) => {
            sign(verb, int < 0, &mut room)?;
            write::int(int, &mut room)?;
        }
        ('x' | 'X', Value::Int(int)) => {
            sign(verb, int < 0, &mut room)?;
            let minus = if int < 0 { "-" } else { "" };
            let size = int.unsigned_abs();
            match verb.letter {
                'x' => write::formatted(format_args!("{minus}{size:x}"), &mut room)?,
                _ => write::formatted(format_args!("{minus}{size:X}"), &mut room)?,
            }
        }
        ('x' | 'X', Value::Text(bytes) | Value::Bytes(bytes) | Value::Id(bytes)) => {
            let from = room.len();
            write::hex(contents.get(bytes), &mut room)?;
            if verb.letter == 'X' {
                room.written().get_mut(from..).unwrap_or_default().make_ascii_uppercase();
            }
        }
        ('f' | 'F' | 'e' | 'E', Value::Double(double)) => {
            sign(verb, double.is_sign_negative(), &mut room)?;
            float(verb, double, &mut room)?;
        }
        ('t', Value::Bool(bool)) => room.put(if bool { b"true" } else { b"false" })?,
        ('c', Value::Int(int)) => {
            let character =
                u32::try_from(int).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            room.put(character.encode_utf8(&mut [0; 4]).as_bytes())?;
        }
        ('q', Value::Text(text)) => quoted(contents.get(text), &mut room)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The sign of a number that is not negative.
fn sign(verb: &Verb, is_negative: bool, room: &mut Room<'_>) -> Result<(), Full> {
    match (is_negative, verb.plus, verb.space) {
        (false, true, _) => room.put(b"+"),
        (false, false, true) => room.put(b" "),
        _ => Ok(()),
    }
}

fn float(verb: &Verb, double: f64, room: &mut Room<'_>) -> Result<(), Full> {
    let precision = verb.precision.unwrap_or(6);
    match (double.is_finite(), verb.letter) {
        (false, _) => special(double, room),
        (true, 'f' | 'F') => write::formatted(format_args!("{double:.precision$}"), room),
        _ => {
            let from = room.len();
            write::formatted(format_args!("{double:.precision$e}"), room)?;
            exponent(from, room)?;
            if verb.letter == 'E' {
                room.written().get_mut(from..).unwrap_or_default().make_ascii_uppercase();
            }
            Ok(())
        }
    }
}

fn special(double: f64, room: &mut Room<'_>) -> Result<(), Full> {
    room.put(match double {
        f64::INFINITY => b"+Inf",
        f64::NEG_INFINITY => b"-Inf",
        _ => b"NaN",
    })
}

/// Gives the exponent of the number that is written from `from` a sign and two digits.
fn exponent(from: usize, room: &mut Room<'_>) -> Result<(), Full> {
    let written = room.written().get(from..).unwrap_or_default();
    let Some(at) = written.iter().position(|byte| *byte == b'e') else { return Ok(()) };
    let mut digits = [0; 8];
    let exponent = written.get(at + 1..).unwrap_or_default();
    let (sign, exponent) = match exponent.strip_prefix(b"-") {
        Some(exponent) => (b"-", exponent),
        None => (b"+", exponent),
    };
    let len = exponent.len().min(digits.len());
    let kept = digits.get_mut(..len).unwrap_or_default();
    kept.copy_from_slice(exponent.get(..len).unwrap_or_default());
    room.truncate(from + at + 1);
    room.put(sign)?;
    room.put(if len < 2 { b"0" } else { b"" })?;
    room.put(digits.get(..len).unwrap_or_default())
}

/// Appends a value as `%v` prints it.
fn plain(machine: &mut Machine<'_>, value: Value) -> Result<(), Failure> {
    let (contents, mut room) = machine.memory.split();
    match value {
        Value::Nil => room.put(b"<nil>")?,
        Value::Bool(bool) => room.put(if bool { b"true" } else { b"false" })?,
        Value::Int(int) => write::int(int, &mut room)?,
        Value::Double(double) => shortest(double, &mut room)?,
        Value::Text(text) => room.put(contents.get(text))?,
        Value::Id(id) => write::hex(contents.get(id), &mut room)?,
        Value::Bytes(bytes) => {
            room.put(b"[")?;
            for (position, byte) in contents.get(bytes).iter().enumerate() {
                room.put(if position > 0 { b" " } else { b"" })?;
                write::unsigned(u64::from(*byte), &mut room)?;
            }
            room.put(b"]")?;
        }
        Value::Map(_) | Value::List(_) => _ = machine.like_text(value)?,
        Value::Time(time) => super::time::text(time, &mut room)?,
        Value::Duration(duration) => super::duration::text(duration, &mut room)?,
    }
    Ok(())
}

/// The fewest digits that mean the number; with an exponent below -4 and from 6 on.
fn shortest(double: f64, room: &mut Room<'_>) -> Result<(), Full> {
    let size = double.abs();
    if !double.is_finite() {
        return special(double, room);
    }
    let from = room.len();
    write::formatted(format_args!("{double:e}"), room)?;
    let written = room.written().get(from..).unwrap_or_default();
    let exponent_at = written.iter().position(|byte| *byte == b'e').unwrap_or(written.len());
    let power = str::from_utf8(written.get(exponent_at + 1..).unwrap_or_default())
        .ok()
        .and_then(|text| text.parse().ok());
    let power: i32 = power.unwrap_or_default();
    if size == 0.0 || (-4..6).contains(&power) {
        room.truncate(from);
        return write::formatted(format_args!("{double}"), room);
    }
    exponent(from, room)
}

/// A string between quotes, with the escapes of Go for control characters.
fn quoted(text: &[u8], room: &mut Room<'_>) -> Result<(), Full> {
    room.put(b"\"")?;
    for character in str::from_utf8(text).unwrap_or_default().chars() {
        match character {
            '"' => room.put(b"\\\"")?,
            '\\' => room.put(b"\\\\")?,
            '\u{7}' => room.put(b"\\a")?,
            '\u{8}' => room.put(b"\\b")?,
            '\u{c}' => room.put(b"\\f")?,
            '\n' => room.put(b"\\n")?,
            '\r' => room.put(b"\\r")?,
            '\t' => room.put(b"\\t")?,
            '\u{b}' => room.put(b"\\v")?,
            control if control.is_ascii_control() => {
                write::formatted(format_args!("\\x{:02x}", u32::from(control)), room)?;
            }
            control if control.is_control() => {
                write::formatted(format_args!("\\u{:04x}", u32::from(control)), room)?;
            }
            character => room.put(character.encode_utf8(&mut [0; 4]).as_bytes())?,
        }
    }
    room.put(b"\"")
}

/// Makes what was written since `mark` as wide as the verb says.
fn pad(machine: &mut Machine<'_>, verb: &Verb, mark: crate::memory::Mark) -> Result<(), Failure> {
    let written = machine.memory.since(mark);
    let characters = machine.memory.get(written).iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    let missing = verb.width.saturating_sub(characters);
    let zeros = verb.zero && !verb.minus;
    for _ in 0..missing {
        machine.memory.push(if zeros { b"0" } else { b" " })?;
    }
    if missing > 0 && !verb.minus {
        let bytes = machine.memory.since_mut(mark);
        // Zeros stand behind the sign of a number.
        let is_signed = zeros && verb.letter != 's' && matches!(bytes.first(), Some(b'-' | b'+' | b' '));
        let from = usize::from(is_signed);
        if let Some(bytes) = bytes.get_mut(from..) {
            bytes.rotate_right(missing);
        }
    }
    Ok(())
}

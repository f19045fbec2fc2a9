//! Durations. No output.

use super::{all, converter, required};
use crate::machine::Machine;
use crate::memory::Room;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Parameter, Signature, Type};
use crate::value::{Failure, Value};
use tidegate_wire::json::write;
use tidegate_wire::output::{Full, Output};

pub(super) static CONVERTERS: &[&Signature] =
    &[&DURATION, &HOURS, &MICROSECONDS, &MILLISECONDS, &MINUTES, &NANOSECONDS, &SECONDS];

const TARGET: [Parameter; 1] = [required("duration", Type::Duration)];

const SECOND: i64 = 1_000_000_000;

/// The duration that a text like `1h30m` or `-1.5s` is.
static DURATION: Signature =
    converter("Duration", &[required("duration", Type::Text)], Type::Duration, |machine, arguments| {
        let [text] = all(arguments)?;
        let text = machine.text(text)?;
        parse(machine.memory.get(text))
            .map(Value::Duration)
            .ok_or(Failure::Invalid("the string is not a duration"))
    });

static HOURS: Signature =
    converter("Hours", &TARGET, Type::Double, |machine, arguments| parts(machine, arguments, 3600 * SECOND));

static MINUTES: Signature =
    converter("Minutes", &TARGET, Type::Double, |machine, arguments| parts(machine, arguments, 60 * SECOND));

static SECONDS: Signature =
    converter("Seconds", &TARGET, Type::Double, |machine, arguments| parts(machine, arguments, SECOND));

static MILLISECONDS: Signature =
    converter("Milliseconds", &TARGET, Type::Int, |machine, arguments| whole(machine, arguments, 1_000_000));

static MICROSECONDS: Signature =
    converter("Microseconds", &TARGET, Type::Int, |machine, arguments| whole(machine, arguments, 1000));

static NANOSECONDS: Signature =
    converter("Nanoseconds", &TARGET, Type::Int, |machine, arguments| whole(machine, arguments, 1));

/// The duration in a unit, with its fraction: computed in two parts, as Go does, since the sum of both is more exact.
fn parts(machine: &mut Machine<'_>, arguments: &[Argument], unit: i64) -> Result<Value, Failure> {
    let [duration] = all(arguments)?;
    let duration = machine.duration(duration)?;
    Ok(Value::Double((duration / unit) as f64 + (duration % unit) as f64 / unit as f64))
}

fn whole(machine: &mut Machine<'_>, arguments: &[Argument], unit: i64) -> Result<Value, Failure> {
    let [duration] = all(arguments)?;
    Ok(Value::Int(machine.duration(duration)? / unit))
}

/// `time.ParseDuration`: nanoseconds.
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    let (is_negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if rest == b"0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0_u64;
    while !rest.is_empty() {
        let whole_len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (whole, behind) = rest.split_at(whole_len);
        let (fraction, behind) = match behind {
            [b'.', behind @ ..] => {
                behind.split_at(behind.iter().take_while(|byte| byte.is_ascii_digit()).count())
            }
            behind => (&[][..], behind),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let unit_len = behind.iter().take_while(|byte| **byte != b'.' && !byte.is_ascii_digit()).count();
        let (unit, behind) = behind.split_at(unit_len);
        let unit = match unit {
            b"ns" => 1,
            b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1000,
            b"ms" => 1_000_000,
            b"s" => 1_000_000_000,
            b"m" => 60_000_000_000,
            b"h" => 3_600_000_000_000_u64,
            _ => return None,
        };
        let number = whole.iter().try_fold(0_u64, |number, digit| {
            number.checked_mul(10)?.checked_add(u64::from(digit & 15)).filter(|number| *number <= 1 << 63)
        })?;
        let mut part = number.checked_mul(unit)?;
        // The digits of the fraction that fit, and the power of ten that they are over.
        let (mut digits, mut scale, mut full) = (0_u64, 1.0_f64, false);
        for digit in fraction {
            let more = digits.checked_mul(10).and_then(|digits| digits.checked_add(u64::from(digit & 15)));
            match more.filter(|more| !full && digits <= (1 << 63) / 10 && *more <= 1 << 63) {
                Some(more) => (digits, scale) = (more, scale * 10.0),
                None => full = true,
            }
        }
        if digits > 0 {
            part = part.checked_add((digits as f64 * (unit as f64 / scale)) as u64)?;
        }
        sum = sum.checked_add(part).filter(|sum| *sum <= 1 << 63)?;
        rest = behind;
    }
    if is_negative { 0_i64.checked_sub_unsigned(sum) } else { i64::try_from(sum).ok() }
}

/// Appends a duration as Go prints it: `1h0m0.5s`, `1.5ms`.
pub(super) fn text(duration: i64, room: &mut Room<'_>) -> Result<(), Full> {
    let size = duration.unsigned_abs();
    if duration < 0 {
        room.put(b"-")?;
    }
    let (unit, name) = match size {
        0 => return room.put(b"0s"),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let mut whole = size / unit;
    if name == "s" {
        if whole >= 3600 {
            write::formatted(format_args!("{}h", whole / 3600), room)?;
        }
        if whole >= 60 {
            write::formatted(format_args!("{}m", whole / 60 % 60), room)?;
        }
        whole %= 60;
    }
    write::unsigned(whole, room)?;
    let mut digits = [0; 9];
    let len = unit.ilog10() as usize;
    let digits = write::decimal(size % unit, digits.get_mut(..len).unwrap_or_default());
    if let Some(last) = digits.iter().rposition(|digit| *digit != b'0') {
        room.put(b".")?;
        room.put(digits.get(..=last).unwrap_or_default())?;
    }
    room.put(name.as_bytes())
}

//! Conversions between numbers, booleans and texts.

use super::{all, converter, required};
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};

pub(super) static CONVERTERS: &[&Signature] =
    &[&BOOL, &DOUBLE, &INT, &IS_VALID_LUHN, &LOG, &PARSE_INT, &STRING];

const NOT_A_NUMBER: Failure = Failure::Invalid("the string is not a number");

/// A boolean of a boolean, a number, or `true`, `false`, `1`, `t`, …; nil of nil. No output.
static BOOL: Signature =
    converter("Bool", &[required("target", Type::BoolLike)], Type::Bool, |machine, arguments| {
        let [target] = all(arguments)?;
        Ok(machine.bool_like(target)?.map_or(Value::Nil, Value::Bool))
    });

/// A double of a number, a boolean, or a text with digits; nil of nil. No output.
static DOUBLE: Signature =
    converter("Double", &[required("target", Type::DoubleLike)], Type::Double, |machine, arguments| {
        let [target] = all(arguments)?;
        Ok(machine.double_like(target)?.map_or(Value::Nil, Value::Double))
    });

/// An integer of a number, a boolean, or a text with decimal digits; nil of nil. No output.
static INT: Signature =
    converter("Int", &[required("target", Type::IntLike)], Type::Int, |machine, arguments| {
        let [target] = all(arguments)?;
        Ok(machine.int_like(target)?.map_or(Value::Nil, Value::Int))
    });

/// The text of a value; nil of nil. Output: at most 25 bytes for a number, six times the bytes of a map or list.
static STRING: Signature =
    converter("String", &[required("target", Type::TextLike)], Type::Text, |machine, arguments| {
        let [target] = all(arguments)?;
        Ok(machine.text_like(target)?.map_or(Value::Nil, Value::Text))
    });

/// The integer that a text is in a base; with base 0, the one that its prefix names. No output.
static PARSE_INT: Signature = converter(
    "ParseInt",
    &[required("target", Type::Text), required("base", Type::Int)],
    Type::Int,
    |machine, arguments| {
        let [target, base] = all(arguments)?;
        let (target, base) = (machine.text(target)?, machine.int(base)?);
        parse_int(machine.memory.get(target), base).map(Value::Int).ok_or(NOT_A_NUMBER)
    },
);

/// `strconv.ParseInt`.
fn parse_int(text: &[u8], base: i64) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let named = base == 0;
    let (base, digits) = match (base, digits) {
        (0, [b'0', b'x' | b'X', digits @ ..]) => (16, digits),
        (0, [b'0', b'o' | b'O', digits @ ..]) => (8, digits),
        (0, [b'0', b'b' | b'B', digits @ ..]) => (2, digits),
        (0, [b'0', digits @ ..]) if !digits.is_empty() => (8, digits),
        (0, digits) => (10, digits),
        (2..=36, digits) => (base as u32, digits),
        _ => return None,
    };
    if digits.is_empty() || (named && !underscores_are_right(text)) {
        return None;
    }
    let mut number = 0_i64;
    for &byte in digits {
        if named && byte == b'_' {
            continue;
        }
        let digit = i64::from(char::from(byte).to_digit(base)?);
        let tens = number.checked_mul(i64::from(base))?;
        number = if is_negative { tens.checked_sub(digit)? } else { tens.checked_add(digit)? };
    }
    Some(number)
}

/// Whether underscores stand only between digits, or between a base prefix and a digit.
fn underscores_are_right(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    digits.iter().enumerate().all(|(at, byte)| {
        *byte != b'_' || at > 0 && is_digit(digits.get(at - 1)) && is_digit(digits.get(at + 1))
    })
}

/// The natural logarithm of a positive number. No output.
static LOG: Signature =
    converter("Log", &[required("target", Type::DoubleLike)], Type::Double, |machine, arguments| {
        let [target] = all(arguments)?;
        match machine.double_like(target)? {
            Some(number) if number > 0.0 || number.is_nan() => Ok(Value::Double(number.ln())),
            _ => Err(Failure::Invalid("only a number greater than zero has a logarithm")),
        }
    });

/// Whether the last digit of a number is the check digit of the others (ISO/IEC 7812-1). No output.
static IS_VALID_LUHN: Signature =
    converter("IsValidLuhn", &[required("target", Type::TextLike)], Type::Bool, |machine, arguments| {
        let [target] = all(arguments)?;
        let text = machine.text_like(target)?.ok_or(Failure::Invalid("nil is not a number"))?;
        luhn(machine.memory.get(text)).map(Value::Bool).ok_or(NOT_A_NUMBER)
    });

/// Whether the digits close with their check digit; nothing for what has other characters than digits and spaces.
fn luhn(text: &[u8]) -> Option<bool> {
    let mut sum = 0_u64;
    let mut digits = 0_usize;
    for byte in text.iter().rev().filter(|byte| **byte != b' ') {
        let digit = u64::from(char::from(*byte).to_digit(10)?);
        sum += match digit * (1 + digits as u64 % 2) {
            two @ 10.. => two - 9,
            one => one,
        };
        digits += 1;
    }
    Some(digits > 0 && sum.is_multiple_of(10))
}

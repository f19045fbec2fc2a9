//! Letters in another case, as Go's `strings` and the package `strcase` change it.

use super::{Prepared, all, converter, required};
use crate::machine::Machine;
use crate::memory::Room;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Parameter, Signature, Type};
use crate::value::{Failure, Value};
use tidegate_wire::output::{Full, Output};

pub(super) static CONVERTERS: &[&Signature] =
    &[&CONVERT_CASE, &TO_CAMEL_CASE, &TO_LOWER_CASE, &TO_SNAKE_CASE, &TO_UPPER_CASE];

/// The case to convert to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Lower,
    Upper,
    Snake,
    Camel,
}

const TARGET: [Parameter; 1] = [required("target", Type::Text)];

/// The target in the case that a literal names. Output: at most twice the target.
static CONVERT_CASE: Signature = Signature {
    prepare: |position, literal, _| {
        if position != 1 {
            return None;
        }
        Some(match literal {
            "lower" => Ok(Prepared::Case(Case::Lower)),
            "upper" => Ok(Prepared::Case(Case::Upper)),
            "snake" => Ok(Prepared::Case(Case::Snake)),
            "camel" => Ok(Prepared::Case(Case::Camel)),
            _ => Err(format!("unknown case `{literal}`: there are `lower`, `upper`, `snake` and `camel`")),
        })
    },
    ..converter(
        "ConvertCase",
        &[required("target", Type::Text), required("to_case", Type::LiteralText)],
        Type::Text,
        |machine, arguments| {
            let [target, case] = all(arguments)?;
            let Argument::Prepared(Prepared::Case(case)) = case else {
                return Err(Failure::Invalid("the case is not a literal"));
            };
            convert(machine, target, *case)
        },
    )
};

/// Output: at most twice the target.
static TO_LOWER_CASE: Signature = converter("ToLowerCase", &TARGET, Type::Text, |machine, arguments| {
    let [target] = all(arguments)?;
    convert(machine, target, Case::Lower)
});

/// Output: at most twice the target.
static TO_UPPER_CASE: Signature = converter("ToUpperCase", &TARGET, Type::Text, |machine, arguments| {
    let [target] = all(arguments)?;
    convert(machine, target, Case::Upper)
});

/// Output: at most twice the target.
static TO_SNAKE_CASE: Signature = converter("ToSnakeCase", &TARGET, Type::Text, |machine, arguments| {
    let [target] = all(arguments)?;
    convert(machine, target, Case::Snake)
});

/// Output: at most the target.
static TO_CAMEL_CASE: Signature = converter("ToCamelCase", &TARGET, Type::Text, |machine, arguments| {
    let [target] = all(arguments)?;
    convert(machine, target, Case::Camel)
});

fn convert(machine: &mut Machine<'_>, target: &Argument, case: Case) -> Result<Value, Failure> {
    let target = machine.text(target)?;
    let mark = machine.memory.mark();
    let (contents, mut room) = machine.memory.split();
    let bytes = contents.get(target);
    match case {
        Case::Lower | Case::Upper => {
            let upper = case == Case::Upper;
            let same = |byte: &u8| {
                byte.is_ascii() && if upper { !byte.is_ascii_lowercase() } else { !byte.is_ascii_uppercase() }
            };
            if bytes.iter().all(same) {
                return Ok(Value::Text(target));
            }
            each_letter(bytes, upper, &mut room)?;
        }
        Case::Snake => snake(trimmed(bytes), &mut room)?,
        Case::Camel => camel(trimmed(bytes), &mut room)?,
    }
    Ok(Value::Text(machine.memory.since(mark)))
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    str::from_utf8(bytes).unwrap_or_default().trim().as_bytes()
}

fn each_letter(bytes: &[u8], upper: bool, room: &mut Room<'_>) -> Result<(), Full> {
    for chunk in bytes.chunk_by(|one, other| one.is_ascii() == other.is_ascii()) {
        if chunk.is_ascii() {
            for piece in chunk.chunks(64) {
                let mut copy = [0; 64];
                let copy = copy.get_mut(..piece.len()).unwrap_or_default();
                copy.copy_from_slice(piece);
                if upper {
                    copy.make_ascii_uppercase();
                } else {
                    copy.make_ascii_lowercase();
                }
                room.put(copy)?;
            }
        } else {
            for letter in str::from_utf8(chunk).unwrap_or_default().chars() {
                let other = if upper { upper_letter(letter) } else { lower_letter(letter) };
                room.put(other.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
        }
    }
    Ok(())
}

/// The upper-case letter of Unicode's simple mapping, of one letter to one, which Go uses.
fn upper_letter(letter: char) -> char {
    let mut full = letter.to_uppercase();
    match (full.next(), full.next()) {
        (Some(upper), None) => upper,
        // Letters with an iota below have a simple mapping beside the full one.
        _ => match letter {
            '\u{1f80}'..='\u{1faf}' => char::from_u32(u32::from(letter) | 8).unwrap_or(letter),
            '\u{1fb3}' => '\u{1fbc}',
            '\u{1fc3}' => '\u{1fcc}',
            '\u{1ff3}' => '\u{1ffc}',
            _ => letter,
        },
    }
}

/// The lower-case letter of Unicode's simple mapping.
fn lower_letter(letter: char) -> char {
    let mut full = letter.to_lowercase();
    match (full.next(), full.next()) {
        (Some(lower), None) => lower,
        _ if letter == '\u{130}' => 'i',
        _ => letter,
    }
}

/// `strcase.ToSnake`: a delimiter where the kind of letter changes, and for blanks, hyphens and points.
fn snake(text: &[u8], room: &mut Room<'_>) -> Result<(), Full> {
    for (at, &byte) in text.iter().enumerate() {
        let lower = byte.to_ascii_lowercase();
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        if let Some(next) = text.get(at + 1) {
            let is_upper = byte.is_ascii_uppercase();
            let is_lower = byte.is_ascii_lowercase();
            let is_digit = byte.is_ascii_digit();
            let changes = is_upper && (next.is_ascii_lowercase() || next.is_ascii_digit())
                || is_lower && (next.is_ascii_uppercase() || next.is_ascii_digit())
                || is_digit && next.is_ascii_alphabetic();
            if changes {
                if is_upper && next.is_ascii_lowercase() && before.is_some_and(u8::is_ascii_uppercase) {
                    room.put(b"_")?;
                }
                room.put(&[lower])?;
                if is_lower || is_digit || next.is_ascii_digit() {
                    room.put(b"_")?;
                }
                continue;
            }
        }
        room.put(if matches!(byte, b' ' | b'_' | b'-' | b'.') {
            b"_"
        } else {
            std::slice::from_ref(&lower)
        })?;
    }
    Ok(())
}

/// `strcase.ToCamel`: words joined with capital letters; only ASCII letters and digits stay.
fn camel(text: &[u8], room: &mut Room<'_>) -> Result<(), Full> {
    let (mut capital_next, mut after_capital) = (true, false);
    for &byte in text {
        let is_capital = byte.is_ascii_uppercase();
        let letter = if capital_next {
            byte.to_ascii_uppercase()
        } else if after_capital && is_capital {
            byte.to_ascii_lowercase()
        } else {
            byte
        };
        after_capital = is_capital;
        if byte.is_ascii_alphanumeric() {
            room.put(&[letter])?;
            capital_next = byte.is_ascii_digit();
        } else {
            capital_next = matches!(byte, b'_' | b' ' | b'-' | b'.');
        }
    }
    Ok(())
}

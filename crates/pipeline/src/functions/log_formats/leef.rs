//! `ParseLEEF`: the Log Event Extended Format of QRadar, 1.0 and 2.0.

use super::{Texts, all, close_all, converter, open_entry, required};
use crate::functions::encoded::MAP;
use crate::memory::Room;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};

/// The header and the attributes of an event, wherever it begins in the text. Output: the text, 150 bytes for the names of the
/// header, and 28 bytes for each attribute.
pub(super) static PARSE_LEEF: Signature =
    converter("ParseLEEF", &[required("target", Type::Text)], Type::Map, |machine, arguments| {
        let [target] = all::<1>(arguments)?;
        let target = machine.text(target)?;
        let mark = machine.memory.mark();
        let (contents, mut room) = machine.memory.split();
        event(contents.get(target), &mut room)?;
        Ok(Value::Map(machine.memory.since(mark)))
    });

const HEADER: [&[u8]; 4] = [b"leef.vendor", b"leef.product.name", b"leef.product.version", b"leef.event.id"];
const BAD_DELIMITER: Failure = Failure::Invalid("the delimiter of the LEEF message is not one byte");

fn event(text: &[u8], room: &mut Room<'_>) -> Result<(), Failure> {
    let start = memchr::memmem::find(text, b"LEEF:").ok_or(Failure::Invalid("`LEEF:` is not in the text"))?;
    let mut rest = text.get(start + 5..);
    let version = field(&mut rest).unwrap_or_default();
    let is_second = match version {
        b"1.0" => false,
        b"2.0" => true,
        _ => return Err(Failure::Invalid("the LEEF version is neither 1.0 nor 2.0")),
    };
    let mut texts = Texts::new(room);
    texts.put(b"leef.version", version)?;
    for name in HEADER {
        let value = field(&mut rest).ok_or(Failure::Invalid("the LEEF header has fewer than 5 fields"))?;
        texts.put(name, value)?;
    }
    texts.end()?;
    let mut delimiter = b'\t';
    if is_second {
        let mut behind = rest;
        // Where a delimiter could stand, the first attribute may stand instead.
        if let Some(given) = field(&mut behind).filter(|given| !given.contains(&b'=')) {
            delimiter = read_delimiter(given)?;
            rest = behind;
        }
    }
    let entry = open_entry(room, b"leef.attributes", MAP)?;
    attributes(rest.unwrap_or_default(), delimiter, room)?;
    close_all(room, entry)
}

/// The text up to the next bar.
fn field<'t>(rest: &mut Option<&'t [u8]>) -> Option<&'t [u8]> {
    let text = (*rest)?;
    let end = memchr::memchr(b'|', text).unwrap_or(text.len());
    *rest = text.get(end + 1..);
    text.get(..end)
}

/// One byte, its two hexadecimal digits behind `0x`, or nothing for a tab.
fn read_delimiter(given: &[u8]) -> Result<u8, Failure> {
    match given {
        [] => Ok(b'\t'),
        [byte] => Ok(*byte),
        [b'0', b'x' | b'X', high, low] => {
            let digit = |digit: &u8| char::from(*digit).to_digit(16).ok_or(BAD_DELIMITER);
            // Both are below 16.
            Ok((digit(high)? << 4 | digit(low)?) as u8)
        }
        _ => Err(BAD_DELIMITER),
    }
}

/// Appends the attributes: `key=value`. Parts without a key or an equals sign are left out.
fn attributes(text: &[u8], delimiter: u8, room: &mut Room<'_>) -> Result<(), Failure> {
    let mut texts = Texts::new(room);
    for pair in text.split(|byte| *byte == delimiter) {
        let Some(at) = memchr::memchr(b'=', pair).filter(|at| *at > 0) else { continue };
        if !delimiter.is_ascii() && str::from_utf8(pair).is_err() {
            return Err(Failure::Invalid("the delimiter of the LEEF message cuts a character"));
        }
        let (key, value) = pair.split_at(at);
        texts.put(key, value.get(1..).unwrap_or_default())?;
    }
    texts.end()
}

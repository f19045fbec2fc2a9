//! Bytes as digits: hexadecimal, base64, and the texts of other encodings.

use super::{Prepared, all, converter, optional, required};
use crate::memory::Room;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Kind, Value};
use tidegate_wire::json::write;
use tidegate_wire::output::{Full, Output};

pub(super) static CONVERTERS: &[&Signature] = &[&BASE64_ENCODE, &DECODE, &HEX];

/// How the bytes of a text are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Base64(Base64),
    /// UTF-8; what is none becomes U+FFFD.
    Utf8,
    /// The bytes as they are.
    Raw,
    Utf16 {
        big_endian: bool,
    },
    Latin1,
}

/// A variant of base64 (RFC 4648).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Base64 {
    /// With `-` and `_`.
    url: bool,
    padded: bool,
}

fn base64_variant(name: &str) -> Option<Base64> {
    Some(match name {
        "base64" => Base64 { url: false, padded: true },
        "base64-raw" => Base64 { url: false, padded: false },
        "base64-url" => Base64 { url: true, padded: true },
        "base64-raw-url" => Base64 { url: true, padded: false },
        _ => return None,
    })
}

/// The bytes in hexadecimal digits. Output: twice the target.
static HEX: Signature =
    converter("Hex", &[required("target", Type::BytesLike)], Type::Text, |machine, arguments| {
        let [target] = all(arguments)?;
        let bytes = machine.bytes_like(target)?.unwrap_or(crate::memory::Slice::EMPTY);
        let mark = machine.memory.mark();
        let (contents, mut room) = machine.memory.split();
        write::hex(contents.get(bytes), &mut room)?;
        Ok(Value::Text(machine.memory.since(mark)))
    });

/// The text in base64. Output: four bytes for three of the target's.
static BASE64_ENCODE: Signature = Signature {
    prepare: |position, literal, _| {
        (position == 1).then(|| {
            let variant = base64_variant(literal).map(|variant| Prepared::Encoding(Encoding::Base64(variant)));
            variant.ok_or(format!(
                "unknown variant `{literal}`: there are `base64`, `base64-raw`, `base64-url` and `base64-raw-url`"
            ))
        })
    },
    ..converter(
        "Base64Encode",
        &[required("target", Type::Text), optional("variant", Type::Text)],
        Type::Text,
        |machine, arguments| {
            let [target, variant] = all(arguments)?;
            let variant = match variant {
                Argument::Prepared(Prepared::Encoding(Encoding::Base64(variant))) => *variant,
                Argument::Absent => Base64 { url: false, padded: true },
                variant => {
                    let name = machine.text(variant)?;
                    let name = str::from_utf8(machine.memory.get(name)).unwrap_or_default();
                    base64_variant(name).ok_or(Failure::Invalid("unknown variant of base64"))?
                }
            };
            let target = machine.text(target)?;
            let mark = machine.memory.mark();
            let (contents, mut room) = machine.memory.split();
            encode(contents.get(target), variant, &mut room)?;
            Ok(Value::Text(machine.memory.since(mark)))
        },
    )
};

fn encode(bytes: &[u8], variant: Base64, room: &mut Room<'_>) -> Result<(), Full> {
    let digit = |bits: u8| match bits & 63 {
        bits @ 0..26 => b'A' + bits,
        bits @ 26..52 => b'a' + bits - 26,
        bits @ 52..62 => b'0' + bits - 52,
        62 => {
            if variant.url {
                b'-'
            } else {
                b'+'
            }
        }
        _ => {
            if variant.url {
                b'_'
            } else {
                b'/'
            }
        }
    };
    for three in bytes.chunks(3) {
        let byte = |at: usize| three.get(at).copied().unwrap_or_default();
        let (a, b, c) = (byte(0), byte(1), byte(2));
        let mut digits = [digit(a >> 2), digit(a << 4 | b >> 4), digit(b << 2 | c >> 6), digit(c)];
        for digit in digits.iter_mut().skip(three.len() + 1) {
            *digit = b'=';
        }
        let len = if variant.padded { 4 } else { three.len() + 1 };
        room.put(digits.get(..len).unwrap_or_default())?;
    }
    Ok(())
}

/// The text that the bytes, or the characters of a base64 text, encode. What is no UTF-8 after base64 fails: it could not
/// be sent. Output: at most three times the target.
static DECODE: Signature = Signature {
    prepare: |position, literal, _| {
        (position == 1).then(|| {
            encoding(literal).map(Prepared::Encoding).ok_or(format!(
                "unknown encoding `{literal}`: there are base64, base64-raw, base64-url, base64-raw-url, utf-8, utf-16, \
                 utf-16le, utf-16be, us-ascii, iso-8859-1 and nop"
            ))
        })
    },
    ..converter(
        "Decode",
        &[required("target", Type::Any), required("encoding", Type::Text)],
        Type::Text,
        |machine, arguments| {
            let [target, encoding] = all(arguments)?;
            let encoding = match encoding {
                Argument::Prepared(Prepared::Encoding(encoding)) => *encoding,
                encoding => {
                    let name = machine.text(encoding)?;
                    let name = str::from_utf8(machine.memory.get(name)).unwrap_or_default();
                    self::encoding(name).ok_or(Failure::Invalid("unknown encoding"))?
                }
            };
            let bytes = match machine.any(target)? {
                Value::Text(bytes) | Value::Bytes(bytes) => bytes,
                value => return Err(Failure::Type { wanted: Kind::Text, found: value.kind() }),
            };
            let mark = machine.memory.mark();
            let (contents, mut room) = machine.memory.split();
            decode(contents.get(bytes), encoding, &mut room)?;
            Ok(Value::Text(machine.memory.since(mark)))
        },
    )
};

fn encoding(name: &str) -> Option<Encoding> {
    if let Some(variant) = base64_variant(name) {
        return Some(Encoding::Base64(variant));
    }
    const NAMES: &[(&str, Encoding)] = &[
        ("", Encoding::Utf8),
        ("utf-8", Encoding::Utf8),
        ("utf8", Encoding::Utf8),
        ("ascii", Encoding::Utf8),
        ("us-ascii", Encoding::Utf8),
        ("utf-8-raw", Encoding::Raw),
        ("utf8-raw", Encoding::Raw),
        ("nop", Encoding::Raw),
        ("utf-16", Encoding::Utf16 { big_endian: false }),
        ("utf16", Encoding::Utf16 { big_endian: false }),
        ("utf-16le", Encoding::Utf16 { big_endian: false }),
        ("utf-16be", Encoding::Utf16 { big_endian: true }),
        ("iso-8859-1", Encoding::Latin1),
        ("latin1", Encoding::Latin1),
    ];
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, encoding)| *encoding)
}

fn decode(bytes: &[u8], encoding: Encoding, room: &mut Room<'_>) -> Result<(), Failure> {
    let mut put = |character: char| room.put(character.encode_utf8(&mut [0; 4]).as_bytes());
    match encoding {
        Encoding::Utf8 => {
            for chunk in bytes.utf8_chunks() {
                room.put(chunk.valid().as_bytes())?;
                if !chunk.invalid().is_empty() {
                    room.put("\u{fffd}".as_bytes())?;
                }
            }
        }
        Encoding::Latin1 => {
            for byte in bytes {
                put(char::from(*byte))?;
            }
        }
        Encoding::Utf16 { big_endian } => {
            let (pairs, rest) = bytes.as_chunks::<2>();
            let unit = |pair: &[u8; 2]| {
                if big_endian { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) }
            };
            for character in char::decode_utf16(pairs.iter().map(unit)) {
                put(character.unwrap_or(char::REPLACEMENT_CHARACTER))?;
            }
            if !rest.is_empty() {
                put(char::REPLACEMENT_CHARACTER)?;
            }
        }
        Encoding::Raw => {
            room.put(bytes)?;
            valid(room)?;
        }
        Encoding::Base64(variant) => {
            decode_base64(bytes, variant, room)?;
            valid(room)?;
        }
    }
    Ok(())
}

fn valid(room: &mut Room<'_>) -> Result<(), Failure> {
    str::from_utf8(room.written())
        .map(|_| ())
        .map_err(|_| Failure::Invalid("the decoded bytes are not UTF-8"))
}

/// Ends of lines do not count, as in Go.
fn decode_base64(text: &[u8], variant: Base64, room: &mut Room<'_>) -> Result<(), Failure> {
    const WRONG: Failure = Failure::Invalid("the string is not base64");
    let (mut bits, mut digits, mut padding) = (0_u32, 0_u32, 0_u32);
    for byte in text.iter().filter(|byte| !matches!(byte, b'\r' | b'\n')) {
        let value = match *byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' if !variant.url => 62,
            b'/' if !variant.url => 63,
            b'-' if variant.url => 62,
            b'_' if variant.url => 63,
            b'=' if variant.padded && digits % 4 >= 2 && padding < 4 - digits % 4 => {
                padding += 1;
                continue;
            }
            _ => return Err(WRONG),
        };
        if padding > 0 {
            return Err(WRONG);
        }
        bits = bits << 6 | u32::from(value);
        digits += 1;
        if digits % 4 == 0 {
            let [_, a, b, c] = bits.to_be_bytes();
            room.put(&[a, b, c])?;
        }
    }
    let over = digits % 4;
    if over == 1 || variant.padded && padding != (4 - over) % 4 {
        return Err(WRONG);
    }
    let [_, a, b, _] = (bits << (6 * (4 - over) % 24)).to_be_bytes();
    let rest: &[u8] = match over {
        2 => &[a],
        3 => &[a, b],
        _ => &[],
    };
    Ok(room.put(rest)?)
}

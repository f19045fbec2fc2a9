//! One value of a field, from JSON to protobuf.

use super::error::{ErrorAtOffset, FoundToken, OtlpJsonErrorKind, ReadResult};
use super::number::{double, integer, is_number, signed, unsigned};
use super::reader::Reader;
use super::schema::{Field, Kind, Rule};
use super::text::Text;
use super::writer::ProtoOutput;
use crate::proto::write::varint_len;
use crate::remote_write::Excerpt;

/// Translates the value that comes next, which is not null, to the field `field` with its key.
#[inline]
pub(super) fn member(reader: &mut Reader<'_>, out: &mut impl ProtoOutput, field: &Field) -> ReadResult<()> {
    let key = field.key();
    let can_be_left_out = field.rule == Rule::Plain;
    match field.kind {
        Kind::String => {
            let text = reader.string("a string")?;
            if text.raw.is_empty() && can_be_left_out {
                return Ok(());
            }
            out.key(key)?;
            if !text.is_escaped {
                return out.bytes(text.raw);
            }
            length_delimited(out, text.raw.len(), |out| text.unescape(|piece| out.put(piece)))
        }
        Kind::Id(16) => id::<16, _>(reader, out, key),
        Kind::Id(_) => id::<8, _>(reader, out, key),
        Kind::Bytes => {
            let text = reader.string("bytes in base64")?;
            out.key(key)?;
            length_delimited(out, text.raw.len() / 4 * 3, |out| text.base64(|piece| out.put(piece)))
        }
        kind => {
            let number = Number::read(reader, kind)?;
            if number.is_zero() && can_be_left_out {
                return Ok(());
            }
            out.key(key)?;
            number.put(out)
        }
    }
}

/// Translates the array that comes next to a packed field; `index` follows the element at hand.
pub(super) fn numbers(
    reader: &mut Reader<'_>,
    out: &mut impl ProtoOutput,
    field: &Field,
    index: &mut usize,
) -> ReadResult<()> {
    reader.expect(b'[', "an array")?;
    if reader.take(b']') {
        return Ok(());
    }
    out.key(field.key())?;
    let start = out.open(1)?;
    loop {
        Number::read(reader, field.kind)?.put(out)?;
        *index += 1;
        if !reader.take(b',') {
            reader.expect(b']', "`,` or `]`")?;
            return out.close(start, 1);
        }
    }
}

/// Translates the array of strings that comes next; `index` follows the element at hand.
pub(super) fn strings(
    reader: &mut Reader<'_>,
    out: &mut impl ProtoOutput,
    field: &Field,
    index: &mut usize,
) -> ReadResult<()> {
    reader.expect(b'[', "an array")?;
    if reader.take(b']') {
        return Ok(());
    }
    loop {
        member(reader, out, field)?;
        *index += 1;
        if !reader.take(b',') {
            return reader.expect(b']', "`,` or `]`");
        }
    }
}

/// Puts what `put` puts with its length before it, which is guessed to be `len`.
pub(crate) fn length_delimited<O: ProtoOutput>(
    out: &mut O,
    len: usize,
    put: impl FnOnce(&mut O) -> ReadResult<()>,
) -> ReadResult<()> {
    let length_bytes = u8::try_from(varint_len(len as u64)).unwrap_or(1);
    let start = out.open(length_bytes)?;
    put(out)?;
    out.close(start, length_bytes)
}

fn id<const LEN: usize, O: ProtoOutput>(reader: &mut Reader<'_>, out: &mut O, key: u16) -> ReadResult<()> {
    let Some(id) = reader.string("an id in hexadecimal digits")?.id::<LEN>()? else { return Ok(()) };
    out.key(key)?;
    out.bytes(&id)
}

/// A number as it is written in protobuf.
enum Number {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
}

impl Number {
    #[inline]
    fn read(reader: &mut Reader<'_>, kind: Kind) -> ReadResult<Self> {
        let expected = name(kind);
        match kind {
            Kind::Bool => {
                reader.peek();
                match (reader.literal("true"), reader.literal("false")) {
                    (true, _) => Ok(Self::Varint(1)),
                    (_, true) => Ok(Self::Varint(0)),
                    _ => Err(reader.unexpected(expected)),
                }
            }
            Kind::Double => real(reader).map(|value| Self::Fixed64(value.to_bits())),
            Kind::Enum => {
                if reader.peek() == Some(b'"') {
                    let text = reader.string(expected)?;
                    return Err(ErrorAtOffset::new(
                        text.at,
                        OtlpJsonErrorKind::EnumName(Excerpt::new(text.raw)),
                    ));
                }
                let at = reader.offset();
                Self::whole(reader.number(expected)?, kind, at)
            }
            kind => {
                let (token, at) = if reader.peek() == Some(b'"') {
                    let text = reader.string(expected)?;
                    (quoted(&text, expected)?, text.at)
                } else {
                    let token = reader.number(expected)?;
                    (token, reader.offset() - token.len())
                };
                Self::whole(token, kind, at)
            }
        }
    }

    /// The number `token` that stands at `at`, as `kind` writes it.
    fn whole(token: &[u8], kind: Kind, at: usize) -> ReadResult<Self> {
        let number = integer(token);
        let signed = || number.and_then(signed);
        let unsigned = || number.and_then(unsigned);
        let found = match kind {
            Kind::Fixed64 => unsigned().map(Self::Fixed64),
            Kind::SignedFixed64 => signed().map(|value| Self::Fixed64(value.cast_unsigned())),
            Kind::Fixed32 => unsigned().and_then(|value| u32::try_from(value).ok()).map(Self::Fixed32),
            Kind::Uint64 => unsigned().map(Self::Varint),
            Kind::Uint32 => unsigned().filter(|&value| u32::try_from(value).is_ok()).map(Self::Varint),
            Kind::Int64 => signed().map(|value| Self::Varint(value.cast_unsigned())),
            Kind::Enum => int32(signed()).map(|value| Self::Varint(value.cast_unsigned())),
            Kind::Zigzag32 => {
                int32(signed()).map(|value| Self::Varint((value << 1 ^ value >> 63).cast_unsigned()))
            }
            _ => None,
        };
        let refused = || OtlpJsonErrorKind::Number { found: Excerpt::new(token), expected: name(kind) };
        found.ok_or_else(|| ErrorAtOffset::new(at, refused()))
    }

    #[inline]
    fn is_zero(&self) -> bool {
        matches!(self, Self::Varint(0) | Self::Fixed64(0) | Self::Fixed32(0))
    }

    #[inline]
    fn put(self, out: &mut impl ProtoOutput) -> ReadResult<()> {
        match self {
            Self::Varint(value) => out.varint(value),
            Self::Fixed64(bits) => out.put(&bits.to_le_bytes()),
            Self::Fixed32(bits) => out.put(&bits.to_le_bytes()),
        }
    }
}

fn int32(value: Option<i64>) -> Option<i64> {
    value.filter(|&value| i32::try_from(value).is_ok())
}

/// The number in quotes that `text` is.
fn quoted<'a>(text: &Text<'a>, expected: &'static str) -> ReadResult<&'a [u8]> {
    if is_number(text.raw) {
        return Ok(text.raw);
    }
    Err(ErrorAtOffset::new(text.at, OtlpJsonErrorKind::Number { found: Excerpt::new(text.raw), expected }))
}

fn real(reader: &mut Reader<'_>) -> ReadResult<f64> {
    let expected = name(Kind::Double);
    let (token, at) = if reader.peek() == Some(b'"') {
        let text = reader.string(expected)?;
        match text.raw {
            b"NaN" => return Ok(f64::NAN),
            b"Infinity" => return Ok(f64::INFINITY),
            b"-Infinity" => return Ok(f64::NEG_INFINITY),
            _ => (quoted(&text, expected)?, text.at),
        }
    } else {
        let token = reader.number(expected)?;
        (token, reader.offset() - token.len())
    };
    let refused = || OtlpJsonErrorKind::Number { found: Excerpt::new(token), expected };
    double(token).ok_or_else(|| ErrorAtOffset::new(at, refused()))
}

/// The name of a value of `kind`.
fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "a string",
        Kind::Id(_) => "an id in hexadecimal digits",
        Kind::Bytes => "bytes in base64",
        Kind::Bool => "`true` or `false`",
        Kind::Double => "a 64-bit floating-point number, \"NaN\", \"Infinity\" or \"-Infinity\"",
        Kind::Fixed64 | Kind::Uint64 => "a whole number from 0 to 18446744073709551615",
        Kind::SignedFixed64 | Kind::Int64 => {
            "a whole number from -9223372036854775808 to 9223372036854775807"
        }
        Kind::Fixed32 | Kind::Uint32 => "a whole number from 0 to 4294967295",
        Kind::Zigzag32 => "a whole number from -2147483648 to 2147483647",
        Kind::Enum => "an enum's number",
        Kind::Message(_) => "an object",
    }
}

/// The bytes after the request.
pub(crate) fn expect_end(reader: &mut Reader<'_>) -> ReadResult<()> {
    match reader.peek() {
        None => Ok(()),
        Some(byte) => {
            Err(ErrorAtOffset::new(reader.offset(), OtlpJsonErrorKind::Trailing(FoundToken::Byte(byte))))
        }
    }
}

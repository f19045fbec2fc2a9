//! Scalars, and the names of fields.

use crate::json::write as json;
use crate::otlp::json::schema::Kind;
use crate::output::{Full, Output};
use crate::proto::{Key, Reader};

/// The end of the names of times.
pub(super) const UNIX_NANO: &str = "UnixNano";

/// A scalar as it stands in protobuf.
#[derive(Clone, Copy)]
pub(super) enum Scalar<'a> {
    Bits(u64),
    Bytes(&'a [u8]),
}

/// Reads the scalar that follows `key`.
pub(super) fn scalar<'a>(kind: Kind, key: Key, reader: &mut Reader<'a>) -> Option<Scalar<'a>> {
    Some(match kind {
        Kind::String | Kind::Id(_) | Kind::Bytes | Kind::Message(_) => Scalar::Bytes(reader.bytes(key).ok()?),
        Kind::Double | Kind::Fixed64 | Kind::SignedFixed64 => Scalar::Bits(reader.fixed64(key).ok()?),
        Kind::Fixed32 => Scalar::Bits(reader.fixed32(key).ok()?.into()),
        Kind::Bool | Kind::Int64 | Kind::Uint64 | Kind::Uint32 | Kind::Zigzag32 | Kind::Enum => {
            Scalar::Bits(reader.varint(key).ok()?)
        }
    })
}

/// The word for the value of an enumeration.
pub(super) fn word(name: &str, value: u32) -> Option<&'static str> {
    let words: &[&str] = match name {
        "kind" => &["unspecified", "internal", "server", "client", "producer", "consumer"],
        "code" => &["unset", "ok", "error"],
        "aggregationTemporality" => &["unspecified", "delta", "cumulative"],
        _ => return None,
    };
    words.get(usize::try_from(value).ok()?).copied()
}

/// The name of a field in snake_case, without what says that a time is a number.
pub(super) fn snake_case(name: &str, out: &mut impl Output) -> Result<(), Full> {
    let name = name.strip_suffix(UNIX_NANO).unwrap_or(name);
    for part in name.as_bytes().chunk_by(|_, next| !next.is_ascii_uppercase()) {
        match part {
            [capital @ b'A'..=b'Z', rest @ ..] => {
                out.put(&[b'_', capital.to_ascii_lowercase()])?;
                out.put(rest)?;
            }
            part => out.put(part)?,
        }
    }
    Ok(())
}

pub(super) fn base64(bytes: &[u8], out: &mut impl Output) -> Result<(), Full> {
    out.put(b"\"")?;
    json::base64(bytes, out)?;
    out.put(b"\"")
}

/// A double; JSON has no number for what is not finite.
pub(super) fn double(bits: u64, out: &mut impl Output) -> Result<(), Full> {
    match f64::from_bits(bits) {
        value if value.is_finite() => json::double(bits, out).map(drop),
        value if value.is_nan() => out.put(b"\"NaN\""),
        value if value > 0.0 => out.put(b"\"Infinity\""),
        _ => out.put(b"\"-Infinity\""),
    }
}

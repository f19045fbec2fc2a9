//! Just enough protobuf to write requests and to read them back.

use super::DecodeError;
pub(crate) use crate::protobuf::varint;

/// Writes a varint field, left out when zero as proto3 senders do.
pub(crate) fn uint(out: &mut Vec<u8>, field: u64, value: u64) {
    if value != 0 {
        varint(out, field << 3);
        varint(out, value);
    }
}

/// Writes a double field, left out when its bits are zero.
pub(crate) fn double(out: &mut Vec<u8>, field: u64, bits: u64) {
    if bits != 0 {
        varint(out, field << 3 | 1);
        out.extend_from_slice(&bits.to_le_bytes());
    }
}

/// Writes a field of bytes, a string or a message.
pub(crate) fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Writes a message field whose content `write` appends.
pub(crate) fn message(out: &mut Vec<u8>, field: u64, write: impl FnOnce(&mut Vec<u8>)) {
    varint(out, field << 3 | 2);
    // Room for a length below 128; longer messages are moved by a byte or two.
    let at = out.len();
    out.push(0);
    write(out);
    let len = out.len() - at - 1;
    if len < 0x80 {
        out[at] = len as u8;
    } else {
        let mut prefix = Vec::with_capacity(5);
        varint(&mut prefix, len as u64);
        out.splice(at..=at, prefix);
    }
}

/// A sint64 as it is written.
pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

/// One field's value.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

impl<'a> Value<'a> {
    pub(crate) fn uint(self) -> Result<u64, DecodeError> {
        if let Self::Varint(value) = self { Ok(value) } else { Err(DecodeError::Type) }
    }

    pub(crate) fn bits(self) -> Result<u64, DecodeError> {
        if let Self::Fixed64(bits) = self { Ok(bits) } else { Err(DecodeError::Type) }
    }

    pub(crate) fn bytes(self) -> Result<&'a [u8], DecodeError> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(DecodeError::Type) }
    }
}

/// The fields of a message, one after the other.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u64, Value<'a>), DecodeError> {
        let tag = take_varint(&mut self.0)?;
        // Real receivers refuse it, too.
        if tag >> 3 == 0 {
            return Err(DecodeError::Number);
        }
        let value = match tag & 7 {
            0 => Value::Varint(take_varint(&mut self.0)?),
            1 => {
                let (bits, rest) = self.0.split_first_chunk().ok_or(DecodeError::Truncated)?;
                self.0 = rest;
                Value::Fixed64(u64::from_le_bytes(*bits))
            }
            2 => {
                let len = usize::try_from(take_varint(&mut self.0)?).map_err(|_| DecodeError::Truncated)?;
                let (bytes, rest) = self.0.split_at_checked(len).ok_or(DecodeError::Truncated)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            5 => {
                let (_, rest) = self.0.split_first_chunk::<4>().ok_or(DecodeError::Truncated)?;
                self.0 = rest;
                Value::Fixed32
            }
            _ => return Err(DecodeError::Type),
        };
        Ok((tag >> 3, value))
    }
}

/// Reads a varint off the front.
pub(crate) fn take_varint(from: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first().ok_or(DecodeError::Truncated)?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok(value);
        }
    }
    Err(DecodeError::Truncated)
}

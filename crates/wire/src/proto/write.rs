//! Writing protobuf fields to an [`Output`].

use super::WireType;
use crate::output::{Counter, Full, Output};

/// A number in base 128, ready to be put.
#[derive(Debug, Clone, Copy)]
pub struct Varint {
    bytes: [u8; 10],
    len: usize,
}

impl Varint {
    /// Encodes `value` in as few bytes as it needs.
    #[must_use]
    #[inline]
    pub fn new(mut value: u64) -> Self {
        let mut bytes = [0; 10];
        let mut len = 0;
        for byte in &mut bytes {
            let low = value.to_le_bytes()[0] & 0x7f;
            value >>= 7;
            len += 1;
            if value == 0 {
                *byte = low;
                break;
            }
            *byte = low | 0x80;
        }
        Self { bytes, len }
    }

    /// The encoded bytes.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// How many bytes `value` takes as a varint.
#[must_use]
#[inline]
pub fn varint_len(value: u64) -> u64 {
    u64::from((70 - (value | 1).leading_zeros()) / 7)
}

/// How many bytes a length-delimited field takes whose number is below 16 and whose payload has `len` bytes.
#[must_use]
#[inline]
pub fn bytes_len(len: u64) -> u64 {
    1 + varint_len(len) + len
}

/// Puts a number without a key.
///
/// # Errors
/// [`Full`] when the output is.
#[inline]
pub fn raw_varint(out: &mut impl Output, value: u64) -> Result<(), Full> {
    let [low, ..] = value.to_le_bytes();
    if value < 0x80 { out.put(&[low]) } else { out.put(Varint::new(value).as_bytes()) }
}

/// Puts a number.
///
/// # Errors
/// [`Full`] when the output is.
#[inline]
pub fn varint(out: &mut impl Output, field: u32, value: u64) -> Result<(), Full> {
    key(out, field, WireType::Varint)?;
    raw_varint(out, value)
}

/// Puts eight bytes given as bits.
///
/// # Errors
/// [`Full`] when the output is.
#[inline]
pub fn fixed64(out: &mut impl Output, field: u32, bits: u64) -> Result<(), Full> {
    key(out, field, WireType::Fixed64)?;
    out.put(&bits.to_le_bytes())
}

/// Puts the key and the length of a nested message or string of `len` bytes; the caller puts those next.
///
/// # Errors
/// [`Full`] when the output is.
#[inline]
pub fn length(out: &mut impl Output, field: u32, len: u64) -> Result<(), Full> {
    let [tag, ..] = (field << 3 | 2).to_le_bytes();
    let [low, ..] = len.to_le_bytes();
    if field < 16 && len < 0x80 {
        return out.put(&[tag, low]);
    }
    key(out, field, WireType::Length)?;
    raw_varint(out, len)
}

/// Puts a string, byte string or already encoded message.
///
/// # Errors
/// [`Full`] when the output is.
#[inline]
pub fn bytes(out: &mut impl Output, field: u32, bytes: &[u8]) -> Result<(), Full> {
    length(out, field, bytes.len() as u64)?;
    out.put(bytes)
}

fn key(out: &mut impl Output, field: u32, wire: WireType) -> Result<(), Full> {
    let wire = match wire {
        WireType::Varint => 0,
        WireType::Fixed64 => 1,
        WireType::Length => 2,
        WireType::Fixed32 => 5,
    };
    raw_varint(out, u64::from(field) << 3 | wire)
}

/// A message that can be written twice with the same result: once to be measured, once for good. That is
/// how nested lengths are found without building a tree.
pub trait Encode {
    /// Puts the message's fields.
    ///
    /// # Errors
    /// [`Full`] when the output is.
    fn encode(&self, out: &mut impl Output) -> Result<(), Full>;

    /// How many bytes [`encode`](Self::encode) puts.
    ///
    /// # Errors
    /// [`Full`] when that does not fit in 64 bits.
    fn encoded_len(&self) -> Result<u64, Full> {
        let mut counter = Counter::default();
        self.encode(&mut counter)?;
        Ok(counter.bytes())
    }
}

/// Puts a nested message with its key and length.
///
/// # Errors
/// [`Full`] when the output is.
pub fn message(out: &mut impl Output, field: u32, message: &impl Encode) -> Result<(), Full> {
    length(out, field, message.encoded_len()?)?;
    message.encode(out)
}

//! Writes values, pairs and elements.

use super::NOT_STORABLE;
use crate::memory::{Memory, Slice};
use crate::value::{Failure, Value};
use tidegate_wire::proto::write::varint_len;

/// Where values are written.
pub(crate) trait Sink {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure>;
    fn put_slice(&mut self, slice: Slice) -> Result<(), Failure>;

    /// Puts fields, of which each begins with one byte of tag, at `starts`: with `tag` in its place.
    fn put_fields(
        &mut self,
        fields: Slice,
        tag: u8,
        starts: impl Iterator<Item = usize> + Clone,
    ) -> Result<(), Failure> {
        let ends = starts.clone().skip(1).chain([fields.len as usize]);
        for (start, end) in starts.zip(ends) {
            self.put(&[tag])?;
            self.put_slice(fields.part(start + 1, end))?;
        }
        Ok(())
    }
}

impl Sink for Memory<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.push(bytes)
    }

    fn put_slice(&mut self, slice: Slice) -> Result<(), Failure> {
        self.push_slice(slice)
    }
}

/// A buffer outside of the memory whose slices are written to it.
#[cfg(test)]
pub(crate) struct Outside<'m, 'b, O> {
    pub(crate) memory: &'m Memory<'b>,
    pub(crate) out: &'m mut O,
}

#[cfg(test)]
impl<O: tidegate_wire::output::Output> Sink for Outside<'_, '_, O> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.put(bytes).map_err(|_| Failure::TooLarge)
    }

    fn put_slice(&mut self, slice: Slice) -> Result<(), Failure> {
        self.put(self.memory.get(slice))
    }
}

/// The length of the `AnyValue` message of `value`.
#[inline]
pub(crate) fn encoded_len(value: Value) -> Result<usize, Failure> {
    match value {
        Value::Nil => Ok(0),
        Value::Bool(_) => Ok(2),
        Value::Int(number) => Ok(1 + width(number.cast_unsigned())),
        Value::Double(_) => Ok(9),
        Value::Text(slice) | Value::Bytes(slice) | Value::Map(slice) | Value::List(slice) => {
            Ok(field_len(1, slice.len as usize))
        }
        Value::Id(_) | Value::Time(_) | Value::Duration(_) => Err(NOT_STORABLE),
    }
}

/// Writes the `AnyValue` message of `value`.
pub(crate) fn write(value: Value, out: &mut impl Sink) -> Result<(), Failure> {
    let mut head = Head::new();
    let content = head.value(value)?;
    head.write(out)?;
    out.put_slice(content)
}

/// Writes a `KeyValue` message as the field `number`.
#[inline]
pub(crate) fn write_pair(number: u32, key: Slice, value: Value, out: &mut impl Sink) -> Result<(), Failure> {
    let value_len = encoded_len(value)?;
    let mut head = Head::new();
    head.field(number, field_len(1, key.len as usize) + field_len(2, value_len));
    head.field(1, key.len as usize);
    head.write(out)?;
    out.put_slice(key)?;
    let mut head = Head::new();
    head.field(2, value_len);
    let content = head.value(value)?;
    head.write(out)?;
    out.put_slice(content)
}

/// As [`write_pair`] with the number 1, for a key that is in none of the spaces.
pub(crate) fn write_named(key: &[u8], value: Value, out: &mut impl Sink) -> Result<(), Failure> {
    let value_len = encoded_len(value)?;
    write_head(1, field_len(1, key.len()) + field_len(2, value_len), out)?;
    write_head(1, key.len(), out)?;
    out.put(key)?;
    write_head(2, value_len, out)?;
    write(value, out)
}

/// Writes a value as an element of a list.
pub(crate) fn write_element(value: Value, out: &mut impl Sink) -> Result<(), Failure> {
    write_head(1, encoded_len(value)?, out)?;
    write(value, out)
}

/// Writes tag and length of a length-delimited field.
pub(crate) fn write_head(number: u32, len: usize, out: &mut impl Sink) -> Result<(), Failure> {
    let mut head = Head::new();
    head.field(number, len);
    head.write(out)
}

/// Tags, lengths and numbers that are written in one piece: at most two of each.
struct Head {
    bytes: [u8; 32],
    len: usize,
}

impl Head {
    #[inline]
    fn new() -> Head {
        Head { bytes: [0; 32], len: 0 }
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    #[inline]
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// Adds tag and length of a length-delimited field.
    #[inline]
    fn field(&mut self, number: u32, len: usize) {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(len as u64);
    }

    /// Adds the beginning of the `AnyValue` message of `value`. Returns the bytes that complete it.
    #[inline]
    fn value(&mut self, value: Value) -> Result<Slice, Failure> {
        let (number, content) = match value {
            Value::Text(slice) => (1, slice),
            Value::List(slice) => (5, slice),
            Value::Map(slice) => (6, slice),
            Value::Bytes(slice) => (7, slice),
            Value::Nil => return Ok(Slice::EMPTY),
            Value::Bool(value) => {
                self.byte(2 << 3);
                self.byte(u8::from(value));
                return Ok(Slice::EMPTY);
            }
            Value::Int(number) => {
                self.byte(3 << 3);
                self.varint(number.cast_unsigned());
                return Ok(Slice::EMPTY);
            }
            Value::Double(number) => {
                self.byte(4 << 3 | 1);
                number.to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
                return Ok(Slice::EMPTY);
            }
            Value::Id(_) | Value::Time(_) | Value::Duration(_) => return Err(NOT_STORABLE),
        };
        self.field(number, content.len as usize);
        Ok(content)
    }

    #[inline]
    fn write(&self, out: &mut impl Sink) -> Result<(), Failure> {
        out.put(self.bytes.get(..self.len).unwrap_or_default())
    }
}

/// The length of a length-delimited field whose payload has `len` bytes.
#[inline]
pub(crate) fn field_len(number: u32, len: usize) -> usize {
    width(u64::from(number) << 3) + width(len as u64) + len
}

#[inline]
fn width(number: u64) -> usize {
    // At most ten.
    varint_len(number) as usize
}

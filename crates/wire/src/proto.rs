//! A protobuf walker over borrowed bytes.
//!
//! [`Reader`] goes through the fields of *one* message; a nested message is another reader over a part of
//! the same bytes, so nothing here recurses and the depth is whatever the caller writes down. Unknown
//! fields are skipped, groups (which no proto3 schema has) are refused. Every error says at which byte and
//! in which field it was found.

mod error;
mod fields;
mod messages;
mod repeated;
#[cfg(test)]
mod tests;
pub mod write;

pub use error::{Malformed, Problem};
pub(crate) use fields::{Field, Fields};
pub use messages::{Messages, ReadMessages};
pub use repeated::{Doubles, Varints};

/// A field's number and how its value is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The field's number, at least 1.
    pub field: u32,
    /// The encoding of the value that follows.
    pub wire: WireType,
}

/// The wire types that proto3 uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireType {
    /// A base-128 number.
    Varint,
    /// Eight bytes, little endian.
    Fixed64,
    /// A length and that many bytes.
    Length,
    /// Four bytes, little endian.
    Fixed32,
}

/// A cursor over the fields of one message.
///
/// Invariant: `end` is the offset of the end of `rest` in the outermost message, so that
/// `end - rest.len()` is where the cursor stands.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    end: usize,
}

impl<'a> Reader<'a> {
    /// Reads `message` from its first byte, which is offset 0 in errors.
    #[must_use]
    #[inline]
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message, end: message.len() }
    }

    /// Reads the message that is this part of an outermost one.
    #[inline]
    pub(crate) fn within(outermost: &'a [u8], part: std::ops::Range<usize>) -> Self {
        let start = part.start;
        let rest = outermost.get(part).unwrap_or_default();
        Self { rest, end: start + rest.len() }
    }

    /// The same, where that outermost one begins at byte `base` of another.
    pub(crate) fn rebased(self, base: usize) -> Self {
        Self { end: self.end.saturating_add(base), ..self }
    }

    /// Where the cursor stands in the outermost message.
    #[must_use]
    #[inline]
    pub fn offset(&self) -> usize {
        self.end.saturating_sub(self.rest.len())
    }

    /// The unread bytes.
    #[must_use]
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next field's key, or `None` at the end of the message.
    ///
    /// # Errors
    /// When the key is cut off, is not a 32-bit number, has field number 0, or opens or closes a group.
    #[inline]
    pub fn key(&mut self) -> Result<Option<Key>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = self.offset();
        let raw = self.raw_varint(0)?;
        let field = u32::try_from(raw >> 3).ok().filter(|&field| field != 0 && field < 1 << 29);
        let Some(field) = field else { return Err(Malformed::new(start, 0, Problem::Key)) };
        let wire = match raw & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Length,
            5 => WireType::Fixed32,
            3 | 4 => return Err(Malformed::new(start, field, Problem::Group)),
            _ => return Err(Malformed::new(start, field, Problem::Key)),
        };
        Ok(Some(Key { field, wire }))
    }

    /// The number that follows `key`.
    ///
    /// # Errors
    /// When `key` announces another encoding, or the number is cut off or longer than 64 bits.
    #[inline]
    pub fn varint(&mut self, key: Key) -> Result<u64, Malformed> {
        self.expect(key, WireType::Varint)?;
        self.raw_varint(key.field)
    }

    /// The eight bytes that follow `key`, as little-endian bits.
    ///
    /// # Errors
    /// When `key` announces another encoding, or fewer than eight bytes are left.
    #[inline]
    pub fn fixed64(&mut self, key: Key) -> Result<u64, Malformed> {
        self.expect(key, WireType::Fixed64)?;
        let Some((bytes, rest)) = self.rest.split_first_chunk() else {
            return Err(self.malformed(key.field, Problem::Truncated));
        };
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// The four bytes that follow `key`, as little-endian bits.
    ///
    /// # Errors
    /// When `key` announces another encoding, or fewer than four bytes are left.
    #[inline]
    pub fn fixed32(&mut self, key: Key) -> Result<u32, Malformed> {
        self.expect(key, WireType::Fixed32)?;
        let Some((bytes, rest)) = self.rest.split_first_chunk() else {
            return Err(self.malformed(key.field, Problem::Truncated));
        };
        self.rest = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    /// The bytes that follow `key`.
    ///
    /// # Errors
    /// When `key` announces another encoding, or the length is malformed or reaches past the message.
    #[inline]
    pub fn bytes(&mut self, key: Key) -> Result<&'a [u8], Malformed> {
        self.expect(key, WireType::Length)?;
        let start = *self;
        let len = usize::try_from(self.raw_varint(key.field)?).unwrap_or(usize::MAX);
        let Some((bytes, rest)) = self.rest.split_at_checked(len) else {
            return Err(start.malformed(key.field, Problem::Length));
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// The nested message that follows `key`.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub fn message(&mut self, key: Key) -> Result<Reader<'a>, Malformed> {
        let bytes = self.bytes(key)?;
        Ok(Reader { rest: bytes, end: self.offset() })
    }

    /// Steps over the value that follows `key`.
    ///
    /// # Errors
    /// When the value is malformed or cut off.
    #[inline]
    pub fn skip(&mut self, key: Key) -> Result<(), Malformed> {
        *self = self.skipped(key)?;
        Ok(())
    }

    // This and `long_varint` take and return values, not `&mut self`, so that a cursor whose other methods
    // are inlined can live in registers.
    fn skipped(mut self, key: Key) -> Result<Self, Malformed> {
        match key.wire {
            WireType::Varint => drop(self.varint(key)?),
            WireType::Fixed64 => drop(self.fixed64(key)?),
            WireType::Length => drop(self.bytes(key)?),
            WireType::Fixed32 => match self.rest.split_at_checked(4) {
                Some((_, rest)) => self.rest = rest,
                None => return Err(self.malformed(key.field, Problem::Truncated)),
            },
        }
        Ok(self)
    }

    /// A number without its key, as packed fields hold them; `field` is for the error.
    ///
    /// # Errors
    /// When the number is cut off or longer than 64 bits.
    #[inline(always)]
    pub fn raw_varint(&mut self, field: u32) -> Result<u64, Malformed> {
        if let Some((&byte, rest)) = self.rest.split_first()
            && byte < 0x80
        {
            self.rest = rest;
            return Ok(u64::from(byte));
        }
        match long_varint(self.rest) {
            Ok((value, rest)) => {
                self.rest = rest;
                Ok(value)
            }
            Err(problem) => Err(self.malformed(field, problem)),
        }
    }

    #[inline(always)]
    fn expect(&self, key: Key, wire: WireType) -> Result<(), Malformed> {
        if key.wire == wire { Ok(()) } else { Err(self.malformed(key.field, Problem::Wire)) }
    }

    /// The payload of the next field, if that is `tag` (of one byte) with a length below 128; the cursor
    /// moves only then.
    #[inline(always)]
    pub(crate) fn take_short(&mut self, tag: u8) -> Option<&'a [u8]> {
        match self.short_field() {
            Some((found, bytes, rest)) if found == tag => {
                self.rest = rest;
                Some(bytes)
            }
            _ => None,
        }
    }

    /// Steps over the next field, if it is length-delimited and its tag and its length have one byte each.
    #[inline(always)]
    pub(crate) fn skip_short(&mut self) -> bool {
        match self.short_field() {
            Some((8..0x80, _, rest)) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The tag, the payload and what is behind them, if the next field may be that short.
    #[inline(always)]
    fn short_field(&self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (&[tag, len], rest) = self.rest.split_first_chunk()?;
        if tag & 7 != 2 || len >= 0x80 {
            return None;
        }
        let (bytes, rest) = rest.split_at_checked(usize::from(len))?;
        Some((tag, bytes, rest))
    }

    /// The bytes from this cursor to `later`, a later state of it.
    #[inline]
    pub(crate) fn until(&self, later: &Self) -> &'a [u8] {
        let len = self.rest.len().saturating_sub(later.rest.len());
        self.rest.get(..len).unwrap_or_default()
    }

    #[cold]
    pub(crate) fn malformed(self, field: u32, problem: Problem) -> Malformed {
        Malformed::new(self.offset(), field, problem)
    }
}

fn long_varint(bytes: &[u8]) -> Result<(u64, &[u8]), Problem> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            if index == 9 && byte > 1 {
                return Err(Problem::Varint);
            }
            return Ok((value, bytes.get(index + 1..).unwrap_or_default()));
        }
    }
    Err(if bytes.len() < 10 { Problem::Truncated } else { Problem::Varint })
}

/// Undoes the zigzag encoding of `sint32` and `sint64`.
#[must_use]
pub fn zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// The 32 bits that `int32`, `uint32` and enums keep of a number that was sent longer.
#[must_use]
pub fn low32(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

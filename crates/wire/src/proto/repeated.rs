//! Repeated scalars, packed or not, in as many pieces as the sender liked.
//!
//! These iterators are for views over messages that were checked: they end at the first malformed byte.

use super::{Reader, WireType};

/// The numbers of one repeated field of a message.
#[derive(Debug, Clone)]
pub struct Varints<'a> {
    message: Reader<'a>,
    field: u32,
    packed: Reader<'a>,
}

/// The 64-bit patterns of one repeated `double` field of a message.
#[derive(Debug, Clone)]
pub struct Doubles<'a> {
    message: Reader<'a>,
    field: u32,
    packed: &'a [u8],
}

impl<'a> Varints<'a> {
    /// The numbers in every occurrence of `field` in `message`.
    #[must_use]
    pub fn new(message: &'a [u8], field: u32) -> Self {
        Self { message: Reader::new(message), field, packed: Reader::new(&[]) }
    }
}

impl Iterator for Varints<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        loop {
            if !self.packed.rest().is_empty() {
                return self.packed.raw_varint(self.field).ok();
            }
            let key = self.message.key().ok()??;
            match key.wire {
                WireType::Length if key.field == self.field => {
                    self.packed = self.message.message(key).ok()?
                }
                WireType::Varint if key.field == self.field => return self.message.varint(key).ok(),
                _ => self.message.skip(key).ok()?,
            }
        }
    }
}

impl<'a> Doubles<'a> {
    /// The values in every occurrence of `field` in `message`.
    #[must_use]
    pub fn new(message: &'a [u8], field: u32) -> Self {
        Self { message: Reader::new(message), field, packed: &[] }
    }
}

impl Iterator for Doubles<'_> {
    /// The bits of the double, untouched.
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some((bits, rest)) = self.packed.split_first_chunk() {
                self.packed = rest;
                return Some(u64::from_le_bytes(*bits));
            }
            let key = self.message.key().ok()??;
            match key.wire {
                WireType::Length if key.field == self.field => self.packed = self.message.bytes(key).ok()?,
                WireType::Fixed64 if key.field == self.field => return self.message.fixed64(key).ok(),
                _ => self.message.skip(key).ok()?,
            }
        }
    }
}

//! A buffer of a size known beforehand, and what is written into it: numbers, values, escapes.

use std::fmt::{self, Write};

use super::nesting::NestingStack;
use crate::otlp::attribute::AnyValue;
use crate::{base64, json};

/// There is no room for what was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferFull;

impl From<fmt::Error> for BufferFull {
    fn from(_: fmt::Error) -> Self {
        Self
    }
}

/// A stretch of a [`Text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct TextRange {
    start: u32,
    end: u32,
}

/// Bytes up to a limit, taken once.
#[derive(Debug)]
pub(super) struct Text {
    bytes: Vec<u8>,
    limit: usize,
    /// The open containers of the value being written.
    nest: NestingStack,
}

impl Text {
    /// Room for `limit` bytes, which must be below 4 GiB.
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.min(u32::MAX as usize);
        Self { bytes: Vec::with_capacity(limit), limit, nest: NestingStack::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    pub(super) fn all(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn get(&self, part: TextRange) -> &[u8] {
        self.bytes.get(part.start as usize..part.end as usize).unwrap_or_default()
    }

    /// The bytes written since the length was `start`.
    pub(super) fn since(&self, start: usize) -> TextRange {
        // The limit keeps both below 4 GiB.
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        TextRange { start: narrow(start), end: narrow(self.bytes.len()) }
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), BufferFull> {
        if bytes.len() > self.limit.saturating_sub(self.bytes.len()) {
            return Err(BufferFull);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Puts again what is there already.
    pub(super) fn repeat(&mut self, part: TextRange) -> Result<(), BufferFull> {
        let range = part.start as usize..part.end as usize;
        if range.end > self.bytes.len() || range.len() > self.limit.saturating_sub(self.bytes.len()) {
            return Err(BufferFull);
        }
        self.bytes.extend_from_within(range);
        Ok(())
    }

    /// A number as bounds and quantiles are written: the shortest digits that mean it, without an exponent.
    pub(super) fn float(&mut self, bits: u64) -> Result<(), BufferFull> {
        let value = f64::from_bits(bits);
        if value == f64::INFINITY {
            return self.put(b"+Inf");
        }
        if value == f64::NEG_INFINITY {
            return self.put(b"-Inf");
        }
        Ok(write!(self, "{value}")?)
    }

    /// Bytes as hexadecimal digits.
    pub(super) fn hex(&mut self, bytes: &[u8]) -> Result<(), BufferFull> {
        bytes.iter().try_for_each(|byte| Ok(write!(self, "{byte:02x}")?))
    }

    /// A value as the text that a label has for it: strings as they are, bytes in base64, anything else as JSON, but
    /// that numbers JSON has not stand without quotes.
    pub(super) fn value(&mut self, value: AnyValue<'_>) -> Result<(), BufferFull> {
        match value {
            AnyValue::Empty => Ok(()),
            AnyValue::Text(text) => self.put(text),
            AnyValue::Double(bits) if !f64::from_bits(bits).is_finite() => self.put(not_finite(bits)),
            AnyValue::Bytes(bytes) => self.base64(bytes),
            AnyValue::Array(_) | AnyValue::Map(_) => {
                let mut nest = std::mem::take(&mut self.nest);
                let done = nest.write(value, self);
                self.nest = nest;
                done
            }
            value => self.json(value),
        }
    }

    /// A value without others in it as JSON.
    pub(super) fn json(&mut self, value: AnyValue<'_>) -> Result<(), BufferFull> {
        match value {
            AnyValue::Empty | AnyValue::Array(_) | AnyValue::Map(_) => self.put(b"null"),
            AnyValue::Text(text) => self.json_string(text),
            AnyValue::Bool(value) => self.put(if value { b"true" } else { b"false" }),
            AnyValue::Int(value) => Ok(write!(self, "{value}")?),
            AnyValue::Double(bits) => self.json_number(bits),
            AnyValue::Bytes(bytes) => {
                self.put(b"\"")?;
                self.base64(bytes)?;
                self.put(b"\"")
            }
        }
    }

    fn json_number(&mut self, bits: u64) -> Result<(), BufferFull> {
        let value = f64::from_bits(bits);
        if !value.is_finite() {
            self.put(b"\"")?;
            self.put(not_finite(bits))?;
            return self.put(b"\"");
        }
        if value == 0.0 || (1e-6..1e21).contains(&value.abs()) {
            return self.float(bits);
        }
        Ok(write!(Signed { text: self, behind_e: false }, "{value:e}")?)
    }

    pub(super) fn json_string(&mut self, text: &[u8]) -> Result<(), BufferFull> {
        json::string(text, |piece| self.put(piece))
    }

    fn base64(&mut self, bytes: &[u8]) -> Result<(), BufferFull> {
        base64::encode(bytes, |digits| self.put(digits))
    }
}

/// A number that JSON has not, as the specification writes it as a text.
fn not_finite(bits: u64) -> &'static [u8] {
    match f64::from_bits(bits) {
        f64::INFINITY => b"Infinity",
        f64::NEG_INFINITY => b"-Infinity",
        _ => b"NaN",
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// Puts a plus before exponents that have no sign.
struct Signed<'a> {
    text: &'a mut Text,
    /// The last written `e` is the number's, not an earlier one.
    behind_e: bool,
}

impl Write for Signed<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for char in text.chars() {
            if self.behind_e && char != '-' {
                self.text.write_str("+")?;
            }
            self.behind_e = char == 'e';
            self.text.write_char(char)?;
        }
        Ok(())
    }
}

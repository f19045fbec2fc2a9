//! Attributes of a data point, from the key of its series.

use tidegate_wire::output::{Full, Output};
use tidegate_wire::proto::write;

/// The attribute of overflow series that the OpenTelemetry SDKs use.
const OVERFLOW: &[u8] = b"otel.metric.overflow";
/// The message `AnyValue` with `bool_value`.
const TRUE: &[u8] = &[2 << 3, 1];

/// The attributes of a data point.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Attributes<'a> {
    /// Names, and a key with their values.
    Listed(&'a [String], &'a [u8]),
    /// A key with fields `KeyValue`.
    All(&'a [u8]),
    /// The attribute of an overflow series.
    Overflow,
}

/// The values of listed attributes in a key: each a message `AnyValue`, or nothing where it is absent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedValues<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for ListedValues<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        match take_varint(&mut self.0)?.checked_sub(1) {
            None => Some(None),
            Some(len) => take(&mut self.0, len).map(Some),
        }
    }
}

impl Attributes<'_> {
    /// Puts each attribute as this field.
    pub(crate) fn encode(self, field: u32, out: &mut impl Output) -> Result<(), Full> {
        match self {
            Attributes::Listed(names, key) => {
                let present =
                    names.iter().zip(ListedValues(key)).filter_map(|(name, value)| Some((name, value?)));
                present
                    .into_iter()
                    .try_for_each(|(name, value)| key_value(field, name.as_bytes(), value, out))
            }
            Attributes::All(mut key) => {
                while let Some(attribute) = take_field(&mut key) {
                    write::bytes(out, field, attribute)?;
                }
                Ok(())
            }
            Attributes::Overflow => key_value(field, OVERFLOW, TRUE, out),
        }
    }
}

fn key_value(field: u32, name: &[u8], value: &[u8], out: &mut impl Output) -> Result<(), Full> {
    let (name_len, value_len) = (name.len() as u64, value.len() as u64);
    write::length(out, field, write::bytes_len(name_len) + write::bytes_len(value_len))?;
    write::bytes(out, 1, name)?;
    write::bytes(out, 2, value)
}

/// The payload of the field `1` that a key begins with.
fn take_field<'a>(key: &mut &'a [u8]) -> Option<&'a [u8]> {
    if take_varint(key)? != (1 << 3 | 2) {
        return None;
    }
    let len = take_varint(key)?;
    take(key, len)
}

fn take_varint(key: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = key.split_first()?;
        *key = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(key: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (taken, rest) = key.split_at_checked(usize::try_from(len).ok()?)?;
    *key = rest;
    Some(taken)
}

//! The structure of a float sample.

use crate::proto::{Malformed, Reader};

/// Checks a sample message: value, timestamp and, in 2.0, start timestamp.
#[inline]
pub(super) fn check(message: Reader<'_>, with_start: bool) -> Result<(), Malformed> {
    if has_common_layout(message.rest()) { Ok(()) } else { any(message, with_start) }
}

/// Whether a sample is as every known sender writes it: nine bytes of value, or none for zero, a one-byte tag, a timestamp
/// up to the end.
#[inline(always)]
pub(super) fn has_common_layout(sample: &[u8]) -> bool {
    matches!(
        sample,
        [0x09, _, _, _, _, _, _, _, _, 0x10, timestamp @ .., last] | [0x10, timestamp @ .., last]
            if timestamp.len() < 9 && *last < 0x80 && timestamp.iter().all(|&byte| byte >= 0x80)
    )
}

fn any(mut message: Reader<'_>, with_start: bool) -> Result<(), Malformed> {
    while let Some(key) = message.key()? {
        match key.field {
            1 => drop(message.fixed64(key)?),
            2 => drop(message.varint(key)?),
            3 if with_start => drop(message.varint(key)?),
            _ => message.skip(key)?,
        }
    }
    Ok(())
}

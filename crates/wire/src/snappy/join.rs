//! Joining Snappy bodies without decoding them.
//!
//! A copy reaches backwards inside its own block only (a decoder has proven that of every body given
//! here), so the elements of several blocks, one after the other behind a preamble with the sum of their
//! lengths, decode to the concatenation of what they held.

use super::{SnappyError, preamble};
use crate::proto::write::Varint;

/// The preamble of a block that decodes to `total` bytes.
///
/// # Errors
/// [`SnappyError::TooLong`] when `total` does not fit in 32 bits.
pub fn joined_preamble(total: u64) -> Result<Varint, SnappyError> {
    if total > u64::from(u32::MAX) {
        return Err(SnappyError::TooLong { bytes: total });
    }
    Ok(Varint::new(total))
}

/// The rest of `body` after the preamble.
///
/// # Errors
/// [`SnappyError::Preamble`].
pub fn elements(body: &[u8]) -> Result<&[u8], SnappyError> {
    preamble(body).map(|(_, elements)| elements)
}

/// The pieces of the joined body: the preamble, and the elements of each of `bodies`, to be written in
/// this order. Every body must have been through [`decode`](super::decode) before.
///
/// # Errors
/// [`SnappyError::Preamble`] of any body; [`SnappyError::TooLong`] when the sum of the decoded lengths is.
pub fn join<'a, I>(bodies: I) -> Result<(Varint, impl Iterator<Item = &'a [u8]>), SnappyError>
where
    I: IntoIterator<Item = &'a [u8]> + Clone,
{
    let mut total = 0u64;
    for body in bodies.clone() {
        total = total.saturating_add(preamble(body)?.0 as u64);
    }
    let pieces = bodies.into_iter().map(|body| elements(body).unwrap_or_default());
    Ok((joined_preamble(total)?, pieces))
}

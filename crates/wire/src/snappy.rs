//! Snappy's block format: a varint with the decoded length, then literals and copies.
//!
//! [`plausible`] is the gate before memory is paid for: the preamble is only a claim, but a body can be
//! refused at once when it is too short to be what it claims. [`decode`] is the proof. [`join`] puts
//! decoded-and-proven bodies together without decoding them again.

pub mod framed;
pub mod join;
pub mod pieces;
#[cfg(test)]
mod tests;

use thiserror::Error;

/// An error in a Snappy body, or in the space given for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SnappyError {
    /// The body has no preamble, or one that is not a 32-bit number.
    #[error("the Snappy preamble is not a 32-bit length")]
    Preamble,
    /// The body is too short to decode to what it claims.
    #[error("the Snappy preamble claims {claimed} bytes, but {body} bytes of body can hold {most} at most")]
    Implausible {
        /// Decoded length as the preamble has it.
        claimed: usize,
        /// Length of the compressed body.
        body: usize,
        /// The largest decoded size of a body of that length.
        most: u64,
    },
    /// The elements after the preamble are cut off, reach out of range, or decode to another length.
    #[error("the Snappy body is corrupt: its elements do not decode to the {claimed} bytes it claims")]
    Corrupt {
        /// Decoded length as the preamble has it.
        claimed: usize,
    },
    /// The output is too short.
    #[error("the output has room for {given} bytes and {needed} are needed")]
    OutputFull {
        /// The given size.
        given: usize,
        /// The required size.
        needed: usize,
    },
    /// The input or the sum of joined inputs is longer than the format can express.
    #[error("{bytes} bytes are more than a Snappy block can hold (4 GiB)")]
    TooLong {
        /// The length that was to be expressed.
        bytes: u64,
    },
}

/// The length that `body` claims to decode to; only the preamble is read.
///
/// # Errors
/// [`SnappyError::Preamble`] when it is missing or not a 32-bit number.
pub fn decoded_len(body: &[u8]) -> Result<usize, SnappyError> {
    preamble(body).map(|(len, _)| len)
}

/// [`decoded_len`], if `body` can possibly hold that much.
///
/// The densest element is a copy with a two-byte offset: three bytes that yield 64. (A copy with a one-byte
/// offset yields 11 from two, one with a four-byte offset 64 from five, a literal less than its own
/// length.) So a block never expands to more than 64/3 of its elements, and whatever claims more is refused
/// before anything is paid for it.
///
/// # Errors
/// [`SnappyError::Preamble`] and [`SnappyError::Implausible`].
pub fn plausible(body: &[u8]) -> Result<usize, SnappyError> {
    let (claimed, elements) = preamble(body)?;
    let most = most_decoded(elements.len());
    if claimed as u64 > most {
        return Err(SnappyError::Implausible { claimed, body: body.len(), most });
    }
    Ok(claimed)
}

/// The most bytes that `elements` bytes of literals and copies can decode to.
#[must_use]
pub fn most_decoded(elements: usize) -> u64 {
    (elements as u64).saturating_mul(64) / 3
}

/// Decodes `body` to the start of `out` and returns the decoded length, which is the preamble's.
///
/// # Errors
/// [`SnappyError::Preamble`], [`SnappyError::OutputFull`] when `out` is shorter than [`decoded_len`], [`SnappyError::Corrupt`].
pub fn decode(body: &[u8], out: &mut [u8]) -> Result<usize, SnappyError> {
    let claimed = decoded_len(body)?;
    if out.len() < claimed {
        return Err(SnappyError::OutputFull { given: out.len(), needed: claimed });
    }
    match snap::raw::Decoder::new().decompress(body, out) {
        Ok(len) if len == claimed => Ok(len),
        _ => Err(SnappyError::Corrupt { claimed }),
    }
}

/// The room that [`Encoder::compress`] wants for `raw` bytes.
///
/// # Errors
/// [`SnappyError::TooLong`] when that is beyond the format.
pub fn max_compressed_len(raw: usize) -> Result<usize, SnappyError> {
    match snap::raw::max_compress_len(raw) {
        0 => Err(SnappyError::TooLong { bytes: raw as u64 }),
        len => Ok(len),
    }
}

/// A compressor, to be kept: its tables are reused.
#[derive(Debug)]
pub struct Encoder(Box<snap::raw::Encoder>);

impl Encoder {
    /// The most memory an encoder holds, its own value included.
    pub const BYTES: usize = (1 << 14) * 2 + size_of::<snap::raw::Encoder>() + size_of::<Self>();

    /// A new encoder.
    #[must_use]
    pub fn new() -> Self {
        Self(Box::new(snap::raw::Encoder::new()))
    }

    /// Compresses `raw` to the start of `out`, which must have [`max_compressed_len`], and returns the
    /// compressed length.
    ///
    /// # Errors
    /// [`SnappyError::TooLong`], [`SnappyError::OutputFull`].
    pub fn compress(&mut self, raw: &[u8], out: &mut [u8]) -> Result<usize, SnappyError> {
        let needed = max_compressed_len(raw.len())?;
        let room = SnappyError::OutputFull { given: out.len(), needed };
        self.0.compress(raw, out).map_err(|_| room)
    }
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Splits `body` into its claimed length and its elements.
fn preamble(body: &[u8]) -> Result<(usize, &[u8]), SnappyError> {
    let mut len = 0u32;
    for (index, &byte) in body.iter().take(5).enumerate() {
        if index == 4 && byte > 0x0f {
            break;
        }
        len |= u32::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            let len = usize::try_from(len).map_err(|_| SnappyError::Preamble)?;
            return Ok((len, body.get(index + 1..).unwrap_or_default()));
        }
    }
    Err(SnappyError::Preamble)
}

//! A Snappy block that is compressed piece by piece, while it fills: the raw bytes are never in memory at once.
//!
//! Each piece becomes elements, which go behind a preamble with the length of all pieces together
//! ([`joined_preamble`](super::join::joined_preamble)), which is known at the end. See [`join`](super::join) for why that is one block.

use super::join::elements;
use super::{Encoder, SnappyError, max_compressed_len};

/// The most bytes of a piece before compression: blocks are compressed in pieces of this length by every encoder.
pub const PIECE: usize = 64 << 10;
/// The scratch that [`piece`] needs, in bytes.
pub const SCRATCH: usize = 32 + PIECE + PIECE / 6;
/// The tag of a literal of up to [`PIECE`] bytes.
const LONGEST_TAG: usize = 3;

/// The most bytes that `raw` bytes take as elements.
#[must_use]
pub const fn max_len(raw: usize) -> usize {
    raw + raw.div_ceil(PIECE) * LONGEST_TAG
}

/// The elements of a piece: [`max_len`] bytes at most.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'s> {
    tag: [u8; LONGEST_TAG],
    tag_len: usize,
    data: &'s [u8],
}

impl<'s> Elements<'s> {
    /// The bytes, in two parts.
    #[must_use]
    pub fn parts(&self) -> [&[u8]; 2] {
        [self.tag.get(..self.tag_len).unwrap_or_default(), self.data]
    }

    /// The bytes as they are, as one literal.
    fn literal(raw: &'s [u8]) -> Elements<'s> {
        let Some(last) = raw.len().checked_sub(1) else {
            return Elements { tag: [0; LONGEST_TAG], tag_len: 0, data: raw };
        };
        // A tag has the length less one: in its upper six bits, or in one or two bytes behind it, for which 60 and 61 stand.
        let [low, high, ..] = last.to_le_bytes();
        let (tag, tag_len) = match last {
            0..60 => ([low << 2, 0, 0], 1),
            60..256 => ([60 << 2, low, 0], 2),
            _ => ([61 << 2, low, high], 3),
        };
        Elements { tag, tag_len, data: raw }
    }
}

/// Compresses `raw`, which has at most [`PIECE`] bytes. `scratch` has [`SCRATCH`] bytes.
///
/// # Errors
/// [`SnappyError`] when `raw` or `scratch` is not as long as it should be.
pub fn piece<'s>(
    encoder: &mut Encoder,
    raw: &'s [u8],
    scratch: &'s mut [u8],
) -> Result<Elements<'s>, SnappyError> {
    if raw.len() > PIECE {
        return Err(SnappyError::OutputFull { given: PIECE, needed: raw.len() });
    }
    let (given, needed) = (scratch.len(), max_compressed_len(raw.len())?);
    let room = scratch.get_mut(..needed).ok_or(SnappyError::OutputFull { given, needed })?;
    let len = encoder.compress(raw, room)?;
    let data = elements(scratch.get(..len).unwrap_or_default())?;
    // What cannot be compressed becomes longer.
    if data.len() > raw.len() {
        Ok(Elements::literal(raw))
    } else {
        Ok(Elements { tag: [0; LONGEST_TAG], tag_len: 0, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snappy::join::joined_preamble;
    use proptest::prelude::*;

    /// Compresses with pieces of these lengths.
    fn block(raw: &[u8], mut lengths: impl Iterator<Item = usize>) -> Vec<u8> {
        let (mut encoder, mut scratch) = (Encoder::new(), vec![0; SCRATCH]);
        let mut body = joined_preamble(raw.len() as u64).unwrap().as_bytes().to_vec();
        let mut rest = raw;
        while !rest.is_empty() {
            let (first, behind) = rest.split_at(lengths.next().unwrap_or(PIECE).min(rest.len()));
            let elements = piece(&mut encoder, first, &mut scratch).unwrap();
            let written: usize = elements.parts().iter().map(|part| part.len()).sum();
            assert!(written <= max_len(first.len()));
            elements.parts().iter().for_each(|part| body.extend_from_slice(part));
            rest = behind;
        }
        body
    }

    proptest! {
        /// Whatever the pieces, the block decodes to all bytes in a row.
        #[test]
        fn decodes_to_what_was_compressed(
            seed in any::<u64>(),
            runs in prop::collection::vec((1_usize..3000, any::<bool>()), 0..60),
            lengths in prop::collection::vec(1_usize..=PIECE, 0..20),
        ) {
            let mut state = seed | 1;
            let mut raw = Vec::new();
            for (len, is_random) in runs {
                for _ in 0..len {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    raw.push(if is_random { state as u8 } else { b'a' });
                }
            }
            let body = block(&raw, lengths.into_iter());
            prop_assert_eq!(snap::raw::Decoder::new().decompress_vec(&body).unwrap(), raw);
        }
    }

    /// Each form of a literal's tag, at both of its ends.
    #[test]
    fn bytes_that_cannot_be_compressed_are_literals() {
        for len in [1, 2, 59, 60, 61, 255, 256, 257, PIECE - 1, PIECE] {
            let mut state = 88_172_645_463_325_252_u64;
            let raw: Vec<u8> = std::iter::repeat_with(|| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .take(len)
            .collect();
            let literal = Elements::literal(&raw);
            let mut body = joined_preamble(len as u64).unwrap().as_bytes().to_vec();
            literal.parts().iter().for_each(|part| body.extend_from_slice(part));
            assert_eq!(snap::raw::Decoder::new().decompress_vec(&body).unwrap(), raw, "{len}");
            assert_eq!(crate::snappy::decoded_len(&block(&raw, std::iter::empty())), Ok(len));
        }
    }
}

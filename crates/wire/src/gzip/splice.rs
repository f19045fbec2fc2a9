//! One member made of pieces: some compressed before and shared by many members, others as they are.

use super::encode::{HEADER, InvalidLevel};
use zlib_rs::crc32::{crc32, crc32_combine};
use zlib_rs::{Deflate, DeflateFlush};

/// The longest stored block (RFC 1951, section 3.2.4), in bytes.
const LONGEST_BLOCK: usize = u16::MAX as usize;
/// Bytes in front of a stored block that begins on a byte boundary.
const BLOCK_HEADER: usize = 5;
/// An empty stored block that is the last of its member.
const LAST_BLOCK: [u8; BLOCK_HEADER] = [1, 0, 0, 0xff, 0xff];
const TRAILER: usize = 8;
/// Output space of one step of the compressor.
const STEP: usize = 16 << 10;

/// Bytes compressed so that any member can contain them: they end on a byte boundary and refer to nothing before them.
#[derive(Debug, Clone)]
pub struct Section {
    deflated: Box<[u8]>,
    checksum: u32,
    len: usize,
}

/// A piece of a member.
#[derive(Debug, Clone, Copy)]
pub enum Piece<'a> {
    /// Bytes that are stored as they are.
    Stored(&'a [u8]),
    /// Bytes that were compressed before.
    Compressed(&'a Section),
}

impl Section {
    /// Compresses `bytes` at `level`, 1 (fast) to 9 (small). Takes [`Encoder::BYTES`](super::Encoder::BYTES) meanwhile.
    ///
    /// # Errors
    /// [`InvalidLevel`].
    pub fn new(bytes: &[u8], level: i32) -> Result<Section, InvalidLevel> {
        if !(1..=9).contains(&level) {
            return Err(InvalidLevel(level));
        }
        let mut deflate = Deflate::new(level, false, 15);
        let (mut deflated, mut written) = (Vec::new(), 0);
        loop {
            deflated.resize(written + STEP, 0);
            let (read_before, written_before) = (deflate.total_in(), deflate.total_out());
            let rest =
                usize::try_from(read_before).ok().and_then(|read| bytes.get(read..)).unwrap_or_default();
            let room = deflated.get_mut(written..).unwrap_or_default();
            // It fails for parameters that it cannot have, or when there is nothing to do, which is seen below.
            let _status = deflate.compress(rest, room, DeflateFlush::FullFlush);
            let made = usize::try_from(deflate.total_out() - written_before).unwrap_or(STEP);
            written += made;
            // With space left the flush is complete.
            if made < STEP {
                break;
            }
        }
        deflated.truncate(written);
        let checksum = crc32(0, bytes);
        Ok(Section { deflated: deflated.into_boxed_slice(), checksum, len: bytes.len() })
    }

    /// How long it is compressed, in bytes.
    pub fn compressed_len(&self) -> usize {
        self.deflated.len()
    }
}

/// How long the member of these pieces is, in bytes.
pub fn spliced_len(pieces: &[Piece<'_>]) -> usize {
    let of = |piece: &Piece<'_>| match piece {
        Piece::Stored(bytes) => bytes.len() + bytes.len().div_ceil(LONGEST_BLOCK) * BLOCK_HEADER,
        Piece::Compressed(section) => section.compressed_len(),
    };
    HEADER.len() + pieces.iter().map(of).sum::<usize>() + LAST_BLOCK.len() + TRAILER
}

/// Gives `put` the member of these pieces, in order. Compresses nothing.
///
/// # Errors
/// Those of `put`.
pub fn splice<E>(pieces: &[Piece<'_>], mut put: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    put(&HEADER)?;
    let (mut checksum, mut total) = (0, 0_u64);
    for piece in pieces {
        let (of_piece, len) = match piece {
            Piece::Stored(bytes) => {
                for block in bytes.chunks(LONGEST_BLOCK) {
                    let [low, high, ..] = block.len().to_le_bytes();
                    put(&[0, low, high, !low, !high])?;
                    put(block)?;
                }
                (crc32(0, bytes), bytes.len() as u64)
            }
            Piece::Compressed(section) => {
                put(&section.deflated)?;
                (section.checksum, section.len as u64)
            }
        };
        checksum = crc32_combine(checksum, of_piece, len);
        total += len;
    }
    put(&LAST_BLOCK)?;
    put(&checksum.to_le_bytes())?;
    let [a, b, c, d, ..] = total.to_le_bytes();
    put(&[a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;
    use crate::coding::{Grow, decode};
    use proptest::prelude::*;

    /// Output without a limit.
    #[derive(Default)]
    struct Output {
        bytes: Vec<u8>,
        len: usize,
    }

    impl Grow for Output {
        fn spare(&mut self) -> &mut [u8] {
            self.bytes.get_mut(self.len..).unwrap()
        }

        fn advance(&mut self, bytes: usize) {
            self.len += bytes;
        }

        fn grow(&mut self, more: usize) -> bool {
            self.bytes.resize(self.len + more.max(1), 0);
            true
        }
    }

    fn spliced(pieces: &[Piece<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        splice(pieces, |bytes| {
            out.extend_from_slice(bytes);
            Ok::<(), std::convert::Infallible>(())
        })
        .unwrap();
        out
    }

    fn decoded(member: &[u8]) -> Vec<u8> {
        let mut output = Output::default();
        decode(&mut Decoder::new(), member, &mut output).unwrap();
        output.bytes.truncate(output.len);
        output.bytes
    }

    proptest! {
        /// Whatever is stored and whatever is compressed, a decoder that checks the checksum and the length reads the pieces
        /// one after the other, and the length is as announced.
        #[test]
        fn a_member_is_its_pieces(
            pieces in prop::collection::vec((any::<bool>(), prop::collection::vec(0_u8..4, 0..3000)), 0..6),
            level in 1..=9_i32,
        ) {
            let sections: Vec<Section> =
                pieces.iter().map(|(_, bytes)| Section::new(bytes, level).unwrap()).collect();
            let spliced_pieces: Vec<Piece<'_>> = pieces
                .iter()
                .zip(&sections)
                .map(|((compressed, bytes), section)| match compressed {
                    true => Piece::Compressed(section),
                    false => Piece::Stored(bytes),
                })
                .collect();
            let member = spliced(&spliced_pieces);
            prop_assert_eq!(member.len(), spliced_len(&spliced_pieces));
            let all: Vec<u8> = pieces.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            prop_assert_eq!(decoded(&member), all);
        }
    }

    /// A section that fills whole steps of its compressor, and bytes that take several stored blocks.
    #[test]
    fn long_pieces_are_whole() {
        let mut state = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(200_000)
        .collect();
        let section = Section::new(&noise, 6).unwrap();
        let pieces = [Piece::Stored(&noise), Piece::Compressed(&section), Piece::Stored(b"end")];
        let member = spliced(&pieces);
        assert_eq!(member.len(), spliced_len(&pieces));
        assert_eq!(decoded(&member), [&noise[..], &noise, b"end"].concat());
    }
}

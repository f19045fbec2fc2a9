//! Snappy's framing format: a stream identifier, then chunks of up to 64 KiB, each with a checksum. Streams join by
//! concatenation, so a chunk can be compressed as soon as it is full. gRPC peers of Thanos call this encoding `snappy`.
//!
//! Specification: `framing_format.txt` of the Snappy project.

use super::{Encoder, SnappyError, decode, decoded_len, max_compressed_len};
use thiserror::Error;

/// The bytes that begin a stream. A stream may have several.
pub const STREAM_IDENTIFIER: [u8; 10] = *b"\xff\x06\x00\x00sNaPpY";
/// The most bytes of a chunk before compression.
pub const CHUNK: usize = 64 << 10;
/// The bytes of a chunk before its data: type, length, checksum.
const CHUNK_HEAD: usize = 8;
/// The most bytes of a framed chunk.
pub const FRAMED_CHUNK: usize = CHUNK_HEAD + CHUNK;
/// The scratch that [`frame`] needs, in bytes.
pub const SCRATCH: usize = 32 + CHUNK + CHUNK / 6;

const COMPRESSED: u8 = 0x00;
const UNCOMPRESSED: u8 = 0x01;
/// The first chunk type that a reader skips.
const SKIPPABLE: u8 = 0x80;

/// An error in a framed stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FramedError {
    /// It does not begin with the identifier, or ends inside a chunk.
    #[error("the framed Snappy stream is cut off, or is none")]
    CutOff,
    /// A chunk of a type that readers must not skip, or longer than the format permits.
    #[error("the framed Snappy stream has an invalid chunk")]
    Chunk,
    /// A chunk is corrupt.
    #[error(transparent)]
    Block(#[from] SnappyError),
    /// A chunk has another checksum than its data.
    #[error("a chunk of the framed Snappy stream does not match its checksum")]
    Checksum,
}

/// The most bytes that `raw` bytes take once framed, without the stream identifier.
#[must_use]
pub const fn max_framed_len(raw: usize) -> usize {
    raw + raw.div_ceil(CHUNK) * CHUNK_HEAD
}

/// Makes one chunk of `raw`, which has at most [`CHUNK`] bytes: its head and its data, [`FRAMED_CHUNK`] bytes at most in all.
/// `scratch` has [`SCRATCH`] bytes.
///
/// # Errors
/// [`SnappyError`] when `raw` or `scratch` is not as long as it should be.
pub fn frame<'s>(
    encoder: &mut Encoder,
    raw: &'s [u8],
    scratch: &'s mut [u8],
) -> Result<([u8; CHUNK_HEAD], &'s [u8]), SnappyError> {
    if raw.len() > CHUNK {
        return Err(SnappyError::OutputFull { given: CHUNK, needed: raw.len() });
    }
    let needed = max_compressed_len(raw.len())?;
    let room = scratch.get_mut(..needed).ok_or(SnappyError::OutputFull { given: CHUNK, needed })?;
    let len = encoder.compress(raw, room)?;
    // What saves less than an eighth is not worth decompressing.
    let (kind, data) = if len < raw.len() - raw.len() / 8 {
        (COMPRESSED, scratch.get(..len).unwrap_or_default())
    } else {
        (UNCOMPRESSED, raw)
    };
    let [first, second, third, _] = u32::try_from(data.len() + 4).unwrap_or(0).to_le_bytes();
    let [a, b, c, d] = masked_checksum(raw).to_le_bytes();
    Ok(([kind, first, second, third, a, b, c, d], data))
}

/// Decodes a whole stream a chunk at a time.
#[derive(Debug, Clone)]
pub struct Chunks<'a> {
    rest: &'a [u8],
}

impl<'a> Chunks<'a> {
    /// The chunks of a stream.
    ///
    /// # Errors
    /// [`FramedError::CutOff`] when it does not begin with the identifier.
    pub fn new(stream: &'a [u8]) -> Result<Chunks<'a>, FramedError> {
        if stream.starts_with(&STREAM_IDENTIFIER) {
            Ok(Chunks { rest: stream })
        } else {
            Err(FramedError::CutOff)
        }
    }

    /// Decodes the next chunk to the start of `out`, which has [`CHUNK`] bytes; its length, or nothing at the end.
    ///
    /// # Errors
    /// [`FramedError`].
    pub fn next_into(&mut self, out: &mut [u8]) -> Result<Option<usize>, FramedError> {
        loop {
            if self.rest.is_empty() {
                return Ok(None);
            }
            let (&[kind, first, second, third], rest) =
                self.rest.split_first_chunk().ok_or(FramedError::CutOff)?;
            let len = u32::from_le_bytes([first, second, third, 0]) as usize;
            let (data, rest) = rest.split_at_checked(len).ok_or(FramedError::CutOff)?;
            self.rest = rest;
            match kind {
                COMPRESSED | UNCOMPRESSED => return chunk(kind, data, out).map(Some),
                SKIPPABLE.. => {}
                _ => return Err(FramedError::Chunk),
            }
        }
    }
}

fn chunk(kind: u8, data: &[u8], out: &mut [u8]) -> Result<usize, FramedError> {
    let (checksum, data) = data.split_first_chunk().ok_or(FramedError::CutOff)?;
    let len = if kind == COMPRESSED { decoded_len(data)? } else { data.len() };
    if len > CHUNK {
        return Err(FramedError::Chunk);
    }
    let given = out.len();
    let room = out.get_mut(..len).ok_or(SnappyError::OutputFull { given, needed: len })?;
    if kind == COMPRESSED {
        decode(data, room)?;
    } else {
        room.copy_from_slice(data);
    }
    if masked_checksum(room) == u32::from_le_bytes(*checksum) { Ok(len) } else { Err(FramedError::Checksum) }
}

fn masked_checksum(raw: &[u8]) -> u32 {
    crc32c::crc32c(raw).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Read, Write};

    fn framed(raw: &[u8]) -> Vec<u8> {
        let (mut encoder, mut scratch) = (Encoder::new(), vec![0; SCRATCH]);
        let mut stream = STREAM_IDENTIFIER.to_vec();
        for chunk in raw.chunks(CHUNK) {
            let (head, data) = frame(&mut encoder, chunk, &mut scratch).unwrap();
            stream.extend(head);
            stream.extend(data);
        }
        assert!(stream.len() <= STREAM_IDENTIFIER.len() + max_framed_len(raw.len()));
        stream
    }

    fn unframed(stream: &[u8]) -> Result<Vec<u8>, FramedError> {
        let (mut chunks, mut out, mut raw) = (Chunks::new(stream)?, vec![0; CHUNK], Vec::new());
        while let Some(len) = chunks.next_into(&mut out)? {
            raw.extend(out.get(..len).unwrap());
        }
        Ok(raw)
    }

    fn bodies() -> impl Strategy<Value = Vec<u8>> {
        let random = prop::collection::vec(any::<u8>(), 0..200_000);
        let repeated = (prop::collection::vec(any::<u8>(), 1..300), 1..2000_usize)
            .prop_map(|(piece, times)| piece.repeat(times));
        prop_oneof![random, repeated]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        /// Another implementation reads it, and is read.
        #[test]
        fn agrees_with_another_implementation(raw in bodies()) {
            let stream = framed(&raw);
            let (mut read, mut decoder) = (vec![0; raw.len()], snap::read::FrameDecoder::new(&*stream));
            decoder.read_exact(&mut read).unwrap();
            prop_assert!(read == raw && decoder.read(&mut [0]).unwrap() == 0);
            let mut encoder = snap::write::FrameEncoder::new(Vec::new());
            encoder.write_all(&raw).unwrap();
            let stream = encoder.into_inner().unwrap();
            // Of nothing it makes no stream at all.
            prop_assert!(raw.is_empty() || unframed(&stream).unwrap() == raw);
            prop_assert!(unframed(&framed(&raw)).unwrap() == raw);
        }

        #[test]
        fn damage_is_found_or_does_no_harm(raw in bodies(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            prop_assume!(!raw.is_empty());
            let mut stream = framed(&raw);
            let at = at.index(stream.len());
            *stream.get_mut(at).unwrap() ^= 1 << bit;
            // A chunk type that is skipped takes its data with it. In bytes that repeat, a copy from elsewhere is the same.
            prop_assert!(unframed(&stream).map_or(true, |read| read.len() < raw.len() || read == raw));
        }
    }

    /// Of one byte many times over, every copy is the same wherever it is from: no checksum can tell, and none needs to.
    #[test]
    fn a_copy_from_elsewhere_that_is_the_same_is_no_damage() {
        let raw = vec![7; 1000];
        let stream = framed(&raw);
        let bits = (STREAM_IDENTIFIER.len() * 8..stream.len() * 8).map(|bit| {
            let mut stream = stream.clone();
            *stream.get_mut(bit / 8).unwrap() ^= 1 << (bit % 8);
            unframed(&stream)
        });
        let read: Vec<Vec<u8>> = bits.filter_map(Result::ok).filter(|read| !read.is_empty()).collect();
        assert!(!read.is_empty() && read.iter().all(|read| *read == raw), "{} read", read.len());
    }
}

//! Another implementation's output decompresses to the original, in any pieces; damaged input is refused; memory is
//! as declared.
#![allow(clippy::indexing_slicing, clippy::disallowed_methods, reason = "what is read here was written here")]

use std::io::Read;

use flate2::read::ZlibEncoder;
use proptest::prelude::*;
use zlib_rs::adler32::adler32;

use super::*;
use crate::coding::tests::{
    Limited, assert_memory_is_as_declared, assert_output_is_limited, decoded, in_pieces, texts,
};
use crate::coding::{DecompressError, decode};

fn compress(level: u32, raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    ZlibEncoder::new(raw, flate2::Compression::new(level)).read_to_end(&mut body).unwrap();
    body
}

fn decompress(body: &[u8]) -> Result<Vec<u8>, DecompressError<ZlibError>> {
    decoded(Decoder::new(), body)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Streams decode in any pieces; the state may have been used before, and left in the middle.
    #[test]
    fn streams_decode_in_any_pieces(
        raw in texts(),
        level in 0..10u32,
        input in 1..5000usize,
        output in 1..5000usize,
    ) {
        let body = compress(level, &raw);
        let mut decoder = Decoder::new();
        let _ = decoder.step(&body[..body.len() / 3], &mut [0; 100]);
        prop_assert!(in_pieces(&mut decoder, &body, input, output).unwrap() == raw);
        prop_assert!(decompress(&body).unwrap() == raw);
    }

    /// Input truncated anywhere is refused.
    #[test]
    fn cut_bodies_are_refused(raw in texts(), cut in any::<proptest::sample::Index>()) {
        let body = compress(6, &raw);
        let cut = cut.index(body.len() - 1) + 1;
        prop_assert_eq!(decompress(&body[..cut]), Err(DecompressError::Malformed(ZlibError::Truncated)));
    }

    /// A damaged body is refused, unless the checksum does not see it: Adler-32 misses some changes, mostly in
    /// data that repeats itself.
    #[test]
    fn damage_is_noticed(raw in texts(), at in any::<proptest::sample::Index>(), bit in 0..8u8) {
        let mut body = compress(6, &raw);
        let at = at.index(body.len());
        body[at] ^= 1 << bit;
        if let Ok(found) = decompress(&body) {
            prop_assert_eq!(adler32(1, &found), adler32(1, &raw), "byte {}", at);
        }
    }
}

/// The memory of a decoder of gzip does as well, before and after.
#[test]
fn the_state_of_gzip_decodes_zlib() {
    use crate::gzip;
    let mut gzip = gzip::Decoder::new();
    let mut members = Vec::new();
    flate2::read::GzEncoder::new(&b"other text"[..], flate2::Compression::new(6))
        .read_to_end(&mut members)
        .unwrap();
    for _ in 0..2 {
        let mut out = Limited::new(100);
        decode(&mut gzip.as_zlib(), &compress(6, b"some text"), &mut out).unwrap();
        assert_eq!(out.written(), b"some text");
        let mut out = Limited::new(100);
        decode(&mut gzip, &members, &mut out).unwrap();
        assert_eq!(out.written(), b"other text");
    }
}

/// Each kind of damage has a sentence of its own; no bytes are no stream, and nothing is wrong with that.
#[test]
fn refusals_say_why() {
    let good = compress(6, b"some text");
    assert_eq!(decompress(&[]).unwrap(), b"");
    assert_eq!(decompress(b"{\"metadata\""), Err(DecompressError::Malformed(ZlibError::Data)));
    assert_eq!(decompress(&[&good[..], b"x"].concat()), Err(DecompressError::Malformed(ZlibError::Trailing)));
    let mut in_pieces = Decoder::new();
    in_pieces.step(&good, &mut [0; 100]).unwrap();
    assert_eq!(in_pieces.step(b"x", &mut [0; 100]), Err(ZlibError::Trailing));
}

#[test]
fn output_is_limited() {
    assert_output_is_limited(Decoder::new(), &compress(9, &vec![0; 10 << 20]), 10 << 20);
}

#[test]
fn memory_is_as_declared() {
    let raw = b"service.name=checkout ".repeat(20_000);
    assert_memory_is_as_declared(Decoder::new, Decoder::BYTES, &compress(6, &raw), &raw);
}

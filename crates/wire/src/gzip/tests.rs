//! Compressed bytes decompress to the original, in any pieces and as in other implementations; damaged input is
//! refused; memory is as declared.
#![allow(clippy::indexing_slicing, clippy::disallowed_methods, reason = "what is read here was written here")]

use std::io::Read;

use flate2::GzBuilder;
use flate2::read::MultiGzDecoder;
use proptest::prelude::*;

use super::*;
use crate::coding::tests::{
    assert_memory_is_as_declared, assert_output_is_limited, decoded, in_pieces, texts,
};
use crate::coding::{Decode, DecompressError};

fn compress(level: i32, raw: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(level).unwrap();
    let mut out = vec![0; Encoder::max_len(raw.len())];
    let (read, written) = encoder.step(raw, &mut out);
    assert_eq!(read, raw.len());
    let (rest, complete) = encoder.finish(&mut out[written..]);
    assert!(complete);
    out.truncate(written + rest);
    out
}

fn decompress(body: &[u8]) -> Result<Vec<u8>, DecompressError<GzipError>> {
    decoded(Decoder::new(), body)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Compressed in any pieces, the other implementation reads back what was written.
    #[test]
    fn gzip_output_decodes_elsewhere(raw in texts(), level in 1..=9, piece in 1..4000usize, room in 1..4000usize) {
        let mut encoder = Encoder::new(level).unwrap();
        let mut body = Vec::new();
        for _ in 0..2 {
            for mut rest in raw.chunks(piece) {
                while !rest.is_empty() {
                    let mut out = vec![0; room];
                    let (read, written) = encoder.step(rest, &mut out);
                    body.extend_from_slice(&out[..written]);
                    rest = &rest[read..];
                }
            }
            loop {
                let mut out = vec![0; room];
                let (written, complete) = encoder.finish(&mut out);
                body.extend_from_slice(&out[..written]);
                if complete {
                    break;
                }
            }
        }
        let mut found = Vec::new();
        MultiGzDecoder::new(&body[..]).take(1 << 24).read_to_end(&mut found).unwrap();
        prop_assert!(found == raw.repeat(2));
        prop_assert!(decompress(&body).unwrap() == raw.repeat(2));
    }

    /// Members of another implementation, with every part that a header can have, decode in any pieces; the
    /// state may have been used before, and left in the middle.
    #[test]
    fn members_decode_in_any_pieces(
        raw in texts(),
        extra in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
        name in proptest::option::of("[a-z]{0,20}"),
        comment in proptest::option::of("[a-z]{0,20}"),
        input in 1..5000usize,
        output in 1..5000usize,
    ) {
        let mut builder = GzBuilder::new().mtime(77);
        if let Some(extra) = extra { builder = builder.extra(extra) }
        if let Some(name) = name { builder = builder.filename(name) }
        if let Some(comment) = comment { builder = builder.comment(comment) }
        let mut body = Vec::new();
        builder.read(&raw[..], flate2::Compression::new(5)).read_to_end(&mut body).unwrap();
        body.extend(compress(1, &raw));
        let mut decoder = Decoder::new();
        let _ = decoder.step(&body[..body.len() / 3], &mut [0; 100]);
        prop_assert!(in_pieces(&mut decoder, &body, input, output).unwrap() == raw.repeat(2));
    }

    /// Input truncated anywhere is refused.
    #[test]
    fn cut_bodies_are_refused(raw in texts(), cut in any::<proptest::sample::Index>()) {
        let body = compress(6, &raw);
        let cut = cut.index(body.len() - 1) + 1;
        prop_assert_eq!(decompress(&body[..cut]), Err(DecompressError::Malformed(GzipError::Truncated)));
    }

    /// A damaged body is refused, or damaged where nothing is said about the data: in most of a header, or in the
    /// bits that fill the last byte of the compressed data.
    #[test]
    fn damage_is_noticed(raw in texts(), at in any::<proptest::sample::Index>(), bit in 0..8u8) {
        let mut body = compress(6, &raw);
        let at = at.index(body.len());
        body[at] ^= 1 << bit;
        if let Ok(found) = decompress(&body) {
            prop_assert!(found == raw, "byte {at}");
        }
    }
}

/// A header's checksum is checked when there is one.
#[test]
fn a_header_checksum_is_checked() {
    let plain = compress(6, b"some text");
    let mut header = plain[..10].to_vec();
    header[3] = 2;
    let sum = zlib_rs::crc32::crc32(0, &header).to_le_bytes();
    let body = |sum: [u8; 2]| [&header, &sum[..], &plain[10..]].concat();
    assert_eq!(decompress(&body([sum[0], sum[1]])).unwrap(), b"some text");
    assert_eq!(
        decompress(&body([sum[0], !sum[1]])),
        Err(DecompressError::Malformed(GzipError::HeaderChecksum))
    );
    let good = body([sum[0], sum[1]]);
    assert_eq!(in_pieces(&mut Decoder::new(), &good, 1, 1).unwrap(), b"some text");
}

/// Each kind of damage has a sentence of its own.
#[test]
fn refusals_say_why() {
    let good = compress(6, b"some text");
    let changed = |at: usize, to: u8| {
        let mut body = good.clone();
        body[at] = to;
        decompress(&body).unwrap_err().to_string()
    };
    let last = good.len() - 1;
    assert_eq!(changed(0, 1), "gzip: a member must begin with the bytes 1f 8b, and this one does not");
    assert_eq!(changed(2, 7), "gzip: compression method 7 is unknown; only 8 (deflate) is defined");
    assert_eq!(changed(3, 0x80), "gzip: the header has reserved flags set (0b10000000)");
    assert_eq!(changed(10, 0xff), "gzip: the compressed data is damaged");
    assert_eq!(changed(last - 7, 0), "gzip: the checksum is 4fbabdba and should be 4fbabd00");
    assert_eq!(changed(last, 9), "gzip: a member has 9 bytes (modulo 2^32) and its trailer says 150994953");
    let garbage = [&good[..], b"\0\0"].concat();
    assert_eq!(decompress(&garbage), Err(DecompressError::Malformed(GzipError::Magic)));
    assert_eq!(decompress(&[]).unwrap(), b"");
    assert_eq!(Encoder::new(0).unwrap_err(), InvalidLevel(0));
}

/// A bomb takes no more than was granted, and what fits exactly is granted.
#[test]
fn output_is_limited() {
    let raw = vec![0; 10 << 20];
    let bomb = compress(9, &raw);
    assert_output_is_limited(Decoder::new(), &bomb, raw.len());
    assert_eq!(Decoder::new().expected_len(&bomb), raw.len());
    assert_eq!(Decoder::new().expected_len(&[0xff; 100]), 103_200);
}

/// Wherever a member was given up, nothing of it is in the next.
#[test]
fn an_unfinished_member_leaves_nothing_behind() {
    let raw: Vec<u8> = (0..200_000u32).map(|n| b'a' + (n.wrapping_mul(2_654_435_761) >> 28) as u8).collect();
    for level in 1..=9 {
        let mut encoder = Encoder::new(level).unwrap();
        for room in [5, 11, 1000, 40_000] {
            let (mut out, mut at) = (vec![0; room], 0);
            while at < raw.len() {
                let (read, written) = encoder.step(&raw[at..], &mut out[..]);
                at += read;
                if written == 0 || at > room * 3 {
                    break;
                }
            }
            encoder.reset();
            let mut out = vec![0; Encoder::max_len(raw.len())];
            let (read, written) = encoder.step(&raw, &mut out);
            let (rest, complete) = encoder.finish(&mut out[written..]);
            assert!(read == raw.len() && complete);
            assert!(decompress(&out[..written + rest]) == Ok(raw.clone()), "level {level} after {room}");
        }
    }
}

/// Random bytes compressed at any level fit in what `max_len` says.
#[test]
fn compressed_bodies_fit_max_len() {
    let mut state = 1u64;
    let noise: Vec<u8> = (0..300_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56).to_le_bytes()[0]
        })
        .collect();
    for level in 1..=9 {
        for len in [0, 1, 100, 5000, 70_000, 300_000] {
            assert!(compress(level, &noise[..len]).len() <= Encoder::max_len(len));
        }
    }
}

/// The heap is what `BYTES` says when the state is made, and untouched from then on.
#[test]
fn memory_is_as_declared() {
    let raw = b"service.name=checkout ".repeat(20_000);
    for level in 1..=9 {
        let mut encoder = None;
        let made = allocation_counter::measure(|| encoder = Encoder::new(level).ok());
        assert!(made.bytes_current <= Encoder::BYTES as i64, "level {level}: {}", made.bytes_current);
        assert!(
            made.bytes_current * 10 >= Encoder::BYTES as i64 * 9,
            "level {level}: {}",
            made.bytes_current
        );
        let mut encoder = encoder.unwrap();
        let mut out = vec![0; Encoder::max_len(raw.len())];
        let used = allocation_counter::measure(|| {
            for _ in 0..3 {
                let (_, written) = encoder.step(&raw, &mut out);
                encoder.finish(&mut out[written..]);
            }
        });
        assert_eq!(used.count_total, 0, "level {level}");
    }
    assert_memory_is_as_declared(Decoder::new, Decoder::BYTES, &compress(6, &raw), &raw);
}

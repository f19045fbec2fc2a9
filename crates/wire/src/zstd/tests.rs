//! Compressed bytes decompress to the original, as in other implementations; excessive sizes are refused before any
//! memory is charged; memory is as declared.
#![allow(clippy::indexing_slicing, clippy::disallowed_methods, reason = "what is read here was written here")]

use std::io::Read;

use proptest::prelude::*;
use ruzstd::decoding::StreamingDecoder;

use super::*;
use crate::coding::tests::{Limited, assert_memory_is_as_declared, decoded, texts};
use crate::coding::{Decode, DecompressError, Needs, Progress, decode};

fn compress(level: i32, raw: &[u8], announced: bool) -> Vec<u8> {
    let mut encoder = Encoder::new(level).unwrap();
    encoder.begin(announced.then_some(raw.len() as u64)).unwrap();
    let mut out = vec![0; Encoder::max_len(raw.len())];
    let (read, written) = encoder.step(raw, &mut out).unwrap();
    assert_eq!(read, raw.len());
    let (rest, complete) = encoder.finish(&mut out[written..]).unwrap();
    assert!(complete);
    out.truncate(written + rest);
    out
}

fn decompress(body: &[u8]) -> Result<Vec<u8>, DecompressError<ZstdError>> {
    decoded(Decoder::new(Decoder::WINDOW), body)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Compressed in any pieces, with and without a length, both implementations read back what was written.
    #[test]
    fn zstd_output_decodes_elsewhere(
        raw in texts(),
        level in 1..=4,
        piece in 1..4000usize,
        room in 1..4000usize,
        announced in any::<bool>(),
    ) {
        let mut encoder = Encoder::new(level).unwrap();
        encoder.begin(announced.then_some(raw.len() as u64)).unwrap();
        let mut body = Vec::new();
        for mut rest in raw.chunks(piece) {
            while !rest.is_empty() {
                let mut out = vec![0; room];
                let (read, written) = encoder.step(rest, &mut out).unwrap();
                body.extend_from_slice(&out[..written]);
                rest = &rest[read..];
            }
        }
        loop {
            let mut out = vec![0; room];
            let (written, complete) = encoder.finish(&mut out).unwrap();
            body.extend_from_slice(&out[..written]);
            if complete {
                break;
            }
        }
        let mut found = Vec::new();
        StreamingDecoder::new(&body[..]).unwrap().take(1 << 24).read_to_end(&mut found).unwrap();
        prop_assert!(found == raw);
        prop_assert!(decompress(&body).unwrap() == raw);
    }

    /// Frames of every kind, one after the other, become the concatenation of what they were.
    #[test]
    fn frames_follow_one_another(parts in proptest::collection::vec((texts(), 0..5), 0..6)) {
        let (mut body, mut raw) = (Vec::new(), Vec::new());
        for (text, kind) in parts {
            match kind {
                0 => body.extend(compress(3, &text, true)),
                1 => body.extend(compress(1, &text, false)),
                2 => body.extend(ruzstd::encoding::compress_to_vec(
                    &text[..], ruzstd::encoding::CompressionLevel::Fastest)),
                3 => body.extend(ruzstd::encoding::compress_to_vec(
                    &text[..], ruzstd::encoding::CompressionLevel::Uncompressed)),
                _ => {
                    body.extend([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
                    continue;
                }
            }
            raw.extend(text);
        }
        prop_assert!(decompress(&body).unwrap() == raw);
    }

    /// Input truncated anywhere is refused.
    #[test]
    fn cut_bodies_are_refused(raw in texts(), announced in any::<bool>(), cut in any::<proptest::sample::Index>()) {
        let body = compress(3, &raw, announced);
        let cut = cut.index(body.len() - 1) + 1;
        prop_assert_eq!(decompress(&body[..cut]), Err(DecompressError::Malformed(ZstdError::Truncated)));
    }

    /// Damage is refused, or makes a body that another implementation reads in the same way.
    #[test]
    fn damage_is_judged_as_elsewhere(raw in texts(), at in any::<proptest::sample::Index>(), bit in 0..8u8) {
        let mut body = compress(3, &raw, false);
        let at = at.index(body.len());
        body[at] ^= 1 << bit;
        if let Ok(found) = decompress(&body) {
            let mut theirs = Vec::new();
            let read = StreamingDecoder::new(&body[..])
                .map_err(drop)
                .and_then(|decoder| decoder.take(1 << 24).read_to_end(&mut theirs).map_err(drop));
            prop_assert!(read.is_err() || found == theirs);
        }
    }
}

/// A frame that wants 2 GiB of history is refused by its header, before there is any output; so is one that
/// announces gigabytes that its blocks cannot become.
#[test]
fn large_claims_are_refused_at_once() {
    let mut decoder = Decoder::new(Decoder::WINDOW);
    let wide = [0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1, 0, 0];
    let text = "zstd: a frame wants a window of 2147483648 bytes, and at most 8388608 are allowed";
    assert_eq!(decoder.step(&wide, &mut []).unwrap_err().to_string(), text);
    let long = [0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0];
    let text = "zstd: a frame announces 8589934592 bytes, and its blocks can be no more than 0";
    assert_eq!(decoder.step(&long, &mut []).unwrap_err().to_string(), text);
    assert_eq!(decoder.expected_len(&long), 0);
}

/// Each kind of damage has a sentence of its own.
#[test]
fn refusals_say_why() {
    let cases: [(&[u8], &str); 8] = [
        (b"plain text", "zstd: a frame must begin with the bytes 28 b5 2f fd, and this one does not"),
        (b"pl", "zstd: a frame must begin with the bytes 28 b5 2f fd, and this one does not"),
        (&[0x28, 0xb5], "zstd: the body ends inside a frame"),
        (&[0x5f, 0x2a], "zstd: the body ends inside a frame"),
        (&[0x28, 0xb5, 0x2f, 0xfd, 8, 0], "zstd: a frame's header has its reserved bit set"),
        (
            &[0x28, 0xb5, 0x2f, 0xfd, 1, 0, 7, 1, 0, 0],
            "zstd: a frame was compressed with dictionary 7, which is not known here",
        ),
        (&[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 7, 0, 0], "zstd: a block has the reserved type 3"),
        (
            &[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 3, 0x20, 0],
            "zstd: a block has 1024 bytes, and at most 1023 are allowed in its frame",
        ),
    ];
    for (body, text) in cases {
        let refused = decompress(body).unwrap_err().to_string();
        if text.contains("1023") {
            assert_eq!(refused, "zstd: the body ends inside a frame");
        } else {
            assert_eq!(refused, text, "{body:?}");
        }
    }
    let over = decompress(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0, 11, 0x20, 0, 0]).unwrap_err().to_string();
    assert_eq!(over, "zstd: a block has 1025 bytes, and at most 1024 are allowed in its frame");
    let mut summed =
        ruzstd::encoding::compress_to_vec(&b"text"[..], ruzstd::encoding::CompressionLevel::Fastest);
    let last = summed.len() - 1;
    summed[last] ^= 1;
    assert_eq!(decompress(&summed).unwrap_err().to_string(), "zstd: Restored data doesn't match checksum");
    assert_eq!(Encoder::new(0).unwrap_err(), ZstdEncoderError::Level(0));
}

/// A body that says its length is granted just that; one that does not is tried at a guess and then at the
/// most that it can be, however much longer that is than what it is.
#[test]
fn room_is_asked_for_as_needed() {
    let raw = vec![7; 3 << 20];
    let mut out = Limited::new(1 << 24);
    let mut decoder = Decoder::new(Decoder::WINDOW);
    decode(&mut decoder, &compress(1, &raw, true), &mut out).unwrap();
    assert_eq!((out.paid(), out.grown), (raw.len(), 1));

    let bomb = compress(1, &raw, false);
    let mut out = Limited::new(1 << 24);
    decode(&mut decoder, &bomb, &mut out).unwrap();
    assert_eq!(out.grown, 2);
    assert!(out.paid() >= raw.len() && out.paid() <= raw.len() + (256 << 10), "{}", out.paid());
    let mut out = Limited::new(raw.len());
    assert_eq!(decode(&mut decoder, &bomb, &mut out), Ok(raw.len()));
    let mut out = Limited::new(raw.len() - 1);
    assert_eq!(decode(&mut decoder, &bomb, &mut out), Err(DecompressError::OutputFull));
    assert_eq!(decoder.step(&[], &mut []), Ok(Progress { read: 0, written: 0, needs: Needs::Nothing }));
}

/// The heap is what was declared, at every level, in steps and in one go, and there is no more of it later.
#[test]
fn memory_is_as_declared() {
    let raw = b"service.name=checkout http.route=/cart ".repeat(20_000);
    for level in 1..=9 {
        let mut body = vec![0; Encoder::max_len(raw.len())];
        let mut encoder = None;
        let mut run = |encoder: &mut Encoder| {
            encoder.begin(None).unwrap();
            let (_, written) = encoder.step(&raw, &mut body).unwrap();
            encoder.finish(&mut body[written..]).unwrap();
            encoder.whole(&raw, &mut body).unwrap();
        };
        let made = allocation_counter::measure(|| {
            encoder = Encoder::new(level).ok();
            run(encoder.as_mut().unwrap());
        });
        let declared = Encoder::bytes(level) as u64;
        assert!(made.bytes_max <= declared, "level {level}: {}", made.bytes_max);
        assert!(made.bytes_max * 10 >= declared * 9, "level {level}: {}", made.bytes_max);
        let used = allocation_counter::measure(|| {
            (0..if level == 1 { 300 } else { 2 }).for_each(|_| run(encoder.as_mut().unwrap()))
        });
        assert_eq!(used.count_total, 0, "level {level}");
    }
    let new = || Decoder::new(Decoder::WINDOW);
    assert_memory_is_as_declared(new, Decoder::BYTES, &compress(3, &raw, false), &raw);
}

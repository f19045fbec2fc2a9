//! Any body is decompressed as another implementation does it, whole and in pieces, or refused; what comes
//! out compresses to a body that becomes the same again.
#![no_main]

use std::io::Read;

use libfuzzer_sys::fuzz_target;
use tidegate_wire::coding::{Decode, Needs};
use tidegate_wire::gzip::{Decoder, Encoder};

/// More than this is left out: it costs time and says nothing new.
const LARGEST: usize = 1 << 20;

fuzz_target!(|body: &[u8]| {
    let whole = decode(body, body.len().max(1), LARGEST);
    let piece = body.first().map_or(1, |&byte| usize::from(byte % 13) + 1);
    assert_eq!(whole, decode(body, piece, piece * 7));
    let Some(raw) = whole else { return };
    if !body.is_empty() {
        let mut theirs = Vec::new();
        flate2::read::MultiGzDecoder::new(body).take(LARGEST as u64).read_to_end(&mut theirs).unwrap();
        assert_eq!(raw, theirs);
    }
    let mut encoder = Encoder::new(i32::try_from(piece % 9).unwrap() + 1).unwrap();
    let mut out = vec![0; Encoder::max_len(raw.len())];
    let (read, written) = encoder.step(&raw, &mut out);
    let (rest, is_complete) = encoder.finish(&mut out[written..]);
    assert!(read == raw.len() && is_complete);
    assert_eq!(decode(&out[..written + rest], 1 << 20, LARGEST), Some(raw));
});

/// Decodes `body` in pieces; `None` if it is refused or larger than `LARGEST`.
fn decode(body: &[u8], input: usize, output: usize) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new();
    let (mut at, mut raw, mut room) = (0, Vec::new(), vec![0; output]);
    loop {
        let end = (at + input).min(body.len());
        let progress = decoder.step(&body[at..end], &mut room).ok()?;
        at += progress.read;
        raw.extend_from_slice(&room[..progress.written]);
        if raw.len() >= LARGEST {
            return None;
        }
        if at == body.len() && !matches!(progress.needs, Needs::Output(_)) {
            return (progress.needs == Needs::Nothing).then_some(raw);
        }
    }
}

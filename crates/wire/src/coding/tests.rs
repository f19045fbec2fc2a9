//! Shared by the tests of the codings: memory with a limit, compressible bodies, and properties of every coding.
#![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

use proptest::prelude::*;

use super::*;

/// Memory that grows up to a limit.
pub(crate) struct Limited {
    bytes: Vec<u8>,
    len: usize,
    limit: usize,
    pub(crate) grown: usize,
}

impl Limited {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), len: 0, limit, grown: 0 }
    }

    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// How much was ever paid for.
    pub(crate) fn paid(&self) -> usize {
        self.bytes.len()
    }
}

impl Grow for Limited {
    fn spare(&mut self) -> &mut [u8] {
        &mut self.bytes[self.len..]
    }

    fn advance(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes.len() - self.len);
        self.len += bytes;
    }

    fn grow(&mut self, more: usize) -> bool {
        self.grown += 1;
        let to = self.bytes.len().saturating_add(more).min(self.limit);
        let has_grown = to > self.bytes.len();
        self.bytes.resize(to, 0xaa);
        has_grown
    }
}

/// Decodes `body` in pieces of `input` bytes in and `output` bytes out.
pub(crate) fn in_pieces<D: Decode>(
    decoder: &mut D,
    body: &[u8],
    input: usize,
    output: usize,
) -> Result<Vec<u8>, D::Error> {
    decoder.reset();
    let (mut at, mut all) = (0, Vec::new());
    loop {
        let mut room = vec![0; output];
        let end = (at + input).min(body.len());
        let progress = decoder.step(&body[at..end], &mut room)?;
        assert!(progress.read <= end - at && progress.written <= output);
        at += progress.read;
        all.extend_from_slice(&room[..progress.written]);
        if at == body.len() && !matches!(progress.needs, Needs::Output(_)) {
            return if progress.needs == Needs::Nothing { Ok(all) } else { Err(decoder.truncated()) };
        }
    }
}

/// Decodes all of `body`, which becomes at most 16 MiB.
pub(crate) fn decoded<D: Decode>(mut decoder: D, body: &[u8]) -> Result<Vec<u8>, DecompressError<D::Error>> {
    let mut out = Limited::new(1 << 24);
    decode(&mut decoder, body, &mut out)?;
    Ok(out.written().to_vec())
}

/// A bomb takes no more than was granted, and what fits exactly is granted. `bomb` becomes `len` bytes.
pub(crate) fn assert_output_is_limited<D: Decode>(mut decoder: D, bomb: &[u8], len: usize) {
    let mut out = Limited::new(len / 10);
    assert!(matches!(decode(&mut decoder, bomb, &mut out), Err(DecompressError::OutputFull)));
    assert_eq!(out.paid(), len / 10);
    decoder.reset();
    let mut out = Limited::new(len);
    assert!(decode(&mut decoder, bomb, &mut out).is_ok_and(|written| written == len));
}

/// The heap is what was `declared`, about, when a decoder is made, and untouched from then on.
pub(crate) fn assert_memory_is_as_declared<D: Decode>(
    new: fn() -> D,
    declared: usize,
    body: &[u8],
    raw: &[u8],
) {
    let mut decoder = None;
    let made = allocation_counter::measure(|| decoder = Some(new()));
    assert!(made.bytes_max <= declared as u64, "{}", made.bytes_max);
    assert!(made.bytes_max * 10 >= declared as u64 * 9, "{}", made.bytes_max);
    let mut decoder = decoder.unwrap();
    // A coding may want more room than it fills.
    let mut out = vec![0; raw.len() + (256 << 10)];
    let used = allocation_counter::measure(|| {
        for _ in 0..3 {
            decoder.reset();
            let progress = decoder.step(body, &mut out).unwrap();
            assert_eq!(progress.written, raw.len());
        }
    });
    assert_eq!(used.count_total, 0);
}

/// Bytes with repetitions near and far, and some without.
pub(crate) fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"service.name=checkout http.route=/cart/{id} ".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..300),
        (any::<u8>(), 1..5000usize).prop_map(|(byte, len)| vec![byte; len]),
        proptest::collection::vec(b'a'..b'e', 0..2000),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

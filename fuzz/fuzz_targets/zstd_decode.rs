//! Any body is decompressed or refused, in no more memory than its blocks can become; where another
//! implementation reads it as well, it reads the same.
#![no_main]

use std::io::Read;

use libfuzzer_sys::fuzz_target;
use tidegate_wire::coding::{Decode, Grow, decode};
use tidegate_wire::zstd::{Decoder, Encoder};

/// More than this is left out: it costs time and says nothing new.
const LARGEST: usize = 4 << 20;

fuzz_target!(|body: &[u8]| {
    let mut decoder = Decoder::new(Decoder::WINDOW);
    let mut buffer = BoundedBuffer { bytes: Vec::new(), len: 0 };
    let expected = decoder.expected_len(body);
    if decode(&mut decoder, body, &mut buffer).is_err() {
        return;
    }
    let raw = &buffer.bytes[..buffer.len];
    assert!(expected >= raw.len().min(128 << 10));
    let mut theirs = Vec::new();
    let read = ruzstd::decoding::StreamingDecoder::new(body)
        .map_err(drop)
        .and_then(|theirs_of| theirs_of.take(LARGEST as u64).read_to_end(&mut theirs).map_err(drop));
    // It stops behind the first frame, and refuses skippable ones.
    if read.is_ok() {
        assert!(raw.starts_with(&theirs));
    }
    let mut out = vec![0; Encoder::max_len(raw.len())];
    let len = Encoder::new(1).unwrap().whole(raw, &mut out).unwrap();
    let mut again = BoundedBuffer { bytes: Vec::new(), len: 0 };
    decode(&mut decoder, &out[..len], &mut again).unwrap();
    assert!(again.bytes[..again.len] == *raw);
});

struct BoundedBuffer {
    bytes: Vec<u8>,
    len: usize,
}

impl Grow for BoundedBuffer {
    fn spare(&mut self) -> &mut [u8] {
        &mut self.bytes[self.len..]
    }

    fn advance(&mut self, bytes: usize) {
        self.len += bytes;
    }

    fn grow(&mut self, more: usize) -> bool {
        let to = self.bytes.len().saturating_add(more).min(LARGEST);
        let has_grown = to > self.bytes.len();
        self.bytes.resize(to, 0xaa);
        has_grown
    }
}

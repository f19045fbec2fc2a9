//! Requests of OTLP whose items have numbers, and which numbers are in one.

use tidegate_journal::{Encoding, Signal};
use tidegate_wire::proto::{Reader, WireType};
use tidegate_wire::{coding, gzip, zstd};

/// The field of an item that takes a text of its own.
fn field_of_number(signal: Signal) -> u8 {
    match signal {
        Signal::Traces => 5,
        Signal::Logs => 3,
        Signal::Metrics => 1,
        _ => 7,
    }
}

/// A request with one resource, one scope, and an item for each number, each with `padding` bytes beside it.
pub(crate) fn request(signal: Signal, numbers: impl IntoIterator<Item = u64>, padding: usize) -> Vec<u8> {
    let mut scope = Vec::new();
    for number in numbers {
        let mut item = Vec::new();
        put(&mut item, field_of_number(signal), number.to_string().as_bytes());
        // An unknown field: every reader steps over it.
        put(&mut item, 15, &noise(number, padding));
        put(&mut scope, 2, &item);
    }
    let (mut resource, mut request) = (Vec::new(), Vec::new());
    put(&mut resource, 2, &scope);
    put(&mut request, 1, &resource);
    request
}

/// Bytes that shrink to about half.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b'a' + (state >> 32) as u8 % 16
    };
    (0..len).map(|_| next()).collect()
}

pub(crate) fn put(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    let mut len = bytes.len();
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(bytes);
}

/// The numbers of the items in a request.
pub(crate) fn numbers(signal: Signal, raw: &[u8]) -> Vec<u64> {
    let mut found = Vec::new();
    for resource in nested(raw, 1) {
        for scope in nested(resource, 2) {
            for item in nested(scope, 2) {
                // Records from elsewhere have no number, and none of ours.
                let text = nested(item, u32::from(field_of_number(signal))).next().unwrap_or_default();
                found.push(str::from_utf8(text).unwrap().parse().unwrap_or(u64::MAX));
            }
        }
    }
    found
}

fn nested(message: &[u8], field: u32) -> impl Iterator<Item = &[u8]> {
    let mut reader = Reader::new(message);
    std::iter::from_fn(move || {
        loop {
            let key = reader.key().unwrap()?;
            if key.field == field && key.wire == WireType::Length {
                return Some(reader.bytes(key).unwrap());
            }
            reader.skip(key).unwrap();
        }
    })
}

/// As a client would send it.
pub(crate) fn encoded(encoding: Encoding, raw: &[u8]) -> Vec<u8> {
    let mut out = vec![0; raw.len() + raw.len() / 8 + 1024];
    let len = match encoding {
        Encoding::Gzip => {
            let mut encoder = gzip::Encoder::new(6).unwrap();
            let (read, written) = encoder.step(raw, &mut out);
            assert_eq!(read, raw.len());
            let (end, ended) = encoder.finish(&mut out[written..]);
            assert!(ended);
            written + end
        }
        Encoding::Zstd => zstd::Encoder::new(3).unwrap().whole(raw, &mut out).unwrap(),
        _ => return raw.to_vec(),
    };
    out.truncate(len);
    out
}

/// The result of a server that reads any number of members and frames.
pub(crate) fn decoded(encoding: Encoding, body: &[u8]) -> Vec<u8> {
    let mut out = Growing(Vec::new(), 0);
    match encoding {
        Encoding::Gzip => coding::decode(&mut gzip::Decoder::new(), body, &mut out).map(drop).unwrap(),
        Encoding::Zstd => {
            let mut decoder = zstd::Decoder::new(zstd::Decoder::WINDOW);
            coding::decode(&mut decoder, body, &mut out).map(drop).unwrap();
        }
        _ => return body.to_vec(),
    }
    out.0.truncate(out.1);
    out.0
}

struct Growing(Vec<u8>, usize);

impl coding::Grow for Growing {
    fn spare(&mut self) -> &mut [u8] {
        &mut self.0[self.1..]
    }

    fn advance(&mut self, bytes: usize) {
        self.1 += bytes;
    }

    fn grow(&mut self, more: usize) -> bool {
        self.0.resize(self.0.len() + more, 0);
        true
    }
}

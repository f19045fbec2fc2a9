//! Small requests, in all the forms in which they are sent.

use tidegate_load::protobuf::field;
use tidegate_wire::{gzip, zstd};

/// One resource with one scope with `items`.
fn request(items: &[Vec<u8>]) -> Vec<u8> {
    let items: Vec<u8> = items.iter().flat_map(|item| field(2, item)).collect();
    field(1, &field(2, &items))
}

/// A request with `count` spans whose names have `len` bytes.
pub(crate) fn traces(count: usize, len: usize) -> Vec<u8> {
    let span = |number: usize| {
        let name: String = (0..len).map(|at| char::from(b'a' + ((at * 7 + number) % 26) as u8)).collect();
        [field(1, &[7; 16]), field(2, &[9; 8]), field(5, name.as_bytes())].concat()
    };
    request(&(0..count).map(span).collect::<Vec<_>>())
}

/// A request with `count` log records.
pub(crate) fn logs(count: usize) -> Vec<u8> {
    request(&(0..count).map(|number| field(3, format!("record {number}").as_bytes())).collect::<Vec<_>>())
}

/// A request with one sum of `count` points.
pub(crate) fn metrics(count: usize) -> Vec<u8> {
    // NumberDataPoint.as_int, fixed64.
    let point = |number: usize| [&[6 << 3 | 1][..], &number.to_le_bytes()].concat();
    let points: Vec<u8> = (0..count).flat_map(|number| field(1, &point(number))).collect();
    request(&[[field(1, b"requests"), field(7, &points)].concat()])
}

/// A request with one profile, of which nobody looks into the inside.
pub(crate) fn profiles() -> Vec<u8> {
    request(&[Vec::new()])
}

pub(crate) fn gzip(raw: &[u8]) -> Vec<u8> {
    let mut encoder = gzip::Encoder::new(6).unwrap();
    let mut out = vec![0; gzip::Encoder::max_len(raw.len())];
    let (read, written) = encoder.step(raw, &mut out);
    assert_eq!(read, raw.len());
    let (more, all) = encoder.finish(&mut out[written..]);
    assert!(all);
    out.truncate(written + more);
    out
}

pub(crate) fn zstd(raw: &[u8]) -> Vec<u8> {
    let mut out = vec![0; zstd::Encoder::max_len(raw.len())];
    let len = zstd::Encoder::new(3).unwrap().whole(raw, &mut out).unwrap();
    out.truncate(len);
    out
}

/// A message of gRPC.
pub(crate) fn message(compressed: bool, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![u8::from(compressed)];
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend_from_slice(bytes);
    out
}

#[allow(clippy::disallowed_methods, reason = "what is read here was written here")]
pub(crate) fn deflate(raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut encoder = flate2::read::ZlibEncoder::new(raw, flate2::Compression::new(6));
    std::io::Read::read_to_end(&mut encoder, &mut body).unwrap();
    body
}

/// A request with one span whose trace id has 15 bytes.
pub(crate) fn bad_span() -> Vec<u8> {
    request(&[[field(1, &[7; 15]), field(2, &[9; 8])].concat()])
}

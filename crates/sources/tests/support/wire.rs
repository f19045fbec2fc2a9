//! A client of gRPC in plain bytes, which allocates nothing between calls.

use std::io;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// `SETTINGS` without any.
pub(crate) const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

const END_STREAM: u8 = 1;
const DATA: u8 = 0;
const HEADERS: u8 = 1;

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, payload: &[u8]) {
    let [.., a, b, c] = payload.len().to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags, 0, 0, 0, 1]);
    out.extend_from_slice(payload);
}

/// The frames of a call with one message, on stream 1.
pub(crate) fn call(path: &str, message: &[u8]) -> Vec<u8> {
    // RFC 7541: POST, http, and literals that are not indexed.
    let mut block = vec![0x83, 0x86];
    let mut literal = |name: &[u8], value: &str| {
        block.extend_from_slice(name);
        block.push(u8::try_from(value.len()).unwrap());
        block.extend_from_slice(value.as_bytes());
    };
    literal(&[0x04], path);
    literal(&[0x01], "test");
    literal(b"\x00\x02te", "trailers");
    // `content-type: application/grpc` as everybody writes it: the value in Huffman's code.
    block.extend_from_slice(b"\x0f\x10\x8b\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64");
    let mut out = Vec::new();
    frame(&mut out, HEADERS, 4, &block);
    let mut body = vec![0];
    body.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    body.extend_from_slice(message);
    let mut pieces = body.chunks(16 << 10).peekable();
    while let Some(piece) = pieces.next() {
        frame(&mut out, DATA, if pieces.peek().is_none() { END_STREAM } else { 0 }, piece);
    }
    out
}

/// Moves the frames of a call to another stream.
pub(crate) fn renumber(frames: &mut [u8], stream: u32) {
    let mut at = 0;
    while at < frames.len() {
        let len = u32::from_be_bytes([0, frames[at], frames[at + 1], frames[at + 2]]) as usize;
        frames[at + 5..at + 9].copy_from_slice(&stream.to_be_bytes());
        at += 9 + len;
    }
}

/// Reads frames until one ends a stream, and gives the last head.
pub(crate) fn ended(bytes: &[u8]) -> io::Result<bool> {
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + 9) {
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        if head[3] == 7 {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if bytes.len() < at + 9 + len {
            return Ok(false);
        }
        if head[3] == HEADERS && head[4] & END_STREAM != 0 {
            return Ok(true);
        }
        at += 9 + len;
    }
    Ok(false)
}

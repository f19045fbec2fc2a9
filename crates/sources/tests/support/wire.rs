//! A client of gRPC in plain bytes, which allocates nothing between calls.

use std::io;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// `SETTINGS` without any.
pub(crate) const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

const END_STREAM: u8 = 1;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const GOAWAY: u8 = 7;

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, payload: &[u8]) {
    let [.., a, b, c] = payload.len().to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags, 0, 0, 0, 1]);
    out.extend_from_slice(payload);
}

/// The frames of a call with one message, on stream 1.
pub(crate) fn call(path: &str, message: &[u8]) -> Vec<u8> {
    let mut block = head(path);
    literal(&mut block, b"\x00\x02te", "trailers");
    // `content-type: application/grpc` as everybody writes it: the value in Huffman's code.
    block.extend_from_slice(b"\x0f\x10\x8b\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64");
    let mut body = vec![0];
    body.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    body.extend_from_slice(message);
    framed(&block, &body)
}

/// The frames of a request that is no call, on stream 1.
pub(crate) fn request(path: &str, body: &[u8]) -> Vec<u8> {
    framed(&head(path), body)
}

/// RFC 7541: POST, http, and literals that are not indexed.
fn head(path: &str) -> Vec<u8> {
    let mut block = vec![0x83, 0x86];
    literal(&mut block, &[0x04], path);
    literal(&mut block, &[0x01], "test");
    block
}

fn literal(block: &mut Vec<u8>, name: &[u8], value: &str) {
    block.extend_from_slice(name);
    block.push(u8::try_from(value.len()).unwrap());
    block.extend_from_slice(value.as_bytes());
}

fn framed(block: &[u8], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame(&mut out, HEADERS, 4, block);
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

/// The length of the first frame: of a call, its head.
pub(crate) fn first_frame(frames: &[u8]) -> usize {
    9 + u32::from_be_bytes([0, frames[0], frames[1], frames[2]]) as usize
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

/// Parses a server's output, in whatever pieces it arrives.
#[derive(Default)]
pub(crate) struct Answers {
    head: [u8; 9],
    known: usize,
    /// Of the frame's payload.
    missing: usize,
    /// Streams that ended, by an answer or by a reset.
    pub(crate) ended: usize,
    pub(crate) reset: usize,
}

impl Answers {
    pub(crate) fn follow(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while !bytes.is_empty() {
            let skipped = self.missing.min(bytes.len());
            self.missing -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                break;
            }
            let some = (9 - self.known).min(bytes.len());
            self.head[self.known..self.known + some].copy_from_slice(&bytes[..some]);
            self.known += some;
            bytes = &bytes[some..];
            if self.known < 9 {
                break;
            }
            self.known = 0;
            self.missing = u32::from_be_bytes([0, self.head[0], self.head[1], self.head[2]]) as usize;
            match self.head[3] {
                DATA | HEADERS if self.head[4] & END_STREAM != 0 => self.ended += 1,
                RESET => (self.ended, self.reset) = (self.ended + 1, self.reset + 1),
                GOAWAY => return Err(io::ErrorKind::ConnectionAborted.into()),
                _ => {}
            }
        }
        Ok(())
    }
}

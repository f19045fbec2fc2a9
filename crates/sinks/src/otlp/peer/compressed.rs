//! Messages of gRPC that come compressed. Nobody asks for that, but grpc-go answers with the compression of the
//! request (it is only empty messages that it leaves alone), and what a peer says of a request that it took in
//! part is not to be lost.

use crate::otlp::response::Response;
use tidegate_wire::coding::Decode;
use tidegate_wire::{gzip, zstd};

/// The memory of a decoder while it reads.
pub(super) const DECODER: usize =
    if gzip::Decoder::BYTES > zstd::Decoder::BYTES { gzip::Decoder::BYTES } else { zstd::Decoder::BYTES };
/// The most bytes of a message that are read: a response says little.
const READ: usize = 4 << 10;

/// The contents of `message`, or of its beginning, in this encoding; `None` if it cannot be decoded.
pub(super) fn response(encoding: &[u8], message: &[u8]) -> Response {
    match encoding {
        b"gzip" => read(&mut gzip::Decoder::new(), message),
        b"zstd" => read(&mut zstd::Decoder::new(zstd::Decoder::WINDOW), message),
        _ => Response::default(),
    }
}

fn read(decoder: &mut impl Decode, message: &[u8]) -> Response {
    let (mut rest, mut room, mut response) = (message, [0; READ], Response::default());
    let mut len = 0;
    // The bytes after an error are not read.
    while let Ok(progress) = decoder.step(rest, room.get_mut(len..).unwrap_or_default()) {
        rest = rest.get(progress.read..).unwrap_or_default();
        len += progress.written;
        if progress.read + progress.written == 0 || len == READ {
            break;
        }
    }
    response.read(room.get(..len).unwrap_or_default());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(raw: &[u8]) -> Vec<u8> {
        let mut room = vec![0; raw.len() + 1024];
        let mut encoder = gzip::Encoder::new(6).unwrap();
        let (_, written) = encoder.step(raw, &mut room);
        let (end, _) = encoder.finish(&mut room[written..]);
        room.truncate(written + end);
        room
    }

    /// A response of three rejected items says so in either compression, and in none that is not known; of a bomb
    /// the beginning is read, and of damage nothing.
    #[test]
    fn compressed_and_plain_responses_mean_the_same() {
        let mut plain = vec![0x0a, 12, 0x08, 3, 0x12, 8];
        plain.extend(b"too old!");
        let mut zstd = vec![0; 1024];
        let len = zstd::Encoder::new(3).unwrap().whole(&plain, &mut zstd).unwrap();
        let said = |encoding: &[u8], message: &[u8]| {
            let response = response(encoding, message);
            (response.rejected(), response.words())
        };
        assert_eq!(said(b"gzip", &gzip(&plain)), (3, "too old!".into()));
        assert_eq!(said(b"zstd", &zstd[..len]), (3, "too old!".into()));
        assert_eq!(said(b"snappy", &plain), (0, String::new()));
        assert_eq!(said(b"gzip", &plain), (0, String::new()));
        plain.resize(10 << 20, 0x7a);
        assert_eq!(said(b"gzip", &gzip(&plain)).0, 3);
    }
}

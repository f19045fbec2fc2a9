//! Bodies decoded a piece at a time, so that others get their turn between.

use tidegate_arena::Window;
use tidegate_journal::Encoding;
use tidegate_wire::coding::{Decode, Needs};
use tidegate_wire::{gzip, snappy, zlib, zstd};

/// The most bytes that are decoded or compressed before others get their turn: about a millisecond.
pub const YIELD_BYTES: usize = 32 << 10;
/// Room beyond what a body decodes to, so that a decoder can see its end.
pub const END_SLACK: usize = 64;

/// A body is not what its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedBody;

/// Appends what `body` decodes to, for which there is room, and [`END_SLACK`] beyond: in steps of at most `most` bytes.
///
/// # Errors
/// When the body does not decode to what there is room for.
pub async fn steps(
    decoder: &mut impl Decode,
    body: &[u8],
    most: usize,
    out: &mut Window,
) -> Result<(), DamagedBody> {
    let len = steps_to(decoder, body, most, out.spare_mut()).await?;
    out.advance(len);
    Ok(())
}

/// The same to the front of `out`. Returns the length.
async fn steps_to(
    decoder: &mut impl Decode,
    body: &[u8],
    most: usize,
    out: &mut [u8],
) -> Result<usize, DamagedBody> {
    decoder.reset();
    let (mut rest, mut len, mut idle) = (body, 0, 0);
    loop {
        let room = out.get_mut(len..).unwrap_or_default();
        let end = most.min(room.len());
        let progress =
            decoder.step(rest, room.get_mut(..end).unwrap_or_default()).map_err(|_| DamagedBody)?;
        len += progress.written;
        rest = rest.get(progress.read..).unwrap_or_default();
        idle = if progress.read + progress.written > 0 { 0 } else { idle + 1 };
        match progress.needs {
            Needs::Nothing if rest.is_empty() => return Ok(len),
            Needs::Input => return Err(DamagedBody),
            // It asks for what it guesses, and does with what there is; there is as much as the record says.
            _ if idle > 2 => return Err(DamagedBody),
            _ => {}
        }
        tokio::task::yield_now().await;
    }
}

/// The heap memory of a decoder, in bytes. It lives for one body.
#[must_use]
pub const fn state_bytes(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Identity | Encoding::Snappy => 0,
        Encoding::Gzip => gzip::Decoder::BYTES,
        Encoding::Deflate => zlib::Decoder::BYTES,
        Encoding::Zstd => zstd::Decoder::BYTES,
    }
}

/// Decodes a checked body to the front of `out`, where there is room for it and [`END_SLACK`] beyond. Returns the length. The
/// decoder takes [`state_bytes`] meanwhile.
///
/// # Errors
/// When the body does not decode to what there is room for.
pub async fn decode(encoding: Encoding, body: &[u8], out: &mut [u8]) -> Result<usize, DamagedBody> {
    match encoding {
        Encoding::Identity => {
            out.get_mut(..body.len()).ok_or(DamagedBody)?.copy_from_slice(body);
            Ok(body.len())
        }
        Encoding::Gzip => steps_to(&mut gzip::Decoder::new(), body, YIELD_BYTES, out).await,
        Encoding::Deflate => steps_to(&mut zlib::Decoder::new(), body, YIELD_BYTES, out).await,
        // It decodes a frame whole or not at all. The source has checked the body, and this decoder does not need the window
        // that a frame names.
        Encoding::Zstd => steps_to(&mut zstd::Decoder::new(u64::MAX), body, usize::MAX, out).await,
        Encoding::Snappy => snappy::decode(body, out).map_err(|_| DamagedBody),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body decodes to what it was made of, and one that is cut is damaged.
    #[tokio::test]
    async fn decodes_whole_bodies_only() {
        let raw: Vec<u8> = (0..100_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        let mut body = vec![0; snappy::max_compressed_len(raw.len()).unwrap()];
        let len = snappy::Encoder::new().compress(&raw, &mut body).unwrap();
        body.truncate(len);
        let mut out = vec![0; raw.len() + END_SLACK];
        for (encoding, body) in [(Encoding::Snappy, &body), (Encoding::Identity, &raw)] {
            assert_eq!(decode(encoding, body, &mut out).await, Ok(raw.len()), "{encoding:?}");
            assert!(out.starts_with(&raw));
        }
        assert_eq!(decode(Encoding::Snappy, &body[..len / 2], &mut out).await, Err(DamagedBody));
        assert_eq!(decode(Encoding::Gzip, &body, &mut out).await, Err(DamagedBody));
        assert_eq!(decode(Encoding::Identity, &raw, &mut out[..9]).await, Err(DamagedBody));
    }
}

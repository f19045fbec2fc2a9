//! Bodies as they were before they were compressed.

use tidegate_arena::Window;
use tidegate_journal::Encoding;
use tidegate_wire::coding::{Decode, Needs};
use tidegate_wire::{gzip, snappy, zlib, zstd};

/// Room beyond what a body decodes to, so that a decoder that works in steps can see its end.
pub(super) fn slack(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Identity | Encoding::Snappy => 0,
        Encoding::Gzip | Encoding::Zstd | Encoding::Deflate => 64,
    }
}

/// A body is not what its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// The heap memory of a decoder: it lives for one body, so that nothing is held between bodies.
pub(super) fn state_bytes(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Identity | Encoding::Snappy => 0,
        Encoding::Gzip => gzip::Decoder::BYTES,
        Encoding::Deflate => zlib::Decoder::BYTES,
        Encoding::Zstd => zstd::Decoder::BYTES,
    }
}

/// Appends what `body` decodes to, for which there is room, and the [`slack`] beyond.
pub(super) fn decode(encoding: Encoding, body: &[u8], out: &mut Window) -> Result<(), Damaged> {
    match encoding {
        Encoding::Identity => out.append(body).map_err(|_| Damaged),
        Encoding::Snappy => {
            let len = snappy::decode(body, out.spare_mut()).map_err(|_| Damaged)?;
            out.advance(len);
            Ok(())
        }
        Encoding::Gzip => steps(&mut gzip::Decoder::new(), body, out),
        Encoding::Deflate => steps(&mut zlib::Decoder::new(), body, out),
        // The source has checked the body, and this decoder does not need the window that a frame names.
        Encoding::Zstd => steps(&mut zstd::Decoder::new(u64::MAX), body, out),
    }
}

fn steps(decoder: &mut impl Decode, body: &[u8], out: &mut Window) -> Result<(), Damaged> {
    let mut rest = body;
    // A decoder may ask for more than there is, and does with that when it is not given.
    let mut asked = 0;
    while asked < 3 {
        let progress = decoder.step(rest, out.spare_mut()).map_err(|_| Damaged)?;
        out.advance(progress.written);
        rest = rest.get(progress.read..).unwrap_or_default();
        match progress.needs {
            Needs::Nothing if rest.is_empty() => return Ok(()),
            Needs::Input => return Err(Damaged),
            _ => asked = if progress.read + progress.written > 0 { 0 } else { asked + 1 },
        }
    }
    Err(Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_arena::{Arena, Floors, PAGE, Share};

    fn compressed(encoding: Encoding, raw: &[u8]) -> Vec<u8> {
        let mut out = vec![0; gzip::Encoder::max_len(raw.len()).max(zstd::Encoder::max_len(raw.len()))];
        let len = match encoding {
            Encoding::Gzip => {
                let mut encoder = gzip::Encoder::new(6).unwrap();
                encoder.reset();
                let (read, written) = encoder.step(raw, &mut out);
                assert_eq!(read, raw.len());
                written + encoder.finish(&mut out[written..]).0
            }
            _ => {
                let mut encoder = zstd::Encoder::new(3).unwrap();
                encoder.begin(Some(raw.len() as u64)).unwrap();
                encoder.whole(raw, &mut out).unwrap()
            }
        };
        out.truncate(len);
        out
    }

    /// A body in every encoding is what it was, in no more room than its record says; one that is cut, or that
    /// is longer than its record says, is damaged.
    #[tokio::test]
    async fn bodies_are_decoded_in_the_announced_length() {
        let arena = Arena::new(256 * PAGE as u64, Floors::NONE, 64 * PAGE, 8, 8).unwrap();
        let raw: Vec<u8> =
            (0..100_000_u32).flat_map(|number| (number / 7).to_le_bytes()).take(150_000).collect();
        for encoding in [Encoding::Gzip, Encoding::Zstd] {
            let body = compressed(encoding, &raw);
            let room = raw.len() + slack(encoding);
            let mut window = arena.window(Share::Lake, room).await.unwrap();
            assert_eq!(decode(encoding, &body, &mut window), Ok(()), "{encoding:?}");
            assert_eq!(window[..], raw[..], "{encoding:?}");
            let mut window = arena.window(Share::Lake, room).await.unwrap();
            assert_eq!(decode(encoding, &body[..body.len() - 5], &mut window), Err(Damaged), "{encoding:?}");
            let mut window = arena.window(Share::Lake, 4 * PAGE).await.unwrap();
            assert_eq!(decode(encoding, &body, &mut window), Err(Damaged), "{encoding:?}");
        }
    }
}

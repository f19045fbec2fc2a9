//! Bodies as they were before they were compressed.

use tidegate_arena::Window;
use tidegate_journal::Encoding;
use tidegate_wire::coding::{Decode, Wants};
use tidegate_wire::{gzip, snappy, zstd};

/// Room beyond what a body decodes to, so that a decoder that works in steps can see its end.
pub(super) fn slack(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Identity | Encoding::Snappy => 0,
        Encoding::Gzip | Encoding::Zstd => 64,
    }
}

/// A body is not what its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// What a decoder takes on the heap while it works: it lives for one body, so that nothing is held between.
pub(super) fn state_bytes(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Identity | Encoding::Snappy => 0,
        Encoding::Gzip => gzip::Decoder::BYTES,
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
        match progress.wants {
            Wants::Nothing if rest.is_empty() => return Ok(()),
            Wants::Input => return Err(Damaged),
            _ => asked = if progress.read + progress.written > 0 { 0 } else { asked + 1 },
        }
    }
    Err(Damaged)
}

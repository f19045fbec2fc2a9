//! Bodies as they were before they were compressed, if they are not too long to be shown.

use std::borrow::Cow;
use tidegate_journal::{Encoding, Meta};
use tidegate_wire::coding::{Decode, Needs};
use tidegate_wire::{gzip, snappy, zlib, zstd};

/// The longest body that is shown, in bytes once it is decompressed.
pub(crate) const LONGEST: usize = 1 << 20;
/// Room beyond what a body decodes to, so that a decoder that works in steps can see its end.
const SLACK: usize = 64;
/// Most bytes that decoding takes.
pub(crate) const BYTES: usize = LONGEST + SLACK + zstd::Decoder::BYTES;

/// Why a body is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecodeError {
    TooLong,
    Damaged,
}

/// The body of a record with this `meta`, decompressed.
pub(crate) fn decode<'a>(meta: &Meta, body: &'a [u8]) -> Result<Cow<'a, [u8]>, DecodeError> {
    let length = usize::try_from(meta.raw_len).unwrap_or(usize::MAX);
    if length > LONGEST {
        return Err(DecodeError::TooLong);
    }
    if meta.encoding == Encoding::Identity {
        return Ok(Cow::Borrowed(body));
    }
    let mut raw = vec![0; length + SLACK];
    let written = match meta.encoding {
        Encoding::Identity => None,
        Encoding::Snappy => snappy::decode(body, &mut raw).ok(),
        Encoding::Gzip => steps(&mut gzip::Decoder::new(), body, &mut raw),
        Encoding::Deflate => steps(&mut zlib::Decoder::new(), body, &mut raw),
        // Checked when it was received; this decoder does not need the window that a frame names.
        Encoding::Zstd => steps(&mut zstd::Decoder::new(u64::MAX), body, &mut raw),
    };
    raw.truncate(written.ok_or(DecodeError::Damaged)?);
    Ok(Cow::Owned(raw))
}

fn steps(decoder: &mut impl Decode, body: &[u8], raw: &mut [u8]) -> Option<usize> {
    let (mut rest, mut written) = (body, 0);
    // A decoder may ask for more than there is, and does with that when it is not given.
    let mut asked = 0;
    while asked < 3 {
        let progress = decoder.step(rest, raw.get_mut(written..)?).ok()?;
        written += progress.written;
        rest = rest.get(progress.read..)?;
        match progress.needs {
            Needs::Nothing if rest.is_empty() => return Some(written),
            Needs::Input => return None,
            _ => asked = if progress.read + progress.written > 0 { 0 } else { asked + 1 },
        }
    }
    None
}

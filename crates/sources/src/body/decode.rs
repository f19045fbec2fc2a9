//! Decompresses bodies, in memory that is paid for step by step and never waited for.

use super::{InspectionError, Received};
use std::cell::RefCell;
use tidegate_admission::{DecodeBuffer, Gate, Rejection};
use tidegate_journal::Encoding;
use tidegate_wire::coding::{self, Decode as _, DecompressError, Grow};
use tidegate_wire::{gzip, snappy, zstd};

/// The bytes that a thread keeps between bodies.
pub(crate) const BYTES: usize = gzip::Decoder::BYTES + zstd::Decoder::BYTES;

thread_local! {
    /// Each thread's decoders, made when they are first needed.
    static GZIP: RefCell<gzip::Decoder> = RefCell::new(gzip::Decoder::new());
    static ZSTD: RefCell<zstd::Decoder> = RefCell::new(zstd::Decoder::new(zstd::Decoder::WINDOW));
}

/// How long `body` says that it will be when decompressed.
pub(super) fn expected(encoding: Encoding, body: &[u8]) -> usize {
    match encoding {
        Encoding::Gzip => GZIP.with_borrow(|decoder| decoder.expected_len(body)),
        Encoding::Zstd => ZSTD.with_borrow(|decoder| decoder.expected_len(body)),
        Encoding::Deflate => GZIP.with_borrow_mut(|decoder| decoder.as_zlib().expected_len(body)),
        Encoding::Snappy => snappy::plausible(body).unwrap_or(0),
        Encoding::Identity => body.len(),
    }
}

/// Decompresses what was received into `room`, from its start, to at most `most` bytes.
pub(crate) fn decode(
    gate: &Gate,
    encoding: Encoding,
    received: &Received,
    room: &mut DecodeBuffer,
    most: usize,
) -> Result<(), InspectionError> {
    room.clear();
    let (body, beside) = (received.bytes(), received.window.charged());
    let mut paid = ChargedOutput { gate, room, most, beside, refused: None };
    let refused = match encoding {
        Encoding::Gzip => GZIP.with_borrow_mut(|decoder| stopped(coding::decode(decoder, body, &mut paid))),
        Encoding::Zstd => ZSTD.with_borrow_mut(|decoder| stopped(coding::decode(decoder, body, &mut paid))),
        Encoding::Deflate => {
            GZIP.with_borrow_mut(|decoder| stopped(coding::decode(&mut decoder.as_zlib(), body, &mut paid)))
        }
        Encoding::Snappy => decode_block(body, &mut paid).err(),
        Encoding::Identity => None,
    };
    match refused {
        None => Ok(()),
        Some(DecompressError::Malformed(refused)) => Err(refused.into()),
        Some(DecompressError::OutputFull) => {
            Err(paid.refused.map_or(InspectionError::Larger, InspectionError::Refused))
        }
    }
}

/// Decodes one Snappy block, whose length is known before.
fn decode_block(body: &[u8], paid: &mut ChargedOutput<'_>) -> Result<(), DecompressError<Rejection>> {
    let malformed = |error| DecompressError::Malformed(Rejection::malformed(error));
    let claimed = snappy::plausible(body).map_err(malformed)?;
    while paid.spare().len() < claimed {
        let missing = claimed.saturating_sub(paid.spare().len());
        if claimed > paid.most || !paid.grow(missing) {
            return Err(DecompressError::OutputFull);
        }
    }
    let decoded = snappy::decode(body, paid.spare()).map_err(malformed)?;
    paid.advance(decoded);
    Ok(())
}

/// A decoder's result, with its error in words.
fn stopped<F: std::error::Error>(
    outcome: Result<usize, DecompressError<F>>,
) -> Option<DecompressError<Rejection>> {
    match outcome {
        Ok(_) => None,
        Err(DecompressError::Malformed(fault)) => {
            Some(DecompressError::Malformed(Rejection::malformed(fault)))
        }
        Err(DecompressError::OutputFull) => Some(DecompressError::OutputFull),
    }
}

/// A room as a decoder sees it: it grows while memory is free, up to a limit.
struct ChargedOutput<'a> {
    gate: &'a Gate,
    room: &'a mut DecodeBuffer,
    most: usize,
    /// The request's use of the bodies' share.
    beside: usize,
    /// The memory error that stopped it, if any.
    refused: Option<Rejection>,
}

impl Grow for ChargedOutput<'_> {
    fn spare(&mut self) -> &mut [u8] {
        let left = self.most.saturating_sub(self.room.len());
        let spare = self.room.spare_mut();
        let len = spare.len().min(left);
        spare.get_mut(..len).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        self.room.advance(bytes);
    }

    fn grow(&mut self, more: usize) -> bool {
        let left = self.most.saturating_sub(self.room.len());
        let spare = self.room.spare();
        if spare >= left {
            return false;
        }
        // Holding decode memory, nobody waits for more: that is why nobody waits for ever.
        self.room.grow_beside(self.gate, self.beside, spare.saturating_add(more).min(left)).unwrap_or_else(
            |refused| {
                self.refused = Some(refused);
                false
            },
        )
    }
}

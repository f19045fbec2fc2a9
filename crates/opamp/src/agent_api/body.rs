//! A compressed body, decompressed into memory that is paid for.

use std::cell::RefCell;
use tidegate_arena::{Arena, Share, Window};
use tidegate_wire::coding::{self, Decode as _, DecompressError, Grow};
use tidegate_wire::gzip::Decoder;

/// Bytes that a thread keeps for decompression.
pub const THREAD_BYTES: usize = Decoder::BYTES;

thread_local! {
    static DECODER: RefCell<Decoder> = RefCell::new(Decoder::new());
}

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error(
        "the message has more than the {0} bytes, once decompressed, that are taken (`listen.opamp.max_message`)"
    )]
    TooLarge(usize),
    #[error("there is no memory for the message now; try again")]
    Busy,
    #[error("the message is not valid gzip: {0}")]
    Malformed(String),
}

/// Decompresses a body, to at most `most` bytes.
///
/// # Errors
/// [`BodyError`].
pub(crate) fn decompressed(arena: &Arena, body: &[u8], most: usize) -> Result<Window, BodyError> {
    DECODER.with_borrow_mut(|decoder| {
        let expected = decoder.expected_len(body).clamp(1, most);
        // Not waited for: whoever holds memory must not wait for more.
        let window = arena.try_window(Share::Decode, expected).map_err(|_| BodyError::Busy)?;
        let mut output = LimitedWindow { window, most, is_short: false };
        match coding::decode(decoder, body, &mut output) {
            Ok(_) => Ok(output.window),
            Err(DecompressError::Malformed(error)) => Err(BodyError::Malformed(error.to_string())),
            Err(DecompressError::OutputFull) if output.is_short => Err(BodyError::Busy),
            Err(DecompressError::OutputFull) => Err(BodyError::TooLarge(most)),
        }
    })
}

/// A window that grows up to a limit, while memory is free.
struct LimitedWindow {
    window: Window,
    most: usize,
    /// It was memory that ended it.
    is_short: bool,
}

impl Grow for LimitedWindow {
    fn spare(&mut self) -> &mut [u8] {
        let left = self.most.saturating_sub(self.window.len());
        let spare = self.window.spare_mut();
        let len = spare.len().min(left);
        spare.get_mut(..len).unwrap_or_default()
    }

    fn advance(&mut self, bytes: usize) {
        self.window.advance(bytes);
    }

    fn grow(&mut self, more: usize) -> bool {
        let left = self.most.saturating_sub(self.window.len());
        if self.window.spare() >= left {
            return false;
        }
        let wanted = self.window.spare().saturating_add(more.max(1)).min(left);
        self.is_short = self.window.try_reserve(wanted).is_err();
        !self.is_short
    }
}

//! Decompresses the body of a request into memory that is paid for.

use std::cell::RefCell;
use tidegate_arena::{Arena, Share, Window};
use tidegate_wire::coding::{self, Decode as _, DecompressError, Grow};
use tidegate_wire::gzip::Decoder;

/// Bytes that a thread keeps for decompression.
pub const THREAD_BYTES: usize = Decoder::BYTES;

thread_local! {
    static DECODER: RefCell<Decoder> = RefCell::new(Decoder::new());
}

/// Why a body was not decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GunzipError {
    /// It has more than this many bytes.
    TooLarge(usize),
    /// There is no memory for it now.
    Busy,
    /// It is not valid gzip.
    Malformed(String),
}

/// Decompresses a gzip body, to at most `most` bytes, into a window of `arena`. It does not wait for memory: whoever holds some must not wait
/// for more.
///
/// # Errors
/// [`GunzipError`].
pub fn gunzip(arena: &Arena, body: &[u8], most: usize) -> Result<Window, GunzipError> {
    DECODER.with_borrow_mut(|decoder| {
        let expected = decoder.expected_len(body).clamp(1, most);
        let window = arena.try_window(Share::Decode, expected).map_err(|_| GunzipError::Busy)?;
        let mut output = LimitedWindow { window, most, is_short: false };
        match coding::decode(decoder, body, &mut output) {
            Ok(_) => Ok(output.window),
            Err(DecompressError::Malformed(error)) => Err(GunzipError::Malformed(error.to_string())),
            Err(DecompressError::OutputFull) if output.is_short => Err(GunzipError::Busy),
            Err(DecompressError::OutputFull) => Err(GunzipError::TooLarge(most)),
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

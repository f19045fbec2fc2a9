//! How much of the scratch space and of the output is left, and what of it is kept for the rest of the body.

use super::pieces::PIECE;
use super::{Full, Gap, Rope};

/// More than the headers of the messages that are open.
const HEADERS: usize = 64;

/// The bytes of scratch space to keep for the last `rest` bytes of a body, when they stay as they are: themselves, three
/// eighths for pieces and headers, and a few messages that are open.
const fn reserve(rest: usize) -> usize {
    rest + rest / 8 * 3 + (2 << 10)
}

/// The bytes of scratch space for a body of `body_len` bytes: as long as it is when all of its items become twice as long and are
/// copied whole, and 64 KiB.
pub(crate) const fn space_bytes(body_len: usize) -> usize {
    body_len.saturating_mul(2).saturating_add(64 << 10)
}

impl Rope<'_> {
    /// Tells that the body up to `offset` needs nothing more.
    #[inline]
    pub(crate) fn pass(&mut self, offset: usize) {
        self.passed = offset;
    }

    /// Tells that so many bytes of what was not passed are written.
    pub(crate) fn wrote_ahead(&mut self, bytes: usize) {
        self.ahead += bytes;
    }

    /// Tells that so many of them are passed now.
    pub(crate) fn passed_ahead(&mut self, bytes: usize) {
        self.ahead = self.ahead.saturating_sub(bytes);
    }

    /// Whether the rest of the body can still pass as it is: a message that was just written may have taken its room.
    ///
    /// # Errors
    /// [`Full`] when it cannot.
    pub(crate) fn check_room(&self) -> Result<(), Full> {
        self.make_room(0, 0)
    }

    /// Whether `len` bytes of new space and `written` bytes of output leave room for the rest of the body.
    #[inline]
    pub(super) fn make_room(&self, len: usize, written: usize) -> Result<(), Full> {
        let rest = self.rest();
        let is_full = self.free() < len + 4 * PIECE + reserve(rest);
        let is_long = self.len.saturating_add(written).saturating_add(rest + HEADERS) > self.most;
        if is_full || is_long { Err(Full) } else { Ok(()) }
    }

    /// Whether a message whose copy has `len` bytes may be copied whole: when that takes less than its pieces do, or leaves the
    /// reserve.
    pub(super) fn can_compact(&self, gap: &Gap, len: usize) -> bool {
        let before = gap.before;
        let joins = before.last.is_made() && before.last.range().end == before.made;
        let pieces = if joins || before.last.len() == 0 { 0 } else { PIECE };
        let used = before.made + before.stored * PIECE + len + pieces;
        let Some(free) = self.space.len().checked_sub(used).filter(|free| *free >= PIECE) else {
            return false;
        };
        free >= self.free() || free >= 4 * PIECE + reserve(self.rest())
    }

    /// The bytes of the body that are still to be written, at most.
    #[inline]
    fn rest(&self) -> usize {
        self.body.len().saturating_sub(self.passed).saturating_sub(self.ahead)
    }

    #[inline]
    pub(super) fn free(&self) -> usize {
        self.space.len().saturating_sub(self.made + self.stored * PIECE)
    }
}

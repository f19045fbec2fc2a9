//! The list of pieces, at the back of the scratch space.

use super::{Full, Rope};
use std::ops::Range;

/// The bytes of a piece in the list.
pub(super) const PIECE: usize = 8;
/// The bit of a piece's length that says where it is.
const MADE: u32 = 1 << 31;

/// A range of the body, or of the bytes made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u32,
    /// The length, and [`MADE`].
    len: u32,
}

impl Piece {
    pub(super) const NONE: Piece = Piece { start: 0, len: 0 };

    // Bodies and scratch space are shorter than 2 GiB: `Run::new` sees to it.
    #[inline]
    pub(super) fn body(range: &Range<usize>) -> Piece {
        Piece { start: range.start as u32, len: range.len() as u32 }
    }

    #[inline]
    pub(super) fn made(start: usize, len: usize) -> Piece {
        Piece { start: start as u32, len: len as u32 | MADE }
    }

    #[inline]
    pub(super) fn is_made(self) -> bool {
        self.len & MADE != 0
    }

    pub(super) fn len(self) -> usize {
        (self.len & !MADE) as usize
    }

    #[inline]
    pub(super) fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.len()
    }
}

impl Rope<'_> {
    #[inline]
    pub(super) fn store_last(&mut self) -> Result<(), Full> {
        if self.last.len() == 0 {
            return Ok(());
        }
        if self.free() < PIECE {
            return Err(Full);
        }
        let last = std::mem::replace(&mut self.last, Piece::NONE);
        self.store(last);
        Ok(())
    }

    #[inline]
    pub(super) fn store(&mut self, piece: Piece) {
        self.stored += 1;
        self.set(self.stored - 1, piece);
    }

    #[inline]
    fn place(&self, number: usize) -> usize {
        self.space.len().saturating_sub((number + 1) * PIECE)
    }

    #[inline]
    pub(super) fn set(&mut self, number: usize, piece: Piece) {
        let place = self.place(number);
        let bytes = (u64::from(piece.len) << 32 | u64::from(piece.start)).to_le_bytes();
        if let Some(to) = self.space.get_mut(place..place + PIECE) {
            to.copy_from_slice(&bytes);
        }
    }

    #[inline]
    pub(super) fn piece(&self, number: usize) -> Piece {
        let bytes = self.space.get(self.place(number)..).and_then(|rest| rest.first_chunk());
        let bits = bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Piece { start: bits as u32, len: (bits >> 32) as u32 }
    }
}

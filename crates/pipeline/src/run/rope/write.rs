//! Copies the output to where it is wanted.

use super::Rope;

/// How far the output was written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    piece: usize,
    within: usize,
    out: usize,
}

impl Rope<'_> {
    /// Copies at most `most` bytes of output to `out`, from where `at` stands. Returns whether that was all.
    pub(crate) fn write(&self, at: &mut Position, out: &mut [u8], most: usize) -> bool {
        let mut left = most;
        while at.piece <= self.stored {
            let piece = if at.piece == self.stored { self.last } else { self.piece(at.piece) };
            let range = piece.range();
            let from = range.start + at.within;
            let len = (range.end - from).min(left);
            let source = if piece.is_made() {
                self.space.get(from..from + len)
            } else {
                self.body.get(from..from + len)
            };
            if let (Some(to), Some(source)) = (out.get_mut(at.out..at.out + len), source) {
                to.copy_from_slice(source);
            }
            at.out += len;
            at.within += len;
            left -= len;
            if from + len < range.end {
                return false;
            }
            at.piece += 1;
            at.within = 0;
        }
        true
    }

    /// Copies the pieces from number `first` on to `to`.
    pub(super) fn gather(&self, first: usize, to: &mut [u8]) {
        let mut at = Position { piece: first, within: 0, out: 0 };
        let len = to.len();
        self.write(&mut at, to, len);
    }
}

//! Where documents go.

use std::ops::Range;
use tidegate_wire::output::{Full, Output};

/// An output that whole documents are put into: one that did not fit is taken back, and what is the same in the next
/// document is copied from the one before.
pub trait DocumentOutput: Output {
    /// How many bytes were put.
    fn len(&self) -> usize;

    /// Whether nothing was put yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes back what was put beyond `len`.
    fn truncate(&mut self, len: usize);

    /// Puts again what was put there before.
    ///
    /// # Errors
    /// [`Full`] when there is no room for it.
    fn repeat(&mut self, range: Range<usize>) -> Result<(), Full>;

    /// Hears that a document is whole, which says `items` of the body: none for one that is only a part of an item.
    fn document(&mut self, items: u32) {
        _ = items;
    }
}

/// Documents in memory that somebody else pays for.
#[derive(Debug)]
pub struct DocumentBuffer<'a> {
    space: &'a mut [u8],
    len: usize,
}

impl<'a> DocumentBuffer<'a> {
    /// A page that fills `space` from its start.
    pub fn new(space: &'a mut [u8]) -> Self {
        Self { space, len: 0 }
    }

    /// The output so far.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.space.get(..self.len).unwrap_or_default()
    }
}

impl Output for DocumentBuffer<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let end = self.len.checked_add(bytes.len()).ok_or(Full)?;
        self.space.get_mut(self.len..end).ok_or(Full)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }
}

impl DocumentOutput for DocumentBuffer<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn repeat(&mut self, range: Range<usize>) -> Result<(), Full> {
        let end = self.len.checked_add(range.len()).ok_or(Full)?;
        if end > self.space.len() || range.end > self.len {
            return Err(Full);
        }
        self.space.copy_within(range, self.len);
        self.len = end;
        Ok(())
    }
}

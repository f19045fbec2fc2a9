//! Messages whose length is known once they are written.

use crate::output::{Full, Output};
use crate::proto::write;

/// Space reserved to close the messages around a point: their lengths, and the fields after the points.
pub(super) const ENDING: usize = 32;

/// An output in which what was written can be moved, so that the length of a message can be put before it when it
/// is known; and taken back where there is no room for all of it.
pub(super) struct BoundedWriter<'o> {
    space: &'o mut [u8],
    len: usize,
    /// Up to where there is room. What is kept free behind it is for messages to be ended.
    most: usize,
    is_ended: bool,
}

impl Output for BoundedWriter<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let end = self.len.checked_add(bytes.len()).ok_or(Full)?;
        if end > self.most {
            return Err(Full);
        }
        self.space.get_mut(self.len..end).ok_or(Full)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }
}

impl<'o> BoundedWriter<'o> {
    /// A page that is filled as far as there is room for, and ended.
    pub(super) fn new(space: &'o mut [u8]) -> Self {
        let most = space.len().saturating_sub(ENDING);
        Self { space, len: 0, most, is_ended: false }
    }

    /// A page for all that there is, or nothing.
    pub(super) fn whole(space: &'o mut [u8]) -> Self {
        let most = space.len();
        Self { space, len: 0, most, is_ended: false }
    }

    /// Whether nothing more is to be begun.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Has nothing more begun: what is left is for what is begun.
    pub(super) fn end(&mut self) {
        self.is_ended = true;
        self.most = self.space.len();
    }

    /// Has nothing more written beyond so many bytes, but for what ends the messages that are begun.
    pub(super) fn limit(&mut self, most: usize) {
        self.most = self.most.min(most);
    }

    /// Writes what ends a message, for which room is kept free.
    pub(super) fn ending(&mut self, write: impl FnOnce(&mut Self) -> Result<(), Full>) -> Result<(), Full> {
        let most = std::mem::replace(&mut self.most, self.space.len());
        let written = write(self);
        self.most = most;
        written
    }

    /// Takes back what was written since it was so long.
    pub(super) fn back_to(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Writes a message, whose fields `write` puts. Most are shorter than 16 KiB: longer and shorter ones are moved.
    pub(super) fn message(
        &mut self,
        field: u32,
        write: impl FnOnce(&mut Self) -> Result<(), Full>,
    ) -> Result<(), Full> {
        const EXPECTED: usize = 2;
        write::raw_varint(self, u64::from(field) << 3 | 2)?;
        let start = self.len;
        self.put(&[0; EXPECTED])?;
        write(self)?;
        let (from, end) = (start + EXPECTED, self.len);
        let length = write::Varint::new((end - from) as u64);
        let length = length.as_bytes();
        let to = start + length.len();
        let moved_end = to + (end - from);
        if moved_end > self.space.len() {
            return Err(Full);
        }
        if to != from {
            self.space.copy_within(from..end, to);
        }
        self.space.get_mut(start..to).ok_or(Full)?.copy_from_slice(length);
        self.len = moved_end;
        Ok(())
    }
}

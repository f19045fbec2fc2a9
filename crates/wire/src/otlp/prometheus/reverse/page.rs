//! Messages whose length is known once they are written.

use crate::output::{Full, Output};
use crate::proto::write;

/// An output in which what was written can be moved, so that the length of a message can be put before it when it
/// is known.
pub(super) struct Page<'o> {
    space: &'o mut [u8],
    len: usize,
}

impl Output for Page<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let end = self.len.checked_add(bytes.len()).ok_or(Full)?;
        self.space.get_mut(self.len..end).ok_or(Full)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }
}

impl<'o> Page<'o> {
    pub(super) fn new(space: &'o mut [u8]) -> Self {
        Self { space, len: 0 }
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

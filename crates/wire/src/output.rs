//! Where encoders write: a trait with one method, so that callers choose the memory.

/// The output has no room for what was to be written; what was put before is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the output buffer is full")]
pub struct Full;

/// Takes bytes in order.
pub trait Output {
    /// Appends `bytes` whole, or nothing of them.
    ///
    /// # Errors
    /// [`Full`] when there is no room for all of `bytes`.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full>;
}

/// Writes into a slice that somebody else pays for, and never beyond it.
#[derive(Debug)]
pub struct SliceOutput<'a> {
    space: &'a mut [u8],
    len: usize,
}

impl<'a> SliceOutput<'a> {
    /// An output that fills `space` from its start.
    pub fn new(space: &'a mut [u8]) -> Self {
        Self { space, len: 0 }
    }

    /// How many bytes were written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The bytes that were written.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.space.get(..self.len).unwrap_or_default()
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Output for SliceOutput<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let end = self.len.checked_add(bytes.len()).ok_or(Full)?;
        self.space.get_mut(self.len..end).ok_or(Full)?.copy_from_slice(bytes);
        self.len = end;
        Ok(())
    }
}

/// Counts what would be written: the first pass of an encoder that needs a length before the bytes, and
/// the way to learn what an output will cost before paying for it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    bytes: u64,
}

impl Counter {
    /// How many bytes were put.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Output for Counter {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.bytes = self.bytes.checked_add(bytes.len() as u64).ok_or(Full)?;
        Ok(())
    }
}

/// A growing output for tests, which alone may let memory follow the input.
#[cfg(test)]
impl Output for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

//! Protobuf into a slice, with lengths that are known only later.

use super::error::{ErrorAtOffset, OtlpJsonErrorKind, ReadResult};
use crate::proto::write::{Varint, varint_len};

/// Where the protobuf goes: into memory, or nowhere, so that it is known how much memory that takes.
pub(crate) trait ProtoOutput {
    /// How many bytes were written.
    fn len(&self) -> usize;

    /// Forgets what was written beyond the first `len` bytes.
    fn truncate(&mut self, len: usize);

    /// Puts bytes.
    fn put(&mut self, bytes: &[u8]) -> ReadResult<()>;

    /// Leaves `length_bytes` for a length; what it is the length of begins at the position returned.
    fn open(&mut self, length_bytes: u8) -> ReadResult<usize>;

    /// Writes the length of what was put since `start`, where [`open`](Self::open) left `length_bytes` for it.
    fn close(&mut self, start: usize, length_bytes: u8) -> ReadResult<()>;

    /// Puts a field's key, of one byte or two.
    #[inline(always)]
    fn key(&mut self, key: u16) -> ReadResult<()> {
        let [low, high] = key.to_le_bytes();
        if key < 0x80 { self.put(&[low]) } else { self.put(&[low | 0x80, high << 1 | low >> 7]) }
    }

    #[inline(always)]
    fn varint(&mut self, value: u64) -> ReadResult<()> {
        let [low, ..] = value.to_le_bytes();
        if value < 0x80 { self.put(&[low]) } else { self.put(Varint::new(value).as_bytes()) }
    }

    /// Puts a length and as many bytes.
    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) -> ReadResult<()> {
        self.varint(bytes.len() as u64)?;
        self.put(bytes)
    }
}

/// Writes from the start of a slice that somebody else pays for.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    space: &'a mut [u8],
    at: usize,
}

/// Writes nothing, and knows how long the slice must be in which a [`Writer`] would have written it.
#[derive(Debug, Default)]
pub(crate) struct LengthCounter {
    at: usize,
    most: usize,
}

impl LengthCounter {
    /// How long that slice must be.
    pub(crate) fn max_len(&self) -> usize {
        self.most
    }

    #[inline(always)]
    fn move_to(&mut self, at: usize) {
        self.at = at;
        self.most = self.most.max(at);
    }
}

impl ProtoOutput for LengthCounter {
    fn len(&self) -> usize {
        self.at
    }

    fn truncate(&mut self, len: usize) {
        self.at = self.at.min(len);
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) -> ReadResult<()> {
        self.move_to(self.at.saturating_add(bytes.len()));
        Ok(())
    }

    #[inline(always)]
    fn open(&mut self, length_bytes: u8) -> ReadResult<usize> {
        self.move_to(self.at.saturating_add(usize::from(length_bytes)));
        Ok(self.at)
    }

    #[inline(always)]
    fn close(&mut self, start: usize, length_bytes: u8) -> ReadResult<()> {
        let len = self.at.saturating_sub(start);
        let head = start.saturating_sub(usize::from(length_bytes));
        self.move_to(head + usize::try_from(varint_len(len as u64)).unwrap_or(10) + len);
        Ok(())
    }
}

impl<'a> Writer<'a> {
    pub(crate) fn new(space: &'a mut [u8]) -> Self {
        Self { space, at: 0 }
    }
}

impl ProtoOutput for Writer<'_> {
    fn len(&self) -> usize {
        self.at
    }

    fn truncate(&mut self, len: usize) {
        self.at = self.at.min(len);
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) -> ReadResult<()> {
        match self.space.get_mut(self.at..).and_then(|room| room.get_mut(..bytes.len())) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.at += bytes.len();
                Ok(())
            }
            None => Err(full()),
        }
    }

    #[inline(always)]
    fn open(&mut self, length_bytes: u8) -> ReadResult<usize> {
        let start = self.at.saturating_add(usize::from(length_bytes));
        if start > self.space.len() {
            return Err(full());
        }
        self.at = start;
        Ok(self.at)
    }

    #[inline(always)]
    fn close(&mut self, start: usize, length_bytes: u8) -> ReadResult<()> {
        let len = self.at.saturating_sub(start);
        if length_bytes == 1
            && len < 0x80
            && let Some(place) = self.space.get_mut(start.wrapping_sub(1))
        {
            let [low, ..] = len.to_le_bytes();
            *place = low;
            return Ok(());
        }
        self.close_long(start, usize::from(length_bytes), len)
    }
}

impl Writer<'_> {
    fn close_long(&mut self, start: usize, reserved: usize, len: usize) -> ReadResult<()> {
        let head = start.saturating_sub(reserved);
        let body = head + usize::try_from(varint_len(len as u64)).unwrap_or(10);
        if body != start {
            if self.space.len().saturating_sub(body) < len {
                return Err(full());
            }
            self.space.copy_within(start..start + len, body);
            self.at = body + len;
        }
        let varint = Varint::new(len as u64);
        for (to, from) in self.space.iter_mut().skip(head).zip(varint.as_bytes()) {
            *to = *from;
        }
        Ok(())
    }
}

#[cold]
fn full() -> ErrorAtOffset {
    ErrorAtOffset::new(0, OtlpJsonErrorKind::Full)
}

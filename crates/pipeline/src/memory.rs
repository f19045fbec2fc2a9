//! The bytes that a run works with: the body, the program's constants, and temporary values.
//!
//! Values and attribute tables never own bytes. They hold [`Slice`]s, which point into one of three spaces. Only the temporary
//! space grows, by appending, within what its owner paid for; a full one fails the statement.

use crate::value::Failure;
use std::ops::Range;
use tidegate_wire::output::{Full, Output};

#[cfg(test)]
thread_local! {
    /// How often this thread asked a memory for the bytes of a slice: a measure of work.
    pub(crate) static READS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Bytes in one of the spaces. A slice of no bytes may point anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) space: Space,
}

/// Where bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// The request body that is being read. It does not change.
    Body,
    /// Literals of the program. They do not change.
    Constants,
    /// Values made for the current record, and for the resource and scope around it.
    Temporary,
}

impl Slice {
    pub(crate) const EMPTY: Slice = Slice { start: 0, len: 0, space: Space::Constants };

    /// The bytes from `from` to `to` of this slice; shorter where it ends before.
    #[inline]
    pub(crate) fn part(self, from: usize, to: usize) -> Slice {
        let to = to.min(self.len as usize);
        let from = from.min(to);
        // Both are at most `len`, which is a `u32`.
        Slice { start: self.start + from as u32, len: (to - from) as u32, space: self.space }
    }
}

/// The spaces of a run.
pub(crate) struct Memory<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) constants: &'a [u8],
    temporary: &'a mut [u8],
    used: usize,
}

/// A position in the temporary space, for [`Memory::since`] and [`Memory::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(usize);

impl Mark {
    /// The bytes from `from` to `to`, counted from here.
    #[inline]
    pub(crate) fn slice(self, from: usize, to: usize) -> Slice {
        // Within the space, whose positions are 32 bits.
        Slice { start: (self.0 + from) as u32, len: to.saturating_sub(from) as u32, space: Space::Temporary }
    }
}

impl<'a> Memory<'a> {
    /// A memory whose temporary space, empty at first, is `temporary`.
    pub(crate) fn new(body: &'a [u8], constants: &'a [u8], temporary: &'a mut [u8]) -> Memory<'a> {
        Memory { body, constants, temporary, used: 0 }
    }

    /// The bytes of `slice`.
    #[inline]
    pub(crate) fn get(&self, slice: Slice) -> &[u8] {
        #[cfg(test)]
        READS.set(READS.get() + 1);
        let space: &[u8] = match slice.space {
            Space::Body => self.body,
            Space::Constants => self.constants,
            Space::Temporary => self.temporary,
        };
        let start = slice.start as usize;
        space.get(start..start + slice.len as usize).unwrap_or_default()
    }

    /// The same memory, for a while; [`resume`](Self::resume) takes over what was appended.
    #[inline]
    pub(crate) fn lend(&mut self) -> Memory<'_> {
        Memory {
            body: self.body,
            constants: self.constants,
            temporary: &mut *self.temporary,
            used: self.used,
        }
    }

    /// Continues at the end that a lent memory had.
    #[inline]
    pub(crate) fn resume(&mut self, Mark(end): Mark) {
        self.used = end.min(self.temporary.len());
    }

    /// The end of the temporary space.
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.used)
    }

    /// The bytes appended since `mark`, as one slice.
    #[inline]
    pub(crate) fn since(&self, mark: Mark) -> Slice {
        let Mark(start) = mark;
        // Within the space, whose positions are 32 bits.
        Slice { start: start as u32, len: self.used.saturating_sub(start) as u32, space: Space::Temporary }
    }

    /// The bytes appended since `mark`, to be put in another order.
    pub(crate) fn since_mut(&mut self, Mark(start): Mark) -> &mut [u8] {
        self.temporary.get_mut(start..self.used).unwrap_or_default()
    }

    /// Forgets what was appended since `mark`.
    #[inline]
    pub(crate) fn release(&mut self, Mark(start): Mark) {
        self.used = start.min(self.used);
    }

    /// Forgets all that was appended.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the space is full; nothing is appended then.
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let end = self.used.checked_add(bytes.len()).ok_or(Failure::TooLarge)?;
        self.temporary.get_mut(self.used..end).ok_or(Failure::TooLarge)?.copy_from_slice(bytes);
        self.used = end;
        Ok(())
    }

    /// Whether so many bytes can be appended.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the space has fewer.
    pub(crate) fn check_room(&self, len: usize) -> Result<(), Failure> {
        if self.temporary.len() - self.used < len { Err(Failure::TooLarge) } else { Ok(()) }
    }

    /// Appends a copy of `slice`.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the space is full; nothing is appended then.
    #[inline]
    pub(crate) fn push_slice(&mut self, slice: Slice) -> Result<(), Failure> {
        let (start, len) = (slice.start as usize, slice.len as usize);
        match slice.space {
            Space::Body => self.push(self.body.get(start..start + len).unwrap_or_default()),
            Space::Constants => self.push(self.constants.get(start..start + len).unwrap_or_default()),
            Space::Temporary => {
                let end = self.used.checked_add(len).filter(|end| *end <= self.temporary.len());
                let end = end.ok_or(Failure::TooLarge)?;
                if start + len > self.used {
                    return Err(Failure::TooLarge);
                }
                self.temporary.copy_within(start..start + len, self.used);
                self.used = end;
                Ok(())
            }
        }
    }

    /// The bytes that are there, to be read while more is appended.
    #[inline]
    pub(crate) fn split(&mut self) -> (Contents<'_>, Room<'_>) {
        let used = self.used.min(self.temporary.len());
        let (temporary, free) = self.temporary.split_at_mut(used);
        let contents = Contents { body: self.body, constants: self.constants, temporary };
        (contents, Room { free, len: 0, used: &mut self.used })
    }

    /// Returns what `build` appends as one slice. When it fails, that is forgotten.
    ///
    /// # Errors
    /// Those of `build`.
    pub(crate) fn build(
        &mut self,
        build: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<Slice, Failure> {
        let mark = self.mark();
        match build(self) {
            Ok(()) => Ok(self.since(mark)),
            Err(failure) => {
                self.release(mark);
                Err(failure)
            }
        }
    }

    /// As [`split`](Self::split), with what was appended since `mark` in the room.
    pub(crate) fn split_from(&mut self, Mark(start): Mark) -> (Contents<'_>, Room<'_>) {
        let start = start.min(self.used);
        let len = self.used - start;
        let (temporary, free) = self.temporary.split_at_mut(start);
        let contents = Contents { body: self.body, constants: self.constants, temporary };
        (contents, Room { free, len, used: &mut self.used })
    }

    /// Exchanges the words of 8 bytes number `one` and `other` of a slice of the temporary space.
    pub(crate) fn swap_words(&mut self, slice: Slice, one: usize, other: usize) {
        let start = slice.start as usize;
        if slice.space == Space::Temporary
            && let Some(bytes) = self.temporary.get_mut(start..start + slice.len as usize)
        {
            let words = bytes.as_chunks_mut::<8>().0;
            if one < words.len() && other < words.len() {
                words.swap(one, other);
            }
        }
    }

    /// Takes `range`, counted from `mark`, out of what was appended since.
    pub(crate) fn remove(&mut self, Mark(start): Mark, range: Range<usize>) {
        let (from, to) = (start.saturating_add(range.start), start.saturating_add(range.end));
        if from <= to && to <= self.used {
            self.temporary.copy_within(to..self.used, from);
            self.used -= to - from;
        }
    }

    /// Appends `bytes` and returns them as a slice.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the space is full.
    #[inline]
    pub(crate) fn store(&mut self, bytes: &[u8]) -> Result<Slice, Failure> {
        let mark = self.mark();
        self.push(bytes)?;
        Ok(self.since(mark))
    }
}

/// The bytes of a [`Memory`] while its [`Room`] is written.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'m> {
    body: &'m [u8],
    constants: &'m [u8],
    temporary: &'m [u8],
}

impl<'m> Contents<'m> {
    /// The bytes of `slice`.
    pub(crate) fn get(&self, slice: Slice) -> &'m [u8] {
        let space = match slice.space {
            Space::Body => self.body,
            Space::Constants => self.constants,
            Space::Temporary => self.temporary,
        };
        let start = slice.start as usize;
        space.get(start..start + slice.len as usize).unwrap_or_default()
    }
}

/// The free end of the temporary space. What is put there belongs to the [`Memory`] at once.
pub(crate) struct Room<'m> {
    free: &'m mut [u8],
    len: usize,
    used: &'m mut usize,
}

impl Room<'_> {
    /// How many bytes were put.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The free room behind the bytes that were put. Bytes written there are put by [`claim`](Self::claim).
    #[inline(always)]
    pub(crate) fn free(&mut self) -> &mut [u8] {
        self.free.get_mut(self.len..).unwrap_or_default()
    }

    /// Puts the first `len` bytes of what is free, as they are.
    #[inline(always)]
    pub(crate) fn claim(&mut self, len: usize) {
        let len = len.min(self.free.len().saturating_sub(self.len));
        self.len += len;
        *self.used += len;
    }

    /// The bytes that were put, for corrections.
    #[inline]
    pub(crate) fn written(&mut self) -> &mut [u8] {
        self.free.get_mut(..self.len).unwrap_or_default()
    }

    /// Takes back what was put behind the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        *self.used -= self.len.saturating_sub(len);
        self.len = self.len.min(len);
    }
}

impl Output for Room<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let end = self.len.checked_add(bytes.len()).ok_or(Full)?;
        self.free.get_mut(self.len..end).ok_or(Full)?.copy_from_slice(bytes);
        self.len = end;
        *self.used += bytes.len();
        Ok(())
    }
}

impl From<Full> for Failure {
    fn from(_: Full) -> Failure {
        Failure::TooLarge
    }
}

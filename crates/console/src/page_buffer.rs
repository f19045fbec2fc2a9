//! The output buffer of a response: a window of the console's own memory, up to a bound.

use crate::console::LONGEST_ANSWER;
use std::fmt;
use std::io;
use tidegate_arena::{Arena, ChargeError, Share, Window};

/// Space reserved for the note that the page was cut.
const NOTE: usize = 1 << 10;
/// The size of the first chunk: most responses need no more.
pub(crate) const FIRST: usize = 32 << 10;

/// An answer being written. What does not fit is not written, and everything after it neither.
pub(crate) struct PageBuffer {
    window: Window,
    /// The most bytes that it takes.
    longest: usize,
    failure: Option<PageError>,
}

/// Why an answer is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageError {
    /// It would be longer than answers may be.
    TooLong,
    /// Others hold the memory of answers now.
    Busy,
    /// Whoever wrote it could not go on.
    Broken,
}

impl PageBuffer {
    pub(crate) fn take(arena: &Arena) -> Result<PageBuffer, PageError> {
        PageBuffer::of(arena, LONGEST_ANSWER)
    }

    /// One of at most `longest` bytes.
    pub(crate) fn of(arena: &Arena, longest: usize) -> Result<PageBuffer, PageError> {
        let window = arena.try_window(Share::Egress, FIRST).map_err(|_| PageError::Busy)?;
        Ok(PageBuffer { window, longest, failure: None })
    }

    /// Whether something was not written because there is no room for it.
    pub(crate) fn is_too_long(&self) -> bool {
        self.failure == Some(PageError::TooLong)
    }

    /// Writes a whole line, or nothing of it: then there is no room for it.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        line.len() <= self.room() && self.window.append(line.as_bytes()).is_ok()
    }

    /// How much can be written, beside a last line.
    pub(crate) fn room(&self) -> usize {
        (self.longest - NOTE).saturating_sub(self.window.len())
    }

    /// The answer, with a last line, for which room was kept.
    pub(crate) fn ending(mut self, line: impl AsRef<[u8]>) -> Result<Window, PageError> {
        self.window.append(line.as_ref()).map_err(|_| PageError::Busy)?;
        Ok(self.window)
    }

    /// Adds bytes, or nothing of them: then there is no room for them.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.push(bytes).is_ok()
    }

    /// How long it is.
    pub(crate) fn len(&self) -> usize {
        self.window.len()
    }

    /// Forgets what stands behind the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.window.truncate(len);
        self.failure = None;
    }

    /// The bytes from `from` on.
    pub(crate) fn since(&self, from: usize) -> &[u8] {
        self.window.get(from..).unwrap_or_default()
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), PageError> {
        let failure = match self.failure {
            Some(failure) => failure,
            None if self.window.len() + bytes.len() > self.longest - NOTE => PageError::TooLong,
            None => match self.window.append(bytes) {
                Ok(()) => return Ok(()),
                Err(ChargeError::Never { .. }) => PageError::TooLong,
                Err(ChargeError::Short | ChargeError::Crowded) => PageError::Busy,
            },
        };
        self.failure = Some(failure);
        Err(failure)
    }

    /// The answer, if `written` whole.
    pub(crate) fn whole<E>(self, written: Result<(), E>) -> Result<Window, PageError> {
        match (self.failure, written) {
            (Some(failure), _) => Err(failure),
            (None, Err(_)) => Err(PageError::Broken),
            (None, Ok(())) => Ok(self.window),
        }
    }

    /// The answer; if it was too long, its whole lines and then `note`.
    pub(crate) fn cut<E>(mut self, written: Result<(), E>, note: &str) -> Result<Window, PageError> {
        if self.failure != Some(PageError::TooLong) {
            return self.whole(written);
        }
        let whole = self.window.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.window.truncate(whole);
        self.window.append(note.as_bytes()).map_err(|_| PageError::Busy)?;
        Ok(self.window)
    }
}

impl fmt::Write for PageBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes()).map_err(|_| fmt::Error)
    }
}

impl io::Write for PageBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let full = |_| io::Error::from(io::ErrorKind::StorageFull);
        self.push(bytes).map(|()| bytes.len()).map_err(full)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! zlib (RFC 1950), which HTTP calls `deflate`, in steps over slices, with state that is used again.
//!
//! A body is one stream: header, checksum and compressed data are zlib-rs's to check. Bytes behind the stream
//! are an error, and so is a body that ends before it does. A body of no bytes has no stream, and is empty.

#[cfg(test)]
mod tests;

use std::borrow::BorrowMut;

use thiserror::Error;
use zlib_rs::{Inflate, InflateFlush, Status};

use crate::coding::{Decode, Needs, Progress};

/// Why a zlib body was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ZlibError {
    /// Not zlib, or damaged: the header, the data or the checksum.
    #[error("deflate: the body is no zlib stream, or is damaged")]
    Data,
    /// There is more behind the stream.
    #[error("deflate: bytes follow the end of the zlib stream")]
    Trailing,
    /// The body ends too early.
    #[error("deflate: the body ends inside the zlib stream")]
    Truncated,
}

/// Decodes one stream, with a state of its own or one that is borrowed.
pub struct Decoder<I = Inflate> {
    inflate: I,
    section: StreamSection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamSection {
    Start,
    Data,
    End,
}

/// The usual expansion of agents' bodies: their lines are similar.
const USUAL: usize = 12;

impl Decoder {
    /// Most heap bytes of a decoder: zlib's state with its 32 KiB of history.
    pub const BYTES: usize = 48 << 10;

    /// A decoder at the start of a body.
    #[must_use]
    pub fn new() -> Self {
        Self { inflate: Inflate::new(true, 15), section: StreamSection::Start }
    }
}

impl<I: BorrowMut<Inflate>> Decoder<I> {
    pub(crate) fn over(mut inflate: I) -> Self {
        inflate.borrow_mut().reset(true);
        Self { inflate, section: StreamSection::Start }
    }
}

impl<I: BorrowMut<Inflate>> Decode for Decoder<I> {
    type Error = ZlibError;

    fn reset(&mut self) {
        self.inflate.borrow_mut().reset(true);
        self.section = StreamSection::Start;
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Progress, ZlibError> {
        match self.section {
            StreamSection::Start if input.is_empty() => {
                return Ok(Progress { read: 0, written: 0, needs: Needs::Nothing });
            }
            StreamSection::Start => self.section = StreamSection::Data,
            StreamSection::Data => {}
            StreamSection::End if input.is_empty() => {
                return Ok(Progress { read: 0, written: 0, needs: Needs::Nothing });
            }
            StreamSection::End => return Err(ZlibError::Trailing),
        }
        let inflate = self.inflate.borrow_mut();
        let before = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(input, output, InflateFlush::NoFlush);
        let status = status.map_err(|_| ZlibError::Data)?;
        let step =
            |before: u64, now: u64| usize::try_from(now.wrapping_sub(before)).map_err(|_| ZlibError::Data);
        let read = step(before.0, inflate.total_in())?;
        let written = step(before.1, inflate.total_out())?;
        let left = input.len().saturating_sub(read);
        let wants = match status {
            Status::StreamEnd if left > 0 => return Err(ZlibError::Trailing),
            Status::StreamEnd => {
                self.section = StreamSection::End;
                Needs::Nothing
            }
            _ if written == output.len() => Needs::Output(left.saturating_mul(8).clamp(4 << 10, 1 << 20)),
            _ => Needs::Input,
        };
        Ok(Progress { read, written, needs: wants })
    }

    /// A guess: a stream does not say how long it will be.
    fn expected_len(&self, body: &[u8]) -> usize {
        body.len().saturating_mul(USUAL)
    }

    fn truncated(&self) -> ZlibError {
        ZlibError::Truncated
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl<I> std::fmt::Debug for Decoder<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("part", &self.section).finish_non_exhaustive()
    }
}

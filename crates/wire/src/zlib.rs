//! zlib (RFC 1950), which HTTP calls `deflate`, in steps over slices, with state that is used again.
//!
//! A body is one stream: header, checksum and compressed data are zlib-rs's to check. Bytes behind the stream
//! are an error, and so is a body that ends before it does. A body of no bytes has no stream, and is empty.

#[cfg(test)]
mod tests;

use std::borrow::BorrowMut;

use thiserror::Error;
use zlib_rs::{Inflate, InflateFlush, Status};

use crate::coding::{Decode, Progress, Wants};

/// Why a zlib body was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
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
    part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
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
        Self { inflate: Inflate::new(true, 15), part: Part::Start }
    }
}

impl<I: BorrowMut<Inflate>> Decoder<I> {
    pub(crate) fn over(mut inflate: I) -> Self {
        inflate.borrow_mut().reset(true);
        Self { inflate, part: Part::Start }
    }
}

impl<I: BorrowMut<Inflate>> Decode for Decoder<I> {
    type Fault = Fault;

    fn reset(&mut self) {
        self.inflate.borrow_mut().reset(true);
        self.part = Part::Start;
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Progress, Fault> {
        match self.part {
            Part::Start if input.is_empty() => {
                return Ok(Progress { read: 0, written: 0, wants: Wants::Nothing });
            }
            Part::Start => self.part = Part::Data,
            Part::Data => {}
            Part::End if input.is_empty() => {
                return Ok(Progress { read: 0, written: 0, wants: Wants::Nothing });
            }
            Part::End => return Err(Fault::Trailing),
        }
        let inflate = self.inflate.borrow_mut();
        let before = (inflate.total_in(), inflate.total_out());
        let status = inflate.decompress(input, output, InflateFlush::NoFlush);
        let status = status.map_err(|_| Fault::Data)?;
        let step = |before: u64, now: u64| usize::try_from(now.wrapping_sub(before)).map_err(|_| Fault::Data);
        let read = step(before.0, inflate.total_in())?;
        let written = step(before.1, inflate.total_out())?;
        let left = input.len().saturating_sub(read);
        let wants = match status {
            Status::StreamEnd if left > 0 => return Err(Fault::Trailing),
            Status::StreamEnd => {
                self.part = Part::End;
                Wants::Nothing
            }
            _ if written == output.len() => Wants::Output(left.saturating_mul(8).clamp(4 << 10, 1 << 20)),
            _ => Wants::Input,
        };
        Ok(Progress { read, written, wants })
    }

    /// A guess: a stream does not say how long it will be.
    fn expected_len(&self, body: &[u8]) -> usize {
        body.len().saturating_mul(USUAL)
    }

    fn truncated(&self) -> Fault {
        Fault::Truncated
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl<I> std::fmt::Debug for Decoder<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("part", &self.part).finish_non_exhaustive()
    }
}

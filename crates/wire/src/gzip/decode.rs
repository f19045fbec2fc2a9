//! Members to bytes.

use thiserror::Error;
use zlib_rs::crc32::crc32;
use zlib_rs::{Inflate, InflateFlush, Status};

use super::header::Header;
use crate::coding::{Decode, Needs, Progress};
use crate::zlib;

/// Why a gzip body was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GzipError {
    /// Not gzip, or something else behind the last member.
    #[error("gzip: a member must begin with the bytes 1f 8b, and this one does not")]
    Magic,
    /// Not deflate.
    #[error("gzip: compression method {0} is unknown; only 8 (deflate) is defined")]
    Method(u8),
    /// Flags from the future.
    #[error("gzip: the header has reserved flags set ({0:#010b})")]
    Flags(u8),
    /// The header is damaged.
    #[error("gzip: the header's checksum is wrong")]
    HeaderChecksum,
    /// The compressed data is damaged.
    #[error("gzip: the compressed data is damaged")]
    Data,
    /// The decompressed bytes differ from the compressed ones.
    #[error("gzip: the checksum is {found:08x} and should be {expected:08x}")]
    Checksum {
        /// Of what was decompressed.
        found: u32,
        /// As the trailer says.
        expected: u32,
    },
    /// The length differs though the checksum fits.
    #[error("gzip: a member has {found} bytes (modulo 2^32) and its trailer says {expected}")]
    Length {
        /// Of what was decompressed.
        found: u32,
        /// As the trailer says.
        expected: u32,
    },
    /// The body ends too early.
    #[error("gzip: the body ends inside a member")]
    Truncated,
}

/// Decodes any number of members.
pub struct Decoder {
    inflate: Inflate,
    section: MemberSection,
    checksum: u32,
    len: u32,
}

#[derive(Debug, Clone, Copy)]
enum MemberSection {
    Header(Header),
    Data,
    /// The checksum and the length, as far as they have come.
    Trailer([u8; 8], usize),
}

/// The most that deflate can make of one byte.
const EXPANSION: usize = 1032;

impl Decoder {
    /// Most heap bytes of a decoder: zlib's state with its 32 KiB of history.
    pub const BYTES: usize = 48 << 10;

    /// A decoder at the start of a body.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inflate: Inflate::new(false, 15),
            section: MemberSection::Header(Header::START),
            checksum: 0,
            len: 0,
        }
    }

    /// A decoder of zlib with the memory of this one, which must be reset before it decodes again.
    pub fn as_zlib(&mut self) -> zlib::Decoder<&mut Inflate> {
        zlib::Decoder::over(&mut self.inflate)
    }

    /// Decompresses into `output`; returns whether the data ended, with what was read and written.
    fn inflate(&mut self, input: &[u8], output: &mut [u8]) -> Result<(bool, usize, usize), GzipError> {
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(input, output, InflateFlush::NoFlush);
        let status = status.map_err(|_| GzipError::Data)?;
        let step =
            |before: u64, now: u64| usize::try_from(now.wrapping_sub(before)).map_err(|_| GzipError::Data);
        let read = step(read, self.inflate.total_in())?;
        let written = step(written, self.inflate.total_out())?;
        let fresh = output.get(..written).unwrap_or_default();
        self.checksum = crc32(self.checksum, fresh);
        let [a, b, c, d, ..] = written.to_le_bytes();
        self.len = self.len.wrapping_add(u32::from_le_bytes([a, b, c, d]));
        Ok((status == Status::StreamEnd, read, written))
    }

    fn check(&self, [a, b, c, d, e, f, g, h]: [u8; 8]) -> Result<(), GzipError> {
        let (checksum, len) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if checksum != self.checksum {
            return Err(GzipError::Checksum { found: self.checksum, expected: checksum });
        }
        if len != self.len {
            return Err(GzipError::Length { found: self.len, expected: len });
        }
        Ok(())
    }
}

impl Decode for Decoder {
    type Error = GzipError;

    fn reset(&mut self) {
        self.section = MemberSection::Header(Header::START);
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Progress, GzipError> {
        let (mut read, mut written) = (0, 0);
        loop {
            let rest = input.get(read..).unwrap_or_default();
            match &mut self.section {
                MemberSection::Header(header) => {
                    let (taken, complete) = header.read(rest)?;
                    read += taken;
                    if !complete {
                        let wants = if header.is_untouched() { Needs::Nothing } else { Needs::Input };
                        return Ok(Progress { read, written, needs: wants });
                    }
                    self.section = MemberSection::Data;
                    self.inflate.reset(false);
                    (self.checksum, self.len) = (0, 0);
                }
                MemberSection::Data => {
                    let room = output.get_mut(written..).unwrap_or_default();
                    let free = room.len();
                    let (ended, taken, made) = self.inflate(rest, room)?;
                    (read, written) = (read + taken, written + made);
                    if ended {
                        self.section = MemberSection::Trailer([0; 8], 0);
                        continue;
                    }
                    let wants = if made == free {
                        Needs::Output((rest.len() - taken).saturating_mul(8).clamp(4 << 10, 1 << 20))
                    } else {
                        Needs::Input
                    };
                    return Ok(Progress { read, written, needs: wants });
                }
                MemberSection::Trailer(bytes, len) => {
                    for (to, from) in bytes.iter_mut().skip(*len).zip(rest) {
                        *to = *from;
                        *len += 1;
                        read += 1;
                    }
                    if *len < bytes.len() {
                        return Ok(Progress { read, written, needs: Needs::Input });
                    }
                    let bytes = *bytes;
                    self.check(bytes)?;
                    self.section = MemberSection::Header(Header::START);
                }
            }
        }
    }

    /// The length that the last member's trailer says: that of the whole, when there is one member.
    fn expected_len(&self, body: &[u8]) -> usize {
        let len = body.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        usize::try_from(len).unwrap_or(usize::MAX).min(body.len().saturating_mul(EXPANSION))
    }

    fn truncated(&self) -> GzipError {
        GzipError::Truncated
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("part", &self.section).finish_non_exhaustive()
    }
}

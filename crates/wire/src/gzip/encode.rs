//! Bytes to one member at a time.

use thiserror::Error;
use zlib_rs::crc32::crc32;
use zlib_rs::{Deflate, DeflateFlush, Status};

/// A level that gzip does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("gzip has the levels 1 (fast) to 9 (small), and {0} is none of them")]
pub struct InvalidLevel(pub i32);

/// Compresses to members, one after the other.
pub struct Encoder {
    deflate: Deflate,
    section: MemberSection,
    checksum: u32,
    len: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberSection {
    /// So many bytes of the header were written.
    Header(usize),
    Data,
    /// So many bytes of the trailer were written.
    Trailer(usize),
}

/// Deflate, no name, no time; made on Unix.
pub(super) const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];

impl Encoder {
    /// Most heap bytes of an encoder of any level.
    pub const BYTES: usize = 384 << 10;

    /// An encoder of `level`, 1 (fast) to 9 (small).
    ///
    /// # Errors
    /// [`InvalidLevel`].
    pub fn new(level: i32) -> Result<Self, InvalidLevel> {
        if !(1..=9).contains(&level) {
            return Err(InvalidLevel(level));
        }
        Ok(Self {
            deflate: Deflate::new(level, false, 15),
            section: MemberSection::Header(0),
            checksum: 0,
            len: 0,
        })
    }

    /// The room in which `len` bytes fit compressed as one member, whatever they are.
    #[must_use]
    pub fn max_len(len: usize) -> usize {
        // The fastest level writes nine bits for a byte at worst; add the header and the trailer.
        len.saturating_add(len / 8).saturating_add(64)
    }

    /// Forgets an unfinished member, keeping the memory.
    pub fn reset(&mut self) {
        if self.section == MemberSection::Data {
            self.drain();
        }
        self.deflate.reset();
        self.section = MemberSection::Header(0);
        (self.checksum, self.len) = (0, 0);
    }

    /// Compresses from the start of `input` to the start of `output`, and returns how much was read and how
    /// much was written. If less than `input` was read, the output is full.
    pub fn step(&mut self, input: &[u8], output: &mut [u8]) -> (usize, usize) {
        let start = self.header(output);
        let room = output.get_mut(start..).unwrap_or_default();
        if self.section != MemberSection::Data || room.is_empty() {
            return (0, start);
        }
        let (read, written, _) = self.deflate(input, room, DeflateFlush::NoFlush);
        (read, start + written)
    }

    /// Writes the rest of the member to the start of `output`: how much that was, and whether it was all. If
    /// not, the output is full and this must be called again. The next `step` begins another member.
    pub fn finish(&mut self, output: &mut [u8]) -> (usize, bool) {
        let mut written = self.header(output);
        if self.section == MemberSection::Data {
            let room = output.get_mut(written..).unwrap_or_default();
            let (_, made, ended) = self.deflate(&[], room, DeflateFlush::Finish);
            written += made;
            if ended {
                self.section = MemberSection::Trailer(0);
            }
        }
        if let MemberSection::Trailer(done) = &mut self.section {
            let ([a, b, c, d], [e, f, g, h]) = (self.checksum.to_le_bytes(), self.len.to_le_bytes());
            let made = copy([a, b, c, d, e, f, g, h].get(*done..).unwrap_or_default(), output, written);
            *done += made;
            written += made;
            if *done == 8 {
                self.reset();
                return (written, true);
            }
        }
        (written, false)
    }

    /// Ends an unfinished member, to nobody. Resetting the library's state in the middle of one keeps some of
    /// it, which would be found in the next.
    fn drain(&mut self) {
        let mut nowhere = [0; 1024];
        loop {
            let (_, made, ended) = self.deflate(&[], &mut nowhere, DeflateFlush::Finish);
            if ended || made == 0 {
                return;
            }
        }
    }

    fn header(&mut self, output: &mut [u8]) -> usize {
        let MemberSection::Header(done) = &mut self.section else { return 0 };
        let made = copy(HEADER.get(*done..).unwrap_or_default(), output, 0);
        *done += made;
        if *done == HEADER.len() {
            self.section = MemberSection::Data;
        }
        made
    }

    fn deflate(&mut self, input: &[u8], output: &mut [u8], flush: DeflateFlush) -> (usize, usize, bool) {
        let before = (self.deflate.total_in(), self.deflate.total_out());
        // It fails for parameters that it cannot have and for nothing else, and then makes no progress.
        let status = self.deflate.compress(input, output, flush);
        let step = |before: u64, now: u64| usize::try_from(now.wrapping_sub(before)).unwrap_or(0);
        let read = step(before.0, self.deflate.total_in());
        self.checksum = crc32(self.checksum, input.get(..read).unwrap_or_default());
        let [a, b, c, d, ..] = read.to_le_bytes();
        self.len = self.len.wrapping_add(u32::from_le_bytes([a, b, c, d]));
        (read, step(before.1, self.deflate.total_out()), status == Ok(Status::StreamEnd))
    }
}

/// Copies as much of `bytes` as fits into `output` from `at` on.
fn copy(bytes: &[u8], output: &mut [u8], at: usize) -> usize {
    let room = output.get_mut(at..).unwrap_or_default();
    let len = bytes.len().min(room.len());
    for (to, from) in room.iter_mut().zip(bytes) {
        *to = *from;
    }
    len
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("part", &self.section).finish_non_exhaustive()
    }
}

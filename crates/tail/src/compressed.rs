//! Reads compressed files from front to back.

use crate::file::read_at;
use crate::identity::SAMPLE;
use std::fs::File;
use std::io;
use tidegate_wire::coding::{Decode, Needs};
use tidegate_wire::gzip;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// Compressed bytes that are read at once.
const INPUT: usize = 64 << 10;
/// Decompressed bytes that one call makes at most before it returns.
const MOST_A_CALL: usize = 4 << 20;
/// The largest window of Zstandard, as a power of two: 8 MiB, what every decoder has to support.
const WINDOW_LOG: u32 = 23;
/// The same where compressed files are only recognised: 2 MiB, what `zstd` makes unless told otherwise.
const SMALL_WINDOW_LOG: u32 = 21;

/// The largest window, by whether compressed files are read.
fn window_log(reads: bool) -> u32 {
    if reads { WINDOW_LOG } else { SMALL_WINDOW_LOG }
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Zstd,
}

impl Coding {
    /// By the first bytes of a file.
    pub(crate) fn of(first: &[u8]) -> Option<Coding> {
        match first {
            [0x1f, 0x8b, ..] => Some(Coding::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Coding::Zstd),
            _ => None,
        }
    }

    /// Whether more bytes may show that a file with these first bytes is compressed.
    pub(crate) fn is_undecided(first: &[u8]) -> bool {
        let magics: [&[u8]; 2] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]];
        magics.iter().any(|magic| first.len() < magic.len() && magic.starts_with(first))
    }
}

enum State {
    Gzip(Box<gzip::Decoder>),
    Zstd(DCtx<'static>),
}

/// Decompresses one file.
pub(crate) struct Decompressor {
    coding: Coding,
    /// Whether compressed files are read, and not only recognised.
    reads: bool,
    state: State,
    input: Vec<u8>,
    /// Where in `input` the bytes begin that are not decoded yet.
    used: usize,
    /// The offset in the file behind `input`.
    read: u64,
    decoded: Vec<u8>,
    /// The decompressed offset of the first byte of `decoded`.
    start: u64,
    /// Whether the last member or frame is complete.
    is_complete: bool,
    at_end: bool,
}

/// The decompressed bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decompressed<'a> {
    /// From the offset asked for on.
    pub(crate) bytes: &'a [u8],
    /// Whether nothing follows. If `is_whole` is false then, the file ends within a member or frame.
    pub(crate) at_end: bool,
    pub(crate) is_whole: bool,
    /// Whether the offset asked for is not reached yet: call again.
    pub(crate) behind: bool,
}

impl Decompressor {
    /// Most bytes of its own, beside what `from` keeps.
    pub(crate) fn most_bytes(reads: bool) -> usize {
        (1 << window_log(reads)) + (1 << 20)
    }

    /// At the start of a file.
    ///
    /// # Errors
    /// Without memory.
    pub(crate) fn new(coding: Coding, reads: bool) -> io::Result<Decompressor> {
        let state = match coding {
            Coding::Gzip => State::Gzip(Box::new(gzip::Decoder::new())),
            Coding::Zstd => {
                let mut context = DCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
                context.set_parameter(DParameter::WindowLogMax(window_log(reads))).map_err(zstd_error)?;
                State::Zstd(context)
            }
        };
        let (input, decoded) = (Vec::new(), Vec::new());
        Ok(Decompressor {
            coding,
            reads,
            state,
            input,
            used: 0,
            read: 0,
            decoded,
            start: 0,
            is_complete: false,
            at_end: false,
        })
    }

    /// Decompresses from `offset` on, up to `most` bytes. A smaller offset than that of the call before begins again at the start
    /// of the file, unless it is near.
    ///
    /// # Errors
    /// Those of reading, and [`io::ErrorKind::InvalidData`] for damaged data.
    pub(crate) fn from<'a>(
        &'a mut self,
        handle: &File,
        offset: u64,
        most: usize,
    ) -> io::Result<Decompressed<'a>> {
        if offset < self.start {
            *self = Decompressor::new(self.coding, self.reads)?;
        }
        let mut made = 0;
        loop {
            // The sample before the offset stays, for the comparison with a known file.
            let unused = offset.saturating_sub(SAMPLE as u64).saturating_sub(self.start);
            let unused = usize::try_from(unused).unwrap_or(usize::MAX).min(self.decoded.len());
            self.decoded.drain(..unused);
            self.start += unused as u64;
            let end = self.start + self.decoded.len() as u64;
            if self.at_end || end >= offset.saturating_add(most as u64) || made >= MOST_A_CALL {
                break;
            }
            made += self.step(handle)?;
        }
        let end = self.start + self.decoded.len() as u64;
        let behind = end < offset && !self.at_end;
        let from = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let bytes = self.decoded.get(from..).unwrap_or_default();
        Ok(Decompressed { bytes, at_end: self.at_end, is_whole: self.is_complete, behind })
    }

    /// The decompressed bytes before `offset`, at most [`SAMPLE`], after [`from`](Self::from) was asked for `offset`.
    pub(crate) fn before(&self, offset: u64) -> Option<&[u8]> {
        let from = offset.saturating_sub(SAMPLE as u64).checked_sub(self.start)?;
        let to = offset.checked_sub(self.start)?;
        self.decoded.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
    }

    /// Decodes a little; gives the number of bytes made.
    fn step(&mut self, handle: &File) -> io::Result<usize> {
        /// Room for what one step makes.
        const ROOM: usize = 64 << 10;
        if self.used == self.input.len() {
            self.input.resize(INPUT, 0);
            let len = read_at(handle, &mut self.input, self.read)?;
            self.input.truncate(len);
            self.read += len as u64;
            self.used = 0;
            if len == 0 {
                self.at_end = true;
                return Ok(0);
            }
        }
        let before = self.decoded.len();
        self.decoded.resize(before + ROOM, 0);
        let input = self.input.get(self.used..).unwrap_or_default();
        let room = self.decoded.get_mut(before..).unwrap_or_default();
        let step = match &mut self.state {
            State::Gzip(decoder) => gzip_step(decoder, input, room),
            State::Zstd(context) => zstd_step(context, input, room),
        };
        let (used, made, is_complete) = match step {
            Ok(step) => step,
            Err(error) => {
                self.decoded.truncate(before);
                return Err(error);
            }
        };
        self.decoded.truncate(before + made);
        self.used += used;
        self.is_complete = is_complete;
        Ok(made)
    }
}

/// Bytes read and made, and whether the data may end there.
fn gzip_step(decoder: &mut gzip::Decoder, input: &[u8], room: &mut [u8]) -> io::Result<(usize, usize, bool)> {
    let progress =
        decoder.step(input, room).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok((progress.read, progress.written, matches!(progress.needs, Needs::Nothing)))
}

fn zstd_step(context: &mut DCtx<'static>, input: &[u8], room: &mut [u8]) -> io::Result<(usize, usize, bool)> {
    let mut input = InBuffer::around(input);
    let mut output = OutBuffer::around(room);
    let left = context.decompress_stream(&mut output, &mut input).map_err(zstd_error)?;
    Ok((input.pos(), output.pos(), left == 0))
}

fn zstd_error(code: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, zstd_safe::get_error_name(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tempfile::NamedTempFile;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![0; zstd_safe::compress_bound(bytes.len())];
        let len = zstd_safe::compress(out.as_mut_slice(), bytes, 3).unwrap();
        out.truncate(len);
        out
    }

    fn file(bytes: &[u8]) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn read_all(file: &File, coding: Coding, from: u64, most: usize) -> Vec<u8> {
        let mut decompressor = Decompressor::new(coding, true).unwrap();
        let mut all = Vec::new();
        loop {
            let step = decompressor.from(file, from + all.len() as u64, most).unwrap();
            if step.behind {
                continue;
            }
            let (taken, at_end) = (step.bytes.len().min(most), step.at_end && step.bytes.len() <= most);
            all.extend_from_slice(&step.bytes[..taken]);
            if at_end {
                return all;
            }
        }
    }

    /// Reading from any offset on, in any steps, gives the bytes that were compressed; several members are one file.
    #[test]
    fn reads_from_any_offset() {
        let plain: Vec<u8> = (0..300_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let (one, two) = plain.split_at(1_000_000);
        for (coding, bytes) in
            [(Coding::Gzip, [gzip(one), gzip(two)].concat()), (Coding::Zstd, [zstd(one), zstd(two)].concat())]
        {
            assert_eq!(Coding::of(&bytes), Some(coding));
            let file = file(&bytes);
            for (from, most) in [(0, 1000), (0, 1 << 20), (1_234_567, 70_000), (plain.len() as u64, 100)] {
                let expected = &plain[from as usize..];
                assert!(read_all(file.as_file(), coding, from, most) == expected, "{coding:?} {from} {most}");
            }
        }
    }

    /// The end of a file that is not whole is told, and damage is an error.
    #[test]
    fn tells_what_is_not_whole() {
        for (coding, bytes) in [(Coding::Gzip, gzip(&[b'x'; 5000])), (Coding::Zstd, zstd(&[b'x'; 5000]))] {
            let whole = file(&bytes);
            let mut decompressor = Decompressor::new(coding, true).unwrap();
            let read = decompressor.from(whole.as_file(), 0, 1 << 20).unwrap();
            assert!(read.at_end && read.is_whole && read.bytes.len() == 5000);

            let short = file(&bytes[..bytes.len() - 1]);
            let mut decompressor = Decompressor::new(coding, true).unwrap();
            let read = decompressor.from(short.as_file(), 0, 1 << 20).unwrap();
            assert!(read.at_end && !read.is_whole);

            let mut damaged = bytes.clone();
            damaged.extend_from_slice(b"noise");
            let damaged = file(&damaged);
            let mut decompressor = Decompressor::new(coding, true).unwrap();
            assert!(decompressor.from(damaged.as_file(), 0, 1 << 20).is_err(), "{coding:?}");
        }
    }

    /// The bytes before an offset are there for the comparison.
    #[test]
    fn keeps_the_sample_before() {
        let plain: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let file = file(&gzip(&plain));
        let mut decompressor = Decompressor::new(Coding::Gzip, true).unwrap();
        for offset in [10, 2000, 300_000] {
            while decompressor.from(file.as_file(), offset, 1).unwrap().behind {}
            let from = offset.saturating_sub(1024) as usize;
            assert_eq!(decompressor.before(offset), Some(&plain[from..offset as usize]));
        }
    }
}

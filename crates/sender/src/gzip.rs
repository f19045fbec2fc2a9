//! One gzip stream after the other through the same state: nothing is allocated after the first.

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// The size of zlib-rs's deflate state with a window of 32 KiB; a test measures it.
pub(crate) const STATE_BYTES: usize = 360 << 10;

/// RFC 1952: magic, deflate, no flags, no time, fastest, unknown system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

pub(crate) struct Gzip {
    state: Compress,
    crc: Crc,
}

impl Gzip {
    pub(crate) fn new() -> Gzip {
        Gzip { state: Compress::new(Compression::fast(), false), crc: Crc::new() }
    }

    /// Begins a stream. Returns its first bytes.
    pub(crate) fn begin(&mut self) -> &'static [u8] {
        self.state.reset();
        self.crc.reset();
        &HEAD
    }

    /// Compresses as much of `input` as goes into `room`: how much was read, and written.
    pub(crate) fn compress(&mut self, input: &[u8], room: &mut [u8]) -> (usize, usize) {
        let (read, written, _) = self.step(input, room, FlushCompress::None);
        self.crc.update(input.get(..read).unwrap_or_default());
        (read, written)
    }

    /// Writes what is left; true when that was all.
    pub(crate) fn finish(&mut self, room: &mut [u8]) -> (usize, bool) {
        let (_, written, status) = self.step(&[], room, FlushCompress::Finish);
        (written, status == Status::StreamEnd)
    }

    /// The last bytes, after [`finish`](Gzip::finish).
    pub(crate) fn trailer(&self) -> [u8; 8] {
        let [a, b, c, d] = self.crc.sum().to_le_bytes();
        let [e, f, g, h] = self.crc.amount().to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }

    fn step(&mut self, input: &[u8], room: &mut [u8], flush: FlushCompress) -> (usize, usize, Status) {
        let (read, written) = (self.state.total_in(), self.state.total_out());
        // It fails only when used in the wrong order, which the callers do not.
        let status = self.state.compress(input, room, flush).unwrap_or(Status::BufError);
        ((self.state.total_in() - read) as usize, (self.state.total_out() - written) as usize, status)
    }
}

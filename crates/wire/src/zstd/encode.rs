//! Bytes to one frame at a time.

use thiserror::Error;
use zstd_safe::zstd_sys::ZSTD_EndDirective::{ZSTD_e_continue, ZSTD_e_end};
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

/// The rejected parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ZstdEncoderError {
    /// A level that is not offered.
    #[error("zstd is offered at the levels 1 (fast) to 9 (small), and {0} is none of them")]
    Level(i32),
    /// Memory ended, or a frame has another length than was announced.
    #[error("zstd: {0}")]
    Library(&'static str),
}

/// Compresses to frames, one after the other.
pub struct Encoder {
    context: CCtx<'static>,
}

/// How far back matches are looked for, and what readers need at most: 512 KiB.
const WINDOW_LOG: u32 = 19;

impl Encoder {
    /// Most heap bytes of an encoder of `level`.
    #[must_use]
    pub fn bytes(level: i32) -> usize {
        let kib = match level {
            ..=1 => 1344,
            2 => 1536,
            3 => 2048,
            4 => 3328,
            5 | 6 => 3840,
            7 | 8 => 6400,
            9.. => 11_520,
        };
        kib << 10
    }

    /// An encoder of `level`, 1 (fast) to 9 (small).
    ///
    /// # Errors
    /// [`ZstdEncoderError`].
    pub fn new(level: i32) -> Result<Self, ZstdEncoderError> {
        if !(1..=9).contains(&level) {
            return Err(ZstdEncoderError::Level(level));
        }
        let mut context =
            CCtx::try_create().ok_or(ZstdEncoderError::Library("there is no memory for an encoder"))?;
        for parameter in [CParameter::CompressionLevel(level), CParameter::WindowLog(WINDOW_LOG)] {
            context.set_parameter(parameter).map_err(refused)?;
        }
        Ok(Self { context })
    }

    /// The room in which `len` bytes fit compressed as one frame, whatever they are.
    #[must_use]
    pub fn max_len(len: usize) -> usize {
        zstd_safe::compress_bound(len)
    }

    /// Forgets an unfinished frame, keeping the memory, and announces how long the next one is, if that is
    /// known: readers that are told need no memory but for the result.
    ///
    /// # Errors
    /// [`ZstdEncoderError::Library`].
    pub fn begin(&mut self, len: Option<u64>) -> Result<(), ZstdEncoderError> {
        self.context.reset(ResetDirective::SessionOnly).map_err(refused)?;
        self.context.set_pledged_src_size(len).map_err(refused)?;
        Ok(())
    }

    /// Compresses from the start of `input` to the start of `output`, and returns how much was read and how
    /// much was written. If less than `input` was read, the output is full.
    ///
    /// # Errors
    /// [`ZstdEncoderError::Library`].
    pub fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize), ZstdEncoderError> {
        let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(output));
        self.context.compress_stream2(&mut to, &mut from, ZSTD_e_continue).map_err(refused)?;
        Ok((from.pos(), to.pos()))
    }

    /// Writes the rest of the frame to the start of `output`: how much that was, and whether it was all. If
    /// not, the output is full and this must be called again.
    ///
    /// # Errors
    /// [`ZstdEncoderError::Library`].
    pub fn finish(&mut self, output: &mut [u8]) -> Result<(usize, bool), ZstdEncoderError> {
        let mut to = OutBuffer::around(output);
        let mut nothing = InBuffer::around(&[]);
        let left = self.context.compress_stream2(&mut to, &mut nothing, ZSTD_e_end).map_err(refused)?;
        Ok((to.pos(), left == 0))
    }

    /// Compresses all of `input` as one frame that says its length. `output` must have
    /// [`max_len`](Self::max_len); returns how much was written. This is faster than steps, which copy.
    ///
    /// # Errors
    /// [`ZstdEncoderError::Library`], also when `output` is too small.
    pub fn whole(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize, ZstdEncoderError> {
        self.context.compress2(output, input).map_err(refused)
    }
}

fn refused(code: usize) -> ZstdEncoderError {
    ZstdEncoderError::Library(zstd_safe::get_error_name(code))
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

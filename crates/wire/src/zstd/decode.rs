//! Frames to bytes, one frame at a time.

use zstd_safe::DCtx;

use super::frame::{Frame, FrameKind, ZstdError, measure};
use crate::coding::{Decode, Needs, Progress};

/// Decodes any number of frames.
///
/// A frame is decoded whole or not at all, so [`Needs::Output`] says what the frame at hand may need, and is
/// best granted in full. A frame that says how long it is needs just that. Of one that does not, a first guess
/// is tried, then the most that its blocks can become, or as much of that as is granted.
pub struct Decoder {
    context: DCtx<'static>,
    window_limit: u64,
    /// Whether the frame at hand has already asked for room.
    asked: bool,
}

/// How often longer than itself a frame is guessed to be that does not say.
const GUESS: usize = 16;
/// The least that is guessed.
const LEAST: usize = 128 << 10;

/// The library's code for an output that is too small.
const TOO_SMALL: usize = 0usize.wrapping_sub(70);

impl Decoder {
    /// Most heap bytes of a decoder.
    pub const BYTES: usize = 96 << 10;

    /// The window that a frame may want by default, which is what the format asks every decoder to support.
    pub const WINDOW: u64 = 8 << 20;

    /// A decoder that refuses frames with windows above `window_limit` bytes. It does not need the window
    /// itself; those who read the body later may. A frame whose window is its content is not limited by it.
    #[must_use]
    pub fn new(window_limit: u64) -> Self {
        Self { context: DCtx::create(), window_limit, asked: false }
    }

    /// Decodes `frame` into `room`: how many bytes that were, or `None` if it has more.
    fn frame(&mut self, frame: &[u8], room: &mut [u8]) -> Result<Option<usize>, ZstdError> {
        match self.context.decompress(room, frame) {
            Ok(written) => Ok(Some(written)),
            Err(TOO_SMALL) => Ok(None),
            Err(code) => Err(ZstdError::Data(zstd_safe::get_error_name(code))),
        }
    }
}

impl Decode for Decoder {
    type Error = ZstdError;

    fn reset(&mut self) {
        self.asked = false;
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Progress, ZstdError> {
        let (mut read, mut written) = (0, 0);
        loop {
            let rest = input.get(read..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(Progress { read, written, needs: Needs::Nothing });
            }
            let frame = match measure(rest, self.window_limit)? {
                FrameKind::Skippable(len) => {
                    read += len;
                    continue;
                }
                FrameKind::Frame(frame) => frame,
            };
            let room = output.get_mut(written..).unwrap_or_default();
            let needs = frame.guess();
            let wants = |more: usize| Ok(Progress { read, written, needs: Needs::Output(more.max(1)) });
            if room.len() < needs && (!self.asked || frame.content.is_some()) {
                self.asked = true;
                return wants(needs - room.len());
            }
            let free = room.len();
            let Some(made) = self.frame(rest.get(..frame.len).unwrap_or_default(), room)? else {
                if free >= frame.bound || frame.content.is_some_and(|content| free >= content) {
                    return Err(ZstdError::Data("a frame has more bytes than it can have"));
                }
                self.asked = true;
                return wants(frame.bound - free);
            };
            self.asked = false;
            (read, written) = (read + frame.len, written + made);
        }
    }

    fn expected_len(&self, body: &[u8]) -> usize {
        let (mut rest, mut total) = (body, 0usize);
        while let Ok(found) = measure(rest, self.window_limit) {
            let (len, becomes) = match found {
                FrameKind::Skippable(len) => (len, 0),
                FrameKind::Frame(frame) => (frame.len, frame.guess()),
            };
            total = total.saturating_add(becomes);
            rest = rest.get(len..).unwrap_or_default();
        }
        total
    }

    fn truncated(&self) -> ZstdError {
        ZstdError::Truncated
    }
}

impl Frame {
    fn guess(&self) -> usize {
        let guess = self.len.saturating_mul(GUESS).max(LEAST).min(self.bound);
        self.content.unwrap_or(guess)
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("window_limit", &self.window_limit).finish_non_exhaustive()
    }
}

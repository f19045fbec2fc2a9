//! Window updates for bytes that bypassed the codec.
//!
//! The codec keeps account of what passes through it. Whatever goes past it is accounted for here: the frames that
//! say so are put between those of the codec. The two accounts add up, since each gives back only what it took.

use super::frames::{FrameHeader, Frames, HEAD, WINDOW_UPDATE};

/// From here on it goes along with whatever is written.
const ALONG: usize = 16 << 10;
/// From here on it is written for its own sake: a quarter of a connection's window.
const ALONE: usize = 128 << 10;
/// Streams that something is owed to: as many as may be open.
const MOST: usize = 64;
/// The frames kept between writes.
const KEPT: usize = 4 * (HEAD + 4);

/// The outstanding increments, and their frames.
pub(super) struct WindowUpdates {
    connection: usize,
    streams: Vec<(u32, usize)>,
    /// Frames that are being written.
    frames: Vec<u8>,
    written: usize,
    /// Those that the codec has written.
    codec: Frames,
}

impl WindowUpdates {
    pub(super) fn new() -> WindowUpdates {
        let codec = Frames::after(0);
        WindowUpdates { connection: 0, streams: Vec::new(), frames: Vec::new(), written: 0, codec }
    }

    /// Bytes of the connection's window.
    pub(super) fn connection(&mut self, bytes: usize) {
        self.connection += bytes;
    }

    /// Bytes of a stream's window.
    pub(super) fn stream(&mut self, stream: u32, bytes: usize) {
        if let Some((_, owed)) = self.streams.iter_mut().find(|(known, _)| *known == stream) {
            *owed += bytes;
        } else if self.streams.len() < MOST {
            self.streams.push((stream, bytes));
        }
    }

    /// The stream has ended.
    pub(super) fn forget(&mut self, stream: u32) {
        self.streams.retain(|(known, _)| *known != stream);
    }

    /// The frames that are to go before what the codec writes next; `alone` if it writes nothing now.
    pub(super) fn due(&mut self, alone: bool) -> &[u8] {
        let least = if alone { ALONE } else { ALONG };
        let due = self.connection >= least || !self.streams.is_empty();
        if self.frames.is_empty() && due && self.codec.are_whole() {
            let connection = std::mem::take(&mut self.connection);
            for (stream, bytes) in std::iter::once((0, connection)).chain(self.streams.drain(..)) {
                // The increments were received, within a window of fewer than 2^31 bytes.
                if let Ok(bytes) = u32::try_from(bytes)
                    && bytes > 0
                {
                    let head = FrameHeader { len: 4, kind: WINDOW_UPDATE, flags: 0, stream };
                    self.frames.extend_from_slice(&head.bytes());
                    self.frames.extend_from_slice(&bytes.to_be_bytes());
                }
            }
            debug_assert!(self.frames.len() <= (MOST + 1) * (HEAD + 4));
        }
        self.frames.get(self.written..).unwrap_or_default()
    }

    /// Notes that so many bytes were written of what was due.
    pub(super) fn paid(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written >= self.frames.len() {
            self.written = 0;
            self.frames.clear();
            self.frames.shrink_to(KEPT);
            self.streams.shrink_to(1);
        }
    }

    /// Follows what the codec has written, and shows the head of each frame.
    pub(super) fn follow(&mut self, bytes: &[u8], seen: impl FnMut(FrameHeader)) {
        self.codec.follow_each(bytes, seen);
    }

    #[cfg(test)]
    pub(super) fn all_of_connection(&self) -> usize {
        self.connection
    }
}

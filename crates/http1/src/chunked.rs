//! Chunked coding, undone in place (RFC 9112, section 7.1).

use crate::refusal::{Refusal, SyntaxError};

/// The most bytes of chunk extensions in one body, all chunks together.
const MAX_EXTENSIONS: u16 = 1 << 10;
/// The most bytes of trailers, which are checked and ignored.
const MAX_TRAILERS: u16 = 4 << 10;
/// The most digits of a chunk's size, leading zeros included.
const MAX_DIGITS: u8 = 16;

/// The state of undoing the chunked coding of one body.
#[derive(Debug)]
pub(crate) struct ChunkedDecoder {
    state: ChunkState,
    /// Bytes of the body so far, counting all of the chunk that is being read.
    body: usize,
    extensions: u16,
    trailers: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    Size { size: u64, digits: u8 },
    ExtensionStart { size: u64 },
    Extension { size: u64 },
    SizeFeed { size: u64 },
    Data { left: usize },
    DataReturn,
    DataFeed,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerFeed,
    LastFeed,
    Done,
}

/// The output of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// Where the body's bytes end now.
    pub(crate) body: usize,
    /// Where what was not looked at begins: behind the last chunk, else at the end.
    pub(crate) rest: usize,
}

impl ChunkedDecoder {
    pub(crate) fn new() -> ChunkedDecoder {
        ChunkedDecoder { state: ChunkState::Size { size: 0, digits: 0 }, body: 0, extensions: 0, trailers: 0 }
    }

    /// Whether the last chunk and the trailers have been read.
    pub(crate) fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }

    /// Bytes of the chunk that is being read that have not arrived.
    pub(crate) fn missing(&self) -> usize {
        if let ChunkState::Data { left } = self.state { left } else { 0 }
    }

    /// Undoes the coding of `bytes[raw..]`, moving the body's bytes to `bytes[body..]`. A body longer than
    /// `limit` is refused as soon as a chunk's size says so.
    pub(crate) fn decode(
        &mut self,
        bytes: &mut [u8],
        mut body: usize,
        mut raw: usize,
        limit: usize,
    ) -> Result<Decoded, Refusal> {
        while self.state != ChunkState::Done {
            if let ChunkState::Data { left } = self.state {
                let now = left.min(bytes.len().saturating_sub(raw));
                if now == 0 {
                    break;
                }
                bytes.copy_within(raw..raw + now, body);
                (body, raw) = (body + now, raw + now);
                self.state =
                    if now == left { ChunkState::DataReturn } else { ChunkState::Data { left: left - now } };
            } else {
                let Some(byte) = bytes.get(raw) else { break };
                self.state = self.after(*byte, limit)?;
                raw += 1;
            }
        }
        Ok(Decoded { body, rest: raw })
    }

    /// The state after one byte of framing.
    fn after(&mut self, byte: u8, limit: usize) -> Result<ChunkState, Refusal> {
        let next = match (self.state, byte) {
            (ChunkState::Size { size, digits }, _) if byte.is_ascii_hexdigit() && digits < MAX_DIGITS => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                ChunkState::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            (ChunkState::Size { size, digits: 1.. }, b'\r') => ChunkState::SizeFeed { size },
            (ChunkState::Size { size, digits: 1.. }, b';') => ChunkState::ExtensionStart { size },
            // Visible characters only: the white space that the grammar allows here has been read in two
            // ways often enough.
            (ChunkState::ExtensionStart { size } | ChunkState::Extension { size }, b'!'..=b'~') => {
                self.extensions += 1;
                ChunkState::Extension { size }
            }
            (ChunkState::Extension { size }, b'\r') => ChunkState::SizeFeed { size },
            (ChunkState::SizeFeed { size: 0 }, b'\n') => ChunkState::TrailerStart,
            (ChunkState::SizeFeed { size }, b'\n') => self.chunk(size, limit)?,
            (ChunkState::DataReturn, b'\r') => ChunkState::DataFeed,
            (ChunkState::DataFeed, b'\n') => ChunkState::Size { size: 0, digits: 0 },
            (ChunkState::TrailerStart, b'\r') => ChunkState::LastFeed,
            (ChunkState::TrailerStart | ChunkState::TrailerName, _) if is_token(byte) => {
                ChunkState::TrailerName
            }
            (ChunkState::TrailerName, b':') => ChunkState::TrailerValue,
            (ChunkState::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => ChunkState::TrailerValue,
            (ChunkState::TrailerValue, b'\r') => ChunkState::TrailerFeed,
            (ChunkState::TrailerFeed, b'\n') => ChunkState::TrailerStart,
            (ChunkState::LastFeed, b'\n') => ChunkState::Done,
            _ => return Err(Refusal::Malformed(SyntaxError::Chunk)),
        };
        if matches!(next, ChunkState::TrailerName | ChunkState::TrailerValue) {
            self.trailers += 1;
        }
        if self.extensions > MAX_EXTENSIONS || self.trailers > MAX_TRAILERS {
            return Err(Refusal::Malformed(SyntaxError::ChunkExtras));
        }
        Ok(next)
    }

    /// The beginning of a chunk's data.
    fn chunk(&mut self, size: u64, limit: usize) -> Result<ChunkState, Refusal> {
        let too_large = Refusal::BodyTooLarge { limit };
        let left = usize::try_from(size).map_err(|_| too_large)?;
        self.body = self.body.checked_add(left).filter(|body| *body <= limit).ok_or(too_large)?;
        Ok(ChunkState::Data { left })
    }
}

/// Whether `byte` may be part of a header's name.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;

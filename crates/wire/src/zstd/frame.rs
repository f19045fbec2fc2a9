//! Measuring a frame without decoding it.

use thiserror::Error;

/// Why a zstd body was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ZstdError {
    /// Not zstd, or something else behind the last frame.
    #[error("zstd: a frame must begin with the bytes 28 b5 2f fd, and this one does not")]
    Magic,
    /// A bit that must be zero.
    #[error("zstd: a frame's header has its reserved bit set")]
    Reserved,
    /// Back references that reach further than allowed.
    #[error("zstd: a frame wants a window of {wanted} bytes, and at most {limit} are allowed")]
    Window {
        /// The contents of its header.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// Compressed with a dictionary.
    #[error("zstd: a frame was compressed with dictionary {0}, which is not known here")]
    Dictionary(u32),
    /// A block of the reserved type.
    #[error("zstd: a block has the reserved type 3")]
    BlockType,
    /// A block larger than blocks may be.
    #[error("zstd: a block has {found} bytes, and at most {limit} are allowed in its frame")]
    BlockSize {
        /// The contents of its header.
        found: usize,
        /// The limit that follows from the window.
        limit: usize,
    },
    /// The frame claims more than its blocks can become.
    #[error("zstd: a frame announces {announced} bytes, and its blocks can be no more than {possible}")]
    Content {
        /// The contents of its header.
        announced: u64,
        /// The decompressed size of its blocks.
        possible: u64,
    },
    /// The compressed data is damaged.
    #[error("zstd: {0}")]
    Data(&'static str),
    /// The body ends too early.
    #[error("zstd: the body ends inside a frame")]
    Truncated,
}

/// The frame at the start of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// So many bytes that mean nothing.
    Skippable(usize),
    Frame(Frame),
}

/// A frame that is there whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// How many bytes it takes, from magic to checksum.
    pub(super) len: usize,
    /// How many bytes it says it becomes; no more than `bound`.
    pub(super) content: Option<usize>,
    /// How many bytes it can become at most.
    pub(super) bound: usize,
}

const MAGIC: u32 = 0xfd2f_b528;
const SKIPPABLE: u32 = 0x184d_2a50;
const LARGEST_BLOCK: usize = 128 << 10;

/// Measures the frame at the start of `input`.
pub(super) fn measure(input: &[u8], window_limit: u64) -> Result<FrameKind, ZstdError> {
    let mut cursor = Cursor(input);
    let magic =
        cursor.number(4).map_err(|error| if begins_well(input) { error } else { ZstdError::Magic })?;
    if magic & !0xf == u64::from(SKIPPABLE) {
        let len = cursor.number(4)?;
        cursor.skip(usize::try_from(len).map_err(|_| ZstdError::Truncated)?)?;
        return Ok(FrameKind::Skippable(input.len() - cursor.0.len()));
    }
    if magic != u64::from(MAGIC) {
        return Err(ZstdError::Magic);
    }
    let (header, block_limit) = Header::read(&mut cursor, window_limit)?;
    let mut bound = 0usize;
    loop {
        let block = cursor.number(3)?;
        let size = usize::try_from(block >> 3).map_err(|_| ZstdError::Truncated)?;
        if size > block_limit {
            return Err(ZstdError::BlockSize { found: size, limit: block_limit });
        }
        let (stored, becomes) = match block >> 1 & 3 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, block_limit),
            _ => return Err(ZstdError::BlockType),
        };
        cursor.skip(stored)?;
        bound = bound.saturating_add(becomes);
        if block & 1 == 1 {
            break;
        }
    }
    if header.has_checksum {
        cursor.skip(4)?;
    }
    let possible = u64::try_from(bound).unwrap_or(u64::MAX);
    let content = match header.content {
        Some(announced) if announced > possible => return Err(ZstdError::Content { announced, possible }),
        Some(announced) => usize::try_from(announced).ok(),
        None => None,
    };
    Ok(FrameKind::Frame(Frame { len: input.len() - cursor.0.len(), content, bound }))
}

/// Whether `input`, too short for a magic number, is the start of one.
fn begins_well(input: &[u8]) -> bool {
    let skippable = SKIPPABLE.to_le_bytes();
    let is_skippable =
        input.iter().zip(&skippable).enumerate().all(|(index, (found, expected))| match index {
            0 => found & 0xf0 == *expected,
            _ => found == expected,
        });
    MAGIC.to_le_bytes().starts_with(input) || is_skippable
}

struct Header {
    content: Option<u64>,
    has_checksum: bool,
}

impl Header {
    /// Reads what follows the magic number: the header, and the most that a block may have.
    fn read(cursor: &mut Cursor, window_limit: u64) -> Result<(Self, usize), ZstdError> {
        let descriptor = cursor.number(1)?;
        if descriptor & 1 << 3 != 0 {
            return Err(ZstdError::Reserved);
        }
        let is_single_segment = descriptor & 1 << 5 != 0;
        let mut window = 0;
        if !is_single_segment {
            let byte = cursor.number(1)?;
            let base = 1u64 << (10 + (byte >> 3));
            window = base + base / 8 * (byte & 7);
            if window > window_limit {
                return Err(ZstdError::Window { wanted: window, limit: window_limit });
            }
        }
        let dictionary_bytes = match descriptor & 3 {
            3 => 4,
            short => usize::try_from(short).unwrap_or(0),
        };
        let dictionary = cursor.number(dictionary_bytes)?;
        if dictionary != 0 {
            return Err(ZstdError::Dictionary(u32::try_from(dictionary).unwrap_or(u32::MAX)));
        }
        let content = match (descriptor >> 6, is_single_segment) {
            (0, false) => None,
            (0, true) => Some(cursor.number(1)?),
            (1, _) => Some(cursor.number(2)? + 256),
            (2, _) => Some(cursor.number(4)?),
            _ => Some(cursor.number(8)?),
        };
        if is_single_segment {
            window = content.unwrap_or(0);
        }
        let block_limit = usize::try_from(window).unwrap_or(usize::MAX).min(LARGEST_BLOCK);
        Ok((Self { content, has_checksum: descriptor & 1 << 2 != 0 }, block_limit))
    }
}

/// The bytes not yet measured.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    /// A little-endian number of up to eight bytes.
    fn number(&mut self, bytes: usize) -> Result<u64, ZstdError> {
        let (number, rest) = self.0.split_at_checked(bytes).ok_or(ZstdError::Truncated)?;
        self.0 = rest;
        Ok(number.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    fn skip(&mut self, bytes: usize) -> Result<(), ZstdError> {
        self.0 = self.0.split_at_checked(bytes).ok_or(ZstdError::Truncated)?.1;
        Ok(())
    }
}

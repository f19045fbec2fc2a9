//! The stored form of a file's offset.
//!
//! | bytes | |
//! |---|---|
//! | 1 | version, 1 |
//! | 1 | flags: 1 for a compressed file that was read to its end |
//! | 10 | head: hash, length |
//! | 8 | tail: hash of the last KiB before the offset |
//! | 4 | hash of the path under which the file was found first |
//! | 4 | when it was last seen, in seconds of Unix time |
//! | … | the offset, and the records begun before it, as `tidegate_lines` writes them |

use crate::identity::Head;
use tidegate_lines::Checkpoint as LinesCheckpoint;

const VERSION: u8 = 1;
const FINISHED: u8 = 1;
const FIXED: usize = 28;

/// How far a file is read, durably.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// The offset before which everything is in the journal, and the state of the lines.
    pub(crate) lines: LinesCheckpoint,
    pub(crate) head: Head,
    pub(crate) tail: u64,
    /// A compressed file that was read to its end.
    pub(crate) finished: bool,
    pub(crate) born: u32,
    pub(crate) seen: u32,
}

impl Checkpoint {
    /// The most bytes of an encoded one.
    pub(crate) const MOST_BYTES: usize = FIXED + LinesCheckpoint::MOST_BYTES;

    /// One of a file of which nothing was read.
    pub(crate) fn start(born: u32) -> Checkpoint {
        let lines = LinesCheckpoint::at(0);
        Checkpoint { lines, head: Head::default(), tail: 0, finished: false, born, seen: 0 }
    }

    pub(crate) fn offset(&self) -> u64 {
        self.lines.offset()
    }

    /// The length of the encoded one.
    pub(crate) fn encoded_len(&self) -> usize {
        FIXED + self.lines.encode(&mut [0; LinesCheckpoint::MOST_BYTES])
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut lines = [0; LinesCheckpoint::MOST_BYTES];
        let len = self.lines.encode(&mut lines);
        let mut value = Vec::with_capacity(FIXED + len);
        value.extend_from_slice(&[VERSION, if self.finished { FINISHED } else { 0 }]);
        value.extend_from_slice(&self.head.hash.to_be_bytes());
        value.extend_from_slice(&self.head.len.to_be_bytes());
        value.extend_from_slice(&self.tail.to_be_bytes());
        value.extend_from_slice(&self.born.to_be_bytes());
        value.extend_from_slice(&self.seen.to_be_bytes());
        value.extend_from_slice(lines.get(..len).unwrap_or_default());
        value
    }

    /// The checkpoint that `value` holds; `None` for one of another version.
    pub(crate) fn decode(value: &[u8]) -> Option<Checkpoint> {
        let (&[version, flags], rest) = value.split_first_chunk::<2>()?;
        if version != VERSION {
            return None;
        }
        let (hash, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (tail, rest) = rest.split_first_chunk()?;
        let (born, rest) = rest.split_first_chunk()?;
        let (seen, rest) = rest.split_first_chunk()?;
        let (lines, _) = LinesCheckpoint::decode(rest)?;
        Some(Checkpoint {
            lines,
            head: Head { hash: u64::from_be_bytes(*hash), len: u16::from_be_bytes(*len) },
            tail: u64::from_be_bytes(*tail),
            finished: flags & FINISHED != 0,
            born: u32::from_be_bytes(*born),
            seen: u32::from_be_bytes(*seen),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A checkpoint is read as it was written, and its beginning alone is none.
    #[test]
    fn is_read_as_it_was_written() {
        let checkpoint = Checkpoint {
            lines: LinesCheckpoint::at(u64::MAX >> 1),
            head: Head { hash: 1, len: 1024 },
            tail: 3,
            finished: true,
            born: 4,
            seen: 5,
        };
        let value = checkpoint.encode();
        assert!(value.len() <= Checkpoint::MOST_BYTES);
        assert_eq!(Checkpoint::decode(&value), Some(checkpoint));
        for len in 0..value.len() {
            assert_eq!(Checkpoint::decode(&value[..len]), None);
        }
    }
}

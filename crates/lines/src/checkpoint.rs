//! From where a file is read again.

use crate::container::Stream;
use crate::settings::{Encoding, LineFormat, Settings};

/// From where a file is read again, and what of it is delivered already.
///
/// A record may be complete while one that began before it is not: streams of a container share a file. So beside the offset
/// of the first unfinished record, each stream has an offset up to which its lines are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Reading begins here.
    pub(crate) offset: u64,
    /// `None`: not known yet.
    pub(crate) format: Option<LineFormat>,
    /// `None`: that of the settings.
    pub(crate) encoding: Option<Encoding>,
    /// Whether `offset` is in a line of which the rest is skipped.
    pub(crate) skips_line: bool,
    pub(crate) streams: [Delivered; Stream::COUNT],
}

/// The delivered part of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// All lines that begin before this offset.
    pub(crate) before: u64,
    /// Whether the parts of a line from there on, up to its last, are skipped.
    pub(crate) skips_parts: bool,
}

impl Checkpoint {
    /// The most bytes that [`encode`](Self::encode) writes.
    pub const MOST_BYTES: usize = 2 + 4 * MOST_VARINT;

    /// Reading begins at `offset`, the start of a line of which nothing is known.
    #[must_use]
    pub fn at(offset: u64) -> Checkpoint {
        Checkpoint {
            offset,
            format: None,
            encoding: None,
            skips_line: false,
            streams: [Delivered { before: offset, skips_parts: false }; Stream::COUNT],
        }
    }

    /// The offset at which reading begins. Everything before it is delivered.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Forgets what came from settings that change, so that the new ones hold from here on.
    pub fn change_settings(&mut self, old: &Settings, new: &Settings) {
        if old.format != new.format {
            self.format = None;
        }
        // That of a byte order mark stays.
        if old.encoding != new.encoding && self.encoding == Some(old.encoding) {
            self.encoding = None;
        }
    }

    /// Writes it to the start of `out`; gives the number of bytes.
    pub fn encode(&self, out: &mut [u8; Self::MOST_BYTES]) -> usize {
        let format = match self.format {
            None => 0,
            Some(LineFormat::Plain) => 1,
            Some(LineFormat::Docker) => 2,
            Some(LineFormat::Cri) => 3,
        };
        let encoding = match self.encoding {
            None => 0,
            Some(Encoding::Utf8) => 1,
            Some(Encoding::Utf16Le) => 2,
            Some(Encoding::Utf16Be) => 3,
            Some(Encoding::Latin1) => 4,
        };
        let parts =
            self.streams.iter().rev().fold(0, |bits, stream| bits << 1 | u8::from(stream.skips_parts));
        let mut writer = Writer { out, len: 0 };
        writer.byte(format | encoding << 4);
        writer.byte(parts | u8::from(self.skips_line) << 7);
        writer.varint(self.offset);
        for stream in &self.streams {
            writer.varint(stream.before.saturating_sub(self.offset));
        }
        writer.len
    }

    /// Reads what [`encode`](Self::encode) wrote from the start of `bytes`; gives the number of bytes as well. `None` when they
    /// are something else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(Checkpoint, usize)> {
        let mut rest = bytes;
        let ([kinds, flags], behind) = rest.split_first_chunk::<2>()?;
        rest = behind;
        let format = match kinds & 15 {
            0 => None,
            1 => Some(LineFormat::Plain),
            2 => Some(LineFormat::Docker),
            3 => Some(LineFormat::Cri),
            _ => return None,
        };
        let encoding = match kinds >> 4 {
            0 => None,
            1 => Some(Encoding::Utf8),
            2 => Some(Encoding::Utf16Le),
            3 => Some(Encoding::Utf16Be),
            4 => Some(Encoding::Latin1),
            _ => return None,
        };
        let offset = read_varint(&mut rest)?;
        let mut checkpoint =
            Checkpoint { format, encoding, skips_line: flags >> 7 == 1, ..Checkpoint::at(offset) };
        for (at, stream) in checkpoint.streams.iter_mut().enumerate() {
            stream.before = offset.checked_add(read_varint(&mut rest)?)?;
            stream.skips_parts = flags >> at & 1 == 1;
        }
        Some((checkpoint, bytes.len() - rest.len()))
    }
}

/// The most bytes of a number in base 128.
const MOST_VARINT: usize = 10;

struct Writer<'a> {
    out: &'a mut [u8; Checkpoint::MOST_BYTES],
    len: usize,
}

impl Writer<'_> {
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.out.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    fn varint(&mut self, mut number: u64) {
        while number > 0x7f {
            self.byte((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn checkpoints() -> impl Strategy<Value = Checkpoint> {
        let streams = prop::array::uniform3((0_u64..1 << 40, any::<bool>()));
        (any::<u32>(), 0_u32..32, 0..4_usize, 0..5_usize, any::<bool>(), streams).prop_map(
            |(offset, shift, format, encoding, skips_line, streams)| {
                let offset = u64::from(offset) << shift;
                Checkpoint {
                    offset,
                    format: [None, Some(LineFormat::Plain), Some(LineFormat::Docker), Some(LineFormat::Cri)]
                        [format],
                    encoding: [
                        None,
                        Some(Encoding::Utf8),
                        Some(Encoding::Utf16Le),
                        Some(Encoding::Utf16Be),
                        Some(Encoding::Latin1),
                    ][encoding],
                    skips_line,
                    streams: streams.map(|(more, skips_parts)| Delivered {
                        before: offset.saturating_add(more),
                        skips_parts,
                    }),
                }
            },
        )
    }

    proptest! {
        /// A checkpoint is read as it was written, and whatever is read does not panic.
        #[test]
        fn is_read_as_it_was_written(checkpoint in checkpoints(), noise in prop::collection::vec(any::<u8>(), 0..50)) {
            let mut bytes = [0; Checkpoint::MOST_BYTES];
            let len = checkpoint.encode(&mut bytes);
            prop_assert_eq!(Checkpoint::decode(&bytes), Some((checkpoint, len)));
            prop_assert_eq!(Checkpoint::decode(&bytes[..len - 1]), None);
            _ = Checkpoint::decode(&noise);
        }
    }
}

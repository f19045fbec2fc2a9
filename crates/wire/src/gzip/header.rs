//! A member's header, which may arrive in any pieces.

use memchr::memchr;
use zlib_rs::crc32::crc32;

use super::GzipError;

const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

/// Where in a header the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// The ten bytes that every header has.
    Fixed(u8),
    /// The length of the extra field: low byte, high byte.
    ExtraLow,
    ExtraHigh(u8),
    /// So many bytes of it are left.
    Extra(usize),
    Name,
    Comment,
    ChecksumLow,
    ChecksumHigh(u8),
    End,
}

/// A header that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    field: Field,
    flags: u8,
    checksum: u32,
}

impl Header {
    pub(super) const START: Self = Self { field: Field::Fixed(0), flags: 0, checksum: 0 };

    /// Whether nothing of it was read yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.field == Field::Fixed(0)
    }

    /// Reads on in `input`: how many bytes belong to the header, and whether it ends there.
    pub(super) fn read(&mut self, input: &[u8]) -> Result<(usize, bool), GzipError> {
        let mut rest = input;
        while self.field != Field::End {
            let Some(&byte) = rest.first() else { return Ok((input.len(), false)) };
            let sums_itself = matches!(self.field, Field::ChecksumLow | Field::ChecksumHigh(_));
            let (taken, next) = match self.field {
                Field::Fixed(index) => (1, self.fixed(index, byte)?),
                Field::ExtraLow => (1, Field::ExtraHigh(byte)),
                Field::ExtraHigh(low) => match u16::from_le_bytes([low, byte]) {
                    0 => (1, self.after(HAS_EXTRA)),
                    len => (1, Field::Extra(usize::from(len))),
                },
                Field::Extra(left) if left <= rest.len() => (left, self.after(HAS_EXTRA)),
                Field::Extra(left) => (rest.len(), Field::Extra(left - rest.len())),
                Field::Name | Field::Comment => match memchr(0, rest) {
                    Some(end) if self.field == Field::Name => (end + 1, self.after(HAS_NAME)),
                    Some(end) => (end + 1, self.after(HAS_COMMENT)),
                    None => (rest.len(), self.field),
                },
                Field::ChecksumLow => (1, Field::ChecksumHigh(byte)),
                Field::ChecksumHigh(low) => {
                    let [a, b, ..] = self.checksum.to_le_bytes();
                    if [a, b] != [low, byte] {
                        return Err(GzipError::HeaderChecksum);
                    }
                    (1, Field::End)
                }
                Field::End => (0, Field::End),
            };
            let (piece, after) = rest.split_at_checked(taken).unwrap_or((rest, &[]));
            if self.flags & HAS_CHECKSUM != 0 && !sums_itself {
                self.checksum = crc32(self.checksum, piece);
            }
            self.field = next;
            rest = after;
        }
        Ok((input.len() - rest.len(), true))
    }

    fn fixed(&mut self, index: u8, byte: u8) -> Result<Field, GzipError> {
        match (index, byte) {
            (0, 0x1f) | (1, 0x8b) | (2, 8) | (4..=8, _) => {}
            (0 | 1, _) => return Err(GzipError::Magic),
            (2, method) => return Err(GzipError::Method(method)),
            (3, flags) if flags & RESERVED == 0 => {
                self.flags = flags;
                // The three bytes before can only have been these.
                self.checksum = crc32(0, &[0x1f, 0x8b, 8]);
            }
            (3, flags) => return Err(GzipError::Flags(flags)),
            _ => return Ok(self.after(0)),
        }
        Ok(Field::Fixed(index + 1))
    }

    /// The first field that this header has behind that of `flag`; flags come in the order of their fields.
    fn after(&self, flag: u8) -> Field {
        if flag < HAS_EXTRA && self.flags & HAS_EXTRA != 0 {
            Field::ExtraLow
        } else if flag < HAS_NAME && self.flags & HAS_NAME != 0 {
            Field::Name
        } else if flag < HAS_COMMENT && self.flags & HAS_COMMENT != 0 {
            Field::Comment
        } else if self.flags & HAS_CHECKSUM != 0 {
            Field::ChecksumLow
        } else {
            Field::End
        }
    }
}

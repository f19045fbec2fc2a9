//! Percent-encoding as Go's `net/url` does it: which bytes stand for themselves depends on the part of the URL.

use crate::memory::{Memory, Slice};
use crate::value::Failure;
use tidegate_wire::output::Output;

/// A part of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Path,
    Host,
    /// The zone of an IPv6 address.
    Zone,
    User,
    Query,
    Fragment,
}

const BAD_ESCAPE: Failure = Failure::Invalid("a `%` of the URL has no two hexadecimal digits behind it");
const BAD_HOST: Failure = Failure::Invalid("the host of the URL has a character that hosts do not have");
const NOT_UTF8: Failure = Failure::Invalid("a part of the URL is not UTF-8 when decoded");

impl Part {
    /// Whether the byte stands for itself.
    pub(super) fn is_plain(self, byte: u8) -> bool {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            return true;
        }
        match self {
            Part::Path => matches!(byte, b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'@'),
            Part::Host | Part::Zone => {
                matches!(byte, b'!' | b'"' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',')
                    || matches!(byte, b':' | b';' | b'<' | b'=' | b'>' | b'[' | b']')
            }
            Part::User => matches!(byte, b'$' | b'&' | b'+' | b',' | b';' | b'='),
            Part::Query => false,
            Part::Fragment => {
                matches!(byte, b'!' | b'$' | b'&' | b'(' | b')' | b'*' | b'+' | b',' | b'/' | b':')
                    || matches!(byte, b';' | b'=' | b'?' | b'@')
            }
        }
    }

    /// Whether `text` may stand in this part as it is, though it is not what [`escape`] makes.
    pub(super) fn is_valid(self, text: &[u8]) -> bool {
        text.iter().all(|byte| {
            self.is_plain(*byte)
                || matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',')
                || matches!(byte, b';' | b'=' | b':' | b'@' | b'[' | b']' | b'%')
        })
    }
}

/// The text with its escapes decoded. Output: the text.
pub(super) fn unescape(memory: &mut Memory<'_>, text: Slice, part: Part) -> Result<Slice, Failure> {
    let mark = memory.mark();
    let (contents, mut room) = memory.split();
    let mut rest = contents.get(text);
    let mut is_same = true;
    while let [byte, behind @ ..] = rest {
        rest = behind;
        let decoded = match byte {
            b'%' => {
                let [high, low, behind @ ..] = rest else { return Err(BAD_ESCAPE) };
                let digit = |digit: &u8| char::from(*digit).to_digit(16).ok_or(BAD_ESCAPE);
                // Both are below 16.
                let (high, low) = (digit(high)? as u8, digit(low)? as u8);
                let decoded = high << 4 | low;
                let is_allowed = match part {
                    // Only what is not ASCII is escaped in a host, and the sign before a zone.
                    Part::Host => high >= 8 || decoded == b'%',
                    Part::Zone => matches!(decoded, b'%' | b' ') || Part::Host.is_plain(decoded),
                    _ => true,
                };
                if !is_allowed {
                    return Err(BAD_ESCAPE);
                }
                (rest, is_same) = (behind, false);
                decoded
            }
            b'+' if part == Part::Query => {
                is_same = false;
                b' '
            }
            byte if matches!(part, Part::Host | Part::Zone) && byte.is_ascii() && !part.is_plain(*byte) => {
                return Err(BAD_HOST);
            }
            byte => *byte,
        };
        room.put(&[decoded])?;
    }
    if is_same {
        memory.release(mark);
        return Ok(text);
    }
    let decoded = memory.since(mark);
    if str::from_utf8(memory.get(decoded)).is_err() {
        return Err(NOT_UTF8);
    }
    Ok(decoded)
}

/// The text with all bytes escaped that do not stand for themselves. Output: three times the text.
pub(super) fn escape(memory: &mut Memory<'_>, text: Slice, part: Part) -> Result<Slice, Failure> {
    if memory.get(text).iter().all(|byte| part.is_plain(*byte)) {
        return Ok(text);
    }
    let mark = memory.mark();
    let (contents, mut room) = memory.split();
    for byte in contents.get(text) {
        if part.is_plain(*byte) {
            room.put(&[*byte])?;
        } else {
            let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'A' + nibble - 10 };
            room.put(&[b'%', digit(byte >> 4), digit(byte & 15)])?;
        }
    }
    Ok(memory.since(mark))
}

/// `given`, which was decoded to `decoded`, as Go writes it again: as it was given where that is valid.
pub(super) fn again(
    memory: &mut Memory<'_>,
    given: Slice,
    decoded: Slice,
    part: Part,
) -> Result<Slice, Failure> {
    if part.is_valid(memory.get(given)) { Ok(given) } else { escape(memory, decoded, part) }
}

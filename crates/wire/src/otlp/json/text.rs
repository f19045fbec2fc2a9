//! The meaning of strings: text, ids, bytes.

use super::error::{ErrorAtOffset, OtlpJsonErrorKind, ReadResult};
use crate::json::{BadEscape, decode_escape, hex_digit};
use crate::remote_write::Excerpt;

/// The contents of a string between its quotes, and its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) raw: &'a [u8],
    pub(crate) at: usize,
    /// Whether there are backslashes in it.
    pub(crate) is_escaped: bool,
}

impl Text<'_> {
    /// Checks that the escapes are valid.
    #[inline]
    pub(crate) fn check(&self) -> ReadResult<()> {
        if self.is_escaped { self.unescape(|_| Ok(())) } else { Ok(()) }
    }

    /// Gives the text piece by piece.
    pub(crate) fn unescape(&self, mut put: impl FnMut(&[u8]) -> ReadResult<()>) -> ReadResult<()> {
        let mut rest = self.raw;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            let (plain, escape) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            put(plain)?;
            let offset = self.at + self.raw.len() - escape.len();
            let unescaped = decode_escape(escape.get(1..).unwrap_or_default());
            let (char, after) = unescaped.map_err(|bad| match bad {
                BadEscape::Unknown => ErrorAtOffset::new(offset, OtlpJsonErrorKind::Escape),
                BadEscape::Half(_) => ErrorAtOffset::new(offset, OtlpJsonErrorKind::Surrogate),
            })?;
            put(char.encode_utf8(&mut [0; 4]).as_bytes())?;
            rest = after;
        }
        put(rest)
    }

    /// The text, if it has no escapes: what is not text for people never has any.
    pub(crate) fn plain(&self) -> Option<&[u8]> {
        (!self.is_escaped).then_some(self.raw)
    }

    /// Gives the bytes that the text says in base64, with the usual alphabet or that for URLs, padded or not.
    pub(crate) fn base64(&self, mut put: impl FnMut(&[u8]) -> ReadResult<()>) -> ReadResult<()> {
        let wrong = || ErrorAtOffset::new(self.at, OtlpJsonErrorKind::Base64(Excerpt::new(self.raw)));
        if self.is_escaped {
            // A solidus may be escaped, and some encoders do that.
            let escapes = memchr::memchr_iter(b'\\', self.raw).count();
            if escapes != memchr::memmem::find_iter(self.raw, b"\\/").count() {
                return Err(wrong());
            }
        }
        let digits = self.raw.iter().copied().filter(|&byte| byte != b'\\');
        let (mut quad, mut len) = (0u32, 0u32);
        let mut padding = 0;
        for byte in digits {
            if byte == b'=' {
                padding += 1;
                continue;
            }
            let sextet = sextet(byte).filter(|_| padding == 0).ok_or_else(wrong)?;
            quad = quad << 6 | u32::from(sextet);
            len += 1;
            if len == 4 {
                let [_, bytes @ ..] = quad.to_be_bytes();
                put(&bytes)?;
                (quad, len) = (0, 0);
            }
        }
        let [a, b, ..] = match len {
            0 => [0; 4],
            2 => (quad << 20).to_be_bytes(),
            3 => (quad << 14).to_be_bytes(),
            _ => return Err(wrong()),
        };
        if padding != 0 && (len == 0 || len + padding != 4) {
            return Err(wrong());
        }
        put([a, b].get(..usize::try_from(len.saturating_sub(1)).unwrap_or(0)).unwrap_or_default())
    }

    /// The `LEN` bytes that the text says in hexadecimal digits of either case; `None` if it is empty.
    pub(crate) fn id<const LEN: usize>(&self) -> ReadResult<Option<[u8; LEN]>> {
        if self.raw.is_empty() {
            return Ok(None);
        }
        let wrong = |reason: OtlpJsonErrorKind| Err(ErrorAtOffset::new(self.at, reason));
        let (pairs, []) = self.raw.as_chunks::<2>() else {
            return wrong(OtlpJsonErrorKind::IdLength { given: self.raw.len(), wanted: 2 * LEN });
        };
        if pairs.len() != LEN {
            return wrong(OtlpJsonErrorKind::IdLength { given: self.raw.len(), wanted: 2 * LEN });
        }
        let mut id = [0; LEN];
        let mut all = 0;
        for (byte, [high, low]) in id.iter_mut().zip(pairs) {
            let (high, low) = (hex_digit(*high), hex_digit(*low));
            all |= high | low;
            *byte = high << 4 | low & 15;
        }
        if all > 15 {
            return wrong(OtlpJsonErrorKind::Hexadecimal(Excerpt::new(self.raw)));
        }
        Ok(Some(id))
    }
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

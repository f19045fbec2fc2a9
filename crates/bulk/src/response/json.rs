//! A cursor over the bytes of one element. It skips unused values.

use memchr::memchr2;

/// Where reading is. Whatever is not as expected ends it: all methods return `None` then.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    /// Where it is in the element.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Enters an object.
    pub(super) fn open(&mut self) -> Option<()> {
        self.expect(b'{')
    }

    /// The next key of the current object, without its quotes, still escaped. Its value is next.
    /// `None` at the object's end, which is passed.
    pub(super) fn key(&mut self) -> Option<&'a [u8]> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        if self.peek()? == b'}' {
            self.at += 1;
            return None;
        }
        let key = self.text()?;
        self.expect(b':')?;
        Some(key)
    }

    /// A string without its quotes, still escaped.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            let rest = self.bytes.get(self.at..)?;
            let end = memchr2(b'"', b'\\', rest)?;
            if rest.get(end) == Some(&b'"') {
                let text = self.bytes.get(start..self.at + end)?;
                self.at += end + 1;
                return Some(text);
            }
            self.at += end + 2;
        }
    }

    /// A whole number. Of a fraction the whole part.
    pub(super) fn number(&mut self) -> Option<u64> {
        let first = self.peek()?;
        if !first.is_ascii_digit() {
            self.skip()?;
            return None;
        }
        let mut number = 0u64;
        while let Some(digit) = self.bytes.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            number = number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        self.skip_word();
        Some(number)
    }

    /// Whether the next value is `true`.
    pub(super) fn is_true(&mut self) -> Option<bool> {
        let is = self.peek()? == b't';
        self.skip()?;
        Some(is)
    }

    /// The next byte that is not white space.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !byte.is_ascii_whitespace() {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Passes a value.
    pub(super) fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.text().map(|_| ()),
            b'{' | b'[' => self.skip_nested(),
            _ => {
                self.skip_word();
                Some(())
            }
        }
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0u32;
        loop {
            match *self.bytes.get(self.at)? {
                b'"' => {
                    self.text()?;
                    continue;
                }
                b'{' | b'[' => depth = depth.saturating_add(1),
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn skip_word(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end =
            rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace());
        self.at += end.unwrap_or(rest.len());
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        if self.peek()? != wanted {
            return None;
        }
        self.at += 1;
        Some(())
    }
}

/// A text without its escapes, at most about `most` bytes of it. What is not UTF-8 is replaced.
pub(super) fn unescaped(text: &[u8], most: usize) -> String {
    // An escape is at most six bytes long, for at least one.
    let text = text.get(..text.len().min(6 * most)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(text.len().min(most + 4));
    let mut rest = text.iter();
    let mut high: Option<u32> = None;
    while let Some(byte) = rest.next().filter(|_| bytes.len() < most) {
        let escaped = if *byte == b'\\' { rest.next() } else { None };
        let plain = match escaped {
            None => *byte,
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'u') => {
                let unit = hex(rest.as_slice().get(..4));
                rest = rest.as_slice().get(4..).unwrap_or_default().iter();
                let pair = high.take().zip(unit.filter(|unit| (0xdc00..0xe000).contains(unit)));
                let code = match (pair, unit) {
                    (Some((high, low)), _) => 0x1_0000_u32 + ((high - 0xd800) << 10) + (low - 0xdc00),
                    (None, Some(unit)) if (0xd800..0xdc00).contains(&unit) => {
                        high = Some(unit);
                        continue;
                    }
                    (None, unit) => unit.unwrap_or(0xfffd),
                };
                let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            Some(other) => *other,
        };
        bytes.push(plain);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    digits?.iter().try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
}

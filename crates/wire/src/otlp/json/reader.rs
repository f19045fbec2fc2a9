//! The tokens of JSON, over a text that is known to be UTF-8.

use super::error::{ErrorAtOffset, FoundToken, OtlpJsonErrorKind, ReadResult};
use super::number::is_number;
use super::text::Text;
use crate::json::plain_len;
use crate::remote_write::Excerpt;

/// A cursor over the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

/// How many arrays and objects may be in each other in what nobody reads: as many as there are in what is read.
const DEPTH: usize = 4096;

/// Of each array and object around whether it is an object: a bit.
struct Around([u64; DEPTH / 64]);

impl Around {
    fn set(&mut self, depth: usize, is_object: bool) {
        if let Some(word) = self.0.get_mut(depth / 64) {
            let bit = 1 << (depth % 64);
            *word = if is_object { *word | bit } else { *word & !bit };
        }
    }

    fn is_object(&self, depth: usize) -> bool {
        self.0.get(depth / 64).is_some_and(|word| word >> (depth % 64) & 1 == 1)
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        Self { body, at: 0 }
    }

    /// Where the cursor stands.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a [u8] {
        self.body.get(self.at..).unwrap_or_default()
    }

    /// The byte after white space, which the cursor steps over.
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.body.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Steps over `byte`, if it comes next.
    #[inline(always)]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Steps over `byte`, which must come next and is called `expected`.
    #[inline(always)]
    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> ReadResult<()> {
        if self.take(byte) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// That something else than `expected` comes next.
    #[cold]
    pub(super) fn unexpected(mut self, expected: &'static str) -> ErrorAtOffset {
        let found = self.peek().map_or(FoundToken::End, FoundToken::Byte);
        ErrorAtOffset::new(self.at, OtlpJsonErrorKind::Unexpected { found, expected })
    }

    /// Steps over the string `name` and the colon behind it, if they come next.
    #[inline(always)]
    pub(super) fn take_name(&mut self, name: &str) -> bool {
        let Some([b'"', rest @ ..]) = self.body.get(self.at..) else { return false };
        match rest.split_at_checked(name.len()) {
            Some((found, [b'"', b':', ..])) if found == name.as_bytes() => {
                self.at += name.len() + 3;
                true
            }
            _ => false,
        }
    }

    /// The string that must come next.
    #[inline]
    pub(super) fn string(&mut self, expected: &'static str) -> ReadResult<Text<'a>> {
        self.expect(b'"', expected)?;
        let (start, mut is_escaped) = (self.at, false);
        loop {
            self.at += plain_len(self.rest());
            match self.body.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    self.at += 2;
                }
                Some(&control) => {
                    return Err(ErrorAtOffset::new(self.at, OtlpJsonErrorKind::Control(control)));
                }
                None => {
                    self.at = self.body.len();
                    return Err(self.unexpected("the end of a string"));
                }
            }
        }
        let raw = self.body.get(start..self.at).unwrap_or_default();
        self.at += 1;
        Ok(Text { raw, at: start, is_escaped })
    }

    /// The name of a member and the colon behind it.
    #[inline]
    pub(super) fn name(&mut self) -> ReadResult<Text<'a>> {
        let name = self.string("a field's name in quotes")?;
        self.expect(b':', "`:`")?;
        Ok(name)
    }

    /// The number that must come next.
    #[inline]
    pub(super) fn number(&mut self, expected: &'static str) -> ReadResult<&'a [u8]> {
        let Some(b'0'..=b'9' | b'-') = self.peek() else { return Err(self.unexpected(expected)) };
        let rest = self.rest();
        let len =
            rest.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
        let token = rest.get(..len.count()).unwrap_or_default();
        if !is_number(token) {
            let reason =
                OtlpJsonErrorKind::Number { found: Excerpt::new(token), expected: "a number as JSON has it" };
            return Err(ErrorAtOffset::new(self.at, reason));
        }
        self.at += token.len();
        Ok(token)
    }

    /// Whether `word` (`true`, `false`, `null`) comes next; steps over it then.
    #[inline]
    pub(super) fn literal(&mut self, word: &str) -> bool {
        let is_next = self.rest().starts_with(word.as_bytes());
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    /// The same text from another place on.
    pub(super) fn from(&self, at: usize) -> Self {
        Self { body: self.body, at }
    }

    /// Steps over a value that nobody reads, and checks that it is one.
    pub(super) fn skip(&mut self) -> ReadResult<()> {
        self.pass(true)
    }

    /// Steps over a value, whatever is wrong with it that does not hide where it ends.
    pub(super) fn skip_bad(&mut self) -> ReadResult<()> {
        self.pass(false)
    }

    fn pass(&mut self, strict: bool) -> ReadResult<()> {
        let check = |text: Text<'_>| if strict { text.check() } else { Ok(()) };
        let (mut around, mut depth) = (Around([0; DEPTH / 64]), 0);
        loop {
            match self.peek() {
                Some(b'"') => check(self.string("")?)?,
                Some(open @ (b'{' | b'[')) => {
                    self.at += 1;
                    let is_object = open == b'{';
                    if !self.take(if is_object { b'}' } else { b']' }) {
                        depth += 1;
                        if depth >= DEPTH {
                            return Err(ErrorAtOffset::new(self.at, OtlpJsonErrorKind::Depth));
                        }
                        around.set(depth, is_object);
                        if is_object {
                            check(self.name()?)?;
                        }
                        continue;
                    }
                }
                Some(b'0'..=b'9' | b'-') => _ = self.number("")?,
                _ if self.literal("null") || self.literal("true") || self.literal("false") => {}
                _ => return Err(self.unexpected("a value")),
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                if self.take(b',') {
                    if around.is_object(depth) {
                        check(self.name()?)?;
                    }
                    break;
                }
                let (close, expected) = match around.is_object(depth) {
                    true => (b'}', "`,` or `}`"),
                    false => (b']', "`,` or `]`"),
                };
                self.expect(close, expected)?;
                depth -= 1;
            }
        }
    }
}

//! A cursor over JSON that checks what it passes and keeps nothing.

use super::LineError;
use crate::json::plain_len;

/// The deepest nesting that is taken; Elasticsearch takes no more either.
const DEEPEST: usize = 1000;
const WORDS: usize = DEEPEST.div_ceil(64);

/// Whether `text` is one JSON object with nothing but white space around it.
#[inline]
pub(super) fn object(text: &[u8]) -> Result<(), LineError> {
    let mut cursor = Cursor::new(text);
    cursor.space();
    if cursor.peek() != Some(b'{') {
        return Err(cursor.error("no JSON object"));
    }
    cursor.value()?;
    cursor.end()
}

/// A place in a text.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// The objects and arrays that are open, a bit each.
struct Open {
    bits: [u64; WORDS],
    depth: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    Object,
    Array,
}

impl Open {
    const fn new() -> Open {
        Open { bits: [0; WORDS], depth: 0 }
    }

    #[inline]
    fn push(&mut self, object: bool) -> bool {
        if self.depth >= DEEPEST {
            return false;
        }
        if let Some(word) = self.bits.get_mut(self.depth / 64) {
            let bit = 1 << (self.depth % 64);
            *word = if object { *word | bit } else { *word & !bit };
        }
        self.depth += 1;
        true
    }

    #[inline]
    fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    #[inline]
    fn top(&self) -> Inside {
        let Some(last) = self.depth.checked_sub(1) else { return Inside::Nothing };
        let word = self.bits.get(last / 64).copied().unwrap_or_default();
        if word >> (last % 64) & 1 == 1 { Inside::Object } else { Inside::Array }
    }
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) const fn error(&self, what: &'static str) -> LineError {
        LineError::new(self.at, what)
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// The bytes between `from` and this position.
    pub(super) fn since(&self, from: usize) -> &'a [u8] {
        self.text.get(from..self.at).unwrap_or_default()
    }

    #[inline]
    pub(super) fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// Passes `byte`, with white space before it.
    #[inline]
    pub(super) fn take(&mut self, byte: u8, what: &'static str) -> Result<(), LineError> {
        self.space();
        if self.peek() != Some(byte) {
            return Err(self.error(what));
        }
        self.at += 1;
        Ok(())
    }

    /// Nothing but white space may follow.
    pub(super) fn end(&mut self) -> Result<(), LineError> {
        self.space();
        if self.at < self.text.len() {
            Err(self.error("something behind the end of the object"))
        } else {
            Ok(())
        }
    }

    /// Passes a string, with white space before it; returns it with its quotes.
    #[inline]
    pub(super) fn string(&mut self) -> Result<&'a [u8], LineError> {
        self.space();
        let from = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.error("no string where one must be"));
        }
        self.at += 1;
        self.rest_of_string()?;
        Ok(self.since(from))
    }

    /// Passes a string up to its end; the quote before it is passed already.
    #[inline]
    fn rest_of_string(&mut self) -> Result<(), LineError> {
        loop {
            self.at += plain_len(self.text.get(self.at..).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.error("a control character in a string, which must be escaped")),
                None => return Err(self.error("the end of the line within a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), LineError> {
        let from = self.at;
        let bad = LineError::new(from, "an escape that JSON does not know");
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                let digits = self.text.get(self.at + 1..).and_then(|rest| rest.first_chunk::<4>());
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(bad);
                }
                self.at += 5;
                Ok(())
            }
            _ => Err(bad),
        }
    }

    /// Passes a value of any kind, with white space before it.
    pub(super) fn value(&mut self) -> Result<(), LineError> {
        let mut open = Open::new();
        loop {
            self.space();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.rest_of_string()?;
                }
                Some(b'{') => {
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(b'}') {
                        self.enter(&mut open, true)?;
                        self.key()?;
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'[') => {
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(b']') {
                        self.enter(&mut open, false)?;
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                Some(_) => return Err(self.error("no value where one must be")),
                None => return Err(self.error("the end of the line where a value must be")),
            }
            if self.closed(&mut open)? {
                return Ok(());
            }
        }
    }

    fn enter(&self, open: &mut Open, object: bool) -> Result<(), LineError> {
        if open.push(object) { Ok(()) } else { Err(self.error("a nesting of more than 1000 levels")) }
    }

    /// Behind a value: passes what ends there. Says whether that is everything; if not, a value follows.
    #[inline]
    fn closed(&mut self, open: &mut Open) -> Result<bool, LineError> {
        loop {
            let inside = open.top();
            if inside == Inside::Nothing {
                return Ok(true);
            }
            self.space();
            let object = inside == Inside::Object;
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if object {
                        self.key()?;
                    }
                    return Ok(false);
                }
                Some(b'}') if object => open.pop(),
                Some(b']') if !object => open.pop(),
                Some(_) => return Err(self.error("neither a comma nor the end of what is open")),
                None => return Err(self.error("the end of the line where something is still open")),
            }
            self.at += 1;
        }
    }

    #[inline]
    fn key(&mut self) -> Result<(), LineError> {
        self.string()?;
        self.take(b':', "no colon behind a name")
    }

    fn word(&mut self, word: &'static [u8]) -> Result<(), LineError> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.error("no value where one must be"));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), LineError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    /// Passes one digit or more.
    fn digits(&mut self) -> Result<(), LineError> {
        let from = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == from { Err(self.error("no digit where one must be")) } else { Ok(()) }
    }
}

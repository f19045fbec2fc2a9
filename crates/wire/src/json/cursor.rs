//! Reads JSON text a token at a time: strict, without recursion, and quick with what nobody asks for.
//!
//! One cursor for all that is read as JSON here: events of Elastic APM, documents and actions of `_bulk`, OTLP/JSON, answers
//! of a cluster. Each gives [`SyntaxError`] the words of its own protocol.
//!
//! Reference: RFC 8259.

use super::plain_len;

/// A position in a text.
///
/// Invariant: `rest` is the end of `text`.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    text: &'a [u8],
    rest: &'a [u8],
}

/// The type of a value, from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "JSON's own names")]
pub enum ValueType {
    String,
    Number,
    Object,
    Array,
    True,
    False,
    Null,
}

/// A string, as it is between its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawString<'a> {
    /// With its escapes.
    pub raw: &'a [u8],
    /// Whether there are any.
    pub is_escaped: bool,
}

/// Where a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    /// The offset, in bytes.
    pub at: usize,
    /// The byte there; `None` at the end of the text.
    pub found: Option<u8>,
    /// The token that should be there.
    pub expected: Expected,
}

/// Expectation at a place where a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// A value.
    Value,
    /// A string.
    String,
    /// The rest of a string: a control character is there, or the end.
    RestOfString,
    /// One of the escapes of JSON. This is the offset of the backslash.
    Escape,
    /// A digit.
    Digit,
    /// This byte.
    Byte(u8),
    /// A comma, or the bracket that closes the object or array.
    CommaOr(u8),
    /// Nothing but white space.
    End,
    /// No object or array within so many others.
    LessDepth,
}

/// Which of the objects and arrays around a value are objects, a bit each.
struct Around<const WORDS: usize> {
    objects: [u64; WORDS],
    depth: usize,
}

impl<const WORDS: usize> Around<WORDS> {
    /// The bracket that ends the innermost one; `None` where there is none.
    #[inline(always)]
    fn close(&self) -> Option<u8> {
        let last = self.depth.checked_sub(1)?;
        let word = self.objects.get(last / 64).copied().unwrap_or_default();
        Some(if word >> (last % 64) & 1 == 1 { b'}' } else { b']' })
    }

    #[inline(always)]
    fn push(&mut self, is_object: bool) {
        if let Some(word) = self.objects.get_mut(self.depth / 64) {
            let bit = 1 << (self.depth % 64);
            *word = if is_object { *word | bit } else { *word & !bit };
        }
        self.depth += 1;
    }
}

impl<'a> Cursor<'a> {
    /// At the beginning of `text`.
    #[inline]
    #[must_use]
    pub const fn new(text: &'a [u8]) -> Cursor<'a> {
        Cursor { text, rest: text }
    }

    /// In the same text, at the offset `at`.
    #[inline]
    #[must_use]
    pub fn at_offset(self, at: usize) -> Cursor<'a> {
        Cursor { rest: self.text.get(at..).unwrap_or_default(), ..self }
    }

    /// The offset in the text, in bytes.
    #[inline(always)]
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.text.len().saturating_sub(self.rest.len())
    }

    /// The rest that is not read yet.
    #[inline(always)]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The bytes from the offset `from` up to here.
    #[inline]
    #[must_use]
    pub fn since(&self, from: usize) -> &'a [u8] {
        self.text.get(from..self.offset()).unwrap_or_default()
    }

    /// The bytes from `before` up to here.
    #[inline(always)]
    fn behind(&self, before: &'a [u8]) -> &'a [u8] {
        before.get(..before.len().saturating_sub(self.rest.len())).unwrap_or_default()
    }

    #[inline(always)]
    fn pass_bytes(&mut self, len: usize) {
        self.rest = self.rest.get(len..).unwrap_or_default();
    }

    /// An error here.
    #[cold]
    #[must_use]
    pub fn error(&self, expected: Expected) -> SyntaxError {
        SyntaxError { at: self.offset(), found: self.rest.first().copied(), expected }
    }

    /// Passes white space; gives the byte behind it, which stays.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            match self.rest.split_first() {
                Some((b' ' | b'\t' | b'\n' | b'\r', rest)) => self.rest = rest,
                Some((byte, _)) => return Some(*byte),
                None => return None,
            }
        }
    }

    /// Passes white space, and `byte` if that comes next. Whether it did.
    #[inline(always)]
    pub fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.pass_bytes(1);
        }
        is_next
    }

    /// Passes white space and `byte`.
    ///
    /// # Errors
    /// When something else comes next.
    #[inline(always)]
    pub fn expect(&mut self, byte: u8) -> Result<(), SyntaxError> {
        if self.take(byte) { Ok(()) } else { Err(self.error(Expected::Byte(byte))) }
    }

    /// Passes `bytes` if they come next, without white space before them. Whether they did.
    #[inline(always)]
    pub fn take_bytes(&mut self, bytes: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(bytes);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// The type of the value that comes next, which stays.
    ///
    /// # Errors
    /// When no value begins here.
    #[inline(always)]
    pub fn value_type(&mut self) -> Result<ValueType, SyntaxError> {
        Ok(match self.peek() {
            Some(b'"') => ValueType::String,
            Some(b'{') => ValueType::Object,
            Some(b'[') => ValueType::Array,
            Some(b't') => ValueType::True,
            Some(b'f') => ValueType::False,
            Some(b'n') => ValueType::Null,
            Some(b'-' | b'0'..=b'9') => ValueType::Number,
            _ => return Err(self.error(Expected::Value)),
        })
    }

    /// Passes the string that comes next.
    ///
    /// # Errors
    /// When none comes next, and when it is none by the grammar. Halves of surrogate pairs are not looked for.
    #[inline]
    pub fn string(&mut self) -> Result<RawString<'a>, SyntaxError> {
        self.quoted(true)
    }

    /// Passes the string that comes next, without white space before it, if it has no escapes. Otherwise nothing is passed.
    #[inline(always)]
    pub fn plain_string(&mut self) -> Option<&'a [u8]> {
        let (b'"', text) = self.rest.split_first()? else { return None };
        let (plain, behind) = text.split_at_checked(plain_len(text))?;
        let (b'"', rest) = behind.split_first()? else { return None };
        self.rest = rest;
        Some(plain)
    }

    /// Passes the string that comes next, whatever its escapes are.
    ///
    /// # Errors
    /// When none comes next, and when it does not end.
    #[inline]
    pub fn loose_string(&mut self) -> Result<RawString<'a>, SyntaxError> {
        self.quoted(false)
    }

    #[inline(always)]
    fn quoted(&mut self, strict: bool) -> Result<RawString<'a>, SyntaxError> {
        if !self.take(b'"') {
            return Err(self.error(Expected::String));
        }
        let (start, mut is_escaped) = (self.rest, false);
        loop {
            self.pass_bytes(plain_len(self.rest));
            match self.rest.split_first() {
                Some((b'"', rest)) => {
                    let raw = self.behind(start);
                    self.rest = rest;
                    return Ok(RawString { raw, is_escaped });
                }
                Some((b'\\', escape)) => {
                    is_escaped = true;
                    self.rest = if strict {
                        self.behind_escape(escape)?
                    } else {
                        escape.get(1..).unwrap_or_default()
                    };
                }
                _ => return Err(self.error(Expected::RestOfString)),
            }
        }
    }

    /// The text behind the escape of which `escape` is behind the backslash.
    #[inline(always)]
    fn behind_escape(&self, escape: &'a [u8]) -> Result<&'a [u8], SyntaxError> {
        match escape {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..] => Ok(rest),
            [b'u', a, b, c, d, rest @ ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => {
                Ok(rest)
            }
            _ => Err(self.error(Expected::Escape)),
        }
    }

    /// Passes the name of a member, and its colon.
    ///
    /// # Errors
    /// When they do not come next.
    #[inline(always)]
    pub fn name(&mut self) -> Result<RawString<'a>, SyntaxError> {
        let name = self.string()?;
        self.expect(b':')?;
        Ok(name)
    }

    /// Passes the number that comes next, and gives its digits.
    ///
    /// # Errors
    /// When none comes next.
    #[inline]
    pub fn number(&mut self) -> Result<&'a [u8], SyntaxError> {
        self.peek();
        let start = self.rest;
        self.take_bytes(b"-");
        if !self.take_bytes(b"0") {
            self.digits()?;
        }
        if self.take_bytes(b".") {
            self.digits()?;
        }
        if let Some((b'e' | b'E', exponent)) = self.rest.split_first() {
            self.rest = match exponent.split_first() {
                Some((b'+' | b'-', digits)) => digits,
                _ => exponent,
            };
            self.digits()?;
        }
        Ok(self.behind(start))
    }

    /// Passes one digit or more.
    #[inline(always)]
    fn digits(&mut self) -> Result<(), SyntaxError> {
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.pass_bytes(len);
        if len == 0 { Err(self.error(Expected::Digit)) } else { Ok(()) }
    }

    /// Passes white space and `literal`: `true`, `false` or `null`.
    ///
    /// # Errors
    /// When something else comes next.
    #[inline]
    pub fn literal(&mut self, literal: &[u8]) -> Result<(), SyntaxError> {
        self.peek();
        if self.take_bytes(literal) { Ok(()) } else { Err(self.error(Expected::Value)) }
    }

    /// Passes the value that comes next, with at most `depth` objects and arrays in each other: no more than `64 * WORDS`.
    ///
    /// # Errors
    /// Where it is no value by the grammar.
    pub fn skip<const WORDS: usize>(&mut self, depth: usize) -> Result<(), SyntaxError> {
        self.pass::<WORDS>(depth, true)
    }

    /// Passes the value that comes next, whatever the escapes in its strings are.
    ///
    /// # Errors
    /// As [`skip`](Self::skip), but for escapes.
    pub fn loose_skip<const WORDS: usize>(&mut self, depth: usize) -> Result<(), SyntaxError> {
        self.pass::<WORDS>(depth, false)
    }

    #[inline(always)]
    fn pass<const WORDS: usize>(&mut self, depth: usize, strict: bool) -> Result<(), SyntaxError> {
        let mut around = Around::<WORDS> { objects: [0; WORDS], depth: 0 };
        loop {
            match self.value_type()? {
                ValueType::String => _ = self.quoted(strict)?,
                ValueType::Number => _ = self.number()?,
                ValueType::True => self.literal(b"true")?,
                ValueType::False => self.literal(b"false")?,
                ValueType::Null => self.literal(b"null")?,
                nested @ (ValueType::Object | ValueType::Array) => {
                    if around.depth >= depth.min(64 * WORDS) {
                        return Err(self.error(Expected::LessDepth));
                    }
                    self.pass_bytes(1);
                    let is_object = nested == ValueType::Object;
                    if !self.take(if is_object { b'}' } else { b']' }) {
                        around.push(is_object);
                        if is_object {
                            self.quoted_name(strict)?;
                        }
                        continue;
                    }
                }
            }
            // Behind a value.
            loop {
                let Some(close) = around.close() else { return Ok(()) };
                if self.take(b',') {
                    if close == b'}' {
                        self.quoted_name(strict)?;
                    }
                    break;
                }
                if !self.take(close) {
                    return Err(self.error(Expected::CommaOr(close)));
                }
                around.depth -= 1;
            }
        }
    }

    #[inline(always)]
    fn quoted_name(&mut self, strict: bool) -> Result<(), SyntaxError> {
        self.quoted(strict)?;
        self.expect(b':')
    }

    /// Passes the white space at the end.
    ///
    /// # Errors
    /// When something else is left.
    #[inline]
    pub fn end(&mut self) -> Result<(), SyntaxError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.error(Expected::End)) }
    }
}

#[cfg(test)]
mod tests;

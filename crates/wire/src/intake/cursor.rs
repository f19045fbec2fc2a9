//! A cursor over JSON text: strict, without recursion, and quick with what nobody asks for.

use super::EventErrorKind;
use crate::json::plain_len;

/// The most objects and arrays around a value.
pub const MAX_DEPTH: u32 = 128;

/// Where in a text one stands.
///
/// Invariant: `rest` is the end of a text of `len` bytes, so `len - rest.len()` is where the cursor stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
}

/// The type of a value, from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Number,
    Object,
    Array,
    True,
    False,
    Null,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Cursor { rest: text, len: text.len() }
    }

    /// The bytes between this cursor and `later`, a later state of it.
    pub(super) fn until(&self, later: &Self) -> &'a [u8] {
        let len = self.rest.len().saturating_sub(later.rest.len());
        self.rest.get(..len).unwrap_or_default()
    }

    #[cold]
    fn error(&self) -> EventErrorKind {
        EventErrorKind::Json(self.len.saturating_sub(self.rest.len()))
    }

    /// Steps over blanks and gives the byte behind them, which stays.
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.rest.split_first() {
                Some((b' ' | b'\t' | b'\n' | b'\r', rest)) => self.rest = rest,
                Some((byte, _)) => return Some(*byte),
                None => return None,
            }
        }
    }

    #[inline(always)]
    fn bump(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    /// Steps over blanks and over `byte`.
    #[inline(always)]
    pub(super) fn take(&mut self, byte: u8) -> Result<(), EventErrorKind> {
        if self.peek() == Some(byte) {
            self.bump();
            Ok(())
        } else {
            Err(self.error())
        }
    }

    /// Steps over blanks and over `byte`, if that comes next.
    #[inline(always)]
    pub(super) fn take_if(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        if is {
            self.bump();
        }
        is
    }

    /// The type of the next value.
    #[inline(always)]
    pub(super) fn shape(&mut self) -> Result<Shape, EventErrorKind> {
        Ok(match self.peek() {
            Some(b'"') => Shape::Text,
            Some(b'{') => Shape::Object,
            Some(b'[') => Shape::Array,
            Some(b't') => Shape::True,
            Some(b'f') => Shape::False,
            Some(b'n') => Shape::Null,
            Some(b'-' | b'0'..=b'9') => Shape::Number,
            _ => return Err(self.error()),
        })
    }

    /// The text between the quotes of the string that comes next, and whether it has escapes.
    #[inline]
    pub(super) fn text(&mut self) -> Result<(&'a [u8], bool), EventErrorKind> {
        self.take(b'"')?;
        let start = *self;
        let mut escaped = false;
        loop {
            self.rest = self.rest.get(plain_len(self.rest)..).unwrap_or_default();
            match self.rest.split_first() {
                Some((b'"', rest)) => {
                    let text = start.until(self);
                    self.rest = rest;
                    return Ok((text, escaped));
                }
                Some((b'\\', rest)) => {
                    escaped = true;
                    let len = match rest {
                        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
                        [b'u', a, b, c, d, ..]
                            if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) =>
                        {
                            6
                        }
                        _ => return Err(self.error()),
                    };
                    self.rest = self.rest.get(len..).unwrap_or_default();
                }
                _ => return Err(self.error()),
            }
        }
    }

    /// The text of the number that comes next.
    #[inline]
    pub(super) fn number(&mut self) -> Result<&'a [u8], EventErrorKind> {
        self.peek();
        let start = *self;
        if let Some((b'-', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
        match self.rest.split_first() {
            Some((b'0', rest)) => self.rest = rest,
            _ => self.digits()?,
        }
        if let Some((b'.', rest)) = self.rest.split_first() {
            self.rest = rest;
            self.digits()?;
        }
        if let Some((b'e' | b'E', rest)) = self.rest.split_first() {
            self.rest = match rest.split_first() {
                Some((b'+' | b'-', rest)) => rest,
                _ => rest,
            };
            self.digits()?;
        }
        Ok(start.until(self))
    }

    /// At least one digit.
    #[inline(always)]
    fn digits(&mut self) -> Result<(), EventErrorKind> {
        let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if len == 0 {
            return Err(self.error());
        }
        self.rest = self.rest.get(len..).unwrap_or_default();
        Ok(())
    }

    #[inline]
    pub(super) fn literal(&mut self, word: &[u8]) -> Result<(), EventErrorKind> {
        self.peek();
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(self.error()),
        }
    }

    /// Steps over the value that comes next, which has `depth` objects and arrays around it.
    pub(super) fn skip(&mut self, depth: u32) -> Result<(), EventErrorKind> {
        // One bit for each that is open: whether it is an object.
        let (mut open, mut kinds) = (0u32, 0u128);
        loop {
            match self.shape()? {
                Shape::Text => drop(self.text()?),
                Shape::Number => drop(self.number()?),
                Shape::True => self.literal(b"true")?,
                Shape::False => self.literal(b"false")?,
                Shape::Null => self.literal(b"null")?,
                shape => {
                    if open + depth >= MAX_DEPTH {
                        return Err(EventErrorKind::Depth(self.len.saturating_sub(self.rest.len())));
                    }
                    self.bump();
                    let is_object = shape == Shape::Object;
                    if !self.take_if(if is_object { b'}' } else { b']' }) {
                        (open, kinds) = (open + 1, kinds << 1 | u128::from(is_object));
                        if is_object {
                            self.name()?;
                        }
                        continue;
                    }
                }
            }
            // Behind a value.
            loop {
                if open == 0 {
                    return Ok(());
                }
                let is_object = kinds & 1 == 1;
                if self.take_if(b',') {
                    if is_object {
                        self.name()?;
                    }
                    break;
                }
                self.take(if is_object { b'}' } else { b']' })?;
                (open, kinds) = (open - 1, kinds >> 1);
            }
        }
    }

    /// The name of a member, with its colon.
    #[inline(always)]
    pub(super) fn name(&mut self) -> Result<(&'a [u8], bool), EventErrorKind> {
        let name = self.text()?;
        self.take(b':')?;
        Ok(name)
    }

    /// That nothing is left but blanks.
    pub(super) fn end(&mut self) -> Result<(), EventErrorKind> {
        if self.peek().is_none() { Ok(()) } else { Err(self.error()) }
    }
}

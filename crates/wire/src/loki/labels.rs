//! Reads the labels of a stream as Prometheus writes them: `{name="value", other="it's"}`.
//!
//! Values stand in double or single quotes with the escapes of Go, or in backticks without any.

use super::MAX_LABELS;
use super::error::LabelError;
use super::names::{is_label, is_of_label};
use super::stream::Text;
use crate::remote_write::Excerpt;

/// A stream's labels, read one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Labels<'a> {
    text: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Labels<'a> {
    /// The labels of `text`.
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, rest: text }
    }

    /// The next name and its value; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<(&'a [u8], Text<'a>)>, LabelError> {
        let is_first = self.rest.len() == self.text.len();
        if is_first {
            self.expect(b'{', "`{`")?;
        } else if !self.take(b',') {
            return self.end("`,` or `}`");
        }
        if self.take(b'}') {
            return self.nothing_more();
        }
        let len = self.rest.iter().take_while(|byte| is_of_label(**byte)).count();
        let Some((name, rest)) = self.rest.split_at_checked(len).filter(|(name, _)| is_label(name)) else {
            return Err(self.wrong("a label name"));
        };
        self.rest = rest;
        self.expect(b'=', "`=`")?;
        Ok(Some((name, self.value()?)))
    }

    fn end(&mut self, expected: &'static str) -> Result<Option<(&'a [u8], Text<'a>)>, LabelError> {
        self.expect(b'}', expected)?;
        self.nothing_more()
    }

    fn nothing_more(&mut self) -> Result<Option<(&'a [u8], Text<'a>)>, LabelError> {
        self.skip_space();
        if self.rest.is_empty() { Ok(None) } else { Err(self.wrong("the end of the labels")) }
    }

    fn value(&mut self) -> Result<Text<'a>, LabelError> {
        self.skip_space();
        let Some((quote @ (b'"' | b'\'' | b'`'), text)) = self.rest.split_first() else {
            return Err(self.wrong("a value in quotes"));
        };
        let (mut len, mut is_escaped) = (0, false);
        loop {
            match text.get(len) {
                Some(byte) if byte == quote => break,
                Some(b'\\') if *quote != b'`' => {
                    is_escaped = true;
                    len += 2;
                }
                Some(b'\n') if *quote != b'`' => return Err(self.wrong("a value that ends in its line")),
                Some(_) => len += 1,
                None => return Err(self.wrong("a value that ends with the quote that it begins with")),
            }
        }
        let Some((raw, rest)) = text.split_at_checked(len) else { return Err(self.wrong("a value")) };
        if is_escaped && unescape(raw, |_| Ok::<_, ()>(())).is_err() {
            return Err(self.wrong("a value with valid escapes"));
        }
        self.rest = rest.get(1..).unwrap_or_default();
        Ok(if is_escaped { Text::Quoted(raw) } else { Text::Plain(raw) })
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Passes white space, and `byte` and the white space behind it if that comes next. Whether it did.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        match self.rest.split_first() {
            Some((found, rest)) if *found == byte => {
                self.rest = rest.trim_ascii_start();
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), LabelError> {
        if self.take(byte) { Ok(()) } else { Err(self.wrong(expected)) }
    }

    #[cold]
    fn wrong(&self, expected: &'static str) -> LabelError {
        let at = self.text.len().saturating_sub(self.rest.len());
        LabelError::Syntax { expected, at, labels: Excerpt::new(self.text) }
    }
}

/// The names of a stream's labels so far, to find one that comes twice.
pub(super) struct SeenNames<'a> {
    names: [&'a [u8]; MAX_LABELS],
    len: usize,
}

impl<'a> SeenNames<'a> {
    pub(super) fn new() -> Self {
        Self { names: [&[]; MAX_LABELS], len: 0 }
    }

    /// Adds a name.
    pub(super) fn add(&mut self, name: &'a [u8]) -> Result<(), LabelError> {
        if self.names.iter().take(self.len).any(|known| *known == name) {
            return Err(LabelError::Twice(Excerpt::new(name)));
        }
        *self.names.get_mut(self.len).ok_or(LabelError::TooMany)? = name;
        self.len += 1;
        Ok(())
    }
}

/// An escape that Go does not have, or an error of the output.
#[derive(Debug)]
pub(super) enum UnescapeError<E> {
    Escape,
    Output(E),
}

/// Gives the text between quotes piece by piece, without its escapes. Bytes above 127 that are escaped one by one are what
/// Go writes for bytes that are not UTF-8: each becomes U+FFFD.
pub(super) fn unescape<E>(
    raw: &[u8],
    mut put: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), UnescapeError<E>> {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        put(plain).map_err(UnescapeError::Output)?;
        let (char, after) = escaped(escape.get(1..).unwrap_or_default()).ok_or(UnescapeError::Escape)?;
        put(char.encode_utf8(&mut [0; 4]).as_bytes()).map_err(UnescapeError::Output)?;
        rest = after;
    }
    put(rest).map_err(UnescapeError::Output)
}

/// The character of the escape whose backslash is right before `text`, and what is behind the escape.
fn escaped(text: &[u8]) -> Option<(char, &[u8])> {
    let (letter, rest) = text.split_first()?;
    let char = match letter {
        b'a' => '\u{7}',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'v' => '\u{b}',
        b'\\' | b'\'' | b'"' => char::from(*letter),
        b'x' => return numbered(rest, 2, 16).map(|(byte, rest)| (of_byte(byte), rest)),
        b'0'..=b'3' => return numbered(text, 3, 8).map(|(byte, rest)| (of_byte(byte), rest)),
        b'u' | b'U' => {
            let (number, rest) = numbered(rest, if *letter == b'u' { 4 } else { 8 }, 16)?;
            return Some((char::from_u32(number)?, rest));
        }
        _ => return None,
    };
    Some((char, rest))
}

fn of_byte(byte: u32) -> char {
    char::from_u32(byte).filter(char::is_ascii).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn numbered(text: &[u8], digits: usize, base: u32) -> Option<(u32, &[u8])> {
    let (number, rest) = text.split_at_checked(digits)?;
    let number = number.iter().try_fold(0u32, |number, digit| {
        number.checked_mul(base)?.checked_add(char::from(*digit).to_digit(base)?)
    })?;
    Some((number, rest))
}

//! JSON a token at a time, from chunks of any length.
//!
//! Of most responses little matters, so they are not collected: the tokenizer holds one
//! string of at most [`LONGEST_TEXT`] bytes, and which brackets are open.
//!
//! Reference: RFC 8259. It accepts some text that is not JSON (control characters in strings, odd numbers): it reads what
//! an API server has encoded, and has to notice what is cut off or is not JSON at all.

use memchr::memchr2;

/// The longest string that is passed on whole; of a longer one its first bytes are. Longer than names (253), label values
/// (63), images and `continue` tokens.
pub const LONGEST_TEXT: usize = 4096;
/// The most objects and arrays within each other.
const DEEPEST: u32 = 128;
/// Numbers and `true`, `false`, `null`.
const LONGEST_SCALAR: usize = 64;

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// `{`
    ObjectStart,
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// The name of a field of an object.
    Key(Text<'a>),
    /// A string that is a value.
    String(Text<'a>),
    /// A number, `true`, `false` or `null`.
    Scalar(&'a str),
}

/// The text of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    /// The text, or the beginning of it.
    pub text: &'a str,
    /// More was there.
    pub is_cut: bool,
}

/// The text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// A byte that cannot be there.
    #[error("the response is not JSON: unexpected byte {byte:#04x} at offset {offset}")]
    Unexpected {
        /// The byte.
        byte: u8,
        /// Its offset since the beginning of the response.
        offset: u64,
    },
    /// Too many objects and arrays within each other.
    #[error("the response has more than {DEEPEST} objects and arrays within each other")]
    TooDeep,
}

/// Reads tokens from chunks.
#[derive(Debug)]
pub struct Tokenizer {
    state: State,
    /// Whether the innermost brackets are those of objects, a bit each.
    objects: u128,
    depth: u32,
    text: Vec<u8>,
    is_cut: bool,
    /// The first half of a surrogate pair, to be followed by the second.
    high_surrogate: Option<u32>,
    offset: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    Key,
    Colon,
    AfterValue,
    Scalar,
    String { is_key: bool, within: Within },
}

/// The position within a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Plain,
    Escape,
    Hex { digits: u8, unit: u32 },
}

impl Default for Tokenizer {
    fn default() -> Tokenizer {
        Tokenizer {
            state: State::Value,
            objects: 0,
            depth: 0,
            text: Vec::new(),
            is_cut: false,
            high_surrogate: None,
            offset: 0,
        }
    }
}

impl Tokenizer {
    /// Whether the text could end here: nothing is open.
    pub fn is_between_values(&self) -> bool {
        self.depth == 0 && self.state == State::Value
    }

    /// Passes the tokens of a chunk to `take`. Several values may follow each other, as in a watch.
    ///
    /// # Errors
    /// [`SyntaxError`] and those of `take`. The tokenizer is of no use then.
    pub fn feed<E: From<SyntaxError>>(
        &mut self,
        chunk: &[u8],
        mut take: impl FnMut(Token<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = chunk;
        while let Some((&byte, after)) = rest.split_first() {
            let before = rest.len();
            rest = match self.state {
                State::String { is_key, within: Within::Plain } => {
                    let len = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                    let (plain, stop) = rest.split_at_checked(len).unwrap_or((rest, &[]));
                    self.push(plain);
                    match stop.split_first() {
                        None => stop,
                        Some((b'"', after)) => {
                            self.end_string(is_key, &mut take)?;
                            after
                        }
                        Some((_, after)) => {
                            self.state = State::String { is_key, within: Within::Escape };
                            after
                        }
                    }
                }
                State::String { is_key, within } => {
                    let within = self.escape(within, byte)?;
                    self.state = State::String { is_key, within };
                    after
                }
                State::Scalar if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.') => {
                    if self.text.len() >= LONGEST_SCALAR {
                        return Err(self.unexpected(byte).into());
                    }
                    self.text.push(byte);
                    after
                }
                // The byte belongs to what follows, so it is looked at again.
                State::Scalar => {
                    let scalar = str::from_utf8(&self.text).unwrap_or_default();
                    let is_number = scalar.starts_with(|first: char| first == '-' || first.is_ascii_digit());
                    if !is_number && !matches!(scalar, "true" | "false" | "null") {
                        return Err(self.unexpected(byte).into());
                    }
                    take(Token::Scalar(scalar))?;
                    self.state = self.after_value();
                    rest
                }
                _ => {
                    if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                        self.structural(byte, &mut take)?;
                    }
                    after
                }
            };
            self.offset += (before - rest.len()) as u64;
        }
        Ok(())
    }

    /// A byte between strings and scalars.
    fn structural<E: From<SyntaxError>>(
        &mut self,
        byte: u8,
        take: &mut impl FnMut(Token<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.state = match (self.state, byte) {
            (State::Value | State::ValueOrEnd, b'{') => {
                self.open(true)?;
                take(Token::ObjectStart)?;
                State::KeyOrEnd
            }
            (State::Value | State::ValueOrEnd, b'[') => {
                self.open(false)?;
                take(Token::ArrayStart)?;
                State::ValueOrEnd
            }
            (State::Value | State::ValueOrEnd, b'"') => self.begin_string(false),
            (State::KeyOrEnd | State::Key, b'"') => self.begin_string(true),
            (State::Value | State::ValueOrEnd, b'-' | b'0'..=b'9' | b'a'..=b'z') => {
                self.text.clear();
                self.text.push(byte);
                State::Scalar
            }
            (State::Colon, b':') => State::Value,
            (State::AfterValue, b',') if self.is_in_object() => State::Key,
            (State::AfterValue, b',') => State::Value,
            (State::KeyOrEnd | State::AfterValue, b'}') if self.is_in_object() => {
                take(Token::ObjectEnd)?;
                self.close()
            }
            (State::ValueOrEnd | State::AfterValue, b']') if !self.is_in_object() => {
                take(Token::ArrayEnd)?;
                self.close()
            }
            _ => return Err(self.unexpected(byte).into()),
        };
        Ok(())
    }

    fn is_in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn open(&mut self, is_object: bool) -> Result<(), SyntaxError> {
        if self.depth >= DEEPEST {
            return Err(SyntaxError::TooDeep);
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(is_object);
        Ok(())
    }

    fn close(&mut self) -> State {
        self.depth = self.depth.saturating_sub(1);
        self.objects >>= 1;
        self.after_value()
    }

    fn after_value(&self) -> State {
        if self.depth == 0 { State::Value } else { State::AfterValue }
    }

    fn begin_string(&mut self, is_key: bool) -> State {
        self.text.clear();
        (self.is_cut, self.high_surrogate) = (false, None);
        State::String { is_key, within: Within::Plain }
    }

    fn end_string<E>(
        &mut self,
        is_key: bool,
        take: &mut impl FnMut(Token<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.end_pair();
        // The cut may be within a character, and an API server sends nothing but UTF-8.
        let text = match str::from_utf8(&self.text) {
            Ok(text) => text,
            Err(error) => {
                self.is_cut = true;
                let valid = self.text.get(..error.valid_up_to()).unwrap_or_default();
                str::from_utf8(valid).unwrap_or_default()
            }
        };
        let text = Text { text, is_cut: self.is_cut };
        if is_key {
            take(Token::Key(text))?;
            self.state = State::Colon;
        } else {
            take(Token::String(text))?;
            self.state = self.after_value();
        }
        Ok(())
    }

    /// Appends to the text, as much as it may hold.
    fn push(&mut self, bytes: &[u8]) {
        // Between the two escapes of a pair there is nothing.
        if bytes.is_empty() {
            return;
        }
        self.end_pair();
        let len = bytes.len().min(LONGEST_TEXT - self.text.len().min(LONGEST_TEXT));
        self.is_cut |= len < bytes.len();
        self.text.extend_from_slice(bytes.get(..len).unwrap_or_default());
    }

    /// Half of a surrogate pair without the other half becomes U+FFFD.
    fn end_pair(&mut self) {
        if self.high_surrogate.take().is_some() {
            self.push_char(char::REPLACEMENT_CHARACTER);
        }
    }

    fn push_char(&mut self, character: char) {
        let mut buffer = [0; 4];
        let encoded = character.encode_utf8(&mut buffer);
        if self.text.len() + encoded.len() <= LONGEST_TEXT {
            self.text.extend_from_slice(encoded.as_bytes());
        } else {
            self.is_cut = true;
        }
    }

    /// A byte of an escape.
    fn escape(&mut self, within: Within, byte: u8) -> Result<Within, SyntaxError> {
        if let Within::Hex { digits, unit } = within {
            let digit = char::from(byte).to_digit(16).ok_or_else(|| self.unexpected(byte))?;
            let unit = unit << 4 | digit;
            if digits < 3 {
                return Ok(Within::Hex { digits: digits + 1, unit });
            }
            self.push_unit(unit);
            return Ok(Within::Plain);
        }
        let character = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return Ok(Within::Hex { digits: 0, unit: 0 }),
            _ => return Err(self.unexpected(byte)),
        };
        self.push(&[character]);
        Ok(Within::Plain)
    }

    /// A UTF-16 code unit.
    fn push_unit(&mut self, unit: u32) {
        let code = match (self.high_surrogate, unit) {
            (Some(high), 0xdc00..=0xdfff) => {
                self.high_surrogate = None;
                0x1_0000 + ((high - 0xd800) << 10) + (unit - 0xdc00)
            }
            _ => unit,
        };
        self.end_pair();
        match code {
            0xd800..=0xdbff => self.high_surrogate = Some(code),
            _ => self.push_char(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }

    fn unexpected(&self, byte: u8) -> SyntaxError {
        SyntaxError::Unexpected { byte, offset: self.offset }
    }
}

#[cfg(test)]
mod tests;

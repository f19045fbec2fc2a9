//! MessagePack, read a token at a time from bytes that are there.
//!
//! Nothing is allocated: texts and bytes are views, arrays and maps say how many members follow. Specification:
//! <https://github.com/msgpack/msgpack/blob/master/spec.md>.

/// The deepest arrays and maps that are read.
pub const MAX_DEPTH: usize = 64;

/// The bytes are no MessagePack, or none that a peer of this protocol sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MsgpackError {
    /// It ends within a value.
    #[error("the data ends within a value")]
    Incomplete,
    /// The byte 0xc1 begins no value.
    #[error("the byte 0xc1 begins no value")]
    Unassigned,
    /// Arrays and maps nest deeper than [`MAX_DEPTH`].
    #[error("arrays and maps nest deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A value has another type than the protocol has there.
    #[error("a value has the wrong type")]
    WrongType,
}

/// A value, or the beginning of an array or a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    /// `nil`.
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// A negative integer.
    Int(i64),
    /// An integer that is not negative.
    Unsigned(u64),
    /// A number of 32 or 64 bits.
    Double(f64),
    /// A string, which need not be UTF-8.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An array of so many values, which follow.
    Array(u32),
    /// A map of so many pairs, which follow.
    Map(u32),
    /// An extension with its type.
    Extension(i8, &'a [u8]),
}

/// The beginning of a value, without the contents of texts, bytes and extensions.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Head {
    Value(Scalar),
    Text(u32),
    Bytes(u32),
    Extension(u32),
    Array(u32),
    Map(u32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scalar {
    Nil,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Double(f64),
}

/// Reads values one after the other.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Reads from the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// The bytes that are not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next value, or the beginning of an array or a map.
    ///
    /// # Errors
    /// [`MsgpackError`]; the cursor stays where it was.
    pub fn token(&mut self) -> Result<Token<'a>, MsgpackError> {
        let mut at = self.clone();
        let token = match at.head()? {
            Head::Value(Scalar::Nil) => Token::Nil,
            Head::Value(Scalar::Bool(value)) => Token::Bool(value),
            Head::Value(Scalar::Int(value)) => Token::Int(value),
            Head::Value(Scalar::Unsigned(value)) => Token::Unsigned(value),
            Head::Value(Scalar::Double(value)) => Token::Double(value),
            Head::Text(len) => Token::Text(at.take(len)?),
            Head::Bytes(len) => Token::Bytes(at.take(len)?),
            Head::Extension(len) => {
                let [kind] = at.array()?;
                Token::Extension(i8::from_be_bytes([kind]), at.take(len)?)
            }
            Head::Array(len) => Token::Array(len),
            Head::Map(len) => Token::Map(len),
        };
        *self = at;
        Ok(token)
    }

    /// Reads the beginning of an array: how many values follow.
    ///
    /// # Errors
    /// [`MsgpackError`].
    pub fn array_len(&mut self) -> Result<u32, MsgpackError> {
        match self.token()? {
            Token::Array(len) => Ok(len),
            _ => Err(MsgpackError::WrongType),
        }
    }

    /// Reads a text or bytes: clients take either for the other.
    ///
    /// # Errors
    /// [`MsgpackError`].
    pub fn text(&mut self) -> Result<&'a [u8], MsgpackError> {
        match self.token()? {
            Token::Text(text) | Token::Bytes(text) => Ok(text),
            _ => Err(MsgpackError::WrongType),
        }
    }

    /// Reads one value with all that is in it: its bytes.
    ///
    /// # Errors
    /// [`MsgpackError`]; the cursor stays where it was.
    pub fn value(&mut self) -> Result<&'a [u8], MsgpackError> {
        let mut behind = self.clone();
        let len = match behind.token()? {
            Token::Array(_) | Token::Map(_) => {
                Scan::default().advance(self.rest)?.ok_or(MsgpackError::Incomplete)?
            }
            _ => self.rest.len() - behind.rest.len(),
        };
        let (value, rest) = self.rest.split_at_checked(len).ok_or(MsgpackError::Incomplete)?;
        self.rest = rest;
        Ok(value)
    }

    fn head(&mut self) -> Result<Head, MsgpackError> {
        let [first] = self.array()?;
        let low = u32::from(first & 0x0f);
        Ok(match first {
            0x00..=0x7f => Head::Value(Scalar::Unsigned(first.into())),
            0x80..=0x8f => Head::Map(low),
            0x90..=0x9f => Head::Array(low),
            0xa0..=0xbf => Head::Text(u32::from(first & 0x1f)),
            0xc0 => Head::Value(Scalar::Nil),
            0xc1 => return Err(MsgpackError::Unassigned),
            0xc2 | 0xc3 => Head::Value(Scalar::Bool(first == 0xc3)),
            0xc4 => Head::Bytes(self.array().map(|[len]: [u8; 1]| len.into())?),
            0xc5 => Head::Bytes(u16::from_be_bytes(self.array()?).into()),
            0xc6 => Head::Bytes(u32::from_be_bytes(self.array()?)),
            0xc7 => Head::Extension(self.array().map(|[len]: [u8; 1]| len.into())?),
            0xc8 => Head::Extension(u16::from_be_bytes(self.array()?).into()),
            0xc9 => Head::Extension(u32::from_be_bytes(self.array()?)),
            0xca => Head::Value(Scalar::Double(f32::from_be_bytes(self.array()?).into())),
            0xcb => Head::Value(Scalar::Double(f64::from_be_bytes(self.array()?))),
            0xcc => Head::Value(Scalar::Unsigned(self.array().map(|[value]: [u8; 1]| value.into())?)),
            0xcd => Head::Value(Scalar::Unsigned(u16::from_be_bytes(self.array()?).into())),
            0xce => Head::Value(Scalar::Unsigned(u32::from_be_bytes(self.array()?).into())),
            0xcf => Head::Value(Scalar::Unsigned(u64::from_be_bytes(self.array()?))),
            0xd0 => Head::signed(i8::from_be_bytes(self.array()?).into()),
            0xd1 => Head::signed(i16::from_be_bytes(self.array()?).into()),
            0xd2 => Head::signed(i32::from_be_bytes(self.array()?).into()),
            0xd3 => Head::signed(i64::from_be_bytes(self.array()?)),
            0xd4..=0xd8 => Head::Extension(1 << (first - 0xd4)),
            0xd9 => Head::Text(self.array().map(|[len]: [u8; 1]| len.into())?),
            0xda => Head::Text(u16::from_be_bytes(self.array()?).into()),
            0xdb => Head::Text(u32::from_be_bytes(self.array()?)),
            0xdc => Head::Array(u16::from_be_bytes(self.array()?).into()),
            0xdd => Head::Array(u32::from_be_bytes(self.array()?)),
            0xde => Head::Map(u16::from_be_bytes(self.array()?).into()),
            0xdf => Head::Map(u32::from_be_bytes(self.array()?)),
            0xe0..=0xff => Head::signed(i8::from_be_bytes([first]).into()),
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MsgpackError> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(MsgpackError::Incomplete)?;
        self.rest = rest;
        Ok(*array)
    }

    fn take(&mut self, len: u32) -> Result<&'a [u8], MsgpackError> {
        let len = usize::try_from(len).map_err(|_| MsgpackError::Incomplete)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(MsgpackError::Incomplete)?;
        self.rest = rest;
        Ok(taken)
    }
}

impl Head {
    fn signed(value: i64) -> Head {
        Head::Value(u64::try_from(value).map_or(Scalar::Int(value), Scalar::Unsigned))
    }
}

/// Finds the end of a value that arrives bit by bit. What was looked through once is not looked through again.
#[derive(Debug, Clone)]
pub struct Scan {
    /// Where the next value begins: beyond what is there, within a text.
    at: u64,
    /// Values that are still to come in each open array and map, a pair of a map as two.
    left: [u64; MAX_DEPTH],
    depth: usize,
    has_begun: bool,
}

impl Default for Scan {
    fn default() -> Scan {
        Scan { at: 0, left: [0; MAX_DEPTH], depth: 0, has_begun: false }
    }
}

impl Scan {
    /// Goes on with `bytes`, which begin where they began before and may have become more. The length of the value, once
    /// all of it is there.
    ///
    /// # Errors
    /// [`MsgpackError`], but never [`Incomplete`](MsgpackError::Incomplete).
    pub fn advance(&mut self, bytes: &[u8]) -> Result<Option<usize>, MsgpackError> {
        loop {
            if self.has_begun && self.depth == 0 {
                let end = usize::try_from(self.at).ok().filter(|end| *end <= bytes.len());
                return Ok(end);
            }
            let Some(rest) = usize::try_from(self.at).ok().and_then(|at| bytes.get(at..)) else {
                return Ok(None);
            };
            let mut cursor = Cursor::new(rest);
            let head = match cursor.head() {
                Ok(head) => head,
                Err(MsgpackError::Incomplete) => return Ok(None),
                Err(error) => return Err(error),
            };
            let (members, skipped) = match head {
                Head::Value(_) => (0, 0),
                Head::Text(len) | Head::Bytes(len) => (0, u64::from(len)),
                Head::Extension(len) => (0, 1 + u64::from(len)),
                Head::Array(len) => (u64::from(len), 0),
                Head::Map(len) => (2 * u64::from(len), 0),
            };
            self.has_begun = true;
            self.at += (rest.len() - cursor.rest.len()) as u64 + skipped;
            if members > 0 {
                *self.left.get_mut(self.depth).ok_or(MsgpackError::TooDeep)? = members;
                self.depth += 1;
            } else {
                self.close();
            }
        }
    }

    /// The fewest bytes that the value has, as far as it is known.
    #[must_use]
    pub fn least(&self) -> u64 {
        let open = self.left.get(..self.depth).unwrap_or_default();
        // Each open array or map beside the innermost counts one that is on its way.
        let to_come = open.iter().fold(0u64, |sum, left| sum.saturating_add(*left));
        let on_the_way = self.depth.saturating_sub(1) as u64;
        self.at.saturating_add(to_come.saturating_sub(on_the_way))
    }

    /// A value has ended: it may be the last of what encloses it.
    fn close(&mut self) {
        while let Some(left) = self.depth.checked_sub(1).and_then(|top| self.left.get_mut(top)) {
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.depth -= 1;
        }
    }
}

#[cfg(test)]
mod tests;

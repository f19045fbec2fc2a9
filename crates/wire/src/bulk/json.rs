//! The words of `_bulk` for what is wrong with its JSON.

use super::LineError;
use crate::json::{Cursor, Expected, SyntaxError};

/// The deepest nesting that is taken; Elasticsearch takes no more either.
const MAX_DEPTH: usize = 1000;
/// Words with a bit for each of its levels.
const NESTING_WORDS: usize = MAX_DEPTH.div_ceil(64);

/// Whether `text` is one JSON object with nothing but white space around it.
#[inline]
pub(super) fn object(text: &[u8]) -> Result<(), LineError> {
    let mut cursor = Cursor::new(text);
    if cursor.peek() != Some(b'{') {
        return Err(LineError::new(cursor.offset(), "no JSON object"));
    }
    value(&mut cursor)?;
    Ok(cursor.end()?)
}

/// Passes a value of any kind.
#[inline]
pub(super) fn value(cursor: &mut Cursor<'_>) -> Result<(), LineError> {
    Ok(cursor.skip::<NESTING_WORDS>(MAX_DEPTH)?)
}

/// Passes `byte`, or says what is missing.
#[inline]
pub(super) fn expect(cursor: &mut Cursor<'_>, byte: u8, missing: &'static str) -> Result<(), LineError> {
    if cursor.take(byte) { Ok(()) } else { Err(LineError::new(cursor.offset(), missing)) }
}

/// Passes a comma, which must come next where a closing brace does not. Whether it did.
#[inline]
pub(super) fn goes_on(cursor: &mut Cursor<'_>) -> Result<bool, LineError> {
    if cursor.peek() == Some(b'}') {
        return Ok(false);
    }
    if cursor.take(b',') { Ok(true) } else { Err(cursor.error(Expected::CommaOr(b'}')).into()) }
}

impl From<SyntaxError> for LineError {
    #[cold]
    fn from(SyntaxError { at, found, expected }: SyntaxError) -> LineError {
        let words = match (expected, found) {
            (Expected::Value, Some(_)) => "no value where one must be",
            (Expected::Value, None) => "the end of the line where a value must be",
            (Expected::String, _) => "no string where one must be",
            (Expected::RestOfString, Some(_)) => "a control character in a string, which must be escaped",
            (Expected::RestOfString, None) => "the end of the line within a string",
            (Expected::Escape, _) => "an escape that JSON does not know",
            (Expected::Digit, _) => "no digit where one must be",
            (Expected::Byte(_), _) => "no colon behind a name",
            (Expected::CommaOr(_), Some(_)) => "neither a comma nor the end of what is open",
            (Expected::CommaOr(_), None) => "the end of the line where something is still open",
            (Expected::End, _) => "something behind the end of the object",
            (Expected::LessDepth, _) => "a nesting of more than 1000 levels",
        };
        LineError::new(at, words)
    }
}

//! Records as OTLP log records.
//!
//! The value of the first of the body keys that a record has, `log` or `message` unless configured otherwise, becomes the body;
//! the other members become attributes, and the tag the attribute `fluent.tag`. The Collector's receiver `fluentforward` does the
//! same, except that it lets the last of both keys win, and loses the other one.
//!
//! Texts that are not UTF-8 become bytes within a value, and get replacement characters as members of the record itself.
//! Unsigned integers beyond 63 bits become texts, since OTLP has no number for them.

use crate::message::Entry;
use crate::msgpack::{Cursor, MsgpackError, Token};
use std::borrow::Cow;
use tidegate_wire::otlp::logs::{Attributes, Body, LogRecord, LogsEncoder, Value};
use tidegate_wire::output::Full;

/// The longest key that is kept whole where it is not UTF-8.
const MAX_REPLACED_KEY: usize = 1024;
/// The name of the scope of all records.
pub const SCOPE: &str = "fluent_forward";

/// Encodes records, with memory that is used again.
pub struct RecordEncoder {
    body_keys: Vec<String>,
    most: usize,
    attributes: Vec<u8>,
    body: Vec<u8>,
}

/// Why a record is not in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordError {
    /// The batch has no room for it.
    Full,
    /// It is longer than any record may be.
    TooLarge,
    /// It is no map, or there is something in it that is no MessagePack.
    Malformed,
}

impl RecordEncoder {
    /// An encoder for records of at most `most` bytes. The value of the first of `body_keys` becomes the body.
    #[must_use]
    pub fn new(body_keys: Vec<String>, most: usize) -> RecordEncoder {
        RecordEncoder { body_keys, most, attributes: Vec::new(), body: Vec::new() }
    }

    /// The most memory that it takes, in bytes.
    #[must_use]
    pub fn bytes(most: usize) -> usize {
        2 * most
    }

    /// Puts the record of `entry` into `batch`, whose resource is set.
    ///
    /// # Errors
    /// [`RecordError`]; the batch is as it was.
    pub fn encode(
        &mut self,
        tag: &[u8],
        entry: &Entry<'_>,
        observed_ns: u64,
        batch: &mut LogsEncoder<'_>,
    ) -> Result<(), RecordError> {
        if entry.record.is_empty() {
            return Err(RecordError::Malformed);
        }
        let body_key = self.body_key(entry.record)?;
        let mut attributes = Attributes::new(&mut self.attributes, self.most);
        attributes.text_lossy("fluent.tag", tag)?;
        let mut cursor = Cursor::new(entry.record);
        let Token::Map(members) = cursor.token()? else { return Err(RecordError::Malformed) };
        let mut text: &[u8] = &[];
        let mut encoded = false;
        for index in 0..members {
            let key = cursor.token()?;
            if Some(index) != body_key {
                member(&mut attributes, key, &mut cursor)?;
                continue;
            }
            match cursor.clone().token()? {
                Token::Text(bytes) | Token::Bytes(bytes) if str::from_utf8(bytes).is_ok() => {
                    cursor.token()?;
                    text = bytes;
                }
                _ => {
                    let mut body = Attributes::new(&mut self.body, self.most);
                    body_value(&mut body, &mut cursor)?;
                    encoded = true;
                }
            }
        }
        let pieces = [text];
        let body = match (body_key, encoded) {
            (None, _) => Body::None,
            (_, false) => Body::Text(&pieces),
            // The encoded list is one member: its `AnyValue` stands behind the tags and lengths of the member.
            (_, true) => Body::Encoded(any_value(&self.body)),
        };
        let record = LogRecord {
            time_ns: entry.time_ns,
            observed_ns,
            body,
            attributes: &self.attributes,
            ..LogRecord::default()
        };
        batch.record(&record).map_err(|Full| RecordError::Full)
    }

    /// Which member of the record becomes the body.
    fn body_key(&self, record: &[u8]) -> Result<Option<u32>, MsgpackError> {
        let mut cursor = Cursor::new(record);
        let Token::Map(members) = cursor.token()? else { return Ok(None) };
        let mut best: Option<(usize, u32)> = None;
        for index in 0..members {
            let key = Cursor::new(cursor.value()?).token()?;
            cursor.value()?;
            let (Token::Text(key) | Token::Bytes(key)) = key else { continue };
            let rank = self.body_keys.iter().position(|known| known.as_bytes() == key);
            if let Some(rank) = rank
                && best.is_none_or(|(before, _)| rank < before)
            {
                best = Some((rank, index));
            }
        }
        Ok(best.map(|(_, index)| index))
    }
}

impl From<Full> for RecordError {
    fn from(Full: Full) -> RecordError {
        RecordError::TooLarge
    }
}

impl From<MsgpackError> for RecordError {
    fn from(_: MsgpackError) -> RecordError {
        RecordError::Malformed
    }
}

/// Adds the next value as an attribute, or as a member of the open map.
fn member(out: &mut Attributes<'_>, key: Token<'_>, cursor: &mut Cursor<'_>) -> Result<(), RecordError> {
    let key = key_text(key)?;
    match cursor.token()? {
        Token::Array(len) => {
            let list = out.open_list(&key)?;
            (0..len).try_for_each(|_| element(out, cursor))?;
            out.close(list);
        }
        Token::Map(len) => {
            let map = out.open_map(&key)?;
            members(out, len, cursor)?;
            out.close(map);
        }
        Token::Text(text) => out.text_lossy(&key, text)?,
        scalar => put(scalar, |value| out.put(&key, value))?,
    }
    Ok(())
}

fn members(out: &mut Attributes<'_>, len: u32, cursor: &mut Cursor<'_>) -> Result<(), RecordError> {
    (0..len).try_for_each(|_| {
        let key = cursor.token()?;
        member(out, key, cursor)
    })
}

/// Adds the next value to the open list. Nesting is bounded by [`MAX_DEPTH`](crate::msgpack::MAX_DEPTH), which was checked.
fn element(out: &mut Attributes<'_>, cursor: &mut Cursor<'_>) -> Result<(), RecordError> {
    match cursor.token()? {
        Token::Array(len) => {
            let list = out.push_list()?;
            (0..len).try_for_each(|_| element(out, cursor))?;
            out.close(list);
        }
        Token::Map(len) => {
            let map = out.push_map()?;
            members(out, len, cursor)?;
            out.close(map);
        }
        scalar => put(scalar, |value| out.push(value))?,
    }
    Ok(())
}

/// Encodes the next value as the one member of a list without a name.
fn body_value(out: &mut Attributes<'_>, cursor: &mut Cursor<'_>) -> Result<(), RecordError> {
    member(out, Token::Text(b""), cursor)
}

/// The `AnyValue` of the one member of `list`, which has no key: `[0x0a length] [0x12 length] value`.
fn any_value(list: &[u8]) -> &[u8] {
    let inner = |bytes| {
        let mut reader = tidegate_wire::proto::Reader::new(bytes);
        let key = reader.key().ok().flatten()?;
        reader.bytes(key).ok()
    };
    inner(list).and_then(inner).unwrap_or_default()
}

/// Gives a scalar to `write`.
fn put(scalar: Token<'_>, mut write: impl FnMut(Value<'_>) -> Result<(), Full>) -> Result<(), RecordError> {
    let value = match scalar {
        Token::Nil => Value::Empty,
        Token::Bool(value) => Value::Bool(value),
        Token::Int(value) => Value::Int(value),
        Token::Unsigned(value) => match i64::try_from(value) {
            Ok(value) => Value::Int(value),
            Err(_) => return Ok(write(Value::Text(&value.to_string()))?),
        },
        Token::Double(value) => Value::Double(value),
        // Loggers in Ruby send texts as bytes, and old ones bytes as texts.
        Token::Text(bytes) | Token::Bytes(bytes) => match str::from_utf8(bytes) {
            Ok(text) => Value::Text(text),
            Err(_) => Value::Bytes(bytes),
        },
        Token::Extension(_, bytes) => Value::Bytes(bytes),
        Token::Array(_) | Token::Map(_) => return Err(RecordError::Malformed),
    };
    Ok(write(value)?)
}

/// A key as a text: keys are texts in all clients; numbers and booleans are accepted.
fn key_text(key: Token<'_>) -> Result<Cow<'_, str>, RecordError> {
    Ok(match key {
        Token::Text(key) | Token::Bytes(key) => match str::from_utf8(key) {
            Ok(key) => Cow::Borrowed(key),
            Err(_) => String::from_utf8_lossy(key.get(..MAX_REPLACED_KEY).unwrap_or(key)),
        },
        Token::Nil => Cow::Borrowed(""),
        Token::Bool(value) => Cow::Owned(value.to_string()),
        Token::Int(value) => Cow::Owned(value.to_string()),
        Token::Unsigned(value) => Cow::Owned(value.to_string()),
        Token::Double(value) => Cow::Owned(value.to_string()),
        Token::Extension(..) | Token::Array(_) | Token::Map(_) => return Err(RecordError::Malformed),
    })
}

#[cfg(test)]
mod tests;

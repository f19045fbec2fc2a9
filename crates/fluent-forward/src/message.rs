//! Messages: a tag, and one or more records with their times.
//!
//! | mode | message |
//! |---|---|
//! | Message | `[tag, time, record, options?]` |
//! | Forward | `[tag, [[time, record], …], options?]` |
//! | PackedForward | `[tag, bytes of [time, record] …, options?]` |
//! | CompressedPackedForward | the same with gzip, of several members, and the option `compressed` |

use crate::msgpack::{Cursor, MsgpackError, Token};

/// The longest `chunk`, in bytes: clients make 16 bytes in base 64 or hexadecimal.
const MAX_CHUNK: usize = 256;
/// The longest tag, in bytes: each record of a message gets a copy of it.
const MAX_TAG: usize = 1024;

/// A message, as views of its bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Message<'a> {
    /// The subject of its records.
    pub tag: &'a [u8],
    /// Its records: entries one behind the other.
    pub entries: &'a [u8],
    /// How they are packed.
    pub packing: Packing,
    /// The name under which the client expects the acknowledgement.
    pub chunk: Option<&'a [u8]>,
    /// How many records the client says there are.
    pub size: Option<u64>,
}

/// How the records of a message are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// One: its time and the record, without an array around them.
    Single,
    /// Each is an array of its time and the record.
    Entries,
    /// The same, in gzip.
    Gzip,
}

/// Bytes are no message of this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// They are no MessagePack, or have other types than the protocol.
    #[error(transparent)]
    Msgpack(#[from] MsgpackError),
    /// Its array has too few or too many members.
    #[error("a message has two to four members")]
    Members,
    /// Its tag is too long to be in each of its records.
    #[error("the tag is longer than {MAX_TAG} bytes")]
    Tag,
    /// Its records are compressed otherwise than with gzip.
    #[error("the records are compressed with something other than gzip")]
    Compression,
    /// Its option `chunk` is longer than any client makes it.
    #[error("the option `chunk` is longer than {MAX_CHUNK} bytes")]
    Chunk,
}

/// The options of a message.
#[derive(Default)]
struct Options<'a> {
    chunk: Option<&'a [u8]>,
    size: Option<u64>,
    is_compressed: bool,
}

impl<'a> Message<'a> {
    /// Reads the one message in `bytes`; `None` for `nil`, which old clients send to see whether somebody is there.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn read(bytes: &'a [u8]) -> Result<Option<Message<'a>>, MessageError> {
        let mut cursor = Cursor::new(bytes);
        let members = match cursor.token()? {
            Token::Array(members) => members,
            Token::Nil => return Ok(None),
            _ => return Err(MsgpackError::WrongType.into()),
        };
        if !(2..=4).contains(&members) {
            return Err(MessageError::Members);
        }
        let tag = cursor.text()?;
        if tag.len() > MAX_TAG {
            return Err(MessageError::Tag);
        }
        let before = cursor.rest();
        let (entries, packing, read) = match cursor.token()? {
            Token::Text(entries) | Token::Bytes(entries) => (entries, Packing::Entries, 2),
            Token::Array(count) => {
                let start = cursor.rest();
                for _ in 0..count {
                    cursor.value()?;
                }
                (read_since(start, &cursor), Packing::Entries, 2)
            }
            _ => {
                if members < 3 {
                    return Err(MessageError::Members);
                }
                // The time is read already.
                cursor.value()?;
                (read_since(before, &cursor), Packing::Single, 3)
            }
        };
        let options = match members - read {
            0 => Options::default(),
            1 => Options::read(&mut cursor)?,
            _ => return Err(MessageError::Members),
        };
        let packing = match (packing, options.is_compressed) {
            (Packing::Entries, true) => Packing::Gzip,
            (packing, _) => packing,
        };
        Ok(Some(Message { tag, entries, packing, chunk: options.chunk, size: options.size }))
    }
}

impl<'a> Options<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Options<'a>, MessageError> {
        let mut options = Options::default();
        let members = match cursor.token()? {
            Token::Map(members) => members,
            Token::Nil => return Ok(options),
            _ => return Err(MsgpackError::WrongType.into()),
        };
        for _ in 0..members {
            let mut name = Cursor::new(cursor.value()?);
            let mut value = Cursor::new(cursor.value()?);
            let (Ok(name), value) = (name.text(), value.token()?) else { continue };
            match (name, value) {
                (b"chunk", Token::Text(chunk) | Token::Bytes(chunk)) => {
                    options.chunk = Some(chunk).filter(|chunk| chunk.len() <= MAX_CHUNK);
                    options.chunk.ok_or(MessageError::Chunk)?;
                }
                (b"size", Token::Unsigned(size)) => options.size = Some(size),
                (b"compressed", Token::Text(how) | Token::Bytes(how)) => match how {
                    b"gzip" => options.is_compressed = true,
                    b"text" => {}
                    _ => return Err(MessageError::Compression),
                },
                // `fluent_signal` and whatever comes later.
                _ => {}
            }
        }
        Ok(options)
    }
}

/// The bytes that `cursor` has read since `start` was its rest.
fn read_since<'a>(start: &'a [u8], cursor: &Cursor<'a>) -> &'a [u8] {
    start.get(..start.len().saturating_sub(cursor.rest().len())).unwrap_or_default()
}

/// A record with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// In nanoseconds since the Unix epoch; 0 when unknown.
    pub time_ns: u64,
    /// The encoded map; empty for an entry that has none.
    pub record: &'a [u8],
    /// The bytes of the entry.
    pub len: usize,
}

/// Reads entries one after the other.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    cursor: Cursor<'a>,
    packing: Packing,
}

impl<'a> Entries<'a> {
    /// The entries in `bytes`, packed as a message says; those of gzip are decompressed.
    #[must_use]
    pub fn new(bytes: &'a [u8], packing: Packing) -> Entries<'a> {
        Entries { cursor: Cursor::new(bytes), packing }
    }

    /// The next entry; `None` at the end. An entry that is none has no record: it is malformed, and those behind it are
    /// read all the same.
    ///
    /// # Errors
    /// [`MsgpackError`] where nobody knows how long the entry is. With [`Incomplete`](MsgpackError::Incomplete) more bytes
    /// may help.
    pub fn read_next(&mut self) -> Result<Option<Entry<'a>>, MsgpackError> {
        let start = self.cursor.rest();
        if start.is_empty() {
            return Ok(None);
        }
        let mut within = match self.packing {
            Packing::Single => {
                let within = self.cursor.clone();
                self.cursor.value()?;
                self.cursor.value()?;
                within
            }
            Packing::Entries | Packing::Gzip => Cursor::new(self.cursor.value()?),
        };
        let len = start.len() - self.cursor.rest().len();
        let malformed = Entry { time_ns: 0, record: &[], len };
        if self.packing != Packing::Single && within.array_len() != Ok(2) {
            return Ok(Some(malformed));
        }
        let Some(time_ns) = time(&mut within) else { return Ok(Some(malformed)) };
        let record = within.rest();
        let is_map = matches!(within.token(), Ok(Token::Map(_)));
        Ok(Some(if is_map { Entry { time_ns, record, len } } else { malformed }))
    }
}

/// A time: seconds, or seconds and nanoseconds as extension 0. Fluent Bit since 2.1 sends it with metadata: `[time, {}]`.
fn time(cursor: &mut Cursor<'_>) -> Option<u64> {
    const SECOND: u64 = 1_000_000_000;
    let value = cursor.value().ok()?;
    let mut within = Cursor::new(value);
    let time = match within.token().ok()? {
        Token::Array(2) => within.token().ok()?,
        time => time,
    };
    match time {
        Token::Unsigned(seconds) => Some(seconds.saturating_mul(SECOND)),
        Token::Int(_) | Token::Nil => Some(0),
        // From old clients; below a microsecond it says nothing.
        Token::Double(seconds) => {
            Some((seconds.max(0.0) * 1e6) as u64).map(|micros| micros.saturating_mul(1000))
        }
        Token::Extension(0, bytes) => {
            let (seconds, nanoseconds) = bytes.split_first_chunk::<4>()?;
            let nanoseconds = nanoseconds.first_chunk::<4>().filter(|_| bytes.len() == 8)?;
            let [seconds, nanoseconds] =
                [seconds, nanoseconds].map(|word| u64::from(u32::from_be_bytes(*word)));
            Some(seconds * SECOND + nanoseconds)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;

//! Reads values, pairs and elements where they are.

use super::Entry;
use crate::memory::{Memory, Slice};
use crate::value::Value;
use tidegate_wire::proto::{Key, Malformed, Reader};

/// The value in an `AnyValue` message.
pub(crate) fn read(memory: &Memory<'_>, message: Slice) -> Value {
    read_bytes(memory.get(message), message)
}

/// The value in an `AnyValue` message, which has these bytes.
#[inline(always)]
fn read_bytes(bytes: &[u8], message: Slice) -> Value {
    match bytes {
        [] => Value::Nil,
        [0x10, flag @ 0..0x80] => Value::Bool(*flag != 0),
        [0x18, number @ 0..0x80] => Value::Int(i64::from(*number)),
        [0x21, a, b, c, d, e, f, g, h] => Value::Double(f64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h])),
        // Alone in the message, as encoders write it.
        [tag @ (0x0a | 0x2a | 0x32 | 0x3a), behind @ ..] => match short_length(behind) {
            Some((len, size)) if 1 + size + len == bytes.len() => {
                let content = message.part(1 + size, bytes.len());
                match tag {
                    0x0a => Value::Text(content),
                    0x2a => Value::List(content),
                    0x32 => Value::Map(content),
                    _ => Value::Bytes(content),
                }
            }
            _ => read_any(bytes, message),
        },
        _ => read_any(bytes, message),
    }
}

/// A length of one or two bytes, and their number.
#[inline]
fn short_length(bytes: &[u8]) -> Option<(usize, usize)> {
    match bytes {
        [len @ 0..0x80, ..] => Some((usize::from(*len), 1)),
        [low, high @ 0..0x80, ..] => Some((usize::from(low & 0x7f) | usize::from(*high) << 7, 2)),
        _ => None,
    }
}

/// As [`read_bytes`], however the message is written.
fn read_any(bytes: &[u8], message: Slice) -> Value {
    let mut reader = Reader::new(bytes);
    let mut value = Value::Nil;
    while let Ok(Some(key)) = reader.key() {
        let read = match key.field {
            1 => payload(&mut reader, key, message).map(Value::Text),
            2 => reader.varint(key).map(|number| Value::Bool(number != 0)),
            3 => reader.varint(key).map(|number| Value::Int(number.cast_signed())),
            4 => reader.fixed64(key).map(|bits| Value::Double(f64::from_bits(bits))),
            5 => payload(&mut reader, key, message).map(Value::List),
            6 => payload(&mut reader, key, message).map(Value::Map),
            7 => payload(&mut reader, key, message).map(Value::Bytes),
            _ => reader.skip(key).map(|()| value),
        };
        match read {
            Ok(read) => value = read,
            Err(_) => break,
        }
    }
    value
}

/// Key and value of a `KeyValue` message.
pub(crate) fn read_pair(memory: &Memory<'_>, message: Slice) -> (Slice, Value) {
    read_pair_bytes(memory.get(message), message)
}

/// Key and value of a `KeyValue` message, which has these bytes.
#[inline(always)]
fn read_pair_bytes(bytes: &[u8], message: Slice) -> (Slice, Value) {
    // A key of less than 128 bytes, and the value behind it, as encoders write them.
    if let [0x0a, key_len @ 0..0x80, behind @ ..] = bytes
        && let Some((_, [0x12, value @ ..])) = behind.split_at_checked(usize::from(*key_len))
        && let Some((len, size)) = short_length(value)
        && size + len == value.len()
    {
        let start = 2 + usize::from(*key_len);
        let content = message.part(start + 1 + size, bytes.len());
        return (message.part(2, start), read_bytes(value.get(size..).unwrap_or_default(), content));
    }
    read_any_pair(bytes, message)
}

/// As [`read_pair_bytes`], however the message is written.
fn read_any_pair(bytes: &[u8], message: Slice) -> (Slice, Value) {
    let part = |slice: Slice| {
        let from = (slice.start - message.start) as usize;
        bytes.get(from..from + slice.len as usize).unwrap_or_default()
    };
    let mut reader = Reader::new(bytes);
    let (mut name, mut value) = (Slice::EMPTY, Value::Nil);
    while let Ok(Some(key)) = reader.key() {
        let read = match key.field {
            1 => payload(&mut reader, key, message).map(|slice| name = slice),
            2 => payload(&mut reader, key, message).map(|slice| value = read_bytes(part(slice), slice)),
            _ => reader.skip(key),
        };
        if read.is_err() {
            break;
        }
    }
    (name, value)
}

/// The length-delimited payload behind `key`, as a part of `message`, which `reader` reads from its start.
fn payload(reader: &mut Reader<'_>, key: Key, message: Slice) -> Result<Slice, Malformed> {
    let len = reader.bytes(key)?.len();
    let end = reader.offset();
    Ok(message.part(end.saturating_sub(len), end))
}

/// The length-delimited fields of one number in a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RepeatedField {
    rest: Slice,
    number: u32,
}

impl RepeatedField {
    pub(crate) fn new(message: Slice, number: u32) -> RepeatedField {
        RepeatedField { rest: message, number }
    }

    /// The next one: the whole field, and its payload.
    #[inline]
    pub(crate) fn next(&mut self, memory: &Memory<'_>) -> Option<(Slice, Slice)> {
        self.next_bytes(memory).map(|(raw, payload, _)| (raw, payload))
    }

    /// The next one, with the bytes of its payload.
    #[inline(always)]
    fn next_bytes<'m>(&mut self, memory: &'m Memory<'_>) -> Option<(Slice, Slice, &'m [u8])> {
        let message = self.rest;
        if message.len == 0 {
            return None;
        }
        let bytes = memory.get(message);
        if let [tag @ ..0x80, behind @ ..] = bytes
            && u32::from(*tag) == self.number << 3 | 2
            && let Some((len, size)) = short_length(behind)
            && let Some(payload) = behind.get(size..size + len)
        {
            let end = 1 + size + len;
            self.rest = message.part(end, bytes.len());
            return Some((message.part(0, end), message.part(1 + size, end), payload));
        }
        let (raw, payload) = self.next_any(bytes)?;
        Some((raw, payload, memory.get(payload)))
    }

    /// As [`next`](Self::next), however the fields are written. `bytes` are those that are left.
    fn next_any(&mut self, bytes: &[u8]) -> Option<(Slice, Slice)> {
        let message = self.rest;
        let mut reader = Reader::new(bytes);
        loop {
            let start = reader.offset();
            let key = reader.key().ok()??;
            if key.field == self.number {
                let payload = payload(&mut reader, key, message).ok()?;
                let end = reader.offset();
                self.rest = message.part(end, message.len as usize);
                return Some((message.part(start, end), payload));
            }
            reader.skip(key).ok()?;
        }
    }
}

/// The pairs of a map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pairs(RepeatedField);

impl Pairs {
    /// Over the content of a `KeyValueList`.
    pub(crate) fn new(map: Slice) -> Pairs {
        Pairs(RepeatedField::new(map, 1))
    }

    #[inline]
    pub(crate) fn next(&mut self, memory: &Memory<'_>) -> Option<Entry> {
        let (raw, message, bytes) = self.0.next_bytes(memory)?;
        let (key, value) = read_pair_bytes(bytes, message);
        Some(Entry { key, value, raw })
    }
}

/// The elements of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elements(RepeatedField);

impl Elements {
    /// Over the content of an `ArrayValue`.
    pub(crate) fn new(list: Slice) -> Elements {
        Elements(RepeatedField::new(list, 1))
    }

    pub(crate) fn next(&mut self, memory: &Memory<'_>) -> Option<Value> {
        self.next_raw(memory).map(|(value, _)| value)
    }

    /// With the whole encoded field.
    pub(crate) fn next_raw(&mut self, memory: &Memory<'_>) -> Option<(Value, Slice)> {
        let (raw, message, bytes) = self.0.next_bytes(memory)?;
        Some((read_bytes(bytes, message), raw))
    }
}

/// The first pair of `map` with this key.
pub(crate) fn find(memory: &Memory<'_>, map: Slice, key: Slice) -> Option<Entry> {
    let mut pairs = Pairs::new(map);
    while let Some(pair) = pairs.next(memory) {
        if pair.key.len == key.len && memory.get(pair.key) == memory.get(key) {
            return Some(pair);
        }
    }
    None
}

/// How many elements a list, or pairs a map, has.
pub(crate) fn count(memory: &Memory<'_>, content: Slice) -> usize {
    let mut fields = RepeatedField::new(content, 1);
    std::iter::from_fn(|| fields.next(memory)).count()
}

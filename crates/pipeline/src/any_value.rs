//! Reads and writes OTLP's `AnyValue`, `KeyValueList` and `ArrayValue` messages.
//!
//! <https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/common/v1/common.proto>. A nested value
//! stays encoded: [`Value::Map`] and [`Value::List`] are the content of their messages. So the length of every value is
//! known without a look inside, and a copy of it is one copy of bytes.

use crate::memory::{Memory, Slice};
use crate::value::{Failure, Value};
use tidegate_wire::proto::write::varint_len;
use tidegate_wire::proto::{Key, Malformed, Reader};

/// The deepest nesting of a value that a statement may store.
pub(crate) const DEEPEST: usize = 128;

/// The fewest bytes that a level of nesting takes: tags and lengths of an element and of the list in it.
const LEVEL: usize = 4;

const NOT_STORABLE: Failure =
    Failure::Invalid("ids, times and durations cannot be attributes: use .string, UnixNano() or String()");

/// A pair of a map: `raw` is the whole encoded field; it has no bytes when the pair was made by a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) key: Slice,
    pub(crate) value: Value,
    pub(crate) raw: Slice,
}

/// Where values are written.
pub(crate) trait Sink {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure>;
    fn put_slice(&mut self, slice: Slice) -> Result<(), Failure>;
}

impl Sink for Memory<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.push(bytes)
    }

    fn put_slice(&mut self, slice: Slice) -> Result<(), Failure> {
        self.push_slice(slice)
    }
}

/// A buffer outside of the memory whose slices are written to it.
#[cfg(test)]
pub(crate) struct Outside<'m, 'b, O> {
    pub(crate) memory: &'m Memory<'b>,
    pub(crate) out: &'m mut O,
}

#[cfg(test)]
impl<O: tidegate_wire::output::Output> Sink for Outside<'_, '_, O> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.put(bytes).map_err(|_| Failure::TooLarge)
    }

    fn put_slice(&mut self, slice: Slice) -> Result<(), Failure> {
        self.put(self.memory.get(slice))
    }
}

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
pub(crate) struct Fields {
    rest: Slice,
    number: u32,
}

impl Fields {
    pub(crate) fn new(message: Slice, number: u32) -> Fields {
        Fields { rest: message, number }
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
pub(crate) struct Pairs(Fields);

impl Pairs {
    /// Over the content of a `KeyValueList`.
    pub(crate) fn new(map: Slice) -> Pairs {
        Pairs(Fields::new(map, 1))
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
pub(crate) struct Elements(Fields);

impl Elements {
    /// Over the content of an `ArrayValue`.
    pub(crate) fn new(list: Slice) -> Elements {
        Elements(Fields::new(list, 1))
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
    let mut fields = Fields::new(content, 1);
    std::iter::from_fn(|| fields.next(memory)).count()
}

/// Whether an `AnyValue` can hold `value`, and its nesting is not too deep.
#[inline]
pub(crate) fn storable(memory: &Memory<'_>, value: Value) -> Result<(), Failure> {
    match value {
        Value::Id(_) | Value::Time(_) | Value::Duration(_) => Err(NOT_STORABLE),
        Value::Map(_) | Value::List(_) if !is_shallow(memory, value, DEEPEST) => {
            Err(Failure::Invalid("the value is nested too deeply"))
        }
        _ => Ok(()),
    }
}

fn is_shallow(memory: &Memory<'_>, value: Value, levels: usize) -> bool {
    if levels == 0 {
        return false;
    }
    if let Value::Map(content) | Value::List(content) = value
        && (content.len as usize) < LEVEL * (levels - 1)
    {
        return true;
    }
    match value {
        Value::Map(content) => {
            let mut pairs = Pairs::new(content);
            while let Some(pair) = pairs.next(memory) {
                if !is_shallow(memory, pair.value, levels - 1) {
                    return false;
                }
            }
            true
        }
        Value::List(content) => {
            let mut elements = Elements::new(content);
            while let Some(element) = elements.next(memory) {
                if !is_shallow(memory, element, levels - 1) {
                    return false;
                }
            }
            true
        }
        _ => true,
    }
}

/// The length of the `AnyValue` message of `value`.
#[inline]
pub(crate) fn encoded_len(value: Value) -> Result<usize, Failure> {
    match value {
        Value::Nil => Ok(0),
        Value::Bool(_) => Ok(2),
        Value::Int(number) => Ok(1 + width(number.cast_unsigned())),
        Value::Double(_) => Ok(9),
        Value::Text(slice) | Value::Bytes(slice) | Value::Map(slice) | Value::List(slice) => {
            Ok(field_len(1, slice.len as usize))
        }
        Value::Id(_) | Value::Time(_) | Value::Duration(_) => Err(NOT_STORABLE),
    }
}

/// Writes the `AnyValue` message of `value`.
pub(crate) fn write(value: Value, out: &mut impl Sink) -> Result<(), Failure> {
    let mut head = Head::new();
    let content = head.value(value)?;
    head.write(out)?;
    out.put_slice(content)
}

/// Writes a `KeyValue` message as the field `number`.
#[inline]
pub(crate) fn write_pair(number: u32, key: Slice, value: Value, out: &mut impl Sink) -> Result<(), Failure> {
    let value_len = encoded_len(value)?;
    let mut head = Head::new();
    head.field(number, field_len(1, key.len as usize) + field_len(2, value_len));
    head.field(1, key.len as usize);
    head.write(out)?;
    out.put_slice(key)?;
    let mut head = Head::new();
    head.field(2, value_len);
    let content = head.value(value)?;
    head.write(out)?;
    out.put_slice(content)
}

/// As [`write_pair`] with the number 1, for a key that is in none of the spaces.
pub(crate) fn write_named(key: &[u8], value: Value, out: &mut impl Sink) -> Result<(), Failure> {
    let value_len = encoded_len(value)?;
    write_head(1, field_len(1, key.len()) + field_len(2, value_len), out)?;
    write_head(1, key.len(), out)?;
    out.put(key)?;
    write_head(2, value_len, out)?;
    write(value, out)
}

/// Writes a value as an element of a list.
pub(crate) fn write_element(value: Value, out: &mut impl Sink) -> Result<(), Failure> {
    write_head(1, encoded_len(value)?, out)?;
    write(value, out)
}

/// Writes tag and length of a length-delimited field.
pub(crate) fn write_head(number: u32, len: usize, out: &mut impl Sink) -> Result<(), Failure> {
    let mut head = Head::new();
    head.field(number, len);
    head.write(out)
}

/// Tags, lengths and numbers that are written in one piece: at most two of each.
struct Head {
    bytes: [u8; 32],
    len: usize,
}

impl Head {
    #[inline]
    fn new() -> Head {
        Head { bytes: [0; 32], len: 0 }
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    #[inline]
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// Adds tag and length of a length-delimited field.
    #[inline]
    fn field(&mut self, number: u32, len: usize) {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(len as u64);
    }

    /// Adds the beginning of the `AnyValue` message of `value`. Returns the bytes that complete it.
    #[inline]
    fn value(&mut self, value: Value) -> Result<Slice, Failure> {
        let (number, content) = match value {
            Value::Text(slice) => (1, slice),
            Value::List(slice) => (5, slice),
            Value::Map(slice) => (6, slice),
            Value::Bytes(slice) => (7, slice),
            Value::Nil => return Ok(Slice::EMPTY),
            Value::Bool(value) => {
                self.byte(2 << 3);
                self.byte(u8::from(value));
                return Ok(Slice::EMPTY);
            }
            Value::Int(number) => {
                self.byte(3 << 3);
                self.varint(number.cast_unsigned());
                return Ok(Slice::EMPTY);
            }
            Value::Double(number) => {
                self.byte(4 << 3 | 1);
                number.to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
                return Ok(Slice::EMPTY);
            }
            Value::Id(_) | Value::Time(_) | Value::Duration(_) => return Err(NOT_STORABLE),
        };
        self.field(number, content.len as usize);
        Ok(content)
    }

    #[inline]
    fn write(&self, out: &mut impl Sink) -> Result<(), Failure> {
        out.put(self.bytes.get(..self.len).unwrap_or_default())
    }
}

/// The length of a length-delimited field whose payload has `len` bytes.
#[inline]
pub(crate) fn field_len(number: u32, len: usize) -> usize {
    width(u64::from(number) << 3) + width(len as u64) + len
}

#[inline]
fn width(number: u64) -> usize {
    // At most ten.
    varint_len(number) as usize
}

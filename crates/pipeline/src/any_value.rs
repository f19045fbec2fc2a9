//! Reads and writes OTLP's `AnyValue`, `KeyValueList` and `ArrayValue` messages.
//!
//! <https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/common/v1/common.proto>. A nested value
//! stays encoded: [`Value::Map`] and [`Value::List`] are the content of their messages. So the length of every value is
//! known without a look inside, and a copy of it is one copy of bytes.

use crate::memory::{Memory, Slice};
use crate::value::{Failure, Value};
use tidegate_wire::proto::write::{Varint, varint_len};
use tidegate_wire::proto::{Key, Malformed, Reader};

/// The deepest nesting of a value that a statement may store.
pub(crate) const DEEPEST: usize = 128;

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
    let mut reader = Reader::new(memory.get(message));
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
    let mut reader = Reader::new(memory.get(message));
    let (mut name, mut value) = (Slice::EMPTY, Value::Nil);
    while let Ok(Some(key)) = reader.key() {
        let read = match key.field {
            1 => payload(&mut reader, key, message).map(|slice| name = slice),
            2 => payload(&mut reader, key, message).map(|slice| value = read(memory, slice)),
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
    pub(crate) fn next(&mut self, memory: &Memory<'_>) -> Option<(Slice, Slice)> {
        let message = self.rest;
        let mut reader = Reader::new(memory.get(message));
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

    pub(crate) fn next(&mut self, memory: &Memory<'_>) -> Option<Entry> {
        let (raw, message) = self.0.next(memory)?;
        let (key, value) = read_pair(memory, message);
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
        let (raw, message) = self.0.next(memory)?;
        Some((read(memory, message), raw))
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
    match value {
        Value::Nil => Ok(()),
        Value::Bool(value) => out.put(&[2 << 3, u8::from(value)]),
        Value::Int(number) => {
            out.put(&[3 << 3])?;
            out.put(Varint::new(number.cast_unsigned()).as_bytes())
        }
        Value::Double(number) => {
            out.put(&[4 << 3 | 1])?;
            out.put(&number.to_le_bytes())
        }
        Value::Text(slice) => write_bytes(1, slice, out),
        Value::List(slice) => write_bytes(5, slice, out),
        Value::Map(slice) => write_bytes(6, slice, out),
        Value::Bytes(slice) => write_bytes(7, slice, out),
        Value::Id(_) | Value::Time(_) | Value::Duration(_) => Err(NOT_STORABLE),
    }
}

fn pair_message_len(key: Slice, value: Value) -> Result<usize, Failure> {
    Ok(field_len(1, key.len as usize) + field_len(2, encoded_len(value)?))
}

/// Writes a `KeyValue` message as the field `number`.
pub(crate) fn write_pair(number: u32, key: Slice, value: Value, out: &mut impl Sink) -> Result<(), Failure> {
    write_head(number, pair_message_len(key, value)?, out)?;
    write_bytes(1, key, out)?;
    write_head(2, encoded_len(value)?, out)?;
    write(value, out)
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
    out.put(Varint::new(u64::from(number) << 3 | 2).as_bytes())?;
    out.put(Varint::new(len as u64).as_bytes())
}

fn write_bytes(number: u32, slice: Slice, out: &mut impl Sink) -> Result<(), Failure> {
    write_head(number, slice.len as usize, out)?;
    out.put_slice(slice)
}

/// The length of a length-delimited field whose payload has `len` bytes.
pub(crate) fn field_len(number: u32, len: usize) -> usize {
    width(u64::from(number) << 3) + width(len as u64) + len
}

fn width(number: u64) -> usize {
    // At most ten.
    varint_len(number) as usize
}

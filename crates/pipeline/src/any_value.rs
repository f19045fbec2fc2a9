//! Reads and writes OTLP's `AnyValue`, `KeyValueList` and `ArrayValue` messages.
//!
//! <https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/common/v1/common.proto>. A nested value
//! stays encoded: [`Value::Map`] and [`Value::List`] are the content of their messages. So the length of every value is
//! known without a look inside, and a copy of it is one copy of bytes.

mod read;
mod write;

use crate::memory::{Memory, Slice};
use crate::value::{Failure, Value};
pub(crate) use read::{Elements, Pairs, RepeatedField, count, find, read, read_pair};
#[cfg(test)]
pub(crate) use write::Outside;
pub(crate) use write::{Sink, encoded_len, write, write_element, write_head, write_named, write_pair};

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

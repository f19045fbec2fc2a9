//! Keys in brackets: reads nested values, and rebuilds the value around one that is set.
//!
//! Paths and converters differ as in `pkg/ottl`: a missing key of a path is `nil`, one of a converter's map is an error.

use super::Machine;
use crate::any_value::{self, Elements, Pairs};
use crate::memory::Slice;
use crate::ottl::program::Key;
use crate::value::{Failure, Kind, Value};

const OUT_OF_BOUNDS: Failure = Failure::Invalid("the index is out of bounds");
const NO_INDEX: Failure = Failure::Invalid("only maps and lists take keys");
const BAD_KEY: Failure = Failure::Invalid("the key is neither a string nor an integer");

/// The most elements of a list that an index makes of an empty value.
const LONGEST_LIST: i64 = 1 << 16;

impl Machine<'_> {
    /// The value behind `keys` of what a converter returned.
    pub(super) fn index(&mut self, value: Value, keys: &[Key]) -> Result<Value, Failure> {
        let mut value = value;
        for key in keys {
            value = match (self.key(key)?, value) {
                (Value::Text(name), Value::Map(map)) => {
                    any_value::find(&self.memory, map, name)
                        .ok_or(Failure::Invalid("the map has no such key"))?
                        .value
                }
                (Value::Int(at), Value::List(list)) => self.element(list, at)?,
                (Value::Text(_) | Value::Int(_), _) => return Err(NO_INDEX),
                _ => return Err(BAD_KEY),
            };
        }
        Ok(value)
    }

    /// The value behind `keys` of a field.
    pub(super) fn nested(&mut self, value: Value, keys: &[Key]) -> Result<Value, Failure> {
        let mut value = value;
        for key in keys {
            value = match value {
                Value::Map(map) => {
                    let name = self.name(key)?;
                    match any_value::find(&self.memory, map, name) {
                        Some(pair) => pair.value,
                        None => return Ok(Value::Nil),
                    }
                }
                Value::List(list) => {
                    let at = self.place(key)?;
                    self.element(list, at)?
                }
                _ => return Err(NO_INDEX),
            };
        }
        Ok(value)
    }

    fn element(&self, list: Slice, at: i64) -> Result<Value, Failure> {
        let at = usize::try_from(at).map_err(|_| OUT_OF_BOUNDS)?;
        let mut elements = Elements::new(list);
        for _ in 0..at {
            elements.next(&self.memory).ok_or(OUT_OF_BOUNDS)?;
        }
        elements.next(&self.memory).ok_or(OUT_OF_BOUNDS)
    }

    /// The value of a key.
    pub(super) fn key(&mut self, key: &Key) -> Result<Value, Failure> {
        match key {
            Key::Name(name) => Ok(Value::Text(*name)),
            Key::Index(at) => Ok(Value::Int(*at)),
            Key::Dynamic(expression) => self.value(expression),
        }
    }

    /// The key of a map.
    #[inline]
    pub(super) fn name(&mut self, key: &Key) -> Result<Slice, Failure> {
        match key {
            Key::Name(name) => Ok(*name),
            key => match self.key(key)? {
                Value::Text(name) => Ok(name),
                other => Err(Failure::Type { wanted: Kind::Text, found: other.kind() }),
            },
        }
    }

    /// The index of a list.
    fn place(&mut self, key: &Key) -> Result<i64, Failure> {
        match self.key(key)? {
            Value::Int(at) => Ok(at),
            other => Err(Failure::Type { wanted: Kind::Int, found: other.kind() }),
        }
    }

    /// `current` with `value` in the place behind `keys`. Empty values on the way become maps or lists.
    pub(super) fn rebuilt(&mut self, current: Value, keys: &[Key], value: Value) -> Result<Value, Failure> {
        let Some((key, keys)) = keys.split_first() else { return Ok(value) };
        match current {
            Value::Map(map) => {
                let name = self.name(key)?;
                let inner = any_value::find(&self.memory, map, name).map_or(Value::Nil, |pair| pair.value);
                let inner = self.rebuilt(inner, keys, value)?;
                self.with_pair(map, name, inner)
            }
            Value::List(list) => {
                let at = self.place(key)?;
                let inner = self.element(list, at)?;
                let inner = self.rebuilt(inner, keys, value)?;
                self.with_element(list, at, inner)
            }
            Value::Nil => match self.key(key)? {
                Value::Text(name) => {
                    let inner = self.rebuilt(Value::Nil, keys, value)?;
                    self.with_pair(Slice::EMPTY, name, inner)
                }
                Value::Int(at) => {
                    let inner = self.rebuilt(Value::Nil, keys, value)?;
                    if at >= LONGEST_LIST {
                        return Err(Failure::TooLarge);
                    }
                    let list = self.memory.build(|memory| {
                        (0..at).try_for_each(|_| any_value::write_element(Value::Nil, memory))?;
                        any_value::write_element(inner, memory)
                    })?;
                    Ok(Value::List(list))
                }
                _ => Err(BAD_KEY),
            },
            _ => Err(NO_INDEX),
        }
    }

    /// `map` with `value` for the first pair that has the key, or for a new one at the end.
    fn with_pair(&mut self, map: Slice, name: Slice, value: Value) -> Result<Value, Failure> {
        let map = self.memory.build(|memory| {
            let mut pairs = Pairs::new(map);
            let mut found = false;
            while let Some(pair) = pairs.next(memory) {
                if !found && memory.get(pair.key) == memory.get(name) {
                    found = true;
                    any_value::write_pair(1, name, value, memory)?;
                } else {
                    memory.push_slice(pair.raw)?;
                }
            }
            if found { Ok(()) } else { any_value::write_pair(1, name, value, memory) }
        })?;
        Ok(Value::Map(map))
    }

    /// `list` with `value` in the place `at`.
    fn with_element(&mut self, list: Slice, at: i64, value: Value) -> Result<Value, Failure> {
        let list = self.memory.build(|memory| {
            let mut elements = Elements::new(list);
            let mut place = 0;
            while let Some((_, raw)) = elements.next_raw(memory) {
                if place == at {
                    any_value::write_element(value, memory)?;
                } else {
                    memory.push_slice(raw)?;
                }
                place += 1;
            }
            Ok(())
        })?;
        Ok(Value::List(list))
    }
}

//! Comparisons, as `pkg/ottl/compare.go` has them.
//!
//! Values of types that do not compare are unequal, and neither is less. `nil` is equal to `nil` alone.

use super::Machine;
use crate::any_value::{DEEPEST, Elements, Pairs, count, find};
use crate::memory::{Memory, Slice};
use crate::ottl::program::Comparison;
use crate::table::MapTable;
use crate::value::Value;
use std::cmp::Ordering;

impl Machine<'_> {
    /// Whether `left comparison right` holds.
    pub(crate) fn compare(&self, comparison: Comparison, left: Value, right: Value) -> bool {
        compare(&self.memory, comparison, left, right)
    }
}

/// Whether `left comparison right` holds.
pub(crate) fn compare(memory: &Memory<'_>, comparison: Comparison, left: Value, right: Value) -> bool {
    let ordering = match (empty_as_nil(left), empty_as_nil(right)) {
        (Value::Nil, Value::Nil) => Some(Ordering::Equal),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(&right)),
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(&right)),
        (Value::Int(left), Value::Double(right)) => (left as f64).partial_cmp(&right),
        (Value::Double(left), Value::Int(right)) => left.partial_cmp(&(right as f64)),
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(&right),
        (Value::Text(left), Value::Text(right)) => {
            return text(memory, comparison, left, right);
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            return text(memory, comparison, left, right);
        }
        (Value::Time(left), Value::Time(right)) | (Value::Duration(left), Value::Duration(right)) => {
            Some(left.cmp(&right))
        }
        (left @ (Value::Map(_) | Value::List(_) | Value::Id(_)), right) => {
            return match comparison {
                Comparison::Equal => equal(memory, left, right),
                Comparison::NotEqual => !equal(memory, left, right),
                _ => false,
            };
        }
        _ => None,
    };
    match comparison {
        Comparison::Equal => ordering == Some(Ordering::Equal),
        Comparison::NotEqual => ordering != Some(Ordering::Equal),
        Comparison::Less => ordering == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => ordering == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// Go reads empty bytes as a nil slice, and `compareByte` takes that for `nil`.
fn empty_as_nil(value: Value) -> Value {
    match value {
        Value::Bytes(slice) if slice.len == 0 => Value::Nil,
        value => value,
    }
}

fn text(memory: &Memory<'_>, comparison: Comparison, left: Slice, right: Slice) -> bool {
    let is_equal = left.len == right.len && memory.get(left) == memory.get(right);
    match comparison {
        Comparison::Equal => is_equal,
        Comparison::NotEqual => !is_equal,
        Comparison::Less => memory.get(left) < memory.get(right),
        Comparison::LessOrEqual => memory.get(left) <= memory.get(right),
        Comparison::Greater => memory.get(left) > memory.get(right),
        Comparison::GreaterOrEqual => memory.get(left) >= memory.get(right),
    }
}

/// Whether two values within maps or lists, or whole ones, are equal: integers and doubles are not.
pub(crate) fn equal(memory: &Memory<'_>, left: Value, right: Value) -> bool {
    equal_within(memory, left, right, DEEPEST)
}

/// As [`equal`]. What is below `levels` maps and lists is equal only byte for byte, so that the stack stays bounded.
fn equal_within(memory: &Memory<'_>, left: Value, right: Value, levels: usize) -> bool {
    match (left, right) {
        (Value::Map(left), Value::Map(right)) | (Value::List(left), Value::List(right)) if levels == 0 => {
            memory.get(left) == memory.get(right)
        }
        (Value::Text(left), Value::Text(right))
        | (Value::Bytes(left), Value::Bytes(right))
        | (Value::Id(left), Value::Id(right)) => memory.get(left) == memory.get(right),
        (Value::Map(left), Value::Map(right)) => maps_equal(memory, left, right, levels - 1),
        (Value::List(left), Value::List(right)) => lists_equal(memory, left, right, levels - 1),
        (left, right) => left == right,
    }
}

/// Maps with more keys than a table takes are equal only in the same order, so that the search stays bounded.
fn maps_equal(memory: &Memory<'_>, left: Slice, right: Slice, levels: usize) -> bool {
    let len = count(memory, left);
    if len != count(memory, right) {
        return false;
    }
    let searched = |key| (len <= MapTable::CAPACITY).then(|| find(memory, right, key)).flatten();
    let (mut pairs, mut others) = (Pairs::new(left), Pairs::new(right));
    while let Some(pair) = pairs.next(memory) {
        // Most equal maps have one order: look at the same place first.
        let beside = others.next(memory).filter(|other| memory.get(other.key) == memory.get(pair.key));
        let Some(other) = beside.or_else(|| searched(pair.key)) else { return false };
        if !equal_within(memory, pair.value, other.value, levels) {
            return false;
        }
    }
    true
}

fn lists_equal(memory: &Memory<'_>, left: Slice, right: Slice, levels: usize) -> bool {
    let (mut left, mut right) = (Elements::new(left), Elements::new(right));
    loop {
        match (left.next(memory), right.next(memory)) {
            (None, None) => return true,
            (Some(left), Some(right)) if equal_within(memory, left, right, levels) => {}
            _ => return false,
        }
    }
}

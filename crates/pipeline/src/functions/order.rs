//! The elements of maps and lists in another order, without moving them: `Sort`, and maps by key.

use super::{Prepared, all, converter, optional, required};
use crate::any_value::{Elements, RepeatedField, read, read_pair, write_head};
use crate::memory::{Memory, Slice, Space};
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};
use std::cmp::Ordering;
use tidegate_wire::json::write;
use tidegate_wire::output::{Output, SliceOutput};

pub(super) static CONVERTERS: &[&Signature] = &[&SORT];

/// The elements of a map or list in an order: 8 bytes for each in the temporary space.
pub(super) struct Order {
    index: Slice,
    space: Space,
}

impl Order {
    /// The places of the elements, in order.
    pub(super) fn elements(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.index.len as usize).step_by(8)
    }

    /// The message of the element at a place.
    pub(super) fn element(&self, memory: &Memory<'_>, at: usize) -> Slice {
        let place = memory.get(self.index).get(at..).and_then(|rest| rest.first_chunk::<8>());
        place.map_or(Slice::EMPTY, |place| unpack(place, self.space))
    }
}

fn unpack(place: &[u8; 8], space: Space) -> Slice {
    let [a, b, c, d, e, f, g, h] = *place;
    Slice { start: u32::from_le_bytes([a, b, c, d]), len: u32::from_le_bytes([e, f, g, h]), space }
}

/// The entries of a map by their keys.
pub(super) fn by_key(memory: &mut Memory<'_>, map: Slice) -> Result<Order, Failure> {
    order(memory, map, |memory, one, other| {
        let key = |entry| memory.get(read_pair(memory, entry).0);
        key(one).cmp(key(other))
    })
}

/// The elements of `content` as `compare` has them; those that are equal as they were.
fn order(
    memory: &mut Memory<'_>,
    content: Slice,
    compare: impl Fn(&Memory<'_>, Slice, Slice) -> Ordering,
) -> Result<Order, Failure> {
    let mark = memory.mark();
    let mut fields = RepeatedField::new(content, 1);
    while let Some((_, element)) = fields.next(memory) {
        memory.push(&element.start.to_le_bytes())?;
        memory.push(&element.len.to_le_bytes())?;
    }
    let index = memory.since(mark);
    // Heapsort: the places are in the memory that the comparison reads.
    let len = index.len as usize / 8;
    let order = Order { index, space: content.space };
    let less = |memory: &Memory<'_>, one: usize, other: usize| {
        let (one, other) = (order.element(memory, 8 * one), order.element(memory, 8 * other));
        compare(memory, one, other).then(one.start.cmp(&other.start)) == Ordering::Less
    };
    let sink = |memory: &mut Memory<'_>, mut root: usize, end: usize| {
        loop {
            let mut child = 2 * root + 1;
            if child >= end {
                return;
            }
            if child + 1 < end && less(memory, child, child + 1) {
                child += 1;
            }
            if !less(memory, root, child) {
                return;
            }
            memory.swap_words(index, root, child);
            root = child;
        }
    };
    for root in (0..len / 2).rev() {
        sink(memory, root, len);
    }
    for end in (1..len).rev() {
        memory.swap_words(index, 0, end);
        sink(memory, 0, end);
    }
    Ok(order)
}

/// The direction of `Sort`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

/// Type as which the elements of a list are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Common {
    Int,
    Double,
    Text,
}

/// A list in order: numbers as numbers; all as texts where there is a text, a boolean or nil; as it is where it has other
/// values. Output: the list, and 8 bytes for each element.
static SORT: Signature = Signature {
    prepare: |position, literal, _| {
        (position == 1).then(|| match literal {
            "asc" => Ok(Prepared::Direction(Direction::Ascending)),
            "desc" => Ok(Prepared::Direction(Direction::Descending)),
            _ => Err(format!("unknown order `{literal}`: there are `asc` and `desc`")),
        })
    },
    ..converter(
        "Sort",
        &[required("target", Type::Any), optional("order", Type::LiteralText)],
        Type::List,
        |machine, arguments| {
            let [target, direction] = all(arguments)?;
            let list = machine.list_content(target)?;
            let Some(common) = common(&machine.memory, list) else { return Ok(Value::List(list)) };
            let descending =
                matches!(direction, Argument::Prepared(Prepared::Direction(Direction::Descending)));
            let order = order(&mut machine.memory, list, |memory, one, other| {
                let ordering = compare(memory, common, read(memory, one), read(memory, other));
                if descending { ordering.reverse() } else { ordering }
            })?;
            let mark = machine.memory.mark();
            for at in order.elements() {
                let element = order.element(&machine.memory, at);
                write_head(1, element.len as usize, &mut machine.memory)?;
                machine.memory.push_slice(element)?;
            }
            Ok(Value::List(machine.memory.since(mark)))
        },
    )
};

fn common(memory: &Memory<'_>, list: Slice) -> Option<Common> {
    let mut elements = Elements::new(list);
    let mut common = None;
    while let Some(element) = elements.next(memory) {
        common = Some(match (element, common) {
            (Value::Int(_), None | Some(Common::Int)) => Common::Int,
            (Value::Int(_) | Value::Double(_), Some(Common::Text)) => Common::Text,
            (Value::Int(_) | Value::Double(_), _) => Common::Double,
            (Value::Text(_) | Value::Bool(_) | Value::Nil, _) => Common::Text,
            _ => return None,
        });
    }
    common
}

fn compare(memory: &Memory<'_>, common: Common, one: Value, other: Value) -> Ordering {
    let double = |value| match value {
        Value::Int(int) => int as f64,
        Value::Double(double) => double,
        _ => 0.0,
    };
    match (common, one, other) {
        (Common::Int, Value::Int(one), Value::Int(other)) => one.cmp(&other),
        (Common::Text, ..) => {
            let (mut digits, mut others) = ([0; 32], [0; 32]);
            text(memory, one, &mut digits).cmp(text(memory, other, &mut others))
        }
        // NaN is the smallest, as in Go.
        (_, one, other) => {
            let (one, other) = (double(one), double(other));
            one.partial_cmp(&other).unwrap_or_else(|| other.is_nan().cmp(&one.is_nan()))
        }
    }
}

/// The text of a value without parts; of one that is none in `digits`.
fn text<'m>(memory: &'m Memory<'_>, value: Value, digits: &'m mut [u8; 32]) -> &'m [u8] {
    if let Value::Text(text) = value {
        return memory.get(text);
    }
    let mut out = SliceOutput::new(digits);
    // At most 25 bytes.
    let _ = match value {
        Value::Bool(bool) => out.put(if bool { b"true" } else { b"false" }),
        Value::Int(int) => write::int(int, &mut out),
        Value::Double(double) => write::formatted(format_args!("{double}"), &mut out)
            .or_else(|_| write::formatted(format_args!("{double:e}"), &mut out)),
        _ => Ok(()),
    };
    let len = out.len();
    digits.get(..len).unwrap_or_default()
}

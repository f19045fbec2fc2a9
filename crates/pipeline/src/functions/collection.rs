//! Maps and lists: their size, elements, order.

use super::members::keep_last;
use super::{all, converter, optional, required};
use crate::any_value::{self, Elements, Pairs};
use crate::machine::Machine;
use crate::memory::{Memory, Slice};
use crate::ottl::program::{Argument, Comparison, Expression};
use crate::ottl::signature::{Parameter, Signature, Type};
use crate::value::{Failure, Kind, Value};
use tidegate_wire::json::write;

pub(super) static CONVERTERS: &[&Signature] =
    &[&COALESCE, &CONTAINS_VALUE, &INDEX, &KEYS, &LEN, &SLICE_TO_MAP, &VALUES];

const MAP: [Parameter; 1] = [required("target", Type::Map)];

/// The first value that is not nil; nil where there is none. Those behind it are not evaluated. No output.
static COALESCE: Signature = Signature {
    complete: |arguments, _, _| match arguments {
        [Argument::Values(values)] if values.is_empty() => Err((0, "`Coalesce` needs a value".to_owned())),
        _ => Ok(()),
    },
    ..converter("Coalesce", &[required("values", Type::Values)], Type::Any, coalesce)
};

fn coalesce(machine: &mut Machine<'_>, arguments: &[Argument]) -> Result<Value, Failure> {
    let [values] = all(arguments)?;
    if let Argument::Values(expressions) = values {
        for expression in expressions {
            let value = machine.value(expression)?;
            if value != Value::Nil {
                return Ok(value);
            }
        }
        return Ok(Value::Nil);
    }
    let list = machine.list_content(values)?;
    let mut elements = Elements::new(list);
    while let Some(value) = elements.next(&machine.memory) {
        if value != Value::Nil {
            return Ok(value);
        }
    }
    Ok(Value::Nil)
}

/// The bytes of a text, the elements of a list or bytes, the entries of a map, the messages of a field. No output.
static LEN: Signature =
    converter("Len", &[required("target", Type::Any)], Type::Int, |machine, arguments| {
        let [target] = all(arguments)?;
        if let Argument::Value(Expression::Path(path)) = target
            && path.field.is_counted()
        {
            let count = machine.record.count(&machine.memory, path.context, path.field);
            let count = count.ok_or(Failure::Type { wanted: Kind::List, found: Kind::Nil })?;
            return Ok(Value::Int(count as i64));
        }
        let len = match machine.any(target)? {
            Value::Text(part) | Value::Bytes(part) => part.len as usize,
            Value::Map(part) | Value::List(part) => any_value::count(&machine.memory, part),
            value => return Err(Failure::Type { wanted: Kind::List, found: value.kind() }),
        };
        Ok(Value::Int(len as i64))
    });

/// The keys of a map. Output: the map.
static KEYS: Signature = converter("Keys", &MAP, Type::List, |machine, arguments| {
    let [target] = all(arguments)?;
    let map = machine.map_content(target)?;
    let mark = machine.memory.mark();
    let mut pairs = Pairs::new(map);
    while let Some(pair) = pairs.next(&machine.memory) {
        any_value::write_element(Value::Text(pair.key), &mut machine.memory)?;
    }
    Ok(Value::List(machine.memory.since(mark)))
});

/// The values of a map. Output: the map.
static VALUES: Signature = converter("Values", &MAP, Type::List, |machine, arguments| {
    let [target] = all(arguments)?;
    let map = machine.map_content(target)?;
    let mark = machine.memory.mark();
    let mut pairs = Pairs::new(map);
    while let Some(pair) = pairs.next(&machine.memory) {
        any_value::write_element(pair.value, &mut machine.memory)?;
    }
    Ok(Value::List(machine.memory.since(mark)))
});

/// Whether a list has an element that is equal, integers and doubles compared as numbers. No output.
static CONTAINS_VALUE: Signature = converter(
    "ContainsValue",
    &[required("target", Type::List), required("item", Type::Any)],
    Type::Bool,
    |machine, arguments| {
        let [target, item] = all(arguments)?;
        let list = machine.list_content(target)?;
        let item = machine.any(item)?;
        Ok(Value::Bool(position(machine, list, item).is_some()))
    },
);

/// The place of the first element that is equal, or of the first occurrence of a text in a text; -1 for none. No output.
static INDEX: Signature = converter(
    "Index",
    &[required("target", Type::Any), required("value", Type::Any)],
    Type::Int,
    |machine, arguments| {
        let [target, value] = all(arguments)?;
        let (target, value) = (machine.any(target)?, machine.any(value)?);
        let place = match (target, value) {
            (Value::Text(text), Value::Text(part)) => {
                memchr::memmem::find(machine.memory.get(text), machine.memory.get(part))
            }
            (Value::Text(_), value) => return Err(Failure::Type { wanted: Kind::Text, found: value.kind() }),
            (Value::List(list), value) => position(machine, list, value),
            (target, _) => return Err(Failure::Type { wanted: Kind::List, found: target.kind() }),
        };
        Ok(Value::Int(place.map_or(-1, |place| place as i64)))
    },
);

fn position(machine: &Machine<'_>, list: Slice, wanted: Value) -> Option<usize> {
    let mut elements = Elements::new(list);
    std::iter::from_fn(|| elements.next(&machine.memory))
        .position(|element| machine.compare(Comparison::Equal, element, wanted))
}

/// The elements of a list as the values of a map: their keys are their places, or the texts that `key_path` leads to in
/// them; the values are whole, or what `value_path` leads to. Output: the list, and 28 bytes for each element.
static SLICE_TO_MAP: Signature = Signature {
    complete: |arguments, _, _| {
        let empty = |(_, argument): &(usize, &mut Argument)| texts(argument).is_some_and(<[_]>::is_empty);
        match arguments.iter_mut().enumerate().skip(1).find(empty) {
            Some((at, _)) => Err((at, "a path needs at least one key".into())),
            None => Ok(()),
        }
    },
    ..converter(
        "SliceToMap",
        &[
            required("target", Type::List),
            optional("key_path", Type::LiteralTexts),
            optional("value_path", Type::LiteralTexts),
        ],
        Type::Map,
        |machine, arguments| {
            let [target, key_path, value_path] = all(arguments)?;
            let list = machine.list_content(target)?;
            let mark = machine.memory.mark();
            let mut elements = Elements::new(list);
            let mut place = 0;
            while let Some(element) = elements.next(&machine.memory) {
                slice_to_map(&mut machine.memory, element, place, texts(key_path), texts(value_path))?;
                place += 1;
            }
            // The last element with a key is the one.
            if texts(key_path).is_some() && place > 1 {
                keep_last(&mut machine.memory.split_from(mark).1, 0)?;
            }
            Ok(Value::Map(machine.memory.since(mark)))
        },
    )
};

/// Appends the entry of an element.
fn slice_to_map(
    memory: &mut Memory<'_>,
    element: Value,
    place: u64,
    key_path: Option<&[Expression]>,
    value_path: Option<&[Expression]>,
) -> Result<(), Failure> {
    let value = value_path.map_or(Ok(element), |path| follow(memory, element, path))?;
    let Some(path) = key_path else {
        let mut digits = [0; 20];
        let len = place.checked_ilog10().map_or(1, |log| log as usize + 1);
        let digits = write::decimal(place, digits.get_mut(..len).unwrap_or_default());
        return any_value::write_named(digits, value, memory);
    };
    let Value::Text(key) = follow(memory, element, path)? else {
        return Err(Failure::Invalid("the key of an element is not a string"));
    };
    any_value::write_pair(1, key, value, memory)
}

/// The value at a path of keys in nested maps.
fn follow(memory: &Memory<'_>, mut value: Value, path: &[Expression]) -> Result<Value, Failure> {
    for key in path {
        let (Value::Map(map), Expression::Literal(Value::Text(key))) = (value, key) else {
            return Err(Failure::Invalid("an element is not a map on the path"));
        };
        value = any_value::find(memory, map, *key)
            .ok_or(Failure::Invalid("an element has nothing on the path"))?
            .value;
    }
    Ok(value)
}

/// The elements of a list of literals; `None` for an argument that is absent.
pub(super) fn texts(argument: &Argument) -> Option<&[Expression]> {
    match argument {
        Argument::Values(elements) | Argument::Value(Expression::List(elements)) => Some(elements),
        _ => None,
    }
}

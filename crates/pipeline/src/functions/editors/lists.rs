//! `append` and `delete_index`.

use super::{editor, optional, required, run};
use crate::any_value::{self, Elements};
use crate::machine::Machine;
use crate::machine::arguments::target;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Complete, Signature, Type};
use crate::value::{Failure, Value};

/// `append(target, value, values)`: a target that is no list becomes the first element of one.
///
/// Output: the target and the values, and at most 12 bytes for each.
pub(super) static APPEND: Signature = Signature {
    complete: ONE_OF_BOTH,
    ..editor(
        "append",
        &[required("target", Type::Target), optional("value", Type::Any), optional("values", Type::Values)],
        |machine, arguments| run(machine, arguments, append),
    )
};

const ONE_OF_BOTH: Complete = |arguments, _, _| match arguments {
    [_, Argument::Absent, Argument::Absent] => Err((0, "`append` needs `value` or `values`".into())),
    _ => Ok(()),
};

fn append(machine: &mut Machine<'_>, [path, value, values]: &[Argument; 3]) -> Result<(), Failure> {
    let path = target(path)?;
    let current = machine.get(path)?;
    let value = machine.argument(value)?;
    let values = machine.argument(values)?;
    let list = machine.memory.build(|memory| {
        match current {
            Value::Nil => {}
            Value::List(list) => memory.push_slice(list)?,
            other => any_value::write_element(other, memory)?,
        }
        if let Some(value) = value {
            any_value::write_element(value, memory)?;
        }
        match values {
            None | Some(Value::Nil) => Ok(()),
            Some(Value::List(list)) => memory.push_slice(list),
            Some(other) => any_value::write_element(other, memory),
        }
    })?;
    machine.set(path, Value::List(list))
}

/// `delete_index(target, start_index, end_index)`: removes the elements from the start up to the end, or one.
pub(super) static DELETE_INDEX: Signature = editor(
    "delete_index",
    &[required("target", Type::Target), required("start_index", Type::Int), optional("end_index", Type::Int)],
    |machine, arguments| run(machine, arguments, delete_index),
);

fn delete_index(machine: &mut Machine<'_>, [list, start, end]: &[Argument; 3]) -> Result<(), Failure> {
    let path = target(list)?;
    let list = machine.list_content(list)?;
    let start = machine.int(start)?;
    let end = match end {
        Argument::Absent => start.saturating_add(1),
        end => machine.int(end)?,
    };
    let len = i64::try_from(any_value::count(&machine.memory, list)).unwrap_or(i64::MAX);
    if (start, end) != (0, len) {
        if !(0..len).contains(&start) || end > len {
            return Err(Failure::Invalid("the index is out of bounds"));
        }
        if end < start {
            return Err(Failure::Invalid("the end is before the start"));
        }
    }
    let left = machine.memory.build(|memory| {
        let mut elements = Elements::new(list);
        let mut at = 0;
        while let Some((_, raw)) = elements.next_raw(memory) {
            if !(start..end).contains(&at) {
                memory.push_slice(raw)?;
            }
            at += 1;
        }
        Ok(())
    })?;
    machine.set(path, Value::List(left))
}

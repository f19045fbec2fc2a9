//! `set` and `clear`.

use super::{editor, required, run};
use crate::machine::Machine;
use crate::machine::arguments::target;
use crate::memory::Slice;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};

/// Go's zero `time.Time` in nanoseconds since the Unix epoch, where 64 bits end.
const GO_ZERO_TIME: i64 = -6_795_364_578_871_345_152;

/// `set(target, value)`: a missing value stores an empty one.
pub(super) static SET: Signature =
    editor("set", &[required("target", Type::Target), required("value", Type::Any)], |machine, arguments| {
        run(machine, arguments, set)
    });

fn set(machine: &mut Machine<'_>, [path, value]: &[Argument; 2]) -> Result<(), Failure> {
    let path = target(path)?;
    let value = machine.any(value)?;
    machine.set(path, value)
}

/// `clear(target)`: the zero value of what is there.
pub(super) static CLEAR: Signature =
    editor("clear", &[required("target", Type::Target)], |machine, arguments| run(machine, arguments, clear));

fn clear(machine: &mut Machine<'_>, [path]: &[Argument; 1]) -> Result<(), Failure> {
    let path = target(path)?;
    let zero = match machine.get(path)? {
        Value::Nil => Value::Nil,
        Value::Bool(_) => Value::Bool(false),
        Value::Int(_) => Value::Int(0),
        Value::Double(_) => Value::Double(0.0),
        Value::Text(_) => Value::Text(Slice::EMPTY),
        Value::Bytes(_) => Value::Bytes(Slice::EMPTY),
        Value::Map(_) => Value::Map(Slice::EMPTY),
        Value::List(_) => Value::List(Slice::EMPTY),
        Value::Id(id) => {
            let zeros = [0; 16];
            Value::Id(machine.memory.store(zeros.get(..id.len as usize).unwrap_or(&zeros))?)
        }
        Value::Time(_) => Value::Time(GO_ZERO_TIME),
        Value::Duration(_) => Value::Duration(0),
    };
    machine.set(path, zero)
}

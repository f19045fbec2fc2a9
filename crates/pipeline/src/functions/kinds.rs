//! Tests of a value: its type, whether it is empty.

use super::{all, converter, required};
use crate::any_value;
use crate::machine::Machine;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Parameter, Signature, Type};
use crate::value::{Failure, Kind, Value};

pub(super) static CONVERTERS: &[&Signature] =
    &[&IS_BOOL, &IS_DOUBLE, &IS_EMPTY, &IS_INT, &IS_LIST, &IS_MAP, &IS_STRING];

const TARGET: [Parameter; 1] = [required("target", Type::Any)];

static IS_BOOL: Signature =
    converter("IsBool", &TARGET, Type::Bool, |machine, arguments| has_kind(machine, arguments, Kind::Bool));

static IS_DOUBLE: Signature = converter("IsDouble", &TARGET, Type::Bool, |machine, arguments| {
    has_kind(machine, arguments, Kind::Double)
});

static IS_INT: Signature =
    converter("IsInt", &TARGET, Type::Bool, |machine, arguments| has_kind(machine, arguments, Kind::Int));

static IS_LIST: Signature =
    converter("IsList", &TARGET, Type::Bool, |machine, arguments| has_kind(machine, arguments, Kind::List));

static IS_MAP: Signature =
    converter("IsMap", &TARGET, Type::Bool, |machine, arguments| has_kind(machine, arguments, Kind::Map));

static IS_STRING: Signature =
    converter("IsString", &TARGET, Type::Bool, |machine, arguments| has_kind(machine, arguments, Kind::Text));

/// Whether the value is nil, or the zero of its type.
static IS_EMPTY: Signature = converter("IsEmpty", &TARGET, Type::Bool, |machine, arguments| {
    let [target] = all(arguments)?;
    let value = machine.any(target)?;
    let memory = &machine.memory;
    Ok(Value::Bool(match value {
        Value::Nil | Value::Bool(false) | Value::Int(0) | Value::Duration(0) => true,
        Value::Double(double) => double.to_bits() == 0,
        Value::Text(part) | Value::Bytes(part) => part.len == 0,
        Value::Map(part) | Value::List(part) => any_value::count(memory, part) == 0,
        Value::Id(id) => memory.get(id).iter().all(|byte| *byte == 0),
        Value::Bool(true) | Value::Int(_) | Value::Duration(_) | Value::Time(_) => false,
    }))
});

fn has_kind(machine: &mut Machine<'_>, arguments: &[Argument], kind: Kind) -> Result<Value, Failure> {
    let [target] = all(arguments)?;
    Ok(Value::Bool(machine.any(target)?.kind() == kind))
}

//! Tests of a value: its type, whether it is empty.

use super::{all, converter, required};
use crate::any_value;
use crate::machine::Machine;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Parameter, Signature, Type};
use crate::value::{Failure, Kind, Value};

pub(super) static CONVERTERS: &[&Signature] =
    &[&IS_BOOL, &IS_DOUBLE, &IS_EMPTY, &IS_INT, &IS_LIST, &IS_MAP, &IS_STRING];

/// The types of the parameters are those of `pkg/ottl`, which refuses a literal of another kind when it loads; other values of
/// any kind are accepted.
const fn target(accepts: Type) -> [Parameter; 1] {
    [required("target", accepts)]
}

static IS_BOOL: Signature =
    converter("IsBool", &const { target(Type::Bool) }, Type::Bool, |machine, arguments| {
        has_kind(machine, arguments, Kind::Bool)
    });

static IS_DOUBLE: Signature =
    converter("IsDouble", &const { target(Type::Double) }, Type::Bool, |machine, arguments| {
        has_kind(machine, arguments, Kind::Double)
    });

static IS_INT: Signature =
    converter("IsInt", &const { target(Type::Int) }, Type::Bool, |machine, arguments| {
        has_kind(machine, arguments, Kind::Int)
    });

static IS_LIST: Signature =
    converter("IsList", &const { target(Type::Any) }, Type::Bool, |machine, arguments| {
        has_kind(machine, arguments, Kind::List)
    });

static IS_MAP: Signature =
    converter("IsMap", &const { target(Type::Map) }, Type::Bool, |machine, arguments| {
        has_kind(machine, arguments, Kind::Map)
    });

static IS_STRING: Signature =
    converter("IsString", &const { target(Type::Text) }, Type::Bool, |machine, arguments| {
        has_kind(machine, arguments, Kind::Text)
    });

/// Whether the value is nil, or the zero of its type.
static IS_EMPTY: Signature =
    converter("IsEmpty", &const { target(Type::Any) }, Type::Bool, |machine, arguments| {
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

//! The SDK's keys and values, walked where they are.

use crate::record::{Attributes, Value, Values};
use opentelemetry::logs::AnyValue;
use opentelemetry::{Array, KeyValue};
use opentelemetry_sdk::Resource;
use std::collections::HashMap;

/// Something of the SDK's, shown as ours.
pub(super) struct Of<'a, T: ?Sized>(pub(super) &'a T);

impl Attributes for Of<'_, [KeyValue]> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        for pair in self.0 {
            show(&pair.value, |value| visit(pair.key.as_str(), value));
        }
    }
}

impl Attributes for Of<'_, Resource> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        for (key, value) in self.0.iter() {
            show(value, |value| visit(key.as_str(), value));
        }
    }
}

impl Attributes for Of<'_, HashMap<opentelemetry::Key, AnyValue>> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        for (key, value) in self.0 {
            show_any(value, |value| visit(key.as_str(), value));
        }
    }
}

impl Values for Of<'_, Vec<AnyValue>> {
    fn each(&self, visit: &mut dyn FnMut(Value<'_>)) {
        self.0.iter().for_each(|value| show_any(value, &mut *visit));
    }
}

impl Values for Of<'_, Array> {
    fn each(&self, visit: &mut dyn FnMut(Value<'_>)) {
        match self.0 {
            Array::Bool(values) => values.iter().for_each(|value| visit(Value::Bool(*value))),
            Array::I64(values) => values.iter().for_each(|value| visit(Value::Int(*value))),
            Array::F64(values) => values.iter().for_each(|value| visit(Value::Double(*value))),
            Array::String(values) => values.iter().for_each(|value| visit(Value::Str(value.as_str()))),
            _ => (),
        }
    }
}

pub(super) fn show(value: &opentelemetry::Value, visit: impl FnOnce(Value<'_>)) {
    use opentelemetry::Value as Theirs;
    match value {
        Theirs::Bool(value) => visit(Value::Bool(*value)),
        Theirs::I64(value) => visit(Value::Int(*value)),
        Theirs::F64(value) => visit(Value::Double(*value)),
        Theirs::String(value) => visit(Value::Str(value.as_str())),
        Theirs::Array(values) => visit(Value::List(&Of(values))),
        other => visit(Value::Display(other)),
    }
}

pub(super) fn show_any(value: &AnyValue, visit: impl FnOnce(Value<'_>)) {
    match value {
        AnyValue::Int(value) => visit(Value::Int(*value)),
        AnyValue::Double(value) => visit(Value::Double(*value)),
        AnyValue::String(value) => visit(Value::Str(value.as_str())),
        AnyValue::Boolean(value) => visit(Value::Bool(*value)),
        AnyValue::Bytes(value) => visit(Value::Bytes(value)),
        AnyValue::ListAny(values) => visit(Value::List(&Of(&**values))),
        AnyValue::Map(values) => visit(Value::Map(&Of(&**values))),
        _ => visit(Value::Empty),
    }
}

//! Dictionaries and lists of Python, walked where they are.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use tidegate_sender::{Attributes, Value, Values};

/// A dictionary with names for keys; others are passed over.
pub(crate) struct Mapping<'a, 'py>(pub(crate) &'a Bound<'py, PyDict>);

impl Attributes for Mapping<'_, '_> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        for (key, value) in self.0.iter() {
            if let Ok(name) = key.cast::<PyString>()
                && let Ok(name) = name.to_str()
            {
                show(&value, &mut |value| visit(name, value));
            }
        }
    }
}

struct Listed<'a, 'py>(&'a Bound<'py, PyList>);

impl Values for Listed<'_, '_> {
    fn each(&self, visit: &mut dyn FnMut(Value<'_>)) {
        self.0.iter().for_each(|value| show(&value, visit));
    }
}

struct Tupled<'a, 'py>(&'a Bound<'py, PyTuple>);

impl Values for Tupled<'_, '_> {
    fn each(&self, visit: &mut dyn FnMut(Value<'_>)) {
        self.0.iter().for_each(|value| show(&value, visit));
    }
}

/// Shows a value as the nearest that the wire has; what has none, as `str()` shows it.
fn show(value: &Bound<'_, PyAny>, visit: &mut dyn FnMut(Value<'_>)) {
    if value.is_none() {
        visit(Value::Empty);
    } else if let Ok(text) = value.cast::<PyString>() {
        visit(text.to_str().map_or(Value::Empty, Value::Str));
    } else if let Ok(truth) = value.cast::<PyBool>() {
        visit(Value::Bool(truth.is_true()));
    } else if let (true, Ok(whole)) = (value.is_instance_of::<PyInt>(), value.extract::<i64>()) {
        visit(Value::Int(whole));
    } else if let Ok(number) = value.cast::<PyFloat>() {
        visit(Value::Double(number.value()));
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        visit(Value::Bytes(bytes.as_bytes()));
    } else if let Ok(list) = value.cast::<PyList>() {
        visit(Value::List(&Listed(list)));
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        visit(Value::List(&Tupled(tuple)));
    } else if let Ok(dict) = value.cast::<PyDict>() {
        visit(Value::Map(&Mapping(dict)));
    } else {
        match value.str() {
            Ok(shown) => visit(shown.to_str().map_or(Value::Empty, Value::Str)),
            Err(_) => visit(Value::Empty),
        }
    }
}

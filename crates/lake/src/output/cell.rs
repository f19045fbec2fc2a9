//! One value of one row.

use crate::time::rfc3339;
use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::datatypes::{
    DataType, Field, Float64Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A value as the formats need it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CellValue {
    Null,
    Text(String),
    /// Canonical JSON, as the column has it.
    Json(String),
    Number(String),
    /// NaN or infinite: no number in JSON.
    NoNumber(&'static str),
}

impl CellValue {
    /// The value of `column` in `row`. `beside` is what belongs to it: a time's nanoseconds, or the integers of which
    /// one stands where the column has none.
    pub(crate) fn of(name: &str, column: &dyn Array, beside: Option<&dyn Array>, row: usize) -> CellValue {
        if column.is_null(row) {
            return match beside {
                Some(integers) if name == "value" => CellValue::of("value_int", integers, None, row),
                _ => CellValue::Null,
            };
        }
        match column.data_type() {
            DataType::Utf8View if matches!(name, "attributes" | "resource" | "scope_attributes") => {
                CellValue::Json(column.as_string_view().value(row).to_owned())
            }
            DataType::Utf8View => CellValue::Text(column.as_string_view().value(row).to_owned()),
            DataType::Int32 => CellValue::Number(column.as_primitive::<Int32Type>().value(row).to_string()),
            DataType::Int64 => CellValue::Number(column.as_primitive::<Int64Type>().value(row).to_string()),
            DataType::Float64 => CellValue::double(column.as_primitive::<Float64Type>().value(row)),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                let nanos = beside.and_then(|nanos| nanos.as_primitive_opt::<Int32Type>());
                let nanos = nanos.map_or(0, |nanos| nanos.value(row));
                CellValue::Text(rfc3339(column.as_primitive::<TimestampMicrosecondType>().value(row), nanos))
            }
            _ => match json(column, row) {
                Value::String(text) => CellValue::Text(text),
                value => CellValue::Json(value.to_string()),
            },
        }
    }

    fn double(value: f64) -> CellValue {
        if value.is_nan() {
            CellValue::NoNumber("NaN")
        } else if value.is_infinite() {
            CellValue::NoNumber(if value > 0.0 { "+Inf" } else { "-Inf" })
        } else {
            CellValue::Number(format!("{value:?}"))
        }
    }

    /// As a table and CSV have it.
    pub(crate) fn text(self) -> String {
        match self {
            CellValue::Null => String::new(),
            CellValue::Text(text) | CellValue::Json(text) | CellValue::Number(text) => text,
            CellValue::NoNumber(text) => text.to_owned(),
        }
    }

    /// As JSON has it.
    pub(crate) fn json(self) -> String {
        match self {
            CellValue::Null => "null".to_owned(),
            CellValue::Text(text) => Value::String(text).to_string(),
            CellValue::Json(text) | CellValue::Number(text) => text,
            CellValue::NoNumber(text) => Value::String(text.to_owned()).to_string(),
        }
    }
}

/// A part of a value, a time with its nanoseconds.
fn part(parts: &StructArray, name: &str, column: &ArrayRef, row: usize) -> Value {
    match super::nanoseconds_of(name).and_then(|name| parts.column_by_name(name)) {
        Some(nanos) => {
            let time = CellValue::of(name, &**column, Some(&**nanos), row).json();
            serde_json::from_str(&time).unwrap_or(Value::Null)
        }
        None => json(&**column, row),
    }
}

/// A value that has parts.
fn json(column: &dyn Array, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    if let Some(list) = column.as_list_opt::<i32>() {
        let values = list.value(row);
        return (0..values.len()).map(|at| json(&*values, at)).collect();
    }
    if let Some(parts) = column.as_struct_opt() {
        let value = |(field, column): (&Arc<Field>, &ArrayRef)| match part(parts, field.name(), column, row) {
            Value::String(text) if field.name() == "attributes" => {
                (field.name().clone(), serde_json::from_str(&text).unwrap_or(Value::Null))
            }
            value => (field.name().clone(), value),
        };
        return Value::Object(parts.fields().iter().zip(parts.columns()).map(value).collect::<Map<_, _>>());
    }
    if let Some(bytes) = column.as_fixed_size_binary_opt() {
        return Value::String(bytes.value(row).iter().map(|byte| format!("{byte:02x}")).collect());
    }
    if let Some(texts) = column.as_string_view_opt() {
        return Value::String(texts.value(row).to_owned());
    }
    if let Some(text) = column.as_string_opt::<i32>() {
        return Value::String(text.value(row).to_owned());
    }
    serde_json::from_str(&CellValue::of("", column, None, row).json()).unwrap_or(Value::Null)
}

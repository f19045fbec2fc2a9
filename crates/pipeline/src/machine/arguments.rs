//! The arguments of functions, by type: what `pkg/ottl` calls getters.
//!
//! `text`, `int` and so on take values of that type alone. The `…_like` ones convert what they can, and return `None` for `nil`.

use super::Machine;
use super::render::Html;
use crate::memory::Slice;
use crate::ottl::program::{Argument, Expression, Path};
use crate::value::{Failure, Kind, Value};

const NO_CONVERSION: Failure = Failure::Invalid("the value cannot be converted");

/// The path of an argument that is changed.
///
/// # Errors
/// When it is no path, which the checker does not let through.
pub(crate) fn target(argument: &Argument) -> Result<&Path, Failure> {
    match argument {
        Argument::Target(path) | Argument::Value(Expression::Path(path)) => Ok(path),
        _ => Err(Failure::Invalid("expected a path")),
    }
}

/// The literal of an argument; `None` for one that is absent or no literal.
pub(crate) fn literal(arguments: &[Argument], at: usize) -> Option<Value> {
    match arguments.get(at) {
        Some(Argument::Value(Expression::Literal(value))) => Some(*value),
        _ => None,
    }
}

impl Machine<'_> {
    /// The value of an argument; `None` for one that is absent.
    pub(crate) fn argument(&mut self, argument: &Argument) -> Result<Option<Value>, Failure> {
        match argument {
            Argument::Value(expression) => self.value(expression).map(Some),
            Argument::Target(path) => self.get(path).map(Some),
            Argument::Values(elements) => self.list(elements).map(Some),
            Argument::Absent | Argument::Function(_) | Argument::Prepared(_) => Ok(None),
        }
    }

    /// The value of an argument; `nil` for one that is absent.
    #[inline]
    pub(crate) fn any(&mut self, argument: &Argument) -> Result<Value, Failure> {
        match argument {
            Argument::Value(expression) => self.value(expression),
            other => Ok(self.argument(other)?.unwrap_or(Value::Nil)),
        }
    }

    /// `StringGetter`.
    #[inline]
    pub(crate) fn text(&mut self, argument: &Argument) -> Result<Slice, Failure> {
        if let Argument::Value(Expression::Literal(Value::Text(text))) = argument {
            return Ok(*text);
        }
        match self.any(argument)? {
            Value::Text(text) => Ok(text),
            other => Err(Failure::Type { wanted: Kind::Text, found: other.kind() }),
        }
    }

    /// `StringLikeGetter`: numbers and booleans as JSON writes them, bytes as hexadecimal digits, maps and lists as JSON.
    pub(crate) fn text_like(&mut self, argument: &Argument) -> Result<Option<Slice>, Failure> {
        let value = self.any(argument)?;
        self.like_text(value)
    }

    /// The text of a value, as [`text_like`](Self::text_like) makes it.
    pub(crate) fn like_text(&mut self, value: Value) -> Result<Option<Slice>, Failure> {
        let mark = self.memory.mark();
        match value {
            Value::Nil => return Ok(None),
            Value::Text(text) => return Ok(Some(text)),
            Value::Bytes(bytes) => self.hex(bytes)?,
            other => self.json(other, Html::Escaped)?,
        }
        Ok(Some(self.memory.since(mark)))
    }

    /// `IntGetter`.
    pub(crate) fn int(&mut self, argument: &Argument) -> Result<i64, Failure> {
        match self.any(argument)? {
            Value::Int(number) => Ok(number),
            other => Err(Failure::Type { wanted: Kind::Int, found: other.kind() }),
        }
    }

    /// `IntLikeGetter`: decimal texts, doubles cut to integers, booleans as 0 and 1.
    pub(crate) fn int_like(&mut self, argument: &Argument) -> Result<Option<i64>, Failure> {
        Ok(Some(match self.any(argument)? {
            Value::Nil => return Ok(None),
            Value::Int(number) => number,
            Value::Double(number) => go_int(number),
            Value::Bool(value) => i64::from(value),
            Value::Text(text) => {
                let text = str::from_utf8(self.memory.get(text)).unwrap_or_default();
                text.parse().map_err(|_| Failure::Invalid("the text is no integer"))?
            }
            _ => return Err(NO_CONVERSION),
        }))
    }

    /// `FloatLikeGetter`: decimal texts, integers, booleans as 0 and 1.
    pub(crate) fn double_like(&mut self, argument: &Argument) -> Result<Option<f64>, Failure> {
        Ok(Some(match self.any(argument)? {
            Value::Nil => return Ok(None),
            Value::Double(number) => number,
            Value::Int(number) => number as f64,
            Value::Bool(value) => f64::from(u8::from(value)),
            Value::Text(text) => {
                let text = str::from_utf8(self.memory.get(text)).unwrap_or_default();
                go_double(text).ok_or(Failure::Invalid("the text is no number"))?
            }
            _ => return Err(NO_CONVERSION),
        }))
    }

    /// `BoolGetter`.
    pub(crate) fn bool(&mut self, argument: &Argument) -> Result<bool, Failure> {
        match self.any(argument)? {
            Value::Bool(value) => Ok(value),
            other => Err(Failure::Type { wanted: Kind::Bool, found: other.kind() }),
        }
    }

    /// `BoolLikeGetter`: numbers other than zero are true; texts as Go's `ParseBool` reads them.
    pub(crate) fn bool_like(&mut self, argument: &Argument) -> Result<Option<bool>, Failure> {
        Ok(Some(match self.any(argument)? {
            Value::Nil => return Ok(None),
            Value::Bool(value) => value,
            Value::Int(number) => number != 0,
            Value::Double(number) => number != 0.0,
            Value::Text(text) => match self.memory.get(text) {
                b"1" | b"t" | b"T" | b"true" | b"TRUE" | b"True" => true,
                b"0" | b"f" | b"F" | b"false" | b"FALSE" | b"False" => false,
                _ => return Err(Failure::Invalid("the text is no boolean")),
            },
            _ => return Err(NO_CONVERSION),
        }))
    }

    /// `ByteSliceLikeGetter`: the bytes of texts, numbers as eight bytes with the highest first.
    pub(crate) fn bytes_like(&mut self, argument: &Argument) -> Result<Option<Slice>, Failure> {
        Ok(Some(match self.any(argument)? {
            Value::Nil => return Ok(None),
            Value::Bytes(bytes) | Value::Text(bytes) => bytes,
            Value::Int(number) => self.memory.store(&number.to_be_bytes())?,
            Value::Double(number) => self.memory.store(&number.to_be_bytes())?,
            Value::Bool(value) => self.memory.store(&[u8::from(value)])?,
            _ => return Err(NO_CONVERSION),
        }))
    }

    /// `PMapGetter`.
    pub(crate) fn map_content(&mut self, argument: &Argument) -> Result<Slice, Failure> {
        match self.any(argument)? {
            Value::Map(map) => Ok(map),
            other => Err(Failure::Type { wanted: Kind::Map, found: other.kind() }),
        }
    }

    /// `PSliceGetter`.
    pub(crate) fn list_content(&mut self, argument: &Argument) -> Result<Slice, Failure> {
        match self.any(argument)? {
            Value::List(list) => Ok(list),
            other => Err(Failure::Type { wanted: Kind::List, found: other.kind() }),
        }
    }

    /// `TimeGetter`: nanoseconds since the Unix epoch.
    pub(crate) fn time(&mut self, argument: &Argument) -> Result<i64, Failure> {
        match self.any(argument)? {
            Value::Time(time) => Ok(time),
            other => Err(Failure::Type { wanted: Kind::Time, found: other.kind() }),
        }
    }

    /// `DurationGetter`: nanoseconds.
    pub(crate) fn duration(&mut self, argument: &Argument) -> Result<i64, Failure> {
        match self.any(argument)? {
            Value::Duration(duration) => Ok(duration),
            other => Err(Failure::Type { wanted: Kind::Duration, found: other.kind() }),
        }
    }
}

/// `int64(number)` of Go on amd64: what does not fit is the least integer.
pub(crate) fn go_int(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// `strconv.ParseFloat` for decimal numbers; hexadecimal ones and underscores are refused.
pub(crate) fn go_double(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let spelled = text.trim_start_matches(['+', '-']);
    // An overflow is an error in Go.
    (number.is_finite() || spelled.starts_with(['i', 'I', 'n', 'N'])).then_some(number)
}

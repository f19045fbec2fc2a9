//! Literals: which expressions are, and which parameters accept them, as `pkg/ottl` evaluates them when it loads.

use super::super::literals::Literals;
use super::super::paths;
use super::super::program::Expression;
use super::super::signature::Type;
use crate::value::{Kind, Value};

/// Whether the value is known when the configuration is read.
pub(super) fn is(expression: &Expression) -> bool {
    match expression {
        Expression::Literal(_) => true,
        Expression::List(values) => values.iter().all(is),
        Expression::Map(entries) => entries.iter().all(|(_, value)| is(value)),
        _ => false,
    }
}

/// The kind of the expression's values; `None` when that depends on the record.
pub(super) fn kind(expression: &Expression) -> Option<Kind> {
    match expression {
        Expression::Literal(value) => Some(value.kind()),
        Expression::Path(path) if path.keys.is_empty() => {
            paths::of(path.context).find(|known| known.field == path.field).and_then(|known| known.kind)
        }
        Expression::Call(call) => match call.function.returns {
            Type::Text => Some(Kind::Text),
            Type::Int => Some(Kind::Int),
            Type::Double => Some(Kind::Double),
            Type::Bool => Some(Kind::Bool),
            Type::Map => Some(Kind::Map),
            Type::List => Some(Kind::List),
            Type::Time => Some(Kind::Time),
            Type::Duration => Some(Kind::Duration),
            Type::Id => Some(Kind::Id),
            _ => None,
        },
        Expression::List(_) => Some(Kind::List),
        Expression::Map(_) => Some(Kind::Map),
        Expression::Path(_) | Expression::Index(..) | Expression::Math(..) | Expression::Negative(_) => None,
    }
}

/// Whether a parameter accepts a literal.
///
/// # Errors
/// Why not, as the end of a sentence about the parameter.
pub(super) fn fits(accepts: Type, expression: &Expression, literals: &Literals) -> Result<(), String> {
    let value = match expression {
        Expression::Literal(value) => *value,
        Expression::List(_) => return collection(accepts, expression, Kind::List),
        _ => return collection(accepts, expression, Kind::Map),
    };
    let wanted = |kind: Kind| Err(format!("has to be {}, not {}", kind.name(), value.kind().name()));
    let like = |kind: Kind| Err(format!("cannot be made {} of {}", kind.name(), value.kind().name()));
    let text = match value {
        Value::Text(slice) => std::str::from_utf8(literals.get(slice)).unwrap_or_default(),
        _ => "",
    };
    let parsed = |valid: bool, kind: Kind| match valid {
        true => Ok(()),
        false => Err(format!("cannot be made {} of {text:?}", kind.name())),
    };
    match (accepts, value) {
        (Type::Text, Value::Text(_)) | (Type::Int, Value::Int(_)) => Ok(()),
        (Type::Double, Value::Double(_)) | (Type::Bool, Value::Bool(_)) => Ok(()),
        (Type::Text, _) => wanted(Kind::Text),
        (Type::Int, _) => wanted(Kind::Int),
        (Type::Double, _) => wanted(Kind::Double),
        (Type::Bool, _) => wanted(Kind::Bool),
        (Type::Map, _) => wanted(Kind::Map),
        (Type::List | Type::Elements | Type::TextElements, _) => wanted(Kind::List),
        (Type::Time, _) => wanted(Kind::Time),
        (Type::Duration, _) => wanted(Kind::Duration),
        (Type::IntLike, Value::Text(_)) => parsed(text.parse::<i64>().is_ok(), Kind::Int),
        (Type::DoubleLike, Value::Text(_)) => parsed(is_double(text), Kind::Double),
        (Type::BoolLike, Value::Text(_)) => parsed(is_bool(text), Kind::Bool),
        (Type::IntLike, Value::Bytes(_)) => like(Kind::Int),
        (Type::DoubleLike, Value::Bytes(_)) => like(Kind::Double),
        (Type::BoolLike, Value::Bytes(_)) => like(Kind::Bool),
        _ => Ok(()),
    }
}

fn collection(accepts: Type, expression: &Expression, kind: Kind) -> Result<(), String> {
    match (accepts, kind) {
        (Type::Any | Type::TextLike, _) | (Type::Map, Kind::Map) => Ok(()),
        // A list getter takes no maps in a literal list.
        (Type::List, Kind::List) if has_map(expression) => {
            Err("cannot have maps in a literal list".to_owned())
        }
        (Type::List, Kind::List) => Ok(()),
        (Type::Map, _) => Err(format!("has to be {}, not {}", Kind::Map.name(), kind.name())),
        (Type::List, _) => Err(format!("has to be {}, not {}", Kind::List.name(), kind.name())),
        _ => Err(format!("cannot be {}", kind.name())),
    }
}

/// Whether a list has a map somewhere within.
pub(super) fn has_map(expression: &Expression) -> bool {
    match expression {
        Expression::Map(_) => true,
        Expression::List(values) => values.iter().any(has_map),
        _ => false,
    }
}

/// As `strconv.ParseBool`.
fn is_bool(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True" | "0" | "f" | "F" | "false" | "FALSE" | "False")
}

/// As `strconv.ParseFloat`, without its hexadecimal numbers.
fn is_double(text: &str) -> bool {
    let infinite = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf");
    text.parse::<f64>().is_ok_and(|value| infinite || !value.is_infinite())
}

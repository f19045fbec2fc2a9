//! `ParseSeverity`: the name of a log level from what a source calls it.

use super::{Prepared, all, converter, required};
use crate::memory::Slice;
use crate::ottl::program::{Argument, Expression};
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Kind, Value};
use std::ops::RangeInclusive;

pub(super) static CONVERTERS: &[&Signature] = &[&PARSE_SEVERITY];

/// The levels of a mapping, in its order, which Go does not keep.
#[derive(Debug)]
pub(crate) struct Severities(Box<[(Slice, Box<[Criterion]>)]>);

/// Condition for a value to belong to a level.
#[derive(Debug)]
enum Criterion {
    Equals(Slice),
    Within(RangeInclusive<i64>),
}

/// The level whose criteria have the target: a text among `equals`, or an integer in a `range`. No output.
static PARSE_SEVERITY: Signature = Signature {
    complete: |arguments, constants, _| {
        let Some(Argument::Value(Expression::Map(levels))) = arguments.get(1) else {
            return Err((1, "the mapping has to be a literal map".into()));
        };
        let severities = compile(levels, constants).map_err(|message| (1, message))?;
        if let Some(mapping) = arguments.get_mut(1) {
            *mapping = Argument::Prepared(Prepared::Severities(severities));
        }
        Ok(())
    },
    ..converter(
        "ParseSeverity",
        &[required("target", Type::Any), required("mapping", Type::Map)],
        Type::Text,
        |machine, arguments| {
            let [target, mapping] = all(arguments)?;
            let Argument::Prepared(Prepared::Severities(Severities(levels))) = mapping else {
                return Err(Failure::Invalid("the mapping is not a literal"));
            };
            let target = machine.any(target)?;
            if !matches!(target, Value::Text(_) | Value::Int(_)) {
                return Err(Failure::Type { wanted: Kind::Text, found: target.kind() });
            }
            let holds = |criterion: &Criterion| match (criterion, target) {
                (Criterion::Equals(text), Value::Text(target)) => {
                    machine.memory.get(*text) == machine.memory.get(target)
                }
                (Criterion::Within(range), Value::Int(target)) => range.contains(&target),
                _ => false,
            };
            let level = levels.iter().find(|(_, criteria)| criteria.iter().any(holds));
            let (level, _) = level.ok_or(Failure::Invalid("no level of the mapping has this value"))?;
            Ok(Value::Text(*level))
        },
    )
};

fn compile(levels: &[(Slice, Expression)], constants: &[u8]) -> Result<Severities, String> {
    let mut compiled = Vec::new();
    for (level, criteria) in levels {
        let Expression::List(criteria) = criteria else {
            return Err("the criteria of a level are a list".into());
        };
        let mut all = Vec::new();
        for criterion in criteria {
            let Expression::Map(parts) = criterion else { return Err("a criterion is a map".into()) };
            for (name, part) in parts {
                match text(*name, constants) {
                    "equals" => equals(part, &mut all)?,
                    "range" => all.push(Criterion::Within(range(part, constants)?)),
                    _ => {}
                }
            }
        }
        compiled.push((*level, all.into()));
    }
    Ok(Severities(compiled.into()))
}

fn equals(part: &Expression, all: &mut Vec<Criterion>) -> Result<(), String> {
    const WRONG: &str = "`equals` is a list of strings";
    let Expression::List(texts) = part else { return Err(WRONG.into()) };
    for text in texts {
        let Expression::Literal(Value::Text(text)) = text else { return Err(WRONG.into()) };
        all.push(Criterion::Equals(*text));
    }
    Ok(())
}

fn range(part: &Expression, constants: &[u8]) -> Result<RangeInclusive<i64>, String> {
    match part {
        Expression::Literal(Value::Text(name)) => match text(*name, constants) {
            "2xx" => Ok(200..=299),
            "3xx" => Ok(300..=399),
            "4xx" => Ok(400..=499),
            "5xx" => Ok(500..=599),
            name => Err(format!("unknown range `{name}`: there are 2xx, 3xx, 4xx and 5xx")),
        },
        Expression::Map(ends) => {
            let end = |wanted: &str| {
                let end = ends.iter().find(|(name, _)| text(*name, constants) == wanted);
                match end {
                    Some((_, Expression::Literal(Value::Int(end)))) => Ok(*end),
                    Some(_) => Err(format!("`{wanted}` of a range is an integer")),
                    None => Err(format!("a range needs `{wanted}`")),
                }
            };
            Ok(end("min")?..=end("max")?)
        }
        _ => Err("a range is a map with `min` and `max`, or one of 2xx, 3xx, 4xx and 5xx".into()),
    }
}

fn text(slice: Slice, constants: &[u8]) -> &str {
    let start = slice.start as usize;
    str::from_utf8(constants.get(start..start + slice.len as usize).unwrap_or_default()).unwrap_or_default()
}

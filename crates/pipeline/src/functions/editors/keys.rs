//! Editors that remove keys: `delete_key`, `delete_matching_keys`, `keep_keys`, `keep_matching_keys`, `limit`.

use super::{editor, required, run};
use crate::any_value::Elements;
use crate::functions::Prepared;
use crate::key_index::Keyed;
use crate::machine::Machine;
use crate::machine::arguments::target;
use crate::memory::Slice;
use crate::ottl::program::{Argument, Expression};
use crate::ottl::signature::{Complete, Parameter, Prepare, Signature, Type};
use crate::regex::Regex;
use crate::value::{Failure, Kind, Value};

/// `delete_key(target, key)`.
pub(super) static DELETE_KEY: Signature = editor(
    "delete_key",
    &[required("target", Type::MapTarget), required("key", Type::Text)],
    |machine, arguments| run(machine, arguments, delete_key),
);

fn delete_key(machine: &mut Machine<'_>, [map, key]: &[Argument; 2]) -> Result<(), Failure> {
    let key = machine.text(key)?;
    machine.edit_map(target(map)?, |machine, table| {
        table.remove(&machine.memory, key);
        Ok(())
    })
}

/// `delete_matching_keys(target, pattern)`.
pub(super) static DELETE_MATCHING_KEYS: Signature = Signature {
    prepare: PREPARE_PATTERN,
    complete: LITERAL_PATTERN,
    ..editor("delete_matching_keys", MATCHING, |machine, arguments| {
        run(machine, arguments, |machine, [map, pattern]| retain_matching(machine, map, pattern, false))
    })
};

/// `keep_matching_keys(target, pattern)`.
pub(super) static KEEP_MATCHING_KEYS: Signature = Signature {
    prepare: PREPARE_PATTERN,
    complete: LITERAL_PATTERN,
    ..editor("keep_matching_keys", MATCHING, |machine, arguments| {
        run(machine, arguments, |machine, [map, pattern]| retain_matching(machine, map, pattern, true))
    })
};

const MATCHING: &[Parameter] = &[required("target", Type::MapTarget), required("pattern", Type::Text)];

/// Compiles the second argument.
pub(super) const PREPARE_PATTERN: Prepare = |position, literal, regexes| {
    (position == 1).then(|| regexes.compile(literal).map(Prepared::Pattern).map_err(|error| error.message))
};

const LITERAL_PATTERN: Complete = |arguments, _, _| match arguments.get(1) {
    Some(Argument::Prepared(Prepared::Pattern(_))) => Ok(()),
    _ => Err((1, super::replacement::DYNAMIC_PATTERN.into())),
};

fn retain_matching(
    machine: &mut Machine<'_>,
    map: &Argument,
    pattern: &Argument,
    keep: bool,
) -> Result<(), Failure> {
    let regex = pattern_of(pattern)?;
    machine.edit_map(target(map)?, |machine, table| {
        let Machine { memory, regexes, .. } = machine;
        table.retain(|entry| regex.is_match(regexes, memory.get(entry.key)) == keep);
        Ok(())
    })
}

/// The regular expression that an argument was compiled to.
pub(super) fn pattern_of(argument: &Argument) -> Result<&Regex, Failure> {
    match argument {
        Argument::Prepared(Prepared::Pattern(regex)) => Ok(regex),
        _ => Err(Failure::Invalid(super::replacement::DYNAMIC_PATTERN)),
    }
}

/// `keep_keys(target, keys)`.
pub(super) static KEEP_KEYS: Signature = editor(
    "keep_keys",
    &[required("target", Type::MapTarget), required("keys", Type::TextElements)],
    |machine, arguments| run(machine, arguments, keep_keys),
);

fn keep_keys(machine: &mut Machine<'_>, [map, keys]: &[Argument; 2]) -> Result<(), Failure> {
    let map = target(map)?;
    with_texts(machine, keys, |machine, base| {
        machine.edit_map(map, |machine, table| {
            machine.with_index(|machine, index| {
                let keys = machine.values_since(base);
                table.retain(|entry| index.find(&machine.memory, keys, entry.key).is_some());
                Ok(())
            })
        })
    })
}

/// `limit(target, limit, priority_keys)`: keeps the priority keys and, up to the limit, the first others.
pub(super) static LIMIT: Signature = Signature {
    complete: |arguments, _, _| {
        let Some(Argument::Value(Expression::Literal(Value::Int(limit)))) = arguments.get(1) else {
            return Ok(());
        };
        let keys = match arguments.get(2) {
            Some(Argument::Values(keys)) => keys.len(),
            _ => 0,
        };
        match usize::try_from(*limit) {
            Err(_) => Err((1, "the limit is negative".into())),
            Ok(limit) if limit < keys => {
                Err((1, format!("the limit is less than the number of priority keys, {keys}")))
            }
            Ok(_) => Ok(()),
        }
    },
    ..editor(
        "limit",
        &[
            required("target", Type::MapTarget),
            required("limit", Type::LiteralInt),
            required("priority_keys", Type::LiteralTexts),
        ],
        |machine, arguments| run(machine, arguments, limit),
    )
};

fn limit(machine: &mut Machine<'_>, [map, limit, keys]: &[Argument; 3]) -> Result<(), Failure> {
    let map = target(map)?;
    let limit = usize::try_from(machine.int(limit)?).unwrap_or(0);
    with_texts(machine, keys, |machine, base| {
        machine.edit_map(map, |machine, table| {
            if table.len() <= limit {
                return Ok(());
            }
            machine.with_index(|machine, index| {
                let (memory, keys) = (&machine.memory, machine.values_since(base));
                let present = keys.iter().filter(|key| table.find(memory, key.key()).is_some());
                let mut count = present.count();
                table.retain(|entry| {
                    if index.find(memory, keys, entry.key).is_some() {
                        return true;
                    }
                    count += 1;
                    count <= limit
                });
                Ok(())
            })
        })
    })
}

/// Puts the texts of a list onto the stack, from place `base`, for `finish`.
pub(super) fn with_texts(
    machine: &mut Machine<'_>,
    texts: &Argument,
    finish: impl FnOnce(&mut Machine<'_>, usize) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let none: &[Expression] = &[];
    let (expressions, list) = match texts {
        Argument::Values(expressions) => (&**expressions, None),
        Argument::Absent => (none, None),
        list => (none, Some(machine.list_content(list)?)),
    };
    machine
        .with_values(expressions.iter(), |machine, base| {
            let mut elements = Elements::new(list.unwrap_or(Slice::EMPTY));
            while let Some(element) = elements.next(&machine.memory) {
                machine.push_value(element)?;
            }
            for value in machine.values_since(base) {
                if !matches!(value, Value::Text(_)) {
                    return Err(Failure::Type { wanted: Kind::Text, found: value.kind() });
                }
            }
            finish(machine, base).map(|()| Value::Nil)
        })
        .map(drop)
}

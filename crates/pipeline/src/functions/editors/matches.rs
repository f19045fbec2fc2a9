//! `replace_match` and `replace_all_matches`, whose patterns are globs.

use super::replacement::{Wrapping, check_function, wrapping};
use super::{editor, glob, keys::pattern_of, optional, required, run};
use crate::functions::Prepared;
use crate::machine::Machine;
use crate::machine::arguments::target;
use crate::memory::Slice;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Complete, Parameter, Prepare, Signature, Type};
use crate::regex::Mode;
use crate::value::{Failure, Value};

/// `replace_match(target, pattern, replacement, function, replacement_format)`.
pub(super) static REPLACE_MATCH: Signature = Signature {
    prepare: PREPARE_GLOB,
    complete: COMPLETE_GLOB,
    ..editor("replace_match", &parameters(Type::Target), |machine, arguments| {
        run(machine, arguments, replace_match)
    })
};

/// `replace_all_matches(target, pattern, replacement, function, replacement_format)`.
pub(super) static REPLACE_ALL_MATCHES: Signature = Signature {
    prepare: PREPARE_GLOB,
    complete: COMPLETE_GLOB,
    ..editor("replace_all_matches", &parameters(Type::MapTarget), |machine, arguments| {
        run(machine, arguments, replace_all_matches)
    })
};

const fn parameters(target: Type) -> [Parameter; 5] {
    [
        required("target", target),
        required("pattern", Type::Text),
        required("replacement", Type::Text),
        optional("function", Type::Function),
        optional("replacement_format", Type::Text),
    ]
}

const PREPARE_GLOB: Prepare = |position, literal, regexes| {
    if position != 1 {
        return None;
    }
    let regex = glob::to_regex(literal)
        .and_then(|regex| regexes.compile_as(&regex, Mode::Whole).map_err(|error| error.message));
    Some(regex.map(Prepared::Pattern))
};

const COMPLETE_GLOB: Complete = |arguments, _, _| match arguments.get(1) {
    Some(Argument::Prepared(Prepared::Pattern(_))) => check_function(arguments, 3),
    _ => Err((1, super::replacement::DYNAMIC_PATTERN.into())),
};

fn replace_match(
    machine: &mut Machine<'_>,
    [path, pattern, with, function, format]: &[Argument; 5],
) -> Result<(), Failure> {
    let regex = pattern_of(pattern)?;
    let path = target(path)?;
    let value = machine.get(path)?;
    let wrapping = wrapping(machine, function, format)?;
    let text = whole(machine, with, wrapping.as_ref())?;
    let Value::Text(old) = value else { return Ok(()) };
    if regex.is_match(machine.regexes, machine.memory.get(old)) {
        return machine.set(path, Value::Text(text));
    }
    Ok(())
}

fn replace_all_matches(
    machine: &mut Machine<'_>,
    [map, pattern, with, function, format]: &[Argument; 5],
) -> Result<(), Failure> {
    let regex = pattern_of(pattern)?;
    let wrapping = wrapping(machine, function, format)?;
    let text = whole(machine, with, wrapping.as_ref())?;
    machine.edit_map(target(map)?, |machine, table| {
        let Machine { memory, regexes, .. } = machine;
        for at in 0..table.len() {
            let value = table.entries().get(at).map(|entry| entry.value);
            if let Some(Value::Text(old)) = value
                && regex.is_match(regexes, memory.get(old))
            {
                table.set_at(memory, at, Value::Text(text));
            }
        }
        Ok(())
    })
}

/// The replacement of a whole text.
fn whole(
    machine: &mut Machine<'_>,
    with: &Argument,
    wrapping: Option<&Wrapping<'_>>,
) -> Result<Slice, Failure> {
    let text = machine.text(with)?;
    match wrapping {
        Some(wrapping) => wrapping.apply(machine, text),
        None => Ok(text),
    }
}

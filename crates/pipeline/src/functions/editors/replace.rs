//! `replace_pattern` and `replace_all_patterns`.

use super::keys::PREPARE_PATTERN;
use super::replacement::{self, replaced, replacement, wrapping};
use super::{editor, optional, required, run};
use crate::functions::Prepared;
use crate::machine::Machine;
use crate::machine::arguments::target;
use crate::memory::Slice;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Value};

/// `replace_pattern(target, regex_pattern, replacement, function, replacement_format)`.
pub(super) static REPLACE_PATTERN: Signature = Signature {
    prepare: PREPARE_PATTERN,
    complete: |arguments, constants, _| replacement::complete(arguments, constants, 1),
    ..editor(
        "replace_pattern",
        &[
            required("target", Type::Target),
            required("regex_pattern", Type::Text),
            required("replacement", Type::Text),
            optional("function", Type::Function),
            optional("replacement_format", Type::Text),
        ],
        |machine, arguments| run(machine, arguments, replace_pattern),
    )
};

fn replace_pattern(
    machine: &mut Machine<'_>,
    [path, pattern, with, function, format]: &[Argument; 5],
) -> Result<(), Failure> {
    let path = target(path)?;
    let value = machine.get(path)?;
    if value == Value::Nil {
        return Ok(());
    }
    let with = replacement(machine, with)?;
    let Value::Text(text) = value else { return Ok(()) };
    let wrapping = wrapping(machine, function, format)?;
    match replaced(machine, text, pattern, with, wrapping.as_ref())? {
        Some(text) => machine.set(path, Value::Text(text)),
        None => Ok(()),
    }
}

/// `replace_all_patterns(target, mode, regex_pattern, replacement, function, replacement_format)`.
///
/// A key whose function fails stays, where Go loses it with its value.
pub(super) static REPLACE_ALL_PATTERNS: Signature = Signature {
    prepare: |position, literal, regexes| match position {
        1 if literal != "key" && literal != "value" => Some(Err("the mode is `key` or `value`".into())),
        2 => Some(regexes.compile(literal).map(Prepared::Pattern).map_err(|error| error.message)),
        _ => None,
    },
    complete: |arguments, constants, _| replacement::complete(arguments, constants, 2),
    ..editor(
        "replace_all_patterns",
        &[
            required("target", Type::MapTarget),
            required("mode", Type::LiteralText),
            required("regex_pattern", Type::Text),
            required("replacement", Type::Text),
            optional("function", Type::Function),
            optional("replacement_format", Type::Text),
        ],
        |machine, arguments| run(machine, arguments, replace_all_patterns),
    )
};

fn replace_all_patterns(
    machine: &mut Machine<'_>,
    [map, mode, pattern, with, function, format]: &[Argument; 6],
) -> Result<(), Failure> {
    let with = replacement(machine, with)?;
    let wrapping = wrapping(machine, function, format)?;
    let mode = machine.text(mode)?;
    let is_keys = machine.memory.get(mode) == b"key";
    let text_or_same = |machine: &mut Machine<'_>, text: Slice| {
        match replaced(machine, text, pattern, with, wrapping.as_ref()) {
            Err(Failure::TooLarge) => Err(Failure::TooLarge),
            // A text that the function does not take stays.
            Err(_) if wrapping.is_some() => Ok(None),
            result => result,
        }
    };
    machine.edit_map(target(map)?, |machine, table| {
        if !is_keys {
            for at in 0..table.len() {
                let Some(Value::Text(text)) = table.entries().get(at).map(|entry| entry.value) else {
                    continue;
                };
                if let Some(text) = text_or_same(machine, text)? {
                    table.set_at(&machine.memory, at, Value::Text(text));
                }
            }
            return Ok(());
        }
        let mut any = false;
        machine.with_spare(|machine, renamed| {
            machine.with_index(|machine, index| {
                for entry in table.entries() {
                    let new = text_or_same(machine, entry.key)?;
                    any |= new.is_some();
                    let (key, value) = (new.unwrap_or(entry.key), entry.value);
                    match index.find(&machine.memory, renamed.entries(), key) {
                        Some(at) => renamed.set_at(&machine.memory, at, value),
                        None => renamed.add_new(key, value)?,
                    }
                }
                Ok(())
            })?;
            // Without a match, duplicate keys stay as they are too.
            if !any {
                return Ok(());
            }
            table.replace(&machine.memory, renamed.entries().iter().copied())
        })
    })
}

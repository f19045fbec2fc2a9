//! `redact`, which is not in the Collector: what a `redact` step runs on each map of attributes and each body.

use super::keys::{is_among, with_texts};
use super::{editor, optional, required, run};
use crate::any_value::{self, Elements, Pairs};
use crate::functions::Prepared;
use crate::machine::Machine;
use crate::machine::arguments::target;
use crate::memory::{Memory, Slice};
use crate::ottl::field::Field;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::regex::{Caches, Regex};
use crate::table::MapTable;
use crate::value::{Failure, Value};
use tidegate_wire::output::Output;

/// `redact(target, mask, values, keys, allowed_keys, ignored_keys)`.
///
/// - Keys of a map that are neither allowed nor ignored are removed, where `allowed_keys` is there.
/// - The value of a key that the regular expression `keys` matches becomes the mask, also in nested maps.
/// - Each match of the regular expression `values` in a text becomes the mask, also in nested maps and lists. An integer in
///   whose digits it matches becomes a text.
/// - Ignored keys of the map itself, and what is in them, stay as they are.
///
/// Output: the value, and for each match the mask.
pub(super) static REDACT: Signature = Signature {
    prepare: |position, literal, regexes| {
        let compiles = matches!(position, 2 | 3);
        compiles.then(|| regexes.compile(literal).map(Prepared::Pattern).map_err(|error| error.message))
    },
    complete: |arguments, _, _| {
        let is_dynamic = |at: &usize| matches!(arguments.get(*at), Some(Argument::Value(_)));
        match [2, 3].iter().find(|at| is_dynamic(at)) {
            Some(at) => Err((*at, super::replacement::DYNAMIC_PATTERN.into())),
            None => Ok(()),
        }
    },
    ..editor(
        "redact",
        &[
            required("target", Type::Target),
            required("mask", Type::LiteralText),
            optional("values", Type::Text),
            optional("keys", Type::Text),
            optional("allowed_keys", Type::Values),
            optional("ignored_keys", Type::Values),
        ],
        |machine, arguments| run(machine, arguments, redact),
    )
};

/// The deepest nesting of a value that is looked through.
const DEEPEST: usize = 128;
/// The digits of the longest integer, with its sign.
const DIGITS: usize = 20;

#[derive(Clone, Copy)]
struct Rules<'p> {
    mask: Slice,
    values: Option<&'p Regex>,
    keys: Option<&'p Regex>,
}

fn redact(
    machine: &mut Machine<'_>,
    [path, mask, values, keys, allowed, ignored]: &[Argument; 6],
) -> Result<(), Failure> {
    let path = target(path)?;
    let rules = Rules { mask: machine.text(mask)?, values: pattern(values), keys: pattern(keys) };
    let is_table = matches!(path.field, Field::Attributes | Field::Cache | Field::Metadata);
    if !(is_table && path.keys.is_empty()) {
        match machine.get(path)? {
            Value::Map(_) => {}
            value => {
                return match redacted(machine, value, rules, DEEPEST)? {
                    Some(value) => machine.set(path, value),
                    None => Ok(()),
                };
            }
        }
    }
    let is_allowed_alone = !matches!(allowed, Argument::Absent);
    with_texts(machine, ignored, |machine, first_ignored| {
        with_texts(machine, allowed, |machine, first_allowed| {
            machine.edit_map(path, |machine, table| {
                if is_allowed_alone {
                    let (memory, keys) = (&machine.memory, machine.values_since(first_ignored));
                    table.retain(|entry| is_among(memory, entry.key, keys));
                }
                redact_table(machine, table, rules, first_ignored..first_allowed)
            })
        })
    })
}

/// Redacts the entries of a table but those whose keys are on the stack in the places `ignored`.
fn redact_table(
    machine: &mut Machine<'_>,
    table: &mut MapTable,
    rules: Rules<'_>,
    ignored: std::ops::Range<usize>,
) -> Result<(), Failure> {
    for at in 0..table.len() {
        let Some(entry) = table.entries().get(at).copied() else { continue };
        let keys = machine.values_since(ignored.start).get(..ignored.len()).unwrap_or_default();
        if is_among(&machine.memory, entry.key, keys) {
            continue;
        }
        if let Some(value) = redacted_pair(machine, entry.key, entry.value, rules, DEEPEST)? {
            table.set_at(&machine.memory, at, value);
        }
    }
    Ok(())
}

fn pattern(argument: &Argument) -> Option<&Regex> {
    match argument {
        Argument::Prepared(Prepared::Pattern(regex)) => Some(regex),
        _ => None,
    }
}

/// The value of a key; `None` if it stays.
fn redacted_pair(
    machine: &mut Machine<'_>,
    key: Slice,
    value: Value,
    rules: Rules<'_>,
    levels: usize,
) -> Result<Option<Value>, Failure> {
    let Machine { memory, regexes, .. } = &mut *machine;
    if rules.keys.is_some_and(|keys| keys.is_match(regexes, memory.get(key))) {
        return Ok(Some(Value::Text(rules.mask)));
    }
    redacted(machine, value, rules, levels)
}

/// The value with all matches masked; `None` if there are none.
fn redacted(
    machine: &mut Machine<'_>,
    value: Value,
    rules: Rules<'_>,
    levels: usize,
) -> Result<Option<Value>, Failure> {
    match value {
        Value::Text(text) => Ok(masked(machine, text, rules)?.map(Value::Text)),
        Value::Int(number) => {
            let mark = machine.memory.mark();
            let digits = digits(&mut machine.memory, number)?;
            let masked = masked(machine, digits, rules)?;
            if masked.is_none() {
                machine.memory.release(mark);
            }
            Ok(masked.map(Value::Text))
        }
        Value::Map(_) | Value::List(_) if levels == 0 => {
            Err(Failure::Invalid("the value is nested too deeply"))
        }
        Value::Map(map) => {
            let mut pairs = Pairs::new(map);
            let next = |machine: &mut Machine<'_>| {
                let Some(pair) = pairs.next(&machine.memory) else { return Ok(None) };
                let new = redacted_pair(machine, pair.key, pair.value, rules, levels - 1)?;
                Ok(Some((pair.value, new)))
            };
            rebuilt(machine, next, |memory, values| {
                let mut pairs = Pairs::new(map);
                let mut values = values.iter();
                while let (Some(pair), Some(value)) = (pairs.next(memory), values.next()) {
                    any_value::write_pair(1, pair.key, *value, memory)?;
                }
                Ok(())
            })
            .map(|content| content.map(Value::Map))
        }
        Value::List(list) => {
            let mut elements = Elements::new(list);
            let next = |machine: &mut Machine<'_>| {
                let Some(element) = elements.next(&machine.memory) else { return Ok(None) };
                Ok(Some((element, redacted(machine, element, rules, levels - 1)?)))
            };
            let write = |memory: &mut Memory<'_>, values: &[Value]| {
                values.iter().try_for_each(|value| any_value::write_element(*value, memory))
            };
            rebuilt(machine, next, write).map(|content| content.map(Value::List))
        }
        _ => Ok(None),
    }
}

/// The content of a collection whose values come from `next`, with what each becomes; `None` if all stay.
fn rebuilt(
    machine: &mut Machine<'_>,
    mut next: impl FnMut(&mut Machine<'_>) -> Result<Option<(Value, Option<Value>)>, Failure>,
    write: impl FnOnce(&mut Memory<'_>, &[Value]) -> Result<(), Failure>,
) -> Result<Option<Slice>, Failure> {
    let (mut content, mut is_changed) = (None, false);
    machine.with_values([].iter(), |machine, base| {
        while let Some((old, new)) = next(machine)? {
            is_changed |= new.is_some();
            machine.push_value(new.unwrap_or(old))?;
        }
        if is_changed {
            content = Some(machine.build_of_values(base, write)?);
        }
        Ok(Value::Nil)
    })?;
    Ok(content)
}

/// `text` with every match of the pattern for values masked; `None` if there is none. A match of no bytes is none.
fn masked(machine: &mut Machine<'_>, text: Slice, rules: Rules<'_>) -> Result<Option<Slice>, Failure> {
    let Some(regex) = rules.values else { return Ok(None) };
    let Machine { memory, regexes, .. } = machine;
    let Some(first) = next_match(regex, regexes, memory.get(text), 0) else { return Ok(None) };
    memory
        .build(|memory| {
            let (contents, mut room) = memory.split();
            let (haystack, mask) = (contents.get(text), contents.get(rules.mask));
            let (mut from, mut found) = (0, Some(first));
            while let Some(range) = found {
                room.put(haystack.get(from..range.start).unwrap_or_default())?;
                room.put(mask)?;
                from = range.end;
                found = next_match(regex, regexes, haystack, from);
            }
            Ok(room.put(haystack.get(from..).unwrap_or_default())?)
        })
        .map(Some)
}

fn next_match(
    regex: &Regex,
    caches: &mut Caches,
    haystack: &[u8],
    mut at: usize,
) -> Option<std::ops::Range<usize>> {
    loop {
        let found = regex.find_at(caches, haystack, at)?;
        if !found.is_empty() {
            return Some(found);
        }
        at = found.end + 1;
    }
}

fn digits(memory: &mut Memory<'_>, number: i64) -> Result<Slice, Failure> {
    let (mut digits, mut rest) = ([0; DIGITS], number.unsigned_abs());
    let mut at = DIGITS;
    loop {
        at -= 1;
        // A decimal digit.
        digits.get_mut(at).into_iter().for_each(|digit| *digit = b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let sign: &[u8] = if number < 0 { b"-" } else { b"" };
    memory.build(|memory| {
        memory.push(sign)?;
        memory.push(digits.get(at..).unwrap_or_default())
    })
}

//! `redact`, which is not in the Collector: what a `redact` step runs on each map of attributes and each body.

use super::keys::with_texts;
use super::{editor, optional, required, run};
use crate::any_value::{self, Elements, Pairs};
use crate::functions::Prepared;
use crate::functions::encoded::{ARRAY, ELEMENT, KEY, MAP, Opening, STRING, VALUE, close, open};
use crate::key_index::KeyIndex;
use crate::machine::Machine;
use crate::machine::arguments::target;
use crate::memory::{Mark, Slice};
use crate::ottl::field::Field;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::regex::{Budget, Caches, Regex};
use crate::table::MapTable;
use crate::value::{Failure, Value};
use tidegate_wire::output::{Full, Output};

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
        let is_by_key = !matches!((allowed, ignored), (Argument::Absent, Argument::Absent));
        match machine.get(path)? {
            Value::Map(_) if is_by_key => {}
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
                machine.with_index(|machine, index| {
                    if is_allowed_alone {
                        let (memory, keys) = (&machine.memory, machine.values_since(first_ignored));
                        table.retain(|entry| index.find(memory, keys, entry.key).is_some());
                        index.begin();
                    }
                    redact_table(machine, table, rules, index, first_ignored..first_allowed)
                })
            })
        })
    })
}

/// Redacts the entries of a table but those whose keys are on the stack in the places `ignored`.
fn redact_table(
    machine: &mut Machine<'_>,
    table: &mut MapTable,
    rules: Rules<'_>,
    index: &mut KeyIndex,
    ignored: std::ops::Range<usize>,
) -> Result<(), Failure> {
    for at in 0..table.len() {
        let Some(entry) = table.entries().get(at).copied() else { continue };
        let keys = machine.values_since(ignored.start).get(..ignored.len()).unwrap_or_default();
        if index.find(&machine.memory, keys, entry.key).is_some() {
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
    if is_masked(machine, key, rules) {
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
    let mark = machine.memory.mark();
    if !has_match(machine, value, rules, levels)? {
        return Ok(None);
    }
    let mut writing = Writing { machine, rules, mark };
    let written = match value {
        Value::Map(map) => writing.map(map, levels),
        Value::List(list) => writing.list(list, levels),
        value => writing.masked_text(value),
    };
    if let Err(failure) = written {
        machine.memory.release(mark);
        return Err(failure);
    }
    let content = machine.memory.since(mark);
    Ok(Some(match value {
        Value::Map(_) => Value::Map(content),
        Value::List(_) => Value::List(content),
        _ => Value::Text(content),
    }))
}

/// Whether anything in the value becomes the mask. The functions that call themselves have small frames: stacks are small.
fn has_match(
    machine: &mut Machine<'_>,
    value: Value,
    rules: Rules<'_>,
    levels: usize,
) -> Result<bool, Failure> {
    match value {
        Value::Map(_) | Value::List(_) if levels == 0 => {
            Err(Failure::Invalid("the value is nested too deeply"))
        }
        Value::Map(map) => {
            let mut pairs = Pairs::new(map);
            while let Some(pair) = pairs.next(&machine.memory) {
                if is_masked(machine, pair.key, rules) || has_match(machine, pair.value, rules, levels - 1)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::List(list) => {
            let mut elements = Elements::new(list);
            while let Some(element) = elements.next(&machine.memory) {
                if has_match(machine, element, rules, levels - 1)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        value => matches_scalar(machine, value, rules),
    }
}

/// Whether the value of a key becomes the mask.
fn is_masked(machine: &mut Machine<'_>, key: Slice, rules: Rules<'_>) -> bool {
    let Machine { memory, regexes, .. } = machine;
    rules.keys.is_some_and(|keys| keys.is_match(regexes, memory.get(key)))
}

#[inline(never)]
fn matches_scalar(machine: &mut Machine<'_>, value: Value, rules: Rules<'_>) -> Result<bool, Failure> {
    let Some(regex) = rules.values else { return Ok(false) };
    let Machine { memory, regexes, .. } = machine;
    let mut buffer = [0; DIGITS];
    let haystack = match value {
        Value::Text(text) => memory.get(text),
        Value::Int(number) => digits(number, &mut buffer),
        _ => return Ok(false),
    };
    Ok(next_match(regex, regexes, haystack, 0, &mut Budget::new(haystack.len()))?.is_some())
}

/// A value that is being written, with its matches masked, behind `mark` of the memory.
struct Writing<'w, 'a, 'p> {
    machine: &'w mut Machine<'a>,
    rules: Rules<'p>,
    mark: Mark,
}

impl Writing<'_, '_, '_> {
    /// Appends the content of a map.
    fn map(&mut self, map: Slice, levels: usize) -> Result<(), Failure> {
        let mut pairs = Pairs::new(map);
        while let Some(pair) = pairs.next(&self.machine.memory) {
            let (entry, value) = self.begin_entry(pair.key)?;
            if is_masked(self.machine, pair.key, self.rules) {
                any_value::write(Value::Text(self.rules.mask), &mut self.machine.memory)?;
            } else {
                self.value(pair.value, levels - 1)?;
            }
            self.close(value)?;
            self.close(entry)?;
        }
        Ok(())
    }

    /// Appends the content of a list.
    fn list(&mut self, list: Slice, levels: usize) -> Result<(), Failure> {
        let mut elements = Elements::new(list);
        while let Some(element) = elements.next(&self.machine.memory) {
            let message = self.open(ELEMENT)?;
            self.value(element, levels - 1)?;
            self.close(message)?;
        }
        Ok(())
    }

    /// Appends the content of a value's message.
    fn value(&mut self, value: Value, levels: usize) -> Result<(), Failure> {
        match value {
            // Where a match was found, what is behind it was not looked through.
            Value::Map(_) | Value::List(_) if levels == 0 => {
                Err(Failure::Invalid("the value is nested too deeply"))
            }
            Value::Map(map) => {
                let message = self.open(MAP)?;
                self.map(map, levels)?;
                self.close(message)
            }
            Value::List(list) => {
                let message = self.open(ARRAY)?;
                self.list(list, levels)?;
                self.close(message)
            }
            value => self.scalar(value),
        }
    }

    #[inline(never)]
    fn scalar(&mut self, value: Value) -> Result<(), Failure> {
        if !matches_scalar(self.machine, value, self.rules)? {
            return any_value::write(value, &mut self.machine.memory);
        }
        let message = self.open(STRING)?;
        self.masked_text(value)?;
        self.close(message)
    }

    /// Appends a text, or the digits of a number, with every match masked. A match of no bytes is none.
    fn masked_text(&mut self, value: Value) -> Result<(), Failure> {
        let Some(regex) = self.rules.values else { return Ok(()) };
        let Machine { memory, regexes, .. } = &mut *self.machine;
        let (contents, mut room) = memory.split();
        let mut buffer = [0; DIGITS];
        let haystack = match value {
            Value::Text(text) => contents.get(text),
            Value::Int(number) => digits(number, &mut buffer),
            _ => b"",
        };
        let mask = contents.get(self.rules.mask);
        let (mut from, mut budget) = (0, Budget::new(haystack.len()));
        while let Some(range) = next_match(regex, regexes, haystack, from, &mut budget)? {
            room.put(haystack.get(from..range.start).unwrap_or_default())?;
            room.put(mask)?;
            from = range.end;
        }
        Ok(room.put(haystack.get(from..).unwrap_or_default())?)
    }

    /// Begins an entry of a map with this key, and its value.
    #[inline(never)]
    fn begin_entry(&mut self, key: Slice) -> Result<(Opening, Opening), Failure> {
        let entry = self.open(ELEMENT)?;
        any_value::write_head(KEY, key.len as usize, &mut self.machine.memory)?;
        self.machine.memory.push_slice(key)?;
        Ok((entry, self.open(VALUE)?))
    }

    fn open(&mut self, field: u32) -> Result<Opening, Failure> {
        open(&mut self.machine.memory.split_from(self.mark).1, field)
    }

    fn close(&mut self, message: Opening) -> Result<(), Failure> {
        close(&mut self.machine.memory.split_from(self.mark).1, message)
    }
}

fn next_match(
    regex: &Regex,
    caches: &mut Caches,
    haystack: &[u8],
    mut at: usize,
    budget: &mut Budget,
) -> Result<Option<std::ops::Range<usize>>, Full> {
    loop {
        let Some(found) = regex.find_at(caches, haystack, at) else { return Ok(None) };
        budget.take(regex, at, found.end, haystack.len())?;
        if !found.is_empty() {
            return Ok(Some(found));
        }
        at = found.end + 1;
    }
}

/// The digits of a number, with its sign.
fn digits(number: i64, digits: &mut [u8; DIGITS]) -> &[u8] {
    let (mut at, mut rest) = (DIGITS, number.unsigned_abs());
    let mut put = |byte| {
        at -= 1;
        digits.get_mut(at).into_iter().for_each(|digit| *digit = byte);
    };
    loop {
        // A decimal digit.
        put(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        put(b'-');
    }
    digits.get(at..).unwrap_or_default()
}

//! Regular expressions: `IsMatch` and `ExtractPatterns`.

use super::encoded::put_text_entry;
use super::{Prepared, all, converter, required};
use crate::ottl::program::Argument;
use crate::ottl::signature::{Signature, Type};
use crate::regex::{Captures, Regexes};
use crate::value::{Failure, Value};

pub(super) static CONVERTERS: &[&Signature] = &[&EXTRACT_PATTERNS, &IS_MATCH];

const DYNAMIC: Failure = Failure::Invalid("the pattern is not a literal");

/// Whether the pattern matches anywhere in the text of the target; false for nil. Output: the text of a target that is none.
static IS_MATCH: Signature = Signature {
    prepare: |position, literal, regexes| (position == 1).then(|| pattern(literal, regexes)),
    complete: |arguments, _, _| is_literal(arguments),
    ..converter(
        "IsMatch",
        &[required("target", Type::TextLike), required("pattern", Type::Text)],
        Type::Bool,
        |machine, arguments| {
            let [target, pattern] = all(arguments)?;
            let Argument::Prepared(Prepared::Pattern(pattern)) = pattern else { return Err(DYNAMIC) };
            Ok(Value::Bool(match machine.text_like(target)? {
                Some(text) => pattern.is_match(machine.regexes, machine.memory.get(text)),
                None => false,
            }))
        },
    )
};

/// The texts of the named groups of the first match; an empty map where there is none. Output: the target for each group,
/// the names, and 24 bytes for each.
static EXTRACT_PATTERNS: Signature = Signature {
    prepare: |position, literal, regexes| {
        (position == 1).then(|| {
            let regex = regexes.compile(literal).map_err(|error| error.message)?;
            if regex.group_names().len() < regex.groups() {
                return Err(format!(
                    "more than {} groups: write `(?:…)` for those without a name",
                    regex.group_names().len() - 1
                ));
            }
            if regex.group_names().iter().all(Option::is_none) {
                return Err("the pattern has no named group: write `(?P<name>…)`".into());
            }
            Ok(Prepared::Pattern(regex))
        })
    },
    complete: |arguments, _, _| is_literal(arguments),
    ..converter(
        "ExtractPatterns",
        &[required("target", Type::Text), required("pattern", Type::Text)],
        Type::Map,
        |machine, arguments| {
            let [target, pattern] = all(arguments)?;
            let Argument::Prepared(Prepared::Pattern(pattern)) = pattern else { return Err(DYNAMIC) };
            let target = machine.text(target)?;
            let mark = machine.memory.mark();
            let (contents, mut room) = machine.memory.split();
            let haystack = contents.get(target);
            let mut captures = Captures::new();
            if pattern.captures_at(machine.regexes, haystack, 0, &mut captures) {
                for (group, name) in pattern.group_names().iter().enumerate() {
                    let Some(name) = name else { continue };
                    // The last group of a name is the one.
                    if pattern.group_names().iter().skip(group + 1).any(|other| other.as_ref() == Some(name))
                    {
                        continue;
                    }
                    let range = captures.range(group).unwrap_or_default();
                    put_text_entry(
                        &mut room,
                        name.as_bytes().into(),
                        haystack.get(range).unwrap_or_default().into(),
                    )?;
                }
            }
            Ok(Value::Map(machine.memory.since(mark)))
        },
    )
};

/// Refuses a pattern that is not known before there is a record: it would be compiled for each.
fn is_literal(arguments: &[Argument]) -> Result<(), (usize, String)> {
    match arguments.get(1) {
        Some(Argument::Prepared(_)) => Ok(()),
        _ => Err((1, "the pattern has to be a string literal".into())),
    }
}

fn pattern(literal: &str, regexes: &mut Regexes) -> Result<Prepared, String> {
    regexes.compile(literal).map(Prepared::Pattern).map_err(|error| error.message)
}

//! `ExtractGrokPatterns`: named parts of a text by patterns that are made of patterns.

mod expand;

use super::members::{Known, Names, remove_from};
use super::{Prepared, all, converter, optional, required};
use crate::any_value;
use crate::machine::arguments::literal;
use crate::memory::Slice;
use crate::ottl::program::{Argument, Expression};
use crate::ottl::signature::{Signature, Type};
use crate::regex::{Captures, Regex, Regexes};
use crate::value::{Failure, Value};
use expand::{Hint, expand};

pub(super) static CONVERTERS: &[&Signature] = &[&EXTRACT_GROK_PATTERNS];

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Grok {
    regex: Regex,
    /// The key and type of each group; `None` for groups without a name.
    groups: Box<[Option<Group>]>,
}

/// The key and type of a group.
type Group = (Box<str>, Hint);

/// The texts, numbers and booleans of the named groups of the first match that are not empty; an empty map where there is no
/// match. Output: the target for each group, the names, and 24 bytes for each.
static EXTRACT_GROK_PATTERNS: Signature = Signature {
    complete: |arguments, constants, regexes| {
        let grok = compile(arguments, constants, regexes)?;
        if let Some(pattern) = arguments.get_mut(1) {
            *pattern = Argument::Prepared(Prepared::Grok(grok));
        }
        Ok(())
    },
    ..converter(
        "ExtractGrokPatterns",
        &[
            required("target", Type::Text),
            required("pattern", Type::Text),
            optional("named_captures_only", Type::LiteralBool),
            optional("pattern_definitions", Type::LiteralTexts),
        ],
        Type::Map,
        |machine, arguments| {
            let [target, pattern, ..] = all::<4>(arguments)?;
            let Argument::Prepared(Prepared::Grok(grok)) = pattern else {
                return Err(Failure::Invalid("the pattern is not a literal"));
            };
            let target = machine.text(target)?;
            let mark = machine.memory.mark();
            let mut captures = Captures::new();
            let haystack = machine.memory.get(target);
            if !grok.regex.captures_at(machine.regexes, haystack, 0, &mut captures) {
                return Ok(Value::Map(Slice::EMPTY));
            }
            let mut names = Names::default();
            for (group, name) in grok.groups.iter().enumerate() {
                let Some((name, hint)) = name else { continue };
                let Some(range) = captures.range(group).filter(|range| !range.is_empty()) else { continue };
                let part = target.part(range.start, range.end);
                let number = Failure::Invalid("a part of the string is not of the type in the pattern");
                let value = hint.convert(machine.memory.get(part), part).ok_or(number)?;
                // The last group of a name is the one.
                // A pattern has fewer groups than maps that are settled at the end.
                if names.add(name.as_bytes()) == Known::Maybe {
                    let (_, mut room) = machine.memory.split_from(mark);
                    let len = room.len();
                    remove_from(&mut room, 0..len, name.as_bytes());
                }
                any_value::write_named(name.as_bytes(), value, &mut machine.memory)?;
            }
            Ok(Value::Map(machine.memory.since(mark)))
        },
    )
};

fn compile(arguments: &[Argument], constants: &[u8], regexes: &mut Regexes) -> Result<Grok, (usize, String)> {
    let text = |slice: Slice| {
        let start = slice.start as usize;
        let bytes = constants.get(start..start + slice.len as usize).unwrap_or_default();
        str::from_utf8(bytes).unwrap_or_default()
    };
    let Some(Value::Text(pattern)) = literal(arguments, 1) else {
        return Err((1, "the pattern has to be a string literal".into()));
    };
    let named_only = literal(arguments, 2) == Some(Value::Bool(true));
    let mut definitions = Vec::new();
    if let Some(Argument::Values(texts)) = arguments.get(3) {
        for definition in texts {
            let Expression::Literal(Value::Text(definition)) = definition else { continue };
            let definition = text(*definition);
            let parts =
                definition.split_once('=').ok_or((3, format!("`{definition}` is not `NAME=pattern`")))?;
            if parts.0.contains(':') {
                return Err((3, format!("the name `{}` has a colon", parts.0)));
            }
            definitions.push(parts);
        }
    }
    let expanded = expand(text(pattern), named_only, &definitions).map_err(|message| (1, message))?;
    let regex = regexes.compile(&expanded.pattern).map_err(|error| (1, error.message))?;
    if regex.group_names().len() < regex.groups() {
        let most = regex.group_names().len() - 1;
        let message = format!(
            "the pattern has more than {most} named parts: name those that are wanted, and set `named_captures_only`"
        );
        return Err((1, message));
    }
    if named_only && regex.group_names().iter().all(Option::is_none) {
        return Err((1, "the pattern has no named part, like `%{NUMBER:bytes}`".into()));
    }
    let groups = regex.group_names().iter().map(|name| {
        let name = name.as_ref()?;
        let hint = expanded.hints.iter().rev().find(|(hinted, _)| **hinted == **name);
        Some((name.replace("___", ".").into(), hint.map_or(Hint::Text, |(_, hint)| *hint)))
    });
    let groups = groups.collect();
    Ok(Grok { regex, groups })
}

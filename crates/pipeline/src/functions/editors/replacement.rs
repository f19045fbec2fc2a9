//! The common parts of the editors that replace: the template, the function that is applied to it, and the format around that.

use super::keys::pattern_of;
use crate::functions::Prepared;
use crate::machine::Machine;
use crate::memory::{Memory, Slice};
use crate::ottl::program::{Argument, Expression};
use crate::ottl::signature::{Parameter, Signature, Type};
use crate::regex::{Budget, Captures, Regex, Template};
use crate::value::{Failure, Kind, Value};
use tidegate_wire::output::{Full, Output};

pub(super) const DYNAMIC_PATTERN: &str = "the pattern has to be a literal";

const MATCHES_END: Failure = Failure::TooLarge;

/// The replacement of an editor for one record.
#[derive(Clone, Copy)]
pub(super) enum Replacement<'p> {
    /// A literal.
    Template(&'p Template),
    /// A text that the record gave.
    Dynamic(Slice),
}

/// A function and a format, each of which may be absent.
pub(super) struct Wrapping<'p> {
    pub(super) function: &'p Signature,
    /// With one `%s`.
    pub(super) format: Option<Slice>,
}

/// Compiles a literal replacement for the pattern before it, and checks the function behind it.
pub(super) fn complete(
    arguments: &mut [Argument],
    constants: &[u8],
    pattern: usize,
) -> Result<(), (usize, String)> {
    let Some(Argument::Prepared(Prepared::Pattern(regex))) = arguments.get(pattern) else {
        return Err((pattern, DYNAMIC_PATTERN.into()));
    };
    let regex = regex.clone();
    check_function(arguments, pattern + 2)?;
    let Some(argument) = arguments.get_mut(pattern + 1) else { return Ok(()) };
    if let Argument::Value(Expression::Literal(Value::Text(slice))) = argument {
        // Constants alone: nothing else is there when a program is compiled.
        let text = Memory::new(b"", constants, &mut []).get(*slice).to_vec();
        let text = String::from_utf8(text).unwrap_or_default();
        let template = Template::new(&text, &regex).map_err(|message| (pattern + 1, message))?;
        *argument = Argument::Prepared(Prepared::Template(template));
    }
    Ok(())
}

/// Checks that the function at `at` takes one text. For others the Collector ends with a panic.
pub(super) fn check_function(arguments: &[Argument], at: usize) -> Result<(), (usize, String)> {
    match arguments.get(at) {
        Some(Argument::Function(function))
            if !matches!(function.parameters, [Parameter { accepts: Type::Text, .. }]) =>
        {
            Err((at, format!("`{}` is no function of one string", function.name)))
        }
        _ => Ok(()),
    }
}

/// The replacement in an argument.
pub(super) fn replacement<'p>(
    machine: &mut Machine<'_>,
    argument: &'p Argument,
) -> Result<Replacement<'p>, Failure> {
    match argument {
        Argument::Prepared(Prepared::Template(template)) => Ok(Replacement::Template(template)),
        dynamic => machine.text(dynamic).map(Replacement::Dynamic),
    }
}

/// Function and format of two arguments; `None` when there is no function, without which Go ignores the format.
pub(super) fn wrapping<'p>(
    machine: &mut Machine<'_>,
    function: &'p Argument,
    format: &Argument,
) -> Result<Option<Wrapping<'p>>, Failure> {
    let Argument::Function(function) = function else { return Ok(None) };
    let format = match format {
        Argument::Absent => None,
        format => {
            let format = machine.text(format)?;
            let bytes = machine.memory.get(format);
            let is_valid = bytes.iter().filter(|byte| **byte == b'%').count() == 1
                && memchr::memmem::find(bytes, b"%s").is_some();
            if !is_valid {
                return Err(Failure::Invalid("the format takes one %s and no other directive"));
            }
            Some(format)
        }
    };
    Ok(Some(Wrapping { function, format }))
}

impl Wrapping<'_> {
    /// The text that the function makes of `input`, within the format.
    pub(super) fn apply(&self, machine: &mut Machine<'_>, input: Slice) -> Result<Slice, Failure> {
        let argument = [Argument::Value(Expression::Literal(Value::Text(input)))];
        let text = match (self.function.run)(machine, &argument)? {
            Value::Text(text) => text,
            other => return Err(Failure::Type { wanted: Kind::Text, found: other.kind() }),
        };
        let Some(format) = self.format else { return Ok(text) };
        let at = memchr::memmem::find(machine.memory.get(format), b"%s").unwrap_or(0);
        machine.memory.build(|memory| {
            memory.push_slice(format.part(0, at))?;
            memory.push_slice(text)?;
            memory.push_slice(format.part(at + 2, format.len as usize))
        })
    }
}

/// `text` with every match of `pattern` replaced; `None` when there is none.
///
/// Output: the text, and for each match the replacement and its function's result. A match takes at least a byte, or lies
/// between two, and the memory ends it.
pub(super) fn replaced(
    machine: &mut Machine<'_>,
    text: Slice,
    pattern: &Argument,
    replacement: Replacement<'_>,
    wrapping: Option<&Wrapping<'_>>,
) -> Result<Option<Slice>, Failure> {
    let regex = pattern_of(pattern)?;
    match wrapping {
        Some(wrapping) => replaced_by_function(machine, text, regex, replacement, wrapping),
        None => replaced_by_template(machine, text, regex, replacement),
    }
}

fn replaced_by_template(
    machine: &mut Machine<'_>,
    text: Slice,
    regex: &Regex,
    replacement: Replacement<'_>,
) -> Result<Option<Slice>, Failure> {
    let Machine { memory, regexes, .. } = machine;
    let constant = match replacement {
        Replacement::Template(template) => template.constant(),
        Replacement::Dynamic(_) => None,
    };
    let (mut matches, mut captures) = (Matches::new(text.len as usize), Captures::new());
    let mut any = false;
    let mark = memory.mark();
    let (contents, mut room) = memory.split();
    let haystack = contents.get(text);
    let done: Result<(), Full> = (|| {
        let mut from = 0;
        loop {
            let found = match constant {
                Some(_) => matches.next(regex, haystack, |at| {
                    regex.find_at(regexes, haystack, at).map(|range| (range.start, range.end))
                }),
                None => matches.next(regex, haystack, |at| {
                    let found = regex.captures_at(regexes, haystack, at, &mut captures);
                    found.then(|| captures.range(0)).flatten().map(|range| (range.start, range.end))
                }),
            }?;
            let Some((start, end)) = found else { break };
            any = true;
            room.put(haystack.get(from..start).unwrap_or_default())?;
            match (constant, replacement) {
                (Some(constant), _) => room.put(constant)?,
                (None, Replacement::Template(template)) => {
                    template.expand(haystack, &captures, |bytes| room.put(bytes))?;
                }
                (None, Replacement::Dynamic(template)) => {
                    let template = contents.get(template);
                    expand(template, regex, haystack, &captures, |bytes| room.put(bytes))?;
                }
            }
            from = end;
        }
        if any { room.put(haystack.get(from..).unwrap_or_default()) } else { Ok(()) }
    })();
    if done.is_err() {
        memory.release(mark);
    }
    done?;
    Ok(any.then(|| memory.since(mark)))
}

fn replaced_by_function(
    machine: &mut Machine<'_>,
    text: Slice,
    regex: &Regex,
    replacement: Replacement<'_>,
    wrapping: &Wrapping<'_>,
) -> Result<Option<Slice>, Failure> {
    let (mut matches, mut captures) = (Matches::new(text.len as usize), Captures::new());
    let mut result = None;
    machine.with_values([].iter(), |machine, base| {
        loop {
            let Machine { memory, regexes, .. } = &mut *machine;
            let haystack = memory.get(text);
            let found = matches.next(regex, haystack, |at| {
                let found = regex.captures_at(regexes, haystack, at, &mut captures);
                found.then(|| captures.range(0)).flatten().map(|range| (range.start, range.end))
            })?;
            let Some((start, end)) = found else { break };
            let input = memory.build(|memory| {
                let (contents, mut room) = memory.split();
                let haystack = contents.get(text);
                match replacement {
                    Replacement::Template(template) => {
                        template.expand(haystack, &captures, |bytes| room.put(bytes))?;
                    }
                    Replacement::Dynamic(template) => {
                        let template = contents.get(template);
                        expand(template, regex, haystack, &captures, |bytes| room.put(bytes))?;
                    }
                }
                Ok(())
            })?;
            let output = wrapping.apply(machine, input)?;
            // A range is two positions in a slice, whose length is 32 bits.
            let range = Slice { start: start as u32, len: (end - start) as u32, ..Slice::EMPTY };
            machine.push_value(Value::Bytes(range))?;
            machine.push_value(Value::Text(output))?;
        }
        let pairs = machine.values_since(base).len() / 2;
        if pairs > 0 {
            result = Some(assembled(machine, text, base, pairs)?);
        }
        Ok(Value::Nil)
    })?;
    Ok(result)
}

/// `text` with the ranges on the stack replaced by the texts behind them.
fn assembled(machine: &mut Machine<'_>, text: Slice, base: usize, pairs: usize) -> Result<Slice, Failure> {
    let mark = machine.memory.mark();
    let mut from = 0;
    for at in 0..pairs {
        let [Value::Bytes(range), Value::Text(output)] =
            *machine.values_since(base + 2 * at).first_chunk::<2>().ok_or(MATCHES_END)?
        else {
            return Err(MATCHES_END);
        };
        let start = range.start as usize;
        machine.memory.push_slice(text.part(from, start))?;
        machine.memory.push_slice(output)?;
        from = start + range.len as usize;
    }
    machine.memory.push_slice(text.part(from, text.len as usize))?;
    Ok(machine.memory.since(mark))
}

/// The matches that Go's `ReplaceAll` replaces: no empty one right behind another.
struct Matches {
    search: usize,
    last_end: usize,
    budget: Budget,
}

impl Matches {
    /// Those in a text of `len` bytes.
    fn new(len: usize) -> Matches {
        Matches { search: 0, last_end: 0, budget: Budget::new(len) }
    }

    /// The next one that `find` finds from a place on, with `regex`.
    fn next(
        &mut self,
        regex: &Regex,
        text: &[u8],
        mut find: impl FnMut(usize) -> Option<(usize, usize)>,
    ) -> Result<Option<(usize, usize)>, Full> {
        while self.search <= text.len() {
            let Some((start, end)) = find(self.search) else { return Ok(None) };
            self.budget.take(regex, self.search, end, text.len())?;
            let is_replaced = end > self.last_end || start == 0;
            self.last_end = end;
            let width = character_len(text.get(self.search..).unwrap_or_default());
            if self.search + width > end {
                self.search += width.max(1);
            } else if self.search + 1 > end {
                self.search += 1;
            } else {
                self.search = end;
            }
            if is_replaced {
                return Ok(Some((start, end)));
            }
        }
        Ok(None)
    }
}

/// The bytes of the first character of a text; 0 at the end.
fn character_len(text: &[u8]) -> usize {
    let Some((_, rest)) = text.split_first() else { return 0 };
    1 + rest.iter().take_while(|byte| **byte & 0xc0 == 0x80).count()
}

/// Expands a template that is not known before, as [`Template`] does.
fn expand(
    template: &[u8],
    regex: &Regex,
    haystack: &[u8],
    captures: &Captures,
    mut write: impl FnMut(&[u8]) -> Result<(), Full>,
) -> Result<(), Full> {
    let mut rest = template;
    while let Some(at) = memchr::memchr(b'$', rest) {
        let (before, after) = (rest.get(..at).unwrap_or_default(), rest.get(at + 1..).unwrap_or_default());
        write(before)?;
        if let Some(after) = after.strip_prefix(b"$") {
            write(b"$")?;
            rest = after;
            continue;
        }
        match reference(after) {
            Some((name, after)) => {
                if let Some(range) = group(name, regex, captures) {
                    write(haystack.get(range).unwrap_or_default())?;
                }
                rest = after;
            }
            None => {
                write(b"$")?;
                rest = after;
            }
        }
    }
    write(rest)
}

/// The name that a reference behind a `$` has, and what is behind it.
fn reference(text: &[u8]) -> Option<(&str, &[u8])> {
    let inner = text.strip_prefix(b"{");
    let text = str::from_utf8(inner.unwrap_or(text)).ok()?;
    let len = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(len).filter(|(name, _)| !name.is_empty())?;
    let rest = if inner.is_some() { rest.strip_prefix('}')? } else { rest };
    Some((name, rest.as_bytes()))
}

fn group(name: &str, regex: &Regex, captures: &Captures) -> Option<std::ops::Range<usize>> {
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return captures.range(name.parse().ok().filter(|group| *group < regex.group_names().len())?);
    }
    let mut names = regex.group_names().iter().enumerate();
    names.find_map(|(at, other)| captures.range(at).filter(|_| other.as_deref() == Some(name)))
}

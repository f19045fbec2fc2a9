//! Replacement templates, as Go's `Regexp.Expand` reads them: `$1`, `${1}`, `$name`, `${name}`, `$$`.

use super::{Captures, MAX_GROUPS, Regex};

/// A compiled template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Box<[Part]>);

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// A text, never empty.
    Text(Box<[u8]>),
    /// The text that a group matched, if it took part in the match.
    Group(usize),
    /// The text matched by the first of these groups, which share a name.
    FirstOf(Box<[usize]>),
}

impl Template {
    /// Reads `text` for the groups of `regex`. As in Go, a `$` that begins no reference stands for itself, and a reference
    /// to a group that does not exist for nothing.
    ///
    /// # Errors
    /// When it refers to a group of the pattern that is not captured, because it has too many.
    pub(crate) fn new(text: &str, regex: &Regex) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut plain = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            plain.extend_from_slice(before.as_bytes());
            rest = after;
            if let Some(after) = rest.strip_prefix('$') {
                plain.push(b'$');
                rest = after;
                continue;
            }
            let Some((name, after)) = reference(rest) else {
                plain.push(b'$');
                continue;
            };
            rest = after;
            let Some(part) = group(name, regex)? else { continue };
            flush(&mut plain, &mut parts);
            parts.push(part);
        }
        plain.extend_from_slice(rest.as_bytes());
        flush(&mut plain, &mut parts);
        Ok(Template(parts.into()))
    }

    /// Its pieces, in order.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.0
    }

    /// The text that it always gives, if it refers to no group.
    pub(crate) fn constant(&self) -> Option<&[u8]> {
        match &*self.0 {
            [] => Some(&[]),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Gives the replacement for a match of `haystack` to `write`, piece by piece.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn expand<E>(
        &self,
        haystack: &[u8],
        captures: &Captures,
        mut write: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for part in &self.0 {
            write(part.bytes(haystack, captures))?;
        }
        Ok(())
    }
}

impl Part {
    /// The expansion for a match of `haystack`.
    pub(crate) fn bytes<'a>(&'a self, haystack: &'a [u8], captures: &Captures) -> &'a [u8] {
        let range = match self {
            Part::Text(text) => return text,
            Part::Group(group) => captures.range(*group),
            Part::FirstOf(groups) => groups.iter().find_map(|group| captures.range(*group)),
        };
        range.and_then(|range| haystack.get(range)).unwrap_or_default()
    }
}

fn flush(plain: &mut Vec<u8>, parts: &mut Vec<Part>) {
    if !plain.is_empty() {
        parts.push(Part::Text(std::mem::take(plain).into()));
    }
}

/// The name of the reference that `text`, which follows a `$`, begins with, and what is behind it.
fn reference(text: &str) -> Option<(&str, &str)> {
    let (braces, text) = match text.strip_prefix('{') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match (name.is_empty(), braces) {
        (true, _) => None,
        (false, true) => Some((name, rest.strip_prefix('}')?)),
        (false, false) => Some((name, rest)),
    }
}

/// The group with this name or number, if the pattern has it.
fn group(name: &str, regex: &Regex) -> Result<Option<Part>, String> {
    let leading_zero = name.len() > 1 && name.starts_with('0');
    if name.bytes().all(|byte| byte.is_ascii_digit()) && !leading_zero && name.len() < 10 {
        let number = name.parse().unwrap_or(usize::MAX);
        return if number < regex.group_names().len() {
            Ok(Some(Part::Group(number)))
        } else if number < regex.groups() {
            Err(format!("group {number} is not captured: a pattern has at most {} groups", MAX_GROUPS - 1))
        } else {
            Ok(None)
        };
    }
    let has_name = |group: &Option<Box<str>>| group.as_deref() == Some(name);
    let groups: Box<[usize]> =
        (0..).zip(regex.group_names()).filter(|(_, group)| has_name(group)).map(|(at, _)| at).collect();
    Ok(match &*groups {
        [] => None,
        [group] => Some(Part::Group(*group)),
        _ => Some(Part::FirstOf(groups)),
    })
}

//! Reading the files of others: every setting is either taken or noted.

use std::ops::Range;
use std::rc::Rc;

use super::notes::Notes;
use super::ottl::literal;
use super::references;
use crate::error::{ErrorCollector, Errors, quote};
use crate::load::bounded;
use crate::yaml::{Entry, Node, Value, read_verbatim};

/// Reads one file.
pub(super) struct FileReader<'n, 'a> {
    /// The files that the text is made of: where each begins, and its name.
    files: Vec<(usize, &'a str)>,
    text: &'a str,
    pub(super) errors: ErrorCollector<'a>,
    notes: &'n mut Notes,
    /// Translates references in values.
    translate: fn(&str) -> (String, Option<String>),
}

/// The settings of one group. What nobody takes is noted by [`Group::finish`].
pub(super) struct Group<'t> {
    pub(super) path: String,
    pub(super) at: Range<usize>,
    entries: &'t [Entry],
    taken: Vec<bool>,
}

/// A value in our syntax, with its place.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) value: String,
    pub(super) at: Range<usize>,
    /// Whether it stands there without quotes.
    pub(super) is_plain: bool,
}

impl Text {
    /// Whether the value depends on the environment.
    pub(super) fn is_open(&self) -> bool {
        references::has_reference(&self.value)
    }

    /// The value as a literal of OTTL. Its type is that of the way it is written, as in the Collector.
    pub(super) fn as_ottl(&self) -> String {
        let value = self.value.as_str();
        let is_integer = value.parse::<i64>().is_ok();
        let is_double = value.parse::<f64>().is_ok_and(f64::is_finite)
            && value.split_once('.').is_some_and(|(_, decimals)| !decimals.is_empty())
            && !value.contains(['e', 'E']);
        let is_bare = matches!(value, "true" | "false") || is_integer || is_double;
        if self.is_plain && is_bare { value.trim_start_matches('+').to_owned() } else { literal(value) }
    }
}

/// Settings without a counterpart: each name with the reason.
pub(super) type Lacking = [(&'static str, &'static str)];

/// Reads the YAML in `text` and interprets it with `read`, which may note errors.
///
/// # Errors
/// Every error at once, with its place.
pub(super) fn file<T>(
    source: &str,
    text: &str,
    notes: &mut Notes,
    translate: fn(&str) -> (String, Option<String>),
    read: impl FnOnce(&Node, &mut FileReader<'_, '_>) -> T,
) -> Result<T, Errors> {
    let text = bounded(source, text)?;
    let mut reader = FileReader::new(vec![(0, source)], text, notes, translate);
    let root = read_verbatim(text, &mut reader.errors);
    let value = root.map(|root| read(&root, &mut reader));
    match (reader.errors.into_errors(source), value) {
        (None, Some(value)) => Ok(value),
        (Some(errors), _) => Err(errors),
        (None, None) => {
            Err(Errors::of_file(source, "the file cannot be read".to_owned(), "check that it is YAML"))
        }
    }
}

impl<'n, 'a> FileReader<'n, 'a> {
    /// A reader of a text made of `files`, each with its beginning and its name.
    pub(super) fn new(
        files: Vec<(usize, &'a str)>,
        text: &'a str,
        notes: &'n mut Notes,
        translate: fn(&str) -> (String, Option<String>),
    ) -> FileReader<'n, 'a> {
        FileReader { files, text, errors: ErrorCollector::new(text), notes, translate }
    }

    /// The text of the files.
    pub(super) fn source_text(&self) -> &'a str {
        self.text
    }

    /// Notes what became of the setting at `at`.
    pub(super) fn note(&mut self, at: &Range<usize>, setting: &str, message: impl Into<String>) {
        let file = self.files.iter().rev().find(|(start, _)| *start <= at.start).copied();
        let (start, source) = file.unwrap_or_default();
        let text = self.text.get(start..).unwrap_or_default();
        let at = at.start.saturating_sub(start)..at.end.saturating_sub(start);
        self.notes.take(source, text, &at, setting, message);
    }

    /// Notes an error.
    pub(super) fn error(&mut self, at: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.errors.note_shown(at, message, help);
    }

    /// The settings of a group; a group left empty has none.
    pub(super) fn group<'t>(&mut self, node: &'t Node, path: &str) -> Option<Group<'t>> {
        let entries: &[Entry] = match &node.value {
            Value::Mapping(entries) => entries,
            Value::Null => &[],
            Value::Broken => return None,
            Value::Scalar(_) | Value::Sequence(_) => {
                let message = format!("{} is a group of settings", quote(path));
                self.errors.note(&node.at, message, "write `name: value` lines, indented below it");
                return None;
            }
        };
        let taken = vec![false; entries.len()];
        Some(Group { path: path.to_owned(), at: node.at.clone(), entries, taken })
    }

    /// A word as a value.
    pub(super) fn text(&mut self, node: &Node, path: &str) -> Option<Text> {
        match &node.value {
            Value::Scalar(text) => {
                let (value, problem) = (self.translate)(text);
                if let Some(problem) = problem {
                    self.note(&node.at, path, problem);
                }
                let first = self.text.get(node.at.clone()).and_then(|source| source.chars().next());
                let is_plain = !matches!(first, Some('"' | '\'' | '|' | '>'));
                Some(Text { value, at: node.at.clone(), is_plain })
            }
            Value::Null | Value::Broken => None,
            Value::Sequence(_) | Value::Mapping(_) => {
                self.errors.note(&node.at, format!("{} is one word", quote(path)), "write a single value");
                None
            }
        }
    }

    /// The words of a list; one word alone is a list of one.
    pub(super) fn texts(&mut self, node: &Node, path: &str) -> Vec<Text> {
        match &node.value {
            Value::Sequence(items) => items.iter().filter_map(|item| self.text(item, path)).collect(),
            _ => self.text(node, path).into_iter().collect(),
        }
    }

    /// The elements of a list.
    pub(super) fn items<'t>(&mut self, node: &'t Node, path: &str) -> &'t [Rc<Node>] {
        match &node.value {
            Value::Sequence(items) => items,
            Value::Null | Value::Broken => &[],
            Value::Scalar(_) | Value::Mapping(_) => {
                self.errors.note(
                    &node.at,
                    format!("{} is a list", quote(path)),
                    "begin each element with `- `",
                );
                &[]
            }
        }
    }
}

impl<'t> Group<'t> {
    /// Takes the setting `key`; none when it is absent or empty.
    pub(super) fn take(&mut self, key: &str) -> Option<&'t Entry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        self.taken[index] = true;
        let entry = &self.entries[index];
        (!matches!(entry.node.value, Value::Null)).then_some(entry)
    }

    /// Takes the setting `key`, which says something by being there, even if it is empty.
    pub(super) fn take_even_empty(&mut self, key: &str) -> Option<&'t Entry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        self.taken[index] = true;
        self.entries.get(index)
    }

    /// All settings, all taken: for groups whose keys are names.
    pub(super) fn take_all(&mut self) -> &'t [Entry] {
        self.taken.fill(true);
        self.entries
    }

    /// The path of a setting in this group.
    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Takes the word at `key`.
    pub(super) fn text(&mut self, key: &str, reader: &mut FileReader<'_, '_>) -> Option<Text> {
        let path = self.path_of(key);
        self.take(key).and_then(|entry| reader.text(&entry.node, &path))
    }

    /// Takes the list of words at `key`.
    pub(super) fn texts(&mut self, key: &str, reader: &mut FileReader<'_, '_>) -> Vec<Text> {
        let path = self.path_of(key);
        self.take(key).map_or_else(Vec::new, |entry| reader.texts(&entry.node, &path))
    }

    /// Takes the group at `key`.
    pub(super) fn group(&mut self, key: &str, reader: &mut FileReader<'_, '_>) -> Option<Group<'t>> {
        let path = self.path_of(key);
        self.take(key).and_then(|entry| reader.group(&entry.node, &path))
    }

    /// Takes the list at `key`.
    pub(super) fn items(&mut self, key: &str, reader: &mut FileReader<'_, '_>) -> &'t [Rc<Node>] {
        let path = self.path_of(key);
        self.take(key).map_or(&[], |entry| reader.items(&entry.node, &path))
    }

    /// Takes the switch at `key`; none when it is absent or not known here.
    pub(super) fn flag(&mut self, key: &str, reader: &mut FileReader<'_, '_>) -> Option<bool> {
        let text = self.text(key, reader)?;
        match text.value.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ if text.is_open() => {
                let path = self.path_of(key);
                reader.note(&text.at, &path, "its value is not known here; the default was assumed");
                None
            }
            _ => {
                reader.error(
                    &text.at,
                    format!("{} is `true` or `false`", quote(&self.path_of(key))),
                    "write one of the two",
                );
                None
            }
        }
    }

    /// Takes the whole number at `key`; none when it is absent or not known here.
    pub(super) fn number(&mut self, key: &str, reader: &mut FileReader<'_, '_>) -> Option<u64> {
        let text = self.text(key, reader)?;
        if let Ok(number) = text.value.replace('_', "").parse() {
            return Some(number);
        }
        let path = self.path_of(key);
        if text.is_open() {
            reader.note(&text.at, &path, "its value is not known here; it was left out");
        } else {
            reader.error(&text.at, format!("{} is a whole number", quote(&path)), "write digits only");
        }
        None
    }

    /// Notes those of `settings` that are set, each with its reason.
    pub(super) fn lacks(&mut self, settings: &Lacking, reader: &mut FileReader<'_, '_>) {
        for (key, reason) in settings {
            if let Some(entry) = self.take(key) {
                reader.note(&entry.key_at, &self.path_of(key), *reason);
            }
        }
    }

    /// Notes everything that was not taken.
    pub(super) fn finish(self, reader: &mut FileReader<'_, '_>) {
        for (entry, _) in self.entries.iter().zip(&self.taken).filter(|(_, taken)| !**taken) {
            reader.note(&entry.key_at, &self.path_of(&entry.key), "left out: it has no counterpart");
        }
    }
}

//! Reading settings from the tree, noting every problem on the way.

use std::ops::Range;

use crate::error::{ErrorCollector, Invalid, any_of, quote};
use crate::setting::{Field, Setting, Shape};
use crate::suggest::nearest;
use crate::yaml::{Entry, Node, Value};

pub(crate) struct Reader<'f, 'a> {
    errors: &'f mut ErrorCollector<'a>,
    path: Vec<(String, Range<usize>)>,
    /// All settings of the top, to say where a misplaced one belongs.
    top: fn() -> Vec<Field>,
}

/// The settings written in one group.
pub(crate) struct Entries<'t> {
    list: &'t [Entry],
    /// The key that the group's owner has already read, such as `type`.
    taken: Option<&'static str>,
}

impl Entries<'_> {
    /// Where the setting `name` is written, if it has a value.
    pub(crate) fn written(&self, name: &str) -> Option<&Range<usize>> {
        let written = self.list.iter().find(|entry| entry.key == name);
        written.filter(|entry| !matches!(entry.node.value, Value::Null)).map(|entry| &entry.key_at)
    }
}

impl<'f, 'a> Reader<'f, 'a> {
    pub(crate) fn new(errors: &'f mut ErrorCollector<'a>, top: fn() -> Vec<Field>) -> Reader<'f, 'a> {
        Reader { errors, path: Vec::new(), top }
    }

    /// The text that is read.
    pub(crate) fn text(&self) -> &'a str {
        self.errors.text()
    }

    /// Notes that the value at the present path is wrong. The excerpt does not show it: it may be a secret.
    pub(crate) fn refuse(&mut self, at: &Range<usize>, what: &str, help: impl Into<String>) {
        let message = self.about(what);
        self.errors.note(at, message, help);
    }

    /// Notes that the value at the present path, which is no secret, is wrong.
    pub(crate) fn refuse_shown(&mut self, at: &Range<usize>, what: &str, help: impl Into<String>) {
        let message = self.about(what);
        self.errors.note_shown(at, message, help);
    }

    /// From now on no excerpt shows what stands at `at`.
    pub(crate) fn conceal(&mut self, at: &Range<usize>) {
        self.errors.conceal(at.clone());
    }

    fn about(&self, what: &str) -> String {
        match self.path() {
            path if path.is_empty() => what.to_owned(),
            path => format!("{}: {what}", quote(&path)),
        }
    }

    /// Reads one level further down.
    pub(crate) fn under<T>(&mut self, entry: &Entry, read: impl FnOnce(&mut Self) -> T) -> T {
        self.under_as(&entry.key, entry, read)
    }

    /// Reads one level further down, which messages call `name`.
    pub(crate) fn under_as<T>(&mut self, name: &str, entry: &Entry, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push((name.to_owned(), entry.key_at.clone()));
        let value = read(self);
        self.path.pop();
        value
    }

    /// The entries of a node that should be a group of settings. A group left empty has none.
    pub(crate) fn entries<'t>(&mut self, node: &'t Node) -> Option<&'t [Entry]> {
        let found = match &node.value {
            Value::Mapping(entries) => return Some(entries),
            Value::Null => return Some(&[]),
            Value::Broken => return None,
            // Which may be a secret.
            Value::Scalar(_) => "one word",
            Value::Sequence(_) => "a list",
        };
        let what = format!("this is a group of settings, not {found}");
        self.refuse(&node.at, &what, "write `name: value` lines, indented below it");
        None
    }

    /// Reads a group of settings.
    pub(crate) fn section<T>(
        &mut self,
        node: &Node,
        read: impl FnOnce(&Entries<'_>, &mut Self) -> Option<T>,
    ) -> Option<T> {
        let list = self.entries(node)?;
        read(&Entries { list, taken: None }, self)
    }

    /// Reads a group whose `type` says which settings it has: `read` is given that word.
    pub(crate) fn kind<T>(
        &mut self,
        node: &Node,
        known: &[&'static str],
        read: impl FnOnce(&str, &Entries<'_>, &mut Self) -> Option<T>,
    ) -> Option<T> {
        let list = self.entries(node)?;
        let Some(kind) =
            list.iter().find(|entry| entry.key == "type" && !matches!(entry.node.value, Value::Null))
        else {
            let at = self.here(node);
            self.refuse(&at, "`type` is missing", format!("add a `type`: {}", any_of(known)));
            return None;
        };
        let Value::Scalar(word) = &kind.node.value else {
            if !matches!(kind.node.value, Value::Broken) {
                self.refuse(&kind.node.at, "the `type` is one word", format!("write {}", any_of(known)));
            }
            return None;
        };
        if !known.contains(&word.as_str()) {
            let help = match nearest(word, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write {}", any_of(known)),
            };
            self.refuse_shown(&kind.node.at, &format!("there is no type {}", quote(word)), help);
            return None;
        }
        read(word, &Entries { list, taken: Some("type") }, self)
    }

    /// Reads one setting of a group. What cannot be read is noted and the default stands in, so that
    /// reading goes on; a setting without default that is missing or cannot be read gives none.
    pub(crate) fn field<T: Setting>(
        &mut self,
        entries: &Entries<'_>,
        name: &'static str,
        default: Option<T>,
        check: impl FnOnce(&T) -> Result<(), Invalid>,
    ) -> Option<T> {
        let written = entries.list.iter().find(|entry| entry.key == name);
        let Some(entry) = written.filter(|entry| !matches!(entry.node.value, Value::Null)) else {
            if default.is_none() {
                let at = match (written, self.path.last(), entries.list.first()) {
                    (Some(entry), ..) => entry.key_at.clone(),
                    (_, Some((_, at)), _) => at.clone(),
                    (_, _, first) => first.map_or(0..0, |entry| entry.key_at.clone()),
                };
                let help = format!("add `{name}:` with {}", wanted(&T::shape()));
                self.refuse(&at, &format!("`{name}` is missing"), help);
            }
            return default;
        };
        let value = self.under(entry, |reader| {
            let value = T::read(&entry.node, reader)?;
            match check(&value) {
                Ok(()) => Some(value),
                Err(Invalid { message, help }) => {
                    reader.refuse_shown(&entry.node.at, &message, help);
                    None
                }
            }
        });
        value.or(default)
    }

    /// Notes every key of a group that is none of its settings.
    pub(crate) fn no_others(&mut self, entries: &Entries<'_>, fields: &[Field]) {
        let names: Vec<&str> =
            entries.taken.into_iter().chain(fields.iter().map(|field| field.name)).collect();
        for entry in entries.list.iter().filter(|entry| !names.contains(&entry.key.as_str())) {
            let help = match nearest(&entry.key, names.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => match home_of(&entry.key, &(self.top)()) {
                    Some(home) => format!("`{}` belongs {home}", entry.key),
                    None if names.is_empty() => "nothing can be set here".to_owned(),
                    None => format!("known here: {}", any_of(&names).replace(" or ", ", ")),
                },
            };
            let mut path = self.path();
            if !is_name(entry) {
                // A value that lost its key, or `password:hunter2`.
                self.refuse(&entry.key_at, "there is no such setting", help);
                continue;
            }
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&entry.key);
            self.errors.note_shown(&entry.key_at, format!("unknown setting {}", quote(&path)), help);
        }
    }

    /// Where to point when a group lacks something: at its own key, or at what there is of it.
    fn here(&self, node: &Node) -> Range<usize> {
        self.path.last().map_or_else(|| node.at.clone(), |(_, at)| at.clone())
    }

    fn path(&self) -> String {
        let names: Vec<&str> = self.path.iter().map(|(name, _)| name.as_str()).collect();
        names.join(".")
    }
}

/// Whether a key is likely to be the name of something: a word with a value behind it.
fn is_name(entry: &Entry) -> bool {
    const LONGEST: usize = 64;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !matches!(entry.node.value, Value::Null)
        && (1..=LONGEST).contains(&entry.key.len())
        && entry.key.bytes().all(allowed)
}

/// A description of the valid values of a shape.
fn wanted(shape: &Shape) -> String {
    match shape {
        Shape::Scalar(scalar) => format!("{}, for example `{}`", scalar.what, scalar.example),
        Shape::List(scalar) => format!("a list, for example `[{}]`", scalar.example),
        Shape::Sequence(entry) => match &**entry {
            Shape::Scalar(scalar) => format!("a list, for example `[{}]`", scalar.example),
            _ => "a list, each entry behind a `-`".to_owned(),
        },
        _ => "its settings indented below it".to_owned(),
    }
}

/// Where a setting of this name is at home, in words.
fn home_of(name: &str, top: &[Field]) -> Option<String> {
    if top.iter().any(|field| field.name == name) {
        return Some("at the top, without indentation".to_owned());
    }
    top.iter().find_map(|field| match &field.shape {
        Shape::Section(fields) if fields.iter().any(|inner| inner.name == name) => {
            Some(format!("under `{}`", field.name))
        }
        _ => None,
    })
}

//! The output of an import, and its notes.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use super::document::{Map, comment};

/// A converted configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The configuration of tidegate, with the notes as comments.
    pub configuration: String,
    /// Everything that has no exact counterpart, in the order of the original.
    pub notes: Vec<Note>,
}

/// A setting that has no exact counterpart, and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Note {
    /// The file, or the command line.
    pub source: String,
    /// The line in it, counted from 1; `None` on a command line.
    pub line: Option<usize>,
    /// The setting, as a path.
    pub setting: String,
    /// The outcome, as a sentence without a full stop.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Note { source, line, setting, message } = self;
        match line {
            Some(line) => write!(f, "{source}:{line}: `{setting}`: {message}"),
            None => write!(f, "{source}: `{setting}`: {message}"),
        }
    }
}

/// The source of notes on a command line.
pub(super) const ARGUMENTS: &str = "arguments";

/// The notes taken so far, each once.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Each with its offset in its source, to sort by.
    taken: Vec<(usize, Note)>,
    seen: HashSet<Note>,
}

impl Notes {
    /// Takes a note about what stands at `at` of `text`, which is called `source`.
    pub(super) fn take(
        &mut self,
        source: &str,
        text: &str,
        at: &Range<usize>,
        setting: &str,
        message: impl Into<String>,
    ) {
        let line = text.get(..at.start).map_or(0, |before| before.matches('\n').count()) + 1;
        self.take_at(source, line, at, setting, message);
    }

    /// Takes a note about what stands at `at`, on a line that is known.
    pub(super) fn take_at(
        &mut self,
        source: &str,
        line: usize,
        at: &Range<usize>,
        setting: &str,
        message: impl Into<String>,
    ) {
        self.push(
            at.start,
            Note {
                source: source.to_owned(),
                line: Some(line),
                setting: setting.to_owned(),
                message: message.into(),
            },
        );
    }

    /// Takes a note about the argument at place `order` of a command line.
    pub(super) fn argument(&mut self, order: usize, setting: &str, message: impl Into<String>) {
        self.push(
            order,
            Note {
                source: ARGUMENTS.to_owned(),
                line: None,
                setting: setting.to_owned(),
                message: message.into(),
            },
        );
    }

    /// Takes a note about a setting of `source` whose place is not known.
    pub(super) fn whole(&mut self, source: &str, setting: &str, message: &str) {
        let (source, setting, message) = (source.to_owned(), setting.to_owned(), message.to_owned());
        self.push(usize::MAX, Note { source, line: None, setting, message });
    }

    fn push(&mut self, order: usize, note: Note) {
        // The same component may be looked at for several signals.
        if self.seen.insert(note.clone()) {
            self.taken.push((order, note));
        }
    }

    /// Prints `configuration`, converted from `source`, below the notes.
    pub(super) fn print(self, source: &str, title: &str, configuration: &Map, tail: &[String]) -> Imported {
        let notes = self.sorted();
        let mut out = String::new();
        comment(&mut out, 0, title);
        let list = |out: &mut String, heading: &str, are_needless: bool| {
            let mut notes = notes.iter().filter(|note| note.is_needless() == are_needless).peekable();
            if notes.peek().is_some() {
                comment(out, 0, "");
                comment(out, 0, heading);
            }
            for note in notes {
                comment(out, 0, &note.item(source));
            }
        };
        list(&mut out, "Without an exact counterpart:", false);
        list(&mut out, "Not needed:", true);
        out.push('\n');
        configuration.sorted().render(&mut out, 0);
        if !tail.is_empty() {
            out.push('\n');
        }
        for line in tail {
            comment(&mut out, 0, line);
        }
        Imported { configuration: out, notes }
    }

    /// The notes of each source in their order.
    fn sorted(mut self) -> Vec<Note> {
        let mut sources: Vec<String> = Vec::new();
        for (_, note) in &self.taken {
            if !sources.contains(&note.source) {
                sources.push(note.source.clone());
            }
        }
        self.taken
            .sort_by_key(|(order, note)| (sources.iter().position(|source| *source == note.source), *order));
        self.taken.into_iter().map(|(_, note)| note).collect()
    }
}

/// How the message of a note begins that is about nothing that is missed.
const NEEDLESS: &str = "not needed";

impl Note {
    /// Whether nothing is missed: tidegate does by itself what the setting was for.
    #[must_use]
    pub fn is_needless(&self) -> bool {
        self.message.starts_with(NEEDLESS)
    }

    /// The note as an item of a list in a configuration that was converted from `source`.
    fn item(&self, source: &str) -> String {
        let Note { line, setting, message, source: of } = self;
        let message =
            message.strip_prefix(NEEDLESS).map_or(message.as_str(), |rest| rest.trim_start_matches(": "));
        let file = if of == source { String::new() } else { format!("{of} ") };
        let place = line.map_or_else(String::new, |line| format!("{file}line {line}, "));
        let about = if message.is_empty() { String::new() } else { format!(": {message}") };
        format!("- {place}`{setting}`{about}.")
    }
}

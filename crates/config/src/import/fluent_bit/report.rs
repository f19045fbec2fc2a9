//! Files of a configuration, with the notes and errors about them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::keys::Keys;
use crate::error::{ErrorCollector, Errors, quote};
use crate::import::notes::Notes;
use crate::import::references;

/// A file that was read.
struct SourceFile {
    name: String,
    text: String,
    /// The offsets at which its lines begin.
    lines: Vec<usize>,
}

impl SourceFile {
    /// The line of an offset, counted from 1.
    fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset).max(1)
    }
}

/// A mistake in a file.
struct Mistake {
    file: usize,
    at: Range<usize>,
    message: String,
    help: String,
}

/// The files read so far, and what is to be said about them.
#[derive(Default)]
pub(super) struct Report {
    files: Vec<SourceFile>,
    notes: Notes,
    mistakes: Vec<Mistake>,
    /// Variables that the configuration sets itself.
    pub(super) variables: BTreeMap<String, String>,
    /// Where the records that the filter at hand takes have their keys.
    pub(super) keys: Keys,
}

impl Report {
    /// One with the same variables, for a look whose notes and mistakes nobody reads.
    pub(super) fn without_files(&self) -> Report {
        Report { variables: self.variables.clone(), ..Report::default() }
    }

    /// Adds a file, and returns its position.
    pub(super) fn add_file(&mut self, name: &str, text: &str) -> usize {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        self.files.push(SourceFile { name: name.to_owned(), text: text.to_owned(), lines });
        self.files.len() - 1
    }

    /// How many files were added.
    pub(super) fn files(&self) -> usize {
        self.files.len()
    }

    /// Whether a file of this name was added.
    pub(super) fn has_file(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.name == name)
    }

    /// The name of a file.
    pub(super) fn name_of(&self, file: usize) -> &str {
        self.files.get(file).map_or("", |file| &file.name)
    }

    /// The text at a place in a file.
    pub(super) fn text(&self, file: usize, at: &Range<usize>) -> &str {
        self.files.get(file).and_then(|file| file.text.get(at.clone())).unwrap_or_default()
    }

    /// The line of a place in a file, counted from 1.
    pub(super) fn line(&self, file: usize, at: &Range<usize>) -> usize {
        self.files.get(file).map_or(1, |file| file.line(at.start))
    }

    /// Notes what became of the setting at `at`.
    pub(super) fn note(&mut self, file: usize, at: &Range<usize>, setting: &str, message: impl Into<String>) {
        if let Some(file) = self.files.get(file) {
            self.notes.take_at(&file.name, file.line(at.start), at, setting, message);
        }
    }

    /// Notes a mistake.
    pub(super) fn error(
        &mut self,
        file: usize,
        at: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let (message, help) = (message.into(), help.into());
        self.mistakes.push(Mistake { file, at: at.clone(), message, help });
    }

    /// A value in our syntax: variables that the configuration sets are replaced, those of the environment stay.
    pub(super) fn translate(&self, text: &str) -> String {
        references::fluent_bit(text, &self.variables)
    }

    /// The notes, unless there are mistakes.
    ///
    /// # Errors
    /// Every mistake at once. Those of other files than the first have their places in the messages.
    pub(super) fn finish(self) -> Result<Notes, Errors> {
        if self.mistakes.is_empty() {
            return Ok(self.notes);
        }
        let Some(main) = self.files.first() else { return Ok(self.notes) };
        let mut collector = ErrorCollector::new(&main.text);
        for mistake in &self.mistakes {
            let Mistake { file, at, message, help } = mistake;
            match self.files.get(*file) {
                Some(other) if *file > 0 => {
                    let before = other.text.get(..at.start).unwrap_or_default();
                    let line = other.line(at.start);
                    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
                    collector.note(&(0..0), format!("{}:{line}:{column}: {message}", other.name), help);
                }
                _ => collector.note_shown(at, message, help),
            }
        }
        match collector.into_errors(&main.name) {
            Some(errors) => Err(errors),
            None => Ok(self.notes),
        }
    }

    /// Notes that a file cannot be read.
    pub(super) fn unreadable(&mut self, file: usize, at: &Range<usize>, path: &str, error: &str) {
        let help =
            "check the path, which is relative to the configuration; copy the file from the container first";
        self.error(file, at, format!("cannot read {}: {error}", quote(path)), help);
    }
}

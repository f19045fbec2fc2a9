//! Errors in a configuration, with their positions.

mod excerpt;
mod render;

use std::fmt;
use std::ops::Range;

use crate::substitute::Substituted;
use tidegate_plain::without_url_secrets;

/// How many problems are kept; a file with more is answered with these.
const MOST_PROBLEMS: usize = 100;

/// Everything that is wrong with one configuration file.
///
/// `Display` gives all of it without colour, [`Errors::coloured`] with ANSI colours for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errors {
    source: String,
    problems: Vec<Problem>,
    more: usize,
    /// Boxed, since errors are returned in many places.
    substituted: Box<Substituted>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The error, as a sentence without its full stop.
    pub message: String,
    /// The remedy; empty if there is none.
    pub help: String,
    /// Where it stands; none when the file as a whole is meant.
    pub place: Option<SourcePosition>,
}

/// A place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePosition {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The line, shortened around the place if it is long, with nothing that a terminal obeys: stars stand for all words
    /// but the names of settings and the value that the problem is about.
    pub excerpt: String,
    /// How many characters of `excerpt` stand before the place.
    pub indent: usize,
    /// How many characters to underline, at least 1.
    pub width: usize,
}

/// Why a single value cannot be read: from a file, the command line, or anywhere else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({help})")]
pub struct Invalid {
    /// The error in the value.
    pub message: String,
    /// A valid alternative.
    pub help: String,
}

impl Errors {
    /// All problems in the order of their places, at most 100.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The values that references in the file stand for, as far as it was read: messages quote those of variables.
    pub fn substituted(&self) -> &Substituted {
        &self.substituted
    }

    /// The whole text with ANSI colours.
    pub fn coloured(&self) -> impl fmt::Display + '_ {
        render::Rendering { errors: self, colour: true }
    }

    /// Adds the problems of others, in the same file.
    pub(crate) fn append(&mut self, other: Errors) {
        let room = MOST_PROBLEMS.saturating_sub(self.problems.len());
        let surplus = other.problems.len().saturating_sub(room);
        self.problems.extend(other.problems.into_iter().take(room));
        self.more += surplus + other.more;
    }

    /// The same problems where the text was that of several files, each of which began in a line counted from 0. The places of
    /// problems in other files than the first with one are in their messages.
    pub(crate) fn in_files(mut self, files: &[(usize, String)]) -> Errors {
        let mut first: Option<&str> = None;
        for problem in &mut self.problems {
            let Some(place) = &mut problem.place else { continue };
            let file = files.iter().rev().find(|(line, _)| *line < place.line);
            let Some((line, name)) = file else { continue };
            place.line -= line;
            let source = *first.get_or_insert(name.as_str());
            if source != name {
                problem.message = format!("{name}:{}:{}: {}", place.line, place.column, problem.message);
                problem.place = None;
            }
        }
        if let Some(source) = first {
            source.clone_into(&mut self.source);
        }
        self
    }

    /// A problem with the file as a whole, before anything in it was looked at.
    pub(crate) fn of_file(source: &str, message: String, help: &str) -> Errors {
        let problem = Problem { message, help: help.to_owned(), place: None };
        let (source, problems) = (source.to_owned(), vec![problem]);
        Errors { source, problems, more: 0, substituted: Box::default() }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        render::Rendering { errors: self, colour: false }.fmt(f)
    }
}

impl std::error::Error for Errors {}

impl Invalid {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Invalid {
        Invalid { message: message.into(), help: help.into() }
    }
}

/// The problems found so far in one text, by byte range.
pub(crate) struct ErrorCollector<'a> {
    text: &'a str,
    found: Vec<(Range<usize>, Problem)>,
    more: usize,
    /// Values that contain a file's content, each with the file's path.
    hidden: Vec<(Range<usize>, String)>,
    /// The values that references stand for.
    substituted: Substituted,
    /// Values that no message shows.
    secrets: Vec<Range<usize>>,
}

impl<'a> ErrorCollector<'a> {
    pub(crate) fn new(text: &'a str) -> ErrorCollector<'a> {
        ErrorCollector {
            text,
            found: Vec::new(),
            more: 0,
            hidden: Vec::new(),
            substituted: Substituted::default(),
            secrets: Vec::new(),
        }
    }

    /// Notes a problem, without showing what stands at `at`.
    pub(crate) fn note(&mut self, at: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.add(at, message.into(), help.into(), false);
    }

    /// Notes a problem with a word that is no secret, and shows it.
    pub(crate) fn note_shown(
        &mut self,
        at: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(at, message.into(), help.into(), true);
    }

    /// Notes a problem with the part `at` of the text `within`, which is no secret, and shows all of that.
    pub(crate) fn note_part(
        &mut self,
        at: &Range<usize>,
        within: &Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add_shown(at, message.into(), help.into(), Some(within));
    }

    fn add(&mut self, at: &Range<usize>, message: String, help: String, is_shown: bool) {
        self.add_shown(at, message, help, is_shown.then_some(at));
    }

    fn add_shown(&mut self, at: &Range<usize>, message: String, help: String, shown: Option<&Range<usize>>) {
        if self.found.len() >= MOST_PROBLEMS {
            self.more += 1;
            return;
        }
        let is_secret = self.secrets.iter().any(|secret| secret.start <= at.end && at.start <= secret.end);
        let place = Some(SourcePosition::of(self.text, at, shown.filter(|_| !is_secret)));
        let hidden = self.hidden.iter().find(|(range, _)| range.start <= at.start && at.end <= range.end);
        // The message may quote the value.
        let (message, help) = match hidden {
            Some((_, file)) => (
                format!("the content of the file {} is not a valid value here", quote(file)),
                "check the file; its content is not shown here".to_owned(),
            ),
            None => (message, help),
        };
        let problem = Problem { message, help, place };
        self.found.push((at.clone(), problem));
    }

    /// Keeps the value at `at`, which contains the content of `file`, out of all later messages.
    pub(crate) fn hide(&mut self, at: Range<usize>, file: String) {
        self.hidden.push((at, file));
    }

    /// References stand for these values.
    pub(crate) fn add_substituted(&mut self, more: Substituted) {
        self.substituted.extend(more);
    }

    /// The values that references stand for, each once.
    pub(crate) fn substituted(&self) -> Substituted {
        self.substituted.clone().sorted()
    }

    /// From now on no excerpt shows the value at `at`.
    pub(crate) fn conceal(&mut self, at: Range<usize>) {
        self.secrets.push(at);
    }

    /// Whether the value at this place is hidden.
    pub(crate) fn hides(&self, at: &Range<usize>) -> bool {
        self.hidden.iter().any(|(range, _)| at.start <= range.start && range.end <= at.end)
    }

    /// Whether something inside this range has already been found wrong.
    pub(crate) fn within(&self, range: &Range<usize>) -> bool {
        self.found.iter().any(|(at, _)| range.start <= at.start && at.end <= range.end)
    }

    /// The text that these errors are about.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn into_errors(mut self, source: &str) -> Option<Errors> {
        if self.found.is_empty() {
            return None;
        }
        self.found.sort_by_key(|(at, _)| at.start);
        let problems = self.found.into_iter().map(|(_, problem)| problem).collect();
        let substituted = Box::new(self.substituted.sorted());
        Some(Errors { source: source.to_owned(), problems, more: self.more, substituted })
    }
}

/// A value from the file as messages show it: in backticks, short, with nothing that a terminal obeys, and without what
/// is secret in a URL.
pub(crate) fn quote(text: &str) -> String {
    const LONGEST: usize = 60;
    let text = without_url_secrets(text);
    let shown: String = text.chars().take(LONGEST).map(render::harmless).collect();
    let more = if text.chars().nth(LONGEST).is_some() { "…" } else { "" };
    format!("`{shown}{more}`")
}

/// The names in backticks as a sentence lists them: `` `a`, `b` or `c` ``.
pub(crate) fn any_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

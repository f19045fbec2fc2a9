//! Drawing problems: the sentence, the place, the line with the place underlined, the help.

use std::fmt;
use std::ops::Range;

use super::excerpt::{Excerpt, excerpt};
use super::{Errors, Problem, SourcePosition};

/// The longest excerpt in characters.
const WIDEST: usize = 100;
/// How much of a long line is shown before the place.
const BEFORE: usize = 30;

const ERROR: &str = "\x1b[1;31m";
const BOLD: &str = "\x1b[1m";
const FRAME: &str = "\x1b[1;34m";
const HELP: &str = "\x1b[1;32m";
const RESET: &str = "\x1b[0m";

pub(super) struct Rendering<'a> {
    pub(super) errors: &'a Errors,
    pub(super) colour: bool,
}

impl fmt::Display for Rendering<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.errors.problems {
            self.problem(f, problem)?;
            writeln!(f)?;
        }
        match self.errors.problems.len() + self.errors.more {
            1 => write!(f, "1 error in {}", self.errors.source),
            all if self.errors.more == 0 => write!(f, "{all} errors in {}", self.errors.source),
            all => {
                write!(f, "{all} errors in {}, {} of them not shown", self.errors.source, self.errors.more)
            }
        }
    }
}

impl Rendering<'_> {
    fn problem(&self, f: &mut fmt::Formatter<'_>, problem: &Problem) -> fmt::Result {
        let [error, bold, frame, help, reset] =
            if self.colour { [ERROR, BOLD, FRAME, HELP, RESET] } else { [""; 5] };
        writeln!(f, "{error}error{reset}{bold}: {}{reset}", problem.message)?;
        let gutter = problem.place.as_ref().map_or(1, |place| place.line.to_string().len());
        if let Some(place) = &problem.place {
            let SourcePosition { line, column, excerpt, indent, width } = place;
            writeln!(f, "{:gutter$}{frame}-->{reset} {}:{line}:{column}", "", self.errors.source)?;
            writeln!(f, "{:gutter$} {frame}|{reset}", "")?;
            writeln!(f, "{frame}{line} |{reset} {excerpt}")?;
            writeln!(f, "{:gutter$} {frame}|{reset} {:indent$}{error}{:^<width$}{reset}", "", "", "")?;
        }
        if !problem.help.is_empty() {
            writeln!(f, "{:gutter$} {frame}={reset} {help}help:{reset} {}", "", problem.help)?;
        }
        Ok(())
    }
}

impl SourcePosition {
    /// The place of a byte range; of one that spans lines, its part on the first. Of the line only `shown` is shown.
    pub(crate) fn of(text: &str, at: &Range<usize>, shown: Option<&Range<usize>>) -> SourcePosition {
        let start = floor_boundary(text, at.start);
        let end = floor_boundary(text, at.end).max(start);
        let (before, after) = text.split_at(start);
        let line = before.matches('\n').count() + 1;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = after.split(['\n', '\r']).next().unwrap_or_default();
        let column = before.get(line_start..).map_or(0, |part| part.chars().count());
        let marked = rest.get(..end - start).unwrap_or(rest).trim_end().len();

        let whole = text.get(line_start..start + rest.len()).unwrap_or_default();
        let from = start - line_start;
        let in_line = |at: usize| floor_boundary(text, at).clamp(line_start, start + rest.len()) - line_start;
        let shown = shown.map(|shown| in_line(shown.start).min(from)..in_line(shown.end).max(from + marked));
        let Excerpt { text: whole, indent: from, width } = excerpt(whole, from..from + marked, shown);
        let cut = if whole.len() > WIDEST { from.saturating_sub(BEFORE) } else { 0 };
        let mut excerpt: String = whole.iter().skip(cut).take(WIDEST).collect();
        let mut indent = from - cut;
        if whole.len() > cut + WIDEST {
            excerpt.push('…');
        }
        if cut > 0 {
            excerpt.insert(0, '…');
            indent += 1;
        }
        let width = width.clamp(1, WIDEST.saturating_sub(indent).max(1));
        SourcePosition { line, column: column + 1, excerpt, indent, width }
    }
}

/// The character, or a stand-in for one that moves the cursor or that a terminal obeys.
pub(super) fn harmless(c: char) -> char {
    match c {
        '\t' => ' ',
        c if tidegate_plain::is_control(c) => '\u{fffd}',
        c => c,
    }
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

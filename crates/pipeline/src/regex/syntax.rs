//! Reads a pattern as Go's `regexp/syntax` does (RE2 with Perl's classes and flags).
//!
//! The result is a tree of `regex-syntax`, whose own syntax differs: there `\d` is Unicode's, `[a&&b]` an intersection, `{` never a
//! literal, `a**` legal. Source: <https://pkg.go.dev/regexp/syntax> and `parse.go` beside it.

mod groups;
mod repetition;

use super::PatternError;
use super::classes;
use regex_syntax::hir::{Dot, Hir, Look};
use repetition::counts;

/// The deepest nesting. Go accepts 1,000.
const MAX_DEPTH: usize = 250;
/// Extent of the haystack that a pattern has to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A part of the haystack.
    Search,
    /// All of the haystack, where `.` matches line breaks too: Prometheus' `^(?s:…)$`.
    Whole,
}

/// A pattern that was read.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) hir: Hir,
    /// The names of the captured groups; the whole match is the first.
    pub(super) names: Vec<Option<Box<str>>>,
    /// All groups, the whole match included.
    pub(super) groups: usize,
}

/// Reads `pattern`.
pub(super) fn parse(pattern: &str, mode: Mode) -> Result<Parsed, PatternError> {
    const BEFORE: &str = "^(?s:";
    match mode {
        Mode::Search => Parser::new(pattern).parse(),
        // The text and not the tree is wrapped, as Prometheus does: `a)|(b` is a legal pattern there.
        Mode::Whole => Parser::new(&format!("{BEFORE}{pattern})$")).parse().map_err(|mut error| {
            let within = |at: usize| at.saturating_sub(BEFORE.len()).min(pattern.len());
            error.range = within(error.range.start)..within(error.range.end);
            error
        }),
    }
}

/// The flags in `(?flags)`.
#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    fold_case: bool,
    lines: bool,
    dot_all: bool,
    non_greedy: bool,
}

/// Parts that were read and are not yet in a tree.
enum Pending {
    Item(Item),
    Bar,
    Open { flags: Flags, capture: Option<u32>, at: usize },
}

/// A tree with what limits its repetition.
struct Item {
    hir: Hir,
    /// The copies of its innermost part.
    copies: u32,
    depth: usize,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    flags: Flags,
    stack: Vec<Pending>,
    names: Vec<Option<Box<str>>>,
    groups: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let (stack, names) = (Vec::new(), vec![None]);
        Parser { text, at: 0, flags: Flags::default(), stack, names, groups: 1 }
    }

    fn parse(mut self) -> Result<Parsed, PatternError> {
        // Where the last repetition operator began, if it is directly before this place.
        let mut repeated = None;
        while let Some(c) = self.peek() {
            let start = self.at;
            let mut repeats = None;
            match c {
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => {
                    self.at += 1;
                    self.concat();
                    self.stack.push(Pending::Bar);
                }
                '*' | '+' | '?' => {
                    self.at += 1;
                    let (min, max) = match c {
                        '*' => (0, None),
                        '+' => (1, None),
                        _ => (0, Some(1)),
                    };
                    self.repeat(min, max, start, repeated)?;
                    repeats = Some(start);
                }
                '{' => match counts(self.rest()) {
                    Some((len, bounds)) => {
                        self.at += len;
                        let Some((min, max)) = bounds else {
                            return Err(self
                                .error(start, "invalid repeat count: at most 1000, the smaller one first"));
                        };
                        self.repeat(min, max, start, repeated)?;
                        repeats = Some(start);
                    }
                    None => self.literal(),
                },
                _ => self.simple(c)?,
            }
            repeated = repeats;
        }
        let item = self.alternation();
        if let Some(Pending::Open { at, .. }) = self.stack.last() {
            return Err(PatternError { message: "missing closing parenthesis".into(), range: *at..at + 1 });
        }
        Ok(Parsed { hir: item.hir, names: self.names, groups: self.groups })
    }

    /// An item without parentheses and repetition.
    fn simple(&mut self, c: char) -> Result<(), PatternError> {
        let start = self.at;
        let hir = match c {
            '^' => Hir::look(if self.flags.lines { Look::StartLF } else { Look::Start }),
            '$' => Hir::look(if self.flags.lines { Look::EndLF } else { Look::End }),
            '.' => Hir::dot(if self.flags.dot_all { Dot::AnyChar } else { Dot::AnyCharExceptLF }),
            '[' => {
                let (class, len) = classes::bracketed(self.rest(), self.flags.fold_case)
                    .map_err(|error| error.shifted(start))?;
                self.at += len;
                self.push(class);
                return Ok(());
            }
            '\\' => return self.escape(),
            _ => {
                self.literal();
                return Ok(());
            }
        };
        self.at += 1;
        self.push(hir);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        let look = match self.rest().as_bytes().get(1) {
            Some(b'A') => Look::Start,
            Some(b'z') => Look::End,
            Some(b'b') => Look::WordAscii,
            Some(b'B') => Look::WordAsciiNegate,
            Some(b'Q') => {
                let quoted = self.rest().get(2..).unwrap_or_default();
                let (literal, len) = match quoted.find("\\E") {
                    Some(end) => (quoted.get(..end).unwrap_or_default(), end + 2),
                    None => (quoted, quoted.len()),
                };
                literal.chars().for_each(|c| self.push_char(c));
                self.at += 2 + len;
                return Ok(());
            }
            _ => {
                let class = classes::escaped(self.rest(), self.flags.fold_case);
                if let Some((class, len)) = class.map_err(|error| error.shifted(start))? {
                    self.at += len;
                    self.push(class);
                    return Ok(());
                }
                let (c, len) = classes::escaped_char(self.rest()).map_err(|error| error.shifted(start))?;
                self.at += len;
                match c {
                    Some(c) => self.push_char(c),
                    // A surrogate, which no text has.
                    None => self.push(Hir::fail()),
                }
                return Ok(());
            }
        };
        self.at += 2;
        self.push(Hir::look(look));
        Ok(())
    }

    fn literal(&mut self) {
        if let Some(c) = self.peek() {
            self.at += c.len_utf8();
            self.push_char(c);
        }
    }

    fn push_char(&mut self, c: char) {
        let hir = if self.flags.fold_case {
            classes::folded(c)
        } else {
            Hir::literal(c.encode_utf8(&mut [0; 4]).as_bytes())
        };
        self.push(hir);
    }

    fn push(&mut self, hir: Hir) {
        self.stack.push(Pending::Item(Item { hir, copies: 1, depth: 1 }));
    }

    /// Makes one item of those since the last bar or parenthesis.
    fn concat(&mut self) {
        let first = self.stack.iter().rposition(|pending| !matches!(pending, Pending::Item(_)));
        let items = self.stack.split_off(first.map_or(0, |at| at + 1));
        let item = merged(items, Hir::concat);
        self.stack.push(Pending::Item(item));
    }

    /// Makes one item of the alternatives since the last open parenthesis, which is left on the stack.
    fn alternation(&mut self) -> Item {
        self.concat();
        let first = self.stack.iter().rposition(|pending| matches!(pending, Pending::Open { .. }));
        merged(self.stack.split_off(first.map_or(0, |at| at + 1)), Hir::alternation)
    }

    fn deeper(&self, depth: usize, start: usize) -> Result<usize, PatternError> {
        if depth >= MAX_DEPTH {
            return Err(self.error(start, "the pattern is nested too deeply"));
        }
        Ok(depth + 1)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// An error in the text from `start` to where the parser is.
    fn error(&self, start: usize, message: &str) -> PatternError {
        let next = self.rest().chars().next().map_or(0, char::len_utf8);
        let end = if self.at > start { self.at } else { self.at + next };
        PatternError { message: message.into(), range: start..end }
    }
}

/// One item of several.
fn merged(items: Vec<Pending>, merge: fn(Vec<Hir>) -> Hir) -> Item {
    let (mut copies, mut depth) = (1, 1);
    let mut parts = Vec::with_capacity(items.len());
    for pending in items {
        if let Pending::Item(item) = pending {
            copies = copies.max(item.copies);
            depth = depth.max(item.depth);
            parts.push(item.hir);
        }
    }
    Item { hir: merge(parts), copies, depth }
}

//! Reads a pattern as Go's `regexp/syntax` does (RE2 with Perl's classes and flags).
//!
//! The result is a tree of `regex-syntax`, whose own syntax differs: there `\d` is Unicode's, `[a&&b]` an intersection, `{` never a
//! literal, `a**` legal. Source: <https://pkg.go.dev/regexp/syntax> and `parse.go` beside it.

use super::classes;
use super::{MAX_GROUPS, PatternError};
use regex_syntax::hir::{Capture, Dot, Hir, Look, Repetition};

/// The deepest nesting. Go accepts 1,000.
const MAX_DEPTH: usize = 250;
/// The most copies that counted repetitions may ask for, together where they are nested.
const MAX_REPEAT: u32 = 1_000;

/// What a pattern has to match.
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

/// What is read and not yet in a tree.
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

    /// Repeats the last item, by the operator at `start`.
    fn repeat(
        &mut self,
        min: u32,
        max: Option<u32>,
        start: usize,
        repeated: Option<usize>,
    ) -> Result<(), PatternError> {
        let mut greedy = !self.flags.non_greedy;
        if self.rest().starts_with('?') {
            self.at += 1;
            greedy = !greedy;
        }
        if let Some(first) = repeated {
            return Err(self.error(first, "nested repetition operator; use parentheses"));
        }
        let Some(Pending::Item(item)) = self.stack.pop_if(|last| matches!(last, Pending::Item(_))) else {
            return Err(self.error(start, "nothing to repeat before the repetition operator"));
        };
        let factor = max.unwrap_or(min);
        let copies = match max {
            Some(0) => 1,
            _ => item.copies.saturating_mul(factor.max(1)),
        };
        if (min >= 2 || max.is_some_and(|max| max >= 2)) && copies > MAX_REPEAT {
            return Err(self.error(start, "nested counted repetitions ask for more than 1000 copies"));
        }
        let depth = self.deeper(item.depth, start)?;
        let hir = Hir::repetition(Repetition { min, max, greedy, sub: Box::new(item.hir) });
        self.stack.push(Pending::Item(Item { hir, copies, depth }));
        Ok(())
    }

    fn open(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        let rest = self.rest();
        if !rest.starts_with("(?") {
            self.at += 1;
            self.capture(None, start);
            return Ok(());
        }
        let named = rest.strip_prefix("(?P<").or_else(|| rest.strip_prefix("(?<"));
        if let Some(after) = named {
            let Some((name, _)) = after.split_once('>') else {
                return Err(self.error(start, "the name of the group does not end: write (?P<name>…)"));
            };
            self.at += rest.len() - after.len() + name.len() + 1;
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                let message =
                    format!("invalid group name `{name}`: only letters, digits and `_` are allowed");
                return Err(self.error(start, &message));
            }
            self.capture(Some(name.into()), start);
            return Ok(());
        }
        self.flags_or_group(start)
    }

    fn capture(&mut self, name: Option<Box<str>>, at: usize) {
        self.groups += 1;
        let capture = (self.names.len() < MAX_GROUPS).then(|| {
            self.names.push(name);
            // Fewer than `MAX_GROUPS`.
            (self.names.len() - 1) as u32
        });
        self.stack.push(Pending::Open { flags: self.flags, capture, at });
    }

    /// `(?flags)` or `(?flags:`.
    fn flags_or_group(&mut self, start: usize) -> Result<(), PatternError> {
        let mut flags = self.flags;
        let (mut on, mut seen) = (true, false);
        for (offset, c) in self.rest().char_indices().skip(2) {
            match c {
                'i' => flags.fold_case = on,
                'm' => flags.lines = on,
                's' => flags.dot_all = on,
                'U' => flags.non_greedy = on,
                '-' if on => (on, seen) = (false, false),
                ':' | ')' if on || seen => {
                    self.at += offset + 1;
                    if c == ':' {
                        self.stack.push(Pending::Open { flags: self.flags, capture: None, at: start });
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => {
                    self.at += offset + c.len_utf8();
                    return Err(self.error(start, "invalid or unsupported group: Go knows (…), (?:…), (?P<name>…) and the flags i, m, s, U"));
                }
            }
            seen |= c != '-';
        }
        self.at = self.text.len();
        Err(self.error(start, "missing closing parenthesis"))
    }

    fn close(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        self.at += 1;
        let item = self.alternation();
        let Some(Pending::Open { flags, capture, .. }) = self.stack.pop() else {
            return Err(self.error(start, "unexpected `)`: no group is open"));
        };
        self.flags = flags;
        let depth = self.deeper(item.depth, start)?;
        let hir = match capture {
            Some(index) => Hir::capture(Capture { index, name: None, sub: Box::new(item.hir) }),
            None => item.hir,
        };
        self.stack.push(Pending::Item(Item { hir, depth, ..item }));
        Ok(())
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

/// The fewest and the most copies.
type Bounds = (u32, Option<u32>);

/// The length of the counted repetition that `text` begins with, and its bounds if those are allowed. `None` when the
/// brace is a literal.
fn counts(text: &str) -> Option<(usize, Option<Bounds>)> {
    let end = text.find('}')?;
    let inner = text.get(1..end)?;
    let (min, max) = match inner.split_once(',') {
        Some((min, "")) => (count(min)?, None),
        Some((min, max)) => (count(min)?, Some(count(max)?)),
        None => (count(inner)?, Some(count(inner)?)),
    };
    let allowed = min <= MAX_REPEAT && max.is_none_or(|max| max <= MAX_REPEAT && min <= max);
    Some((end + 1, allowed.then_some((min, max))))
}

/// A count: digits without a leading zero.
fn count(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    Some(text.parse().unwrap_or(u32::MAX))
}

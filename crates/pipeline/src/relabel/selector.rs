//! Series selectors, as vmagent's `if` has them: `name{a="b", c=~"d" or e!="f"}`.

use super::compile::Compiler;
use super::labels::Labels;
use super::pattern::{Memo, Pattern};
use crate::memory::{Memory, Slice};
use crate::regex::{Caches, Mode};
use std::ops::Range;

/// A compiled selector: alternatives, of which each is a list of filters that all have to match.
#[derive(Debug)]
pub(super) struct Selector(Box<[Box<[Filter]>]>);

/// `label="value"`.
#[derive(Debug)]
struct Filter {
    label: Slice,
    negated: bool,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Equal(Slice),
    Matches(Pattern),
}

/// An error in a selector, and its position.
pub(super) type Error = (String, Range<usize>);

impl Selector {
    /// Reads `text`.
    pub(super) fn new(text: &str, compiler: &mut Compiler) -> Result<Selector, Error> {
        let mut reader = Reader { text, at: 0 };
        reader.spaces();
        let mut name = None;
        if !reader.is_next("{") {
            let name_at = reader.at;
            let metric = reader.name(true).ok_or_else(|| reader.error("expected a metric name or `{`"))?;
            name = Some((metric, name_at));
        }
        reader.spaces();
        let mut alternatives = Vec::new();
        if reader.eat("{") {
            alternatives = reader.filters(compiler)?;
        } else if name.is_none() {
            return Err(reader.error("expected `{`"));
        }
        reader.spaces();
        if reader.at < text.len() {
            return Err(reader.error("expected the end of the selector"));
        }
        if let Some((metric, _)) = name {
            if alternatives.is_empty() {
                alternatives.push(Vec::new());
            }
            for filters in &mut alternatives {
                let label = compiler.constant("__name__");
                let test = Test::Equal(compiler.constant(&metric));
                filters.insert(0, Filter { label, negated: false, test });
            }
        }
        if alternatives.is_empty() {
            alternatives.push(Vec::new());
        }
        Ok(Selector(alternatives.into_iter().map(Vec::into).collect()))
    }

    /// The labels that it looks at.
    pub(super) fn labels(&self) -> impl Iterator<Item = Slice> {
        self.0.iter().flatten().map(|filter| filter.label)
    }

    /// Whether it selects a series with these labels.
    pub(super) fn selects(
        &self,
        labels: &Labels,
        memory: &Memory<'_>,
        caches: &mut Caches,
        memos: &mut [Memo],
    ) -> bool {
        let mut meets = |filter: &Filter| {
            let value = memory.get(labels.get(memory, filter.label).slice);
            let equal = match &filter.test {
                Test::Equal(wanted) => value == memory.get(*wanted),
                Test::Matches(pattern) => pattern.is_match(value, caches, memos),
            };
            equal != filter.negated
        };
        self.0.iter().any(|filters| filters.iter().all(&mut meets))
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    /// The filters up to the closing brace, which is read.
    fn filters(&mut self, compiler: &mut Compiler) -> Result<Vec<Vec<Filter>>, Error> {
        let mut alternatives = vec![Vec::new()];
        loop {
            self.spaces();
            if self.eat("}") {
                return Ok(alternatives);
            }
            let filter = self.filter(compiler)?;
            if let Some(filters) = alternatives.last_mut() {
                filters.push(filter);
            }
            self.spaces();
            let before = self.at;
            if self.eat(",") {
                continue;
            }
            if self.name(false).is_some_and(|word| word.eq_ignore_ascii_case("or")) {
                alternatives.push(Vec::new());
                continue;
            }
            self.at = before;
            if !self.is_next("}") {
                return Err(self.error("expected `,`, `or` or `}`"));
            }
        }
    }

    fn filter(&mut self, compiler: &mut Compiler) -> Result<Filter, Error> {
        let quoted = self.is_next("\"") || self.is_next("'") || self.is_next("`");
        let label = if quoted {
            self.string()?.0
        } else {
            self.name(false).ok_or_else(|| self.error("expected the name of a label"))?
        };
        self.spaces();
        if quoted && (self.is_next(",") || self.is_next("}")) {
            // `{"metric.name"}`
            let test = Test::Equal(compiler.constant(&label));
            return Ok(Filter { label: compiler.constant("__name__"), negated: false, test });
        }
        let operators = [("=~", true, false), ("!~", true, true), ("!=", false, true), ("=", false, false)];
        let operator = operators.into_iter().find(|(sign, ..)| self.eat(sign));
        let Some((_, regex, negated)) = operator else {
            return Err(self.error("expected `=`, `!=`, `=~` or `!~`"));
        };
        self.spaces();
        let start = self.at;
        let (value, plain) = self.string()?;
        let test = if regex {
            Test::Matches(compiler.pattern(&value, Mode::Whole, false).map_err(|error| {
                // Without escapes, positions in the value are positions in the text.
                let range = if plain {
                    error.range.start + start + 1..error.range.end + start + 1
                } else {
                    start..self.at
                };
                (error.message, range)
            })?)
        } else {
            Test::Equal(compiler.constant(&value))
        };
        Ok(Filter { label: compiler.constant(&label), negated, test })
    }

    /// A name without quotes; `metric` allows colons.
    fn name(&mut self, metric: bool) -> Option<String> {
        let rest = self.text.get(self.at..)?;
        let allowed = |c: char| c.is_alphanumeric() || c == '_' || c == '.' || (metric && c == ':');
        let end = rest.find(|c: char| !allowed(c)).unwrap_or(rest.len());
        let name = rest.get(..end)?;
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        self.at += end;
        Some(name.into())
    }

    /// A quoted text, and whether it has no escapes.
    fn string(&mut self) -> Result<(String, bool), Error> {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        let mut chars = rest.char_indices();
        let quote = match chars.next() {
            Some((_, c @ ('"' | '\'' | '`'))) => c,
            _ => return Err(self.error("expected a text in quotes")),
        };
        let (mut value, mut plain) = (String::new(), true);
        while let Some((offset, c)) = chars.next() {
            if c == quote {
                self.at = start + offset + 1;
                return Ok((value, plain));
            }
            if c != '\\' || quote == '`' {
                value.push(c);
                continue;
            }
            plain = false;
            let escaped = chars.next();
            let mut code = |digits: usize| {
                let hex: String = chars.by_ref().take(digits).map(|(_, c)| c).collect();
                u32::from_str_radix(&hex, 16).ok().filter(|_| hex.len() == digits).and_then(char::from_u32)
            };
            let escape = match escaped {
                Some((_, c @ ('\\' | '"' | '\'' | '`'))) => Some(c),
                Some((_, 'n')) => Some('\n'),
                Some((_, 't')) => Some('\t'),
                Some((_, 'r')) => Some('\r'),
                Some((_, 'x')) => code(2).filter(char::is_ascii),
                Some((_, 'u')) => code(4),
                Some((_, 'U')) => code(8),
                _ => None,
            };
            let Some(c) = escape else {
                let at = start + offset;
                return Err((
                    "unknown escape in the text; a regular expression needs `\\\\` for `\\`".into(),
                    at..at + 1,
                ));
            };
            value.push(c);
        }
        Err(("the text does not end: a quote is missing".into(), start..self.text.len()))
    }

    fn spaces(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn is_next(&self, token: &str) -> bool {
        self.text.get(self.at..).is_some_and(|rest| rest.starts_with(token))
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.is_next(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn error(&self, message: &str) -> Error {
        let next = self.text.get(self.at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        (message.into(), self.at..self.at + next)
    }
}

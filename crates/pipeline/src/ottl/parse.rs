//! Parses statements and conditions into trees.
//!
//! The grammar is that of `pkg/ottl`'s `grammar.go`, where an alternative that matches is final. So this parser only goes
//! back at a parenthesis, which may begin a value or a condition, and its work is bounded by the text's length times the
//! depth. The depth is bounded, which `pkg/ottl` does not do, and so is every recursion over a tree.

mod condition;
mod error;
mod value;

use super::diagnostic::Fault;
use super::syntax::{ConditionTree, Name, StatementTree, ValueTree};
use super::token::{Token, TokenKind, tokens};
use std::ops::Range;

/// How deep calls, lists, maps, keys and parentheses may nest, and how many operators one expression may have.
pub(crate) const DEEPEST: usize = 64;

/// Parses a statement.
///
/// # Errors
/// Error at the place that the parser got to.
pub(crate) fn statement(text: &str) -> Result<StatementTree, Fault> {
    run(text, |parser| parser.statement())
}

/// Parses a condition.
///
/// # Errors
/// Error at the place that the parser got to.
pub(crate) fn condition(text: &str) -> Result<ConditionTree, Fault> {
    run(text, |parser| parser.condition())
}

/// Parses an expression for a value.
///
/// # Errors
/// Error at the place that the parser got to.
pub(crate) fn expression(text: &str) -> Result<ValueTree, Fault> {
    run(text, |parser| parser.value())
}

/// A rule did not match; the parser knows why.
#[derive(Debug)]
struct Mismatch;

type Parsed<T> = Result<T, Mismatch>;

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    /// The index of the next token.
    at: usize,
    depth: usize,
    /// Tokens expected at the furthest token that did not match.
    furthest: usize,
    expected: Vec<&'static str>,
    /// An error that no other alternative can mend.
    fatal: Option<Fault>,
}

fn run<T>(text: &str, rule: impl FnOnce(&mut Parser<'_>) -> Parsed<T>) -> Result<T, Fault> {
    let tokens = match tokens(text) {
        Ok(tokens) => tokens,
        Err(error) => return Err(Fault { range: error.range, message: error.message, help: error.help }),
    };
    let mut parser =
        Parser { text, tokens: &tokens, at: 0, depth: 0, furthest: 0, expected: Vec::new(), fatal: None };
    match rule(&mut parser).and_then(|tree| parser.end().map(|()| tree)) {
        Ok(tree) => Ok(tree),
        Err(Mismatch) => Err(parser.fault()),
    }
}

impl Parser<'_> {
    fn statement(&mut self) -> Parsed<StatementTree> {
        let start = self.at;
        let Some(end) = self.name_end(TokenKind::Lowercase).filter(|end| self.is(*end, TokenKind::LeftParen))
        else {
            return match self.name_end(TokenKind::Uppercase) {
                Some(end) if self.is(end, TokenKind::LeftParen) => Err(self.converter_as_editor(end)),
                _ => Err(self.expect("an editor, such as `set(…)`")),
            };
        };
        let name = self.name(start, end);
        let editor = self.call(name)?;
        if let (Some(first), Some(last)) = (editor.keys.first(), editor.keys.last()) {
            let range = first.range().start..last.range().end;
            let message = format!("`{}` has no value, so no keys can follow it", editor.name.text);
            return Err(self.fatal(range, message, None));
        }
        let condition = match self.peek_word("where") {
            true => {
                self.at += 1;
                Some(self.condition()?)
            }
            false => {
                self.note("`where`");
                None
            }
        };
        Ok(StatementTree { editor, condition })
    }

    fn end(&mut self) -> Parsed<()> {
        match self.at == self.tokens.len() {
            true => Ok(()),
            false => Err(self.expect("the end")),
        }
    }

    // Tokens.

    fn kind(&self) -> Option<TokenKind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn is(&self, at: usize, kind: TokenKind) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == kind)
    }

    fn peek_word(&self, word: &str) -> bool {
        self.is(self.at, TokenKind::Lowercase) && self.slice(self.at) == word
    }

    fn range(&self, at: usize) -> Range<usize> {
        self.tokens.get(at).map_or(self.text.len()..self.text.len(), |token| token.range.clone())
    }

    fn slice(&self, at: usize) -> &str {
        self.text.get(self.range(at)).unwrap_or_default()
    }

    /// Takes the next token if it is of `kind`.
    fn take(&mut self, kind: TokenKind) -> bool {
        let taken = self.kind() == Some(kind);
        self.at += usize::from(taken);
        taken
    }

    fn need(&mut self, kind: TokenKind, name: &'static str) -> Parsed<()> {
        match self.take(kind) {
            true => Ok(()),
            false => Err(self.expect(name)),
        }
    }

    /// The bytes from the start of token `from` to the end of the last token that was taken.
    fn since(&self, from: usize) -> Range<usize> {
        let start = self.range(from).start;
        start..self.at.checked_sub(1).map_or(start, |last| self.range(last).end).max(start)
    }

    /// The index behind a function's name that begins here with a token of kind `first`.
    fn name_end(&self, first: TokenKind) -> Option<usize> {
        if self.kind() != Some(first) {
            return None;
        }
        let mut end = self.at + 1;
        while self.is(end, TokenKind::Uppercase) || self.is(end, TokenKind::Lowercase) {
            end += 1;
        }
        Some(end)
    }

    /// The tokens from `start` to `end` as one name; the next token is the one behind.
    fn name(&mut self, start: usize, end: usize) -> Name {
        let text = (start..end).map(|at| self.slice(at)).collect();
        self.at = end;
        Name { text, range: self.since(start) }
    }

    /// Runs `rule` one level deeper.
    fn deeper<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEEPEST {
            let message = format!("this nests deeper than {DEEPEST} levels");
            return Err(self.fatal(self.range(self.at), message, None));
        }
        self.depth += 1;
        let parsed = rule(self);
        self.depth -= 1;
        parsed
    }
}

#[cfg(test)]
mod tests;

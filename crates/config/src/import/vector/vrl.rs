//! VRL, the language of Vector's remaps and conditions: the part of it that people write, as statements of OTTL.
//!
//! Statements that are not understood stay as they are written: they are no OTTL, so `tidegate check` refuses them.

mod access_logs;
mod assignments;
mod calls;
mod conditions;
mod outcomes;
mod parser;
mod parsers;
mod statements;
mod syntax;
mod token;
mod values;

pub(super) use parser::parse;
pub(super) use statements::{ABORTED, Line, Translated, translate};
pub(super) use syntax::{Segment, Statement, StatementKind};

use super::vocabulary::Vocabulary;

/// A value in OTTL, or why there is none.
type Translation<T> = Result<T, String>;

/// A condition in OTTL, or why there is none.
pub(super) fn condition(text: &str, vocabulary: &Vocabulary) -> Result<String, String> {
    let statements = parse(text);
    let [Statement { kind: StatementKind::Expression(expression), .. }] = statements.as_slice() else {
        return Err("a condition is one expression here".to_owned());
    };
    statements::Translator::new(text, vocabulary).lone_condition(expression)
}

/// The path of a field as it stands in Vector's settings, without a dot before it.
pub(super) fn field(text: &str) -> Option<Vec<Segment>> {
    let dotted = if text.starts_with('.') { text.to_owned() } else { format!(".{text}") };
    match token::tokens(&dotted).as_slice() {
        [token::Placed { token: token::Token::Path(path), .. }] if !path.is_empty() => Some(path.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

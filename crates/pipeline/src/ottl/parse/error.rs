//! Errors of the parser: what was expected where it got furthest.

use super::super::diagnostic::Fault;
use super::super::suggest;
use super::{Mismatch, Parser};
use std::ops::Range;

impl Parser<'_> {
    /// Notes that `expected` could be the next token.
    pub(super) fn note(&mut self, expected: &'static str) {
        if self.at > self.furthest {
            self.furthest = self.at;
            self.expected.clear();
        }
        if self.at == self.furthest && !self.expected.contains(&expected) {
            self.expected.push(expected);
        }
    }

    pub(super) fn expect(&mut self, expected: &'static str) -> Mismatch {
        self.note(expected);
        Mismatch
    }

    /// An error that ends the parsing.
    pub(super) fn fatal(&mut self, range: Range<usize>, message: String, help: Option<String>) -> Mismatch {
        self.fatal.get_or_insert(Fault { range, message, help });
        Mismatch
    }

    pub(super) fn converter_as_editor(&mut self, end: usize) -> Mismatch {
        let name = self.name(self.at, end);
        let help = match suggest::editor(&name.text) {
            Some(editor) => format!("did you mean `{editor}`?"),
            None => "a statement begins with an editor, such as `set(log.body, Trim(log.body))`".to_owned(),
        };
        let message = format!("`{}` is a converter: it has a value, but changes nothing", name.text);
        self.fatal(name.range, message, Some(help))
    }

    pub(super) fn editor_as_converter(&mut self, end: usize) -> Mismatch {
        let name = self.name(self.at, end);
        let help = suggest::converter(&name.text).map(|converter| format!("did you mean `{converter}`?"));
        let message = format!("`{}` is no converter: their names begin with a capital letter", name.text);
        self.fatal(name.range, message, help)
    }

    pub(super) fn lambda(&mut self, range: Range<usize>) -> Mismatch {
        let message = "lambda expressions are not supported".to_owned();
        let help = "the Collector has them behind a feature gate of an early stage".to_owned();
        self.fatal(range, message, Some(help))
    }

    /// The error to show.
    pub(super) fn fault(&mut self) -> Fault {
        if let Some(fault) = self.fatal.take() {
            return fault;
        }
        let range = self.range(self.furthest);
        let found = match self.text.get(range.clone()).filter(|found| !found.is_empty()) {
            Some(found) => format!("`{found}`"),
            None => "the end".to_owned(),
        };
        let help = self.hint();
        Fault { range, message: format!("expected {}, found {found}", alternatives(&self.expected)), help }
    }

    /// The token's meaning in other languages, for a token that was not expected.
    fn hint(&self) -> Option<String> {
        let found = self.slice(self.furthest);
        let hint = match found {
            "=" => "compare with `==`",
            "matches" | "like" => "write `IsMatch(value, \"regular expression\")`",
            "in" | "contains" => "write several comparisons with `or`, or `IsMatch(value, \"^(a|b)$\")`",
            "if" => "write `where` before a statement's condition",
            "AND" | "OR" | "NOT" => "write `and`, `or`, `not` in small letters",
            "null" | "None" => "write `nil`",
            "where" => "write one `where`, with `and` and `or` in its condition",
            _ if self.expected.contains(&"a comparison") => {
                "compare the value, as in `log.attributes[\"ok\"] == true`"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// `a`, `a or b`, `a, b or c`.
fn alternatives(names: &[&str]) -> String {
    match names {
        [] => "something else".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

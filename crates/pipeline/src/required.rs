//! Literals without which steps do nothing to a body.
//!
//! Of `attributes["k"] == "v"` both texts are in every body where it holds, as bytes of the encoded body. A step that needs one
//! of some texts does nothing where none of them is. Of all steps of a pass together: if none of their texts is in the
//! body, the first step changes nothing, so the second sees the body as it came, and so on.

use crate::ErrorMode;
use crate::functions::Prepared;
use crate::ottl::field::Field;
use crate::ottl::program::{Argument, Call, Comparison, Condition, Expression, Key, Path, Statement};
use crate::step::{Step, Work};
use crate::value::Value;
use memchr::memmem::Finder;
use tidegate_wire::otlp::Signal;

/// Shorter texts are in most bodies.
const SHORTEST: usize = 4;
/// Looking for more than this takes as long as running the steps.
const MOST: usize = 4;

/// How much of a body is searched in one step, in bytes.
const STEP: usize = 256 << 10;

/// Texts of which at least one is in every body that a pass changes.
#[derive(Debug)]
pub(crate) struct Required(Vec<Finder<'static>>);

/// A search for the texts that a pass needs in a body, in bounded steps.
#[derive(Debug)]
pub struct LiteralSearch<'a> {
    // Nothing to search for is an answer already.
    required: Result<&'a Required, bool>,
    body: &'a [u8],
    /// The texts that were searched for.
    end: usize,
}

impl<'a> LiteralSearch<'a> {
    /// A search for one of `required`; without any, the answer.
    pub(crate) fn new(required: Result<&'a Required, bool>, body: &'a [u8]) -> LiteralSearch<'a> {
        LiteralSearch {
            required: required.and_then(|one| if one.0.is_empty() { Err(false) } else { Ok(one) }),
            body,
            end: 0,
        }
    }

    /// Searches the next part; `Some` when it is known whether the pass may change the body.
    pub fn advance(&mut self) -> Option<bool> {
        let required = match self.required {
            Ok(required) => required,
            Err(answer) => return Some(answer),
        };
        let longest = required.0.iter().map(|finder| finder.needle().len()).max().unwrap_or_default();
        // A text may lie across the end of the part before.
        let begin = self.end.saturating_sub(longest.saturating_sub(1));
        self.end = self.end.saturating_add(STEP.max(longest)).min(self.body.len());
        let is_found = required.is_in(self.body.get(begin..self.end).unwrap_or_default());
        (is_found || self.end == self.body.len()).then_some(is_found)
    }
}

/// Texts of which at least one is needed; `None` where nothing is known.
type Needs = Option<Vec<Vec<u8>>>;

impl Required {
    /// The texts that a pass of these steps requires; `None` where nothing is known.
    pub(crate) fn of<'s>(
        steps: impl IntoIterator<Item = &'s Step>,
        signal: Signal,
        constants: &[u8],
    ) -> Option<Required> {
        let mut texts = Vec::new();
        for step in steps {
            texts.extend(Literals(constants).step(step, signal)?);
        }
        texts.sort();
        texts.dedup();
        let is_useful = texts.len() <= MOST && texts.iter().all(|text| text.len() >= SHORTEST);
        is_useful.then(|| Required(texts.iter().map(|text| Finder::new(text).into_owned()).collect()))
    }

    /// Whether `body` has one of the texts.
    fn is_in(&self, body: &[u8]) -> bool {
        self.0.iter().any(|finder| finder.find(body).is_some())
    }
}

/// The literals of a pipeline.
struct Literals<'a>(&'a [u8]);

impl Literals<'_> {
    fn step(&self, step: &Step, signal: Signal) -> Needs {
        // Failures that drop items are no matter of literals.
        if step.on_error == ErrorMode::Drop {
            return None;
        }
        let when = step.when.as_ref().and_then(|when| self.condition(when));
        when.or_else(|| match &step.work {
            Work::Filter { conditions, keeps: false } => {
                let conditions = conditions.iter().filter(|(context, _)| context.is_in(signal));
                union(conditions.map(|(_, condition)| self.condition(condition)))
            }
            Work::Edit(statements) => {
                let statements = statements.iter().filter(|(context, _)| context.is_in(signal));
                union(statements.map(|(_, statement)| self.statement(statement)))
            }
            _ => None,
        })
    }

    fn statement(&self, statement: &Statement) -> Needs {
        let condition = statement.condition.as_ref().and_then(|condition| self.condition(condition));
        condition.or_else(|| match (statement.call.function.name, &*statement.call.arguments) {
            (
                "delete_key",
                [Argument::Target(path), Argument::Value(Expression::Literal(Value::Text(key)))],
            ) if path.field == Field::Attributes && path.keys.is_empty() => Some(vec![self.bytes(*key)]),
            (
                "delete_matching_keys",
                [Argument::Target(path), Argument::Prepared(Prepared::Pattern(pattern))],
            ) if path.field == Field::Attributes && path.keys.is_empty() => some(pattern.literals()),
            // A value that is missing, or no text, stays.
            ("replace_pattern", [Argument::Target(path), ..]) => self.key(path).map(|key| vec![key]),
            _ => None,
        })
    }

    /// The texts that a condition needs to be true.
    fn condition(&self, condition: &Condition) -> Needs {
        match condition {
            Condition::All(all) => {
                let needs = all.iter().filter_map(|one| self.condition(one));
                // The shortest text says how often it is found by chance.
                needs.max_by_key(|needs| needs.iter().map(Vec::len).min())
            }
            Condition::Any(any) => union(any.iter().map(|one| self.condition(one))),
            Condition::Constant(false) => Some(Vec::new()),
            Condition::Constant(true) | Condition::Not(_) => None,
            Condition::Compare(comparison, Expression::Path(path), Expression::Literal(value))
            | Condition::Compare(comparison, Expression::Literal(value), Expression::Path(path)) => {
                self.comparison(*comparison, path, *value)
            }
            Condition::Compare(..) => None,
            Condition::Holds(Expression::Call(call)) => self.call(call),
            Condition::Holds(Expression::Path(path)) => self.key(path).map(|key| vec![key]),
            Condition::Holds(_) => None,
        }
    }

    fn comparison(&self, comparison: Comparison, path: &Path, value: Value) -> Needs {
        let key = self.key(path);
        match (comparison, value) {
            (Comparison::NotEqual, Value::Nil) => key.map(|key| vec![key]),
            (Comparison::NotEqual, _) | (_, Value::Nil) => None,
            (Comparison::Equal, Value::Text(text)) if key.is_some() || is_text(path) => {
                // A value is rarer than its key.
                let text = self.bytes(text);
                Some(vec![key.filter(|_| text.len() < SHORTEST).unwrap_or(text)])
            }
            // A missing value is not less, not greater and not equal.
            _ => key.map(|key| vec![key]),
        }
    }

    /// Functions that are false for a missing value.
    fn call(&self, call: &Call) -> Needs {
        match (call.function.name, &*call.arguments) {
            (
                "IsMatch",
                [Argument::Value(Expression::Path(path)), Argument::Prepared(Prepared::Pattern(pattern))],
            ) if is_text(path) => some(pattern.literals()),
            (
                "IsMatch" | "IsString" | "IsMap" | "IsInt" | "IsDouble" | "IsBool" | "IsList",
                [Argument::Value(Expression::Path(path)), ..],
            ) => self.key(path).map(|key| vec![key]),
            _ => None,
        }
    }

    /// The key of an attribute, without which there is no value.
    fn key(&self, path: &Path) -> Option<Vec<u8>> {
        match (path.field, path.keys.first()) {
            (Field::Attributes | Field::Metadata, Some(Key::Name(name))) => Some(self.bytes(*name)),
            _ => None,
        }
    }

    fn bytes(&self, slice: crate::memory::Slice) -> Vec<u8> {
        let start = slice.start as usize;
        self.0.get(start..start + slice.len as usize).unwrap_or_default().to_vec()
    }
}

/// Whether a field's value is a text that is in the body as it is.
fn is_text(path: &Path) -> bool {
    path.keys.is_empty()
        && matches!(
            path.field,
            Field::SeverityText
                | Field::Name
                | Field::Version
                | Field::EventName
                | Field::SchemaUrl
                | Field::StatusMessage
                | Field::Description
                | Field::Unit
        )
}

fn some(literals: &[Box<[u8]>]) -> Needs {
    (!literals.is_empty()).then(|| literals.iter().map(|one| one.to_vec()).collect())
}

/// The texts that all of them need; `None` when one of them needs nothing that is known.
fn union(all: impl Iterator<Item = Needs>) -> Needs {
    let mut texts = Vec::new();
    for needs in all {
        texts.extend(needs?);
    }
    Some(texts)
}

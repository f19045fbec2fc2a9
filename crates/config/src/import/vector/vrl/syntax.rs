//! The tree of a VRL program.

use std::ops::Range;

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::import::vector) enum Segment {
    Field(String),
    Index(i64),
}

/// A statement with its place.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::import::vector) struct Statement {
    pub(in crate::import::vector) kind: StatementKind,
    pub(in crate::import::vector) at: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::import::vector) enum StatementKind {
    /// `.a = 1`, `a, err = parse_json(.b)`, `. |= {}`.
    Assignment {
        targets: Vec<Target>,
        operator: &'static str,
        value: Expression,
    },
    Expression(Expression),
    If(Branches),
    Abort,
    /// Not understood.
    Unknown,
}

/// The left side of an assignment.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::import::vector) enum Target {
    Path(Vec<Segment>),
    Variable(String, Vec<Segment>),
    /// `_`
    Nothing,
}

/// The branches of an `if`, each with its condition, and the one without.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::import::vector) struct Branches {
    pub(super) conditional: Vec<(Expression, Vec<Statement>)>,
    pub(super) otherwise: Option<Vec<Statement>>,
}

/// A part of a string.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::import::vector) enum Piece {
    Text(String),
    Variable(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::import::vector) enum Expression {
    Null,
    Boolean(bool),
    Number(String),
    Text(Vec<Piece>),
    Regex(String),
    Reference(String),
    Path(Vec<Segment>),
    Variable(String, Vec<Segment>),
    Call(Call),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    Binary(&'static str, Box<Expression>, Box<Expression>),
    If(Box<Branches>),
    List(Vec<Expression>),
    Map(Vec<(String, Expression)>),
}

/// A call of a function; `path` is what is taken of its result.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::import::vector) struct Call {
    pub(super) name: String,
    pub(super) arguments: Vec<(Option<String>, Expression)>,
    pub(super) path: Vec<Segment>,
    /// Whether it is written with `!`: where it fails, so does the program.
    pub(super) aborts: bool,
}

impl Call {
    /// The argument at a position, or of this name.
    pub(super) fn argument(&self, position: usize, name: &str) -> Option<&Expression> {
        let named = self.arguments.iter().find(|(of, _)| of.as_deref() == Some(name));
        let positional = || self.arguments.iter().filter(|(of, _)| of.is_none()).nth(position);
        named.or_else(positional).map(|(_, value)| value)
    }

    /// Whether it has no other arguments than these.
    pub(super) fn has_only(&self, positions: usize, names: &[&str]) -> bool {
        let unnamed = self.arguments.iter().filter(|(of, _)| of.is_none()).count();
        let named = self.arguments.iter().filter_map(|(of, _)| of.as_deref());
        unnamed <= positions && named.into_iter().all(|name| names.contains(&name))
    }
}

impl Expression {
    /// The string, if it is one without variables.
    pub(super) fn as_text(&self) -> Option<String> {
        match self {
            Expression::Text(pieces) => match pieces.as_slice() {
                [] => Some(String::new()),
                [Piece::Text(text)] => Some(text.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The expression without assertions about its type, such as `string!(…)`.
    pub(super) fn bare(&self) -> &Expression {
        match self {
            Expression::Call(call)
                if call.path.is_empty()
                    && call.arguments.len() == 1
                    && matches!(
                        call.name.as_str(),
                        "string" | "object" | "array" | "int" | "float" | "bool" | "timestamp"
                    ) =>
            {
                call.arguments.first().map_or(self, |(_, value)| value.bare())
            }
            _ => self,
        }
    }

    /// Whether it is the event.
    pub(super) fn is_event(&self) -> bool {
        matches!(self.bare(), Expression::Path(path) if path.is_empty())
    }
}

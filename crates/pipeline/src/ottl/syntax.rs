//! The tree of a parsed statement or condition, with positions.

use super::program::{Comparison, Operator};
use std::ops::Range;

/// `editor(…) [where condition]`.
#[derive(Debug)]
pub(crate) struct StatementTree {
    pub(crate) editor: CallTree,
    pub(crate) condition: Option<ConditionTree>,
}

/// A condition.
#[derive(Debug)]
pub(crate) enum ConditionTree {
    Any(Vec<ConditionTree>),
    All(Vec<ConditionTree>),
    Not(Box<ConditionTree>),
    Constant(bool),
    Compare(Comparison, Box<ValueTree>, Box<ValueTree>),
    Converter(CallTree),
}

/// A call of an editor or a converter, with the keys behind it.
#[derive(Debug)]
pub(crate) struct CallTree {
    pub(crate) name: Name,
    pub(crate) arguments: Vec<ArgumentTree>,
    pub(crate) keys: Vec<KeyTree>,
    pub(crate) range: Range<usize>,
}

/// A name and its bytes in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) range: Range<usize>,
}

/// `value` or `name=value`.
#[derive(Debug)]
pub(crate) struct ArgumentTree {
    pub(crate) name: Option<Name>,
    pub(crate) value: ValueTree,
}

/// A value and its bytes in the text.
#[derive(Debug)]
pub(crate) struct ValueTree {
    pub(crate) kind: ValueKind,
    pub(crate) range: Range<usize>,
}

/// The forms of values.
#[derive(Debug)]
pub(crate) enum ValueKind {
    Nil,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// Capitals: an enum or, as an argument, a function.
    Enum(String),
    /// Any other name of a function; only as an argument.
    Function(String),
    Path(PathTree),
    Call(CallTree),
    List(Vec<ValueTree>),
    Map(Vec<(Name, ValueTree)>),
    /// In parentheses or behind `+`: the same value, but no literal parameter and no path that a function changes.
    Group(Box<ValueTree>),
    Negative(Box<ValueTree>),
    /// Operations from left to right.
    Math(Box<ValueTree>, Vec<(Operator, ValueTree)>),
}

/// `log.body["a"].string`: the context is the first field, where there is one.
#[derive(Debug)]
pub(crate) struct PathTree {
    pub(crate) fields: Vec<FieldTree>,
    pub(crate) range: Range<usize>,
}

/// A field of a path with its keys.
#[derive(Debug)]
pub(crate) struct FieldTree {
    pub(crate) name: Name,
    pub(crate) keys: Vec<KeyTree>,
}

/// A key in brackets.
#[derive(Debug)]
pub(crate) enum KeyTree {
    Name(Name),
    Index(i64, Range<usize>),
    Dynamic(ValueTree),
}

impl KeyTree {
    pub(crate) fn range(&self) -> Range<usize> {
        match self {
            KeyTree::Name(name) => name.range.clone(),
            KeyTree::Index(_, range) => range.clone(),
            KeyTree::Dynamic(value) => value.range.clone(),
        }
    }
}

//! Compiled statements: trees of resolved paths, functions and literals.

use super::field::{Context, Field};
use super::signature::Signature;
use crate::memory::Slice;
use crate::value::Value;

/// `editor(…) [where condition]`.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) call: Call,
    pub(crate) condition: Option<Condition>,
}

/// A condition.
#[derive(Debug)]
pub(crate) enum Condition {
    All(Box<[Condition]>),
    Any(Box<[Condition]>),
    Not(Box<Condition>),
    Constant(bool),
    Compare(Comparison, Expression, Expression),
    /// A converter that returns a boolean, or an attribute's boolean by an index.
    Holds(Expression),
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Something with a value.
#[derive(Debug)]
pub(crate) enum Expression {
    /// Texts and bytes are in the constants.
    Literal(Value),
    Path(Path),
    Call(Box<Call>),
    /// Keys behind a converter: `Split(…)[0]`.
    Index(Box<Expression>, Box<[Key]>),
    Math(Operator, Box<(Expression, Expression)>),
    Negative(Box<Expression>),
    List(Box<[Expression]>),
    Map(Box<[(Slice, Expression)]>),
}

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// A resolved path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) context: Context,
    pub(crate) field: Field,
    /// The keys behind the field: of attributes, a cache, a body, a trace state, a list.
    pub(crate) keys: Box<[Key]>,
}

/// A key in brackets.
#[derive(Debug)]
pub(crate) enum Key {
    Name(Slice),
    Index(i64),
    /// Computed for each record: a string or an integer.
    Dynamic(Box<Expression>),
}

/// A function with its arguments in the order of its parameters; absent optional ones are [`Argument::Absent`].
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: &'static Signature,
    pub(crate) arguments: Box<[Argument]>,
}

/// An argument.
#[derive(Debug)]
pub(crate) enum Argument {
    /// An optional parameter without an argument.
    Absent,
    Value(Expression),
    /// A path that the function changes.
    Target(Path),
    /// A list whose elements are evaluated one by one.
    Values(Box<[Expression]>),
    /// A function name, as in `replace_pattern(…, SHA256)`.
    Function(&'static Signature),
    /// A literal that was compiled with the program.
    Prepared(crate::functions::Prepared),
}

//! Values of expressions.

use crate::memory::Slice;

/// A value. Texts and collections point into a [`Memory`](crate::memory::Memory).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    /// `nil`: a missing attribute, an empty value.
    Nil,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// UTF-8.
    Text(Slice),
    Bytes(Slice),
    /// The content of an OTLP `KeyValueList`: `KeyValue` messages with tag and length.
    Map(Slice),
    /// The content of an OTLP `ArrayValue`: `AnyValue` messages with tag and length.
    List(Slice),
    /// A trace id (16 bytes) or a span id (8 bytes). No attribute can have it.
    Id(Slice),
    /// Nanoseconds since the Unix epoch. No attribute can have it.
    Time(i64),
    /// Nanoseconds. No attribute can have it.
    Duration(i64),
}

/// The sort of a [`Value`], for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nil,
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    Map,
    List,
    Id,
    Time,
    Duration,
}

impl Value {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Value::Nil => Kind::Nil,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) => Kind::Int,
            Value::Double(_) => Kind::Double,
            Value::Text(_) => Kind::Text,
            Value::Bytes(_) => Kind::Bytes,
            Value::Map(_) => Kind::Map,
            Value::List(_) => Kind::List,
            Value::Id(_) => Kind::Id,
            Value::Time(_) => Kind::Time,
            Value::Duration(_) => Kind::Duration,
        }
    }
}

impl Kind {
    /// The word for it in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Nil => "nil",
            Kind::Bool => "a boolean",
            Kind::Int => "an integer",
            Kind::Double => "a double",
            Kind::Text => "a string",
            Kind::Bytes => "bytes",
            Kind::Map => "a map",
            Kind::List => "a list",
            Kind::Id => "an id",
            Kind::Time => "a time",
            Kind::Duration => "a duration",
        }
    }
}

/// Why a statement or condition failed on an item. Copies cost nothing; the words are made when it is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// The result has more bytes than the run may make.
    #[error("the result is too large")]
    TooLarge,
    /// An argument has the wrong type.
    #[error("expected {}, got {}", .wanted.name(), .found.name())]
    Type { wanted: Kind, found: Kind },
    /// An argument has a value that the function does not accept.
    #[error("{0}")]
    Invalid(&'static str),
}

/// Why a statement, condition or rule failed, in words of a fixed set: they hold nothing of the item, and nothing of the statement's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct FailureReason(#[from] Failure);

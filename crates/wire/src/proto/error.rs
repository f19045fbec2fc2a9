//! Errors in a message's structure.

use std::fmt;

/// Where a message is malformed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Offset of the offending byte in the outermost message.
    pub offset: usize,
    /// The number of the field being read; 0 while a field's key was being read.
    pub field: u32,
    /// The error at that position.
    pub problem: Problem,
}

/// The ways in which a message can be malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The message ends inside a value.
    #[error("the message ends inside a value")]
    Truncated,
    /// A length reaches past the end of its message.
    #[error("a length reaches past the end of the message")]
    Length,
    /// A number has more than 64 bits.
    #[error("a number has more than 64 bits")]
    Varint,
    /// A field key is not one: its number is 0 or too large, or its wire type does not exist.
    #[error("a field key is invalid")]
    Key,
    /// A group, which no proto3 message has.
    #[error("a group was found, which no proto3 message has")]
    Group,
    /// The field is known, and its value is encoded as another type.
    #[error("the value is not encoded as the schema says")]
    Wire,
}

impl Malformed {
    pub(crate) fn new(offset: usize, field: u32, problem: Problem) -> Self {
        Self { offset, field, problem }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            0 => write!(f, "byte {}: {}", self.offset, self.problem),
            field => write!(f, "byte {}, field {field}: {}", self.offset, self.problem),
        }
    }
}

impl std::error::Error for Malformed {}

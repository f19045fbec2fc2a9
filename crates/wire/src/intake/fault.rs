//! Errors in a line.

use super::Kind;
use std::fmt;

/// Why a line was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Of which event; nothing when it is not known what it was meant to be.
    pub kind: Option<Kind>,
    /// The error.
    pub problem: Problem,
}

/// The error in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// It is longer than [`LONGEST_LINE`](super::LONGEST_LINE), or than what was allowed.
    TooLong,
    /// It is not UTF-8.
    Utf8,
    /// It is no JSON: at this byte.
    Json(usize),
    /// Values nest deeper than [`MAX_DEPTH`](super::MAX_DEPTH): at this byte.
    Depth(usize),
    /// It is no object with one member.
    NoEvent,
    /// There is no such kind of event.
    Unknown,
    /// The first line must be the metadata, and no other may be.
    Order,
    /// This field is required.
    Required(&'static str),
    /// One of these fields is required.
    OneOf(&'static str),
    /// This field has a value of another type.
    Type(&'static str),
    /// This field is longer than 1,024 characters.
    TooManyCharacters(&'static str),
    /// This field has a value that it may not have.
    Value(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.map_or("line", Kind::name);
        match self.problem {
            Problem::TooLong => f.write_str("event exceeded the permitted size"),
            Problem::Utf8 => write!(f, "decode error: {kind}: not UTF-8"),
            Problem::Json(at) => write!(f, "decode error: {kind}: no valid JSON at byte {at}"),
            Problem::Depth(at) => write!(f, "decode error: {kind}: values nest too deep at byte {at}"),
            Problem::NoEvent => f.write_str("decode error: a line must be an object with one member"),
            Problem::Unknown => f.write_str("did not recognize object type"),
            Problem::Order if self.kind == Some(Kind::Metadata) => {
                f.write_str("did not recognize object type: metadata belong in the first line alone")
            }
            Problem::Order => write!(f, "validation error: 'metadata' required before the first {kind}"),
            Problem::Required(field) => write!(f, "validation error: {kind}: '{field}' required"),
            Problem::OneOf(fields) => {
                write!(f, "validation error: {kind}: requires at least one of {fields}")
            }
            Problem::Type(field) => write!(f, "decode error: {kind}: '{field}' has a value of another type"),
            Problem::TooManyCharacters(field) => {
                write!(f, "validation error: {kind}: '{field}' is longer than 1024 characters")
            }
            Problem::Value(field) => write!(f, "validation error: {kind}: '{field}' has no permitted value"),
        }
    }
}

impl std::error::Error for Fault {}

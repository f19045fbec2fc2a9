//! Errors in a line.

use super::EventKind;
use std::fmt;

/// Why a line was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventError {
    /// Of which event; nothing when it is not known what it was meant to be.
    pub event: Option<EventKind>,
    /// The error.
    pub kind: EventErrorKind,
}

/// The error in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventErrorKind {
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

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.event.map_or("line", EventKind::name);
        match self.kind {
            EventErrorKind::TooLong => f.write_str("event exceeded the permitted size"),
            EventErrorKind::Utf8 => write!(f, "decode error: {kind}: not UTF-8"),
            EventErrorKind::Json(at) => write!(f, "decode error: {kind}: no valid JSON at byte {at}"),
            EventErrorKind::Depth(at) => write!(f, "decode error: {kind}: values nest too deep at byte {at}"),
            EventErrorKind::NoEvent => f.write_str("decode error: a line must be an object with one member"),
            EventErrorKind::Unknown => f.write_str("did not recognize object type"),
            EventErrorKind::Order if self.event == Some(EventKind::Metadata) => {
                f.write_str("did not recognize object type: metadata belong in the first line alone")
            }
            EventErrorKind::Order => {
                write!(f, "validation error: 'metadata' required before the first {kind}")
            }
            EventErrorKind::Required(field) => write!(f, "validation error: {kind}: '{field}' required"),
            EventErrorKind::OneOf(fields) => {
                write!(f, "validation error: {kind}: requires at least one of {fields}")
            }
            EventErrorKind::Type(field) => {
                write!(f, "decode error: {kind}: '{field}' has a value of another type")
            }
            EventErrorKind::TooManyCharacters(field) => {
                write!(f, "validation error: {kind}: '{field}' is longer than 1024 characters")
            }
            EventErrorKind::Value(field) => {
                write!(f, "validation error: {kind}: '{field}' has no permitted value")
            }
        }
    }
}

impl std::error::Error for EventError {}

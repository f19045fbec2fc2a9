//! Errors in a `_bulk` body, in words that help the client.

use super::Kind;
use std::fmt;
use thiserror::Error;

/// A body that breaks the rules of `_bulk`: nothing of it can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkError {
    line: u64,
    kind: BulkErrorKind,
}

/// Why a body was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BulkErrorKind {
    /// The last line has no end.
    #[error("the request must be terminated by a newline [\\n]")]
    NotTerminated,
    /// A line is no action.
    #[error("malformed action/metadata line: {0}")]
    Action(LineError),
    /// The body ends behind an action that has a document.
    #[error("there is no document behind the action `{}`", .0.name())]
    NoDocument(Kind),
}

/// Where a line is not the JSON that it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{problem} at byte {at}")]
pub struct LineError {
    /// Where, in bytes from the start of the line.
    pub at: usize,
    problem: &'static str,
}

impl BulkError {
    pub(super) const fn new(line: u64, reason: BulkErrorKind) -> BulkError {
        BulkError { line, kind: reason }
    }

    /// The number of the line, from 1.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// The error.
    pub const fn kind(&self) -> BulkErrorKind {
        self.kind
    }
}

impl fmt::Display for BulkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.kind)
    }
}

impl std::error::Error for BulkError {}

impl LineError {
    pub(super) const fn new(at: usize, problem: &'static str) -> LineError {
        LineError { at, problem }
    }
}

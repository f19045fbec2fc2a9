//! Errors in a `_bulk` body, in words that help the client.

use super::Kind;
use std::fmt;
use thiserror::Error;

/// A body that breaks the rules of `_bulk`: nothing of it can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    line: u64,
    reason: Reason,
}

/// Why a body was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Reason {
    /// The last line has no end.
    #[error("the request must be terminated by a newline [\\n]")]
    NotTerminated,
    /// A line is no action.
    #[error("malformed action/metadata line: {0}")]
    Action(Flaw),
    /// The body ends behind an action that has a document.
    #[error("there is no document behind the action `{}`", .0.name())]
    NoDocument(Kind),
}

/// Where a line is not the JSON that it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what} at byte {at}")]
pub struct Flaw {
    /// Where, in bytes from the start of the line.
    pub at: usize,
    what: &'static str,
}

impl Fault {
    pub(super) const fn new(line: u64, reason: Reason) -> Fault {
        Fault { line, reason }
    }

    /// The number of the line, from 1.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// The error.
    pub const fn reason(&self) -> Reason {
        self.reason
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for Fault {}

impl Flaw {
    pub(super) const fn new(at: usize, what: &'static str) -> Flaw {
        Flaw { at, what }
    }
}

//! Errors and warnings of statements and conditions.

use crate::Severity;
use std::ops::Range;

/// Something wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The bytes at fault.
    pub(crate) range: Range<usize>,
    /// The error, as a sentence without a full stop.
    pub(crate) message: String,
    /// The remedy, where one is known.
    pub(crate) help: Option<String>,
}

/// Something wrong with one text of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    /// The text, counted from 0.
    pub(crate) item: usize,
    pub(crate) severity: Severity,
    pub(crate) fault: Fault,
}

impl Fault {
    pub(crate) fn new(range: Range<usize>, message: impl Into<String>) -> Fault {
        Fault { range, message: message.into(), help: None }
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }
}

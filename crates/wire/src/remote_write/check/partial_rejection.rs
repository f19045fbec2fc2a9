//! The refused parts of a body, and the reasons.

use std::fmt;

use super::Counts;
use crate::remote_write::error::RemoteWriteError;

/// The refused parts of a body whose rest is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartialRejection {
    /// How much it is: series that are refused whole, and items, also of series that are refused in part.
    pub counts: Counts,
    /// The first reasons, at most [`MAX_ERRORS`](Self::MAX_ERRORS).
    pub errors: Vec<RemoteWriteError>,
    /// How many there were.
    pub error_count: u64,
}

impl PartialRejection {
    /// How many reasons are kept.
    pub const MAX_ERRORS: usize = 8;

    /// Whether nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.error_count == 0
    }

    pub(super) fn record(&mut self, error: RemoteWriteError, counts: &Counts) {
        self.counts.add(counts);
        self.error_count += 1;
        if self.errors.len() < Self::MAX_ERRORS {
            self.errors.push(error);
        }
    }
}

/// The reasons, one a line.
impl fmt::Display for PartialRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.errors {
            writeln!(f, "{error}")?;
        }
        match self.error_count.saturating_sub(self.errors.len() as u64) {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}

//! The refused parts of a body, and the reasons.

use std::fmt;

use super::Counts;
use crate::remote_write::fault::Fault;

/// The refused parts of a body whose rest is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refused {
    /// How much it is: series that are refused whole, and items, also of series that are refused in part.
    pub counts: Counts,
    /// The first reasons, at most [`FAULTS`](Self::FAULTS).
    pub faults: Vec<Fault>,
    /// How many there were.
    pub reasons: u64,
}

impl Refused {
    /// How many reasons are kept.
    pub const FAULTS: usize = 8;

    /// Whether nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.reasons == 0
    }

    pub(super) fn note(&mut self, fault: Fault, counts: &Counts) {
        self.counts.add(counts);
        self.reasons += 1;
        if self.faults.len() < Self::FAULTS {
            self.faults.push(fault);
        }
    }
}

/// The reasons, one a line.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "{fault}")?;
        }
        match self.reasons.saturating_sub(self.faults.len() as u64) {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}

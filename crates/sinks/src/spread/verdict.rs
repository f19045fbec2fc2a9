//! The meaning of a member's answer.

use std::time::Duration;

/// A member's answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It has it.
    Accepted,
    /// It stored all but what is in conflict with what it has: final.
    Conflict {
        /// By reason, in the order of [`ConflictReason::ALL`]. All zero where it does not say how many.
        counts: [u64; ConflictReason::COUNT],
        words: String,
    },
    /// It never takes it.
    Rejected { words: String },
    /// Not now.
    Later { words: String, after: Option<Duration> },
}

/// Why a member did not store a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictReason {
    /// It has another value at that time already.
    Duplicate,
    /// It has a newer one.
    OutOfOrder,
    /// It is older, or newer, than the member takes.
    OutOfBounds,
    /// Its labels, or something else.
    Other,
}

impl ConflictReason {
    /// How many there are.
    pub const COUNT: usize = 4;
    /// All of them.
    pub const ALL: [ConflictReason; Self::COUNT] = [
        ConflictReason::Duplicate,
        ConflictReason::OutOfOrder,
        ConflictReason::OutOfBounds,
        ConflictReason::Other,
    ];

    /// Its name in metrics and on pages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ConflictReason::Duplicate => "duplicate",
            ConflictReason::OutOfOrder => "out_of_order",
            ConflictReason::OutOfBounds => "out_of_bounds",
            ConflictReason::Other => "other",
        }
    }

    /// The reason that a member's words give, in the terms of Prometheus' storage.
    pub(crate) fn of(words: &str) -> ConflictReason {
        if words.contains("duplicate") || words.contains("already exists") {
            ConflictReason::Duplicate
        } else if words.contains("out of order") {
            ConflictReason::OutOfOrder
        } else if words.contains("out of bounds") || words.contains("too old") || words.contains("too far") {
            ConflictReason::OutOfBounds
        } else {
            ConflictReason::Other
        }
    }
}

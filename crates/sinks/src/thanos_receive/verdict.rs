//! The meaning of a member's answer.
//!
//! Source: `pkg/receive/handler.go` and `writer.go` of Thanos: `AlreadyExists` for samples and exemplars that the member has, or
//! that are out of order or out of bounds; it stores the others of the request, and names how many it did not.

use crate::otlp::GrpcAnswer;
use std::time::Duration;

/// gRPC status codes.
mod code {
    pub(super) const OK: u16 = 0;
    pub(super) const INVALID_ARGUMENT: u16 = 3;
    pub(super) const ALREADY_EXISTS: u16 = 6;
}

/// What a member says to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
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

    /// The reason that a member's words give.
    fn of(words: &str) -> ConflictReason {
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

impl Verdict {
    pub(super) fn of(answer: GrpcAnswer) -> Verdict {
        let GrpcAnswer { code, words, after } = answer;
        match code {
            Some(code::OK) => Verdict::Accepted,
            Some(code::ALREADY_EXISTS) => Verdict::Conflict { counts: conflicts(&words), words },
            Some(code::INVALID_ARGUMENT) => Verdict::Rejected { words },
            _ => Verdict::Later { words, after },
        }
    }
}

/// The samples, exemplars and series that a member did not store: `add 3 samples: out of order sample; add 1 exemplars: …`.
fn conflicts(words: &str) -> [u64; ConflictReason::COUNT] {
    let mut counts = [0_u64; ConflictReason::COUNT];
    let mut rest = words;
    while let Some((_, behind)) = rest.split_once("add ") {
        let end = behind.find("add ").unwrap_or(behind.len());
        let (clause, next) = behind.split_at_checked(end).unwrap_or((behind, ""));
        rest = next;
        let number = clause.split_once(' ').and_then(|(number, _)| number.parse::<u64>().ok());
        let reason = ConflictReason::of(clause) as usize;
        if let (Some(number), Some(count)) = (number, counts.get_mut(reason)) {
            *count = count.saturating_add(number);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: u16, words: &str) -> Verdict {
        Verdict::of(GrpcAnswer { code: Some(code), words: words.to_owned(), after: None })
    }

    #[test]
    fn conflicts_are_counted_by_reason() {
        let words = "2 errors: forwarding: add 3 samples: out of order sample; add 2 samples: duplicate sample for timestamp; \
                     add 1 exemplars: out of order exemplar";
        assert!(matches!(of(6, words), Verdict::Conflict { counts: [2, 4, 0, 0], .. }));
        assert!(matches!(
            of(6, "add 5 samples: out of bounds"),
            Verdict::Conflict { counts: [0, 0, 5, 0], .. }
        ));
        assert!(matches!(of(6, "add many samples"), Verdict::Conflict { counts: [0, 0, 0, 0], .. }));
    }

    #[test]
    fn only_conflicts_and_invalid_requests_are_final() {
        assert_eq!(of(0, ""), Verdict::Accepted);
        assert!(matches!(of(3, "bad replica"), Verdict::Rejected { .. }));
        for retried in [1, 2, 4, 5, 7, 8, 9, 10, 12, 13, 14, 16] {
            assert!(matches!(of(retried, "no"), Verdict::Later { .. }), "{retried}");
        }
        assert!(matches!(
            Verdict::of(GrpcAnswer { code: None, words: "reset".to_owned(), after: None }),
            Verdict::Later { .. }
        ));
    }
}

//! The meaning of an ingestor's answer.
//!
//! Source: `pkg/receive/handler.go` and `writer.go` of Thanos: `AlreadyExists` for samples and exemplars that the member has, or
//! that are out of order or out of bounds; it stores the others of the request, and names how many it did not.

use crate::otlp::GrpcAnswer;
use crate::spread::{ConflictReason, Verdict};

/// gRPC status codes.
mod code {
    pub(super) const OK: u16 = 0;
    pub(super) const INVALID_ARGUMENT: u16 = 3;
    pub(super) const ALREADY_EXISTS: u16 = 6;
}

/// The verdict that an answer is.
pub(super) fn verdict(answer: GrpcAnswer) -> Verdict {
    let GrpcAnswer { code, words, after } = answer;
    match code {
        Some(code::OK) => Verdict::Accepted,
        Some(code::ALREADY_EXISTS) => Verdict::Conflict { counts: conflicts(&words), words },
        Some(code::INVALID_ARGUMENT) => Verdict::Rejected { words },
        _ => Verdict::Later { words, after },
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
        verdict(GrpcAnswer { code: Some(code), words: words.to_owned(), after: None })
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
            verdict(GrpcAnswer { code: None, words: "reset".to_owned(), after: None }),
            Verdict::Later { .. }
        ));
    }
}

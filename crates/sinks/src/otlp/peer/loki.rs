//! Classifies the answers of Loki.
//!
//! Loki writes what it can of a request, and answers 400 if anything is left: entries that are too old, too far behind
//! their stream, or too long. Its text says how many; those are lost, and nothing is sent again. A 400 that names no number
//! is about the whole request, or about something in it that the search for the record at fault finds.

use crate::otlp::answer::{ErrorDetails, OtlpAnswer, RejectionCause, RejectionReason, Status};
use hyper::StatusCode;
use std::time::Duration;

/// A distributor's words about a single entry that it left out, which have no number: their beginning, and what comes later. Its
/// other words are about a stream, and do not say how many entries that has.
const OF_ONE: [(&str, &str); 4] = [
    ("entry for stream '", "' has timestamp too "),
    ("Max entry size '", "while adding an entry"),
    ("stream '", "' has structured metadata too large: "),
    ("stream '", "' has too many structured metadata labels: "),
];
/// How gRPC within Loki, or its HTTP server, says that a request is too long; the status is 500 or 400 then.
const TOO_LONG: &str = "message larger than max";

/// The meaning of an answer, whose `rejected` is what [`ignored`] found in it.
pub(super) fn answer(status: StatusCode, said: ErrorDetails) -> OtlpAnswer {
    if !status.is_success() && said.words.contains(TOO_LONG) {
        let reason = RejectionReason { status: Status::Http(status), words: said.words };
        return OtlpAnswer::Refused { reason, fault: RejectionCause::Size };
    }
    if status == StatusCode::BAD_REQUEST && said.rejected > 0 {
        let ErrorDetails { rejected, words, .. } = said;
        return OtlpAnswer::Taken { rejected, words, delayed: Duration::ZERO };
    }
    OtlpAnswer::of_any_http(status, ErrorDetails { rejected: 0, ..said })
}

/// How many entries an answer says that Loki left out: `total ignored: 2 out of 5 for stream: …` of an ingester,
/// `3 errors like: …` of a distributor, and one for each of its errors that are about one entry. Loki names the last stream only, so it may have been more.
pub(super) fn ignored(body: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(body);
    let leading = |text: &str| {
        let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
        text.get(..digits).and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0)
    };
    let of_ingester = text.split("total ignored: ").skip(1).map(leading);
    let ends: Vec<&str> = text.split(" errors like: ").collect();
    let before = ends.split_last().map_or(&[][..], |(_, before)| before);
    let of_distributor = before.iter().map(|before| {
        let digits = before.bytes().rev().take_while(u8::is_ascii_digit).count();
        before.get(before.len() - digits..).and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0)
    });
    // Kinds of errors are joined by this.
    let single = text.split("; ").filter(|words| is_of_one(words)).map(|_| 1);
    of_ingester.chain(of_distributor).chain(single).fold(0, u64::saturating_add)
}

/// Whether these are a distributor's words about one entry. It has written the others.
fn is_of_one(words: &str) -> bool {
    let words = words.trim_start();
    OF_ONE.iter().any(|(begin, later)| words.starts_with(begin) && words.contains(later))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, words: &str) -> OtlpAnswer {
        let said = ErrorDetails { words: words.to_owned(), retry: None, rejected: ignored(words.as_bytes()) };
        answer(StatusCode::from_u16(status).unwrap(), said)
    }

    /// The texts are those of Loki 3 (`pkg/ingester/stream.go`, `pkg/util/errors.go`).
    #[test]
    fn entries_that_loki_left_out_are_lost_and_the_others_accepted() {
        let late = "entry with timestamp 2026-01-01 00:00:00 +0000 UTC ignored, reason: 'entry too far behind, \
                    entry timestamp is: 2026-01-01T00:00:00Z, oldest acceptable timestamp is: 2026-01-01T01:00:00Z',\n\
                    user 'fake', total ignored: 2 out of 5 for stream: {app=\"a\"}";
        let old = "3 errors like: entry for stream '{app=\"a\"}' has timestamp too old: 2020-01-01T00:00:00Z; \
                   12 errors like: max entry size '256000' bytes exceeded for stream '{a=\"b\"}'";
        let mixed = "3 errors like: entry for stream '{a=\"b\"}' has timestamp too old: x; \
                     entry for stream '{a=\"b\"}' has timestamp too new: y";
        for (words, expected) in [(late, 2), (old, 15), (mixed, 4)] {
            let OtlpAnswer::Taken { rejected, .. } = of(400, words) else { panic!("{words}") };
            assert_eq!(rejected, expected);
        }
    }

    /// The texts are those of Loki 3 (`pkg/validation/validate.go`); a single error of a distributor has no number.
    #[test]
    fn one_entry_that_loki_left_out_is_lost_alone() {
        for words in [
            "entry for stream '{app=\"a\"}' has timestamp too old: 2020-01-01T00:00:00Z, oldest acceptable timestamp is: 2026-01-01T01:00:00Z\n",
            "entry for stream '{app=\"a\"}' has timestamp too new: 2036-01-01T00:00:00Z",
            "Max entry size '262144' bytes exceeded for stream '{app=\"a\"}' while adding an entry with length '300000' bytes",
            "stream '{app=\"a\"}' has structured metadata too large: '70000' bytes, limit: '65536' bytes. Please see",
            "stream '{app=\"a\"}' has too many structured metadata labels: '200', limit: '128'. Please see",
        ] {
            let OtlpAnswer::Taken { rejected, .. } = of(400, words) else { panic!("{words}") };
            assert_eq!(rejected, 1, "{words}");
        }
        for of_a_stream in [
            "entry for stream '{app=\"a\"}' has 20 label names; limit 15",
            "stream '{app=\"a\"}' has label value too long: 'x'",
            "the label says entry for stream '",
        ] {
            let answer = of(400, of_a_stream);
            assert!(
                matches!(answer, OtlpAnswer::Refused { fault: RejectionCause::Content, .. }),
                "{of_a_stream}"
            );
        }
    }

    #[test]
    fn other_answers_are_as_of_any_receiver() {
        let refused = |answer| match answer {
            OtlpAnswer::Refused { fault, .. } => Some(fault),
            OtlpAnswer::Taken { .. } | OtlpAnswer::Later { .. } => None,
        };
        assert_eq!(refused(of(400, "couldn't parse labels")), Some(RejectionCause::Content));
        assert_eq!(refused(of(413, "")), Some(RejectionCause::Size));
        let long =
            "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (5 vs. 4)";
        assert_eq!(refused(of(500, long)), Some(RejectionCause::Size));
        assert_eq!(refused(of(401, "no org id")), Some(RejectionCause::Other));
        for status in [429, 500, 502, 503] {
            let words = "Ingestion rate limit exceeded for user fake, total ignored: 5";
            assert!(matches!(of(status, words), OtlpAnswer::Later { .. }), "{status}");
        }
        assert!(matches!(of(204, ""), OtlpAnswer::Taken { rejected: 0, .. }));
    }

    #[test]
    fn numbers_that_are_none_count_nothing() {
        for text in
            ["", "total ignored: ", " errors like: ", "x errors like: ", "é errors like: total ignored: -1"]
        {
            assert_eq!(ignored(text.as_bytes()), 0, "{text}");
        }
    }
}

//! Classifies answers: accepted, retryable, or rejected. OTLP 1.x, "OTLP/gRPC Response" and "OTLP/HTTP Response".

use crate::secrets::Secrets;
use hyper::StatusCode;
use std::fmt;
use std::time::Duration;
use tidegate_ledger::Dropped;

/// The error of Go's `http.MaxBytesReader`.
const GO_TOO_LARGE: &str = "request body too large";

/// The peer's answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OtlpAnswer {
    /// It took the request, but for these items, and may say something about it. Of the time until then, so much was not
    /// spent on taking it.
    Taken { rejected: u64, words: String, delayed: Duration },
    /// It does not take it now.
    Later { reason: RejectionReason, after: Option<Duration> },
    /// It does not want it, ever.
    Refused { reason: RejectionReason, fault: RejectionCause },
}

/// The cause of a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RejectionCause {
    /// It is too large.
    Size,
    /// It holds something that the peer does not like. It may be one record of many.
    Content,
    /// One of its items, which is found by sending halves.
    Item,
    /// It is none of what is in it: the path, the password.
    Other,
}

/// A status and the peer's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RejectionReason {
    pub(super) status: Status,
    pub(super) words: String,
}

/// How an answer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Http(StatusCode),
    Grpc(u16),
    /// There was none, or no whole one.
    None,
}

impl Status {
    /// Whether the peer does not know the sender: it has not looked at what was sent.
    pub(super) fn is_unauthenticated(self) -> bool {
        const UNAUTHENTICATED: u16 = 16;
        match self {
            Status::Http(status) => {
                [StatusCode::UNAUTHORIZED, StatusCode::PROXY_AUTHENTICATION_REQUIRED].contains(&status)
            }
            Status::Grpc(code) => code == UNAUTHENTICATED,
            Status::None => false,
        }
    }
}

/// The parts of an HTTP answer besides its status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ErrorDetails {
    pub(super) words: String,
    /// `Retry-After`, or `RetryInfo`.
    pub(super) retry: Option<Duration>,
    pub(super) rejected: u64,
}

impl OtlpAnswer {
    /// The same, where the peer repeats a secret without it.
    pub(super) fn masked(mut self, secrets: &Secrets) -> OtlpAnswer {
        let words = match &mut self {
            OtlpAnswer::Taken { words, .. } => words,
            OtlpAnswer::Later { reason, .. } | OtlpAnswer::Refused { reason, .. } => &mut reason.words,
        };
        *words = secrets.mask(std::mem::take(words));
        self
    }
}

impl RejectionCause {
    /// How the books name it.
    pub(super) fn reason(self) -> Dropped {
        match self {
            RejectionCause::Size => Dropped::TooLarge,
            RejectionCause::Content | RejectionCause::Item | RejectionCause::Other => Dropped::Rejected,
        }
    }
}

impl OtlpAnswer {
    /// The meaning of an HTTP status.
    pub(super) fn of_http(status: StatusCode, said: ErrorDetails) -> OtlpAnswer {
        let ErrorDetails { words, retry: after, rejected } = said;
        let reason = |words| RejectionReason { status: Status::Http(status), words };
        match status.as_u16() {
            200..=299 => OtlpAnswer::Taken { rejected, words, delayed: Duration::ZERO },
            // Of a place that is not followed to: for somebody to look at, not to lose anything for.
            307 | 308 | 429 | 502 | 503 | 504 => OtlpAnswer::Later { reason: reason(words), after },
            413 => OtlpAnswer::Refused { reason: reason(words), fault: RejectionCause::Size },
            // Programs in Go that limit bodies, Collectors among them, mean 413.
            400 if words.contains(GO_TOO_LARGE) => {
                OtlpAnswer::Refused { reason: reason(words), fault: RejectionCause::Size }
            }
            400 | 422 => OtlpAnswer::Refused { reason: reason(words), fault: RejectionCause::Content },
            _ => OtlpAnswer::Refused { reason: reason(words), fault: RejectionCause::Other },
        }
    }

    /// The meaning of an HTTP status that no specification covers: server errors may be temporary.
    pub(super) fn of_any_http(status: StatusCode, said: ErrorDetails) -> OtlpAnswer {
        match status.as_u16() {
            408 | 500..=599 => {
                let ErrorDetails { words, retry: after, .. } = said;
                OtlpAnswer::Later { reason: RejectionReason { status: Status::Http(status), words }, after }
            }
            _ => OtlpAnswer::of_http(status, said),
        }
    }

    /// The meaning of a status of Splunk's HTTP Event Collector with the `code` in its text. A request is refused only for
    /// what is in it. Everything else, a wrong token or URL among them, can be mended by the operator: the events wait.
    pub(super) fn of_splunk(status: StatusCode, code: Option<u64>, said: ErrorDetails) -> OtlpAnswer {
        let ErrorDetails { words, retry: after, .. } = said;
        let reason = RejectionReason { status: Status::Http(status), words };
        match (status.as_u16(), code) {
            (200..=299, _) => OtlpAnswer::Taken { rejected: 0, words: reason.words, delayed: Duration::ZERO },
            (413, _) => OtlpAnswer::Refused { reason, fault: RejectionCause::Size },
            // Of the channel, and of acknowledgment that is off; the other codes are of an event.
            (400, Some(10 | 11 | 14)) => OtlpAnswer::Later { reason, after },
            (400 | 422, _) => OtlpAnswer::Refused { reason, fault: RejectionCause::Item },
            _ => OtlpAnswer::Later { reason, after },
        }
    }

    /// The meaning of a gRPC code.
    pub(super) fn of_grpc(code: u16, said: ErrorDetails) -> OtlpAnswer {
        let ErrorDetails { words, retry: after, rejected } = said;
        let reason = |words| RejectionReason { status: Status::Grpc(code), words };
        match code {
            0 => OtlpAnswer::Taken { rejected, words, delayed: Duration::ZERO },
            1 | 4 | 10 | 11 | 14 | 15 => OtlpAnswer::Later { reason: reason(words), after },
            8 if after.is_some() => OtlpAnswer::Later { reason: reason(words), after },
            8 => OtlpAnswer::Refused { reason: reason(words), fault: RejectionCause::Size },
            3 => OtlpAnswer::Refused { reason: reason(words), fault: RejectionCause::Content },
            _ => OtlpAnswer::Refused { reason: reason(words), fault: RejectionCause::Other },
        }
    }

    /// The meaning of an HTTP status instead of gRPC: a proxy has answered.
    pub(super) fn of_foreign(status: StatusCode, said: ErrorDetails) -> OtlpAnswer {
        match (status.as_u16(), OtlpAnswer::of_http(status, said)) {
            // Nothing of the peer's: it did not say whether it took the request.
            (200..=299, _) => OtlpAnswer::lost("the answer ended without a status of gRPC".to_owned()),
            // A proxy that cannot read gRPC knows nothing of what is in it.
            (400, OtlpAnswer::Refused { reason, .. }) => {
                OtlpAnswer::Refused { reason, fault: RejectionCause::Other }
            }
            (_, answer) => answer,
        }
    }

    /// There was no whole answer: nobody knows whether the request was taken.
    pub(super) fn lost(words: String) -> OtlpAnswer {
        OtlpAnswer::Later { reason: RejectionReason { status: Status::None, words }, after: None }
    }
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RejectionReason { status, words } = self;
        match status {
            Status::Http(status) => write!(f, "{status}")?,
            Status::Grpc(code) => write!(f, "{}", name(*code))?,
            Status::None => return f.write_str(words),
        }
        if words.is_empty() { Ok(()) } else { write!(f, ": {words}") }
    }
}

/// The name of a code of gRPC.
fn name(code: u16) -> &'static str {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    NAMES.get(usize::from(code)).copied().unwrap_or("a code that gRPC does not have")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(retry: Option<u64>) -> ErrorDetails {
        ErrorDetails { retry: retry.map(Duration::from_secs), ..ErrorDetails::default() }
    }

    fn is_later(answer: &OtlpAnswer) -> bool {
        matches!(answer, OtlpAnswer::Later { .. })
    }

    /// Retryable are the codes that the specification names, and redirections that keep the method; no other.
    #[test]
    fn only_the_codes_of_the_specification_are_sent_again() {
        for code in 0..=20 {
            let expected = matches!(code, 1 | 4 | 10 | 11 | 14 | 15);
            assert_eq!(is_later(&OtlpAnswer::of_grpc(code, said(None))), expected, "{code}");
            assert_eq!(is_later(&OtlpAnswer::of_grpc(code, said(Some(1)))), expected || code == 8, "{code}");
        }
        for code in 200..=599 {
            let status = StatusCode::from_u16(code).unwrap();
            let expected = matches!(code, 307 | 308 | 429 | 502 | 503 | 504);
            assert_eq!(is_later(&OtlpAnswer::of_http(status, said(Some(1)))), expected, "{code}");
        }
    }

    #[test]
    fn splunk_refuses_only_what_is_in_a_request() {
        for status in 200..=599 {
            for code in [None, Some(0), Some(6), Some(10), Some(14)] {
                let of = OtlpAnswer::of_splunk(StatusCode::from_u16(status).unwrap(), code, said(Some(1)));
                let is_refused = match status {
                    413 | 422 => true,
                    400 => !matches!(code, Some(10 | 14)),
                    _ => false,
                };
                let is_taken = matches!(of, OtlpAnswer::Taken { .. });
                assert_eq!(
                    (is_taken, is_later(&of)),
                    (status < 300, status >= 300 && !is_refused),
                    "{status}"
                );
            }
        }
    }

    #[test]
    fn resource_exhausted_without_a_delay_is_too_large() {
        let OtlpAnswer::Refused { fault, reason } = OtlpAnswer::of_grpc(8, said(None)) else { panic!() };
        assert_eq!((fault, reason.to_string().as_str()), (RejectionCause::Size, "RESOURCE_EXHAUSTED"));
        let OtlpAnswer::Later { after, .. } = OtlpAnswer::of_grpc(8, said(Some(3))) else { panic!() };
        assert_eq!(after, Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_body_that_is_too_large_for_a_program_in_go_is_too_large() {
        let of = |words: &str| {
            let said = ErrorDetails { words: words.to_owned(), ..ErrorDetails::default() };
            OtlpAnswer::of_http(StatusCode::BAD_REQUEST, said)
        };
        let fault = |answer| match answer {
            OtlpAnswer::Refused { fault, .. } => Some(fault),
            _ => None,
        };
        assert_eq!(fault(of("http: request body too large")), Some(RejectionCause::Size));
        assert_eq!(fault(of("proto: illegal wireType 7")), Some(RejectionCause::Content));
    }

    #[test]
    fn a_response_without_a_grpc_status_is_no_success() {
        let of = |code| OtlpAnswer::of_foreign(StatusCode::from_u16(code).unwrap(), said(None));
        assert!(is_later(&of(200)) && is_later(&of(503)));
        assert!(matches!(of(413), OtlpAnswer::Refused { fault: RejectionCause::Size, .. }));
        assert!(matches!(of(400), OtlpAnswer::Refused { fault: RejectionCause::Other, .. }));
        assert!(matches!(of(404), OtlpAnswer::Refused { fault: RejectionCause::Other, .. }));
    }
}

//! The meaning of an answer for a request as a whole.

use super::bulk_response::BulkResponse;
use crate::secrets::Secrets;
use hyper::StatusCode;
use std::fmt;
use std::time::Duration;

/// The node's answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BulkAnswer {
    /// It looked at each item.
    Taken(BulkResponse),
    /// It does not take the request now, or not from us.
    Later { reason: RejectionReason, after: Option<Duration> },
    /// The request is larger than it takes.
    TooLarge(RejectionReason),
    /// There is something in the request that it cannot read, which may be one item of many.
    Refused(RejectionReason),
    /// It failed over the request, and says of what: it may fail over it again, for one item of many.
    Fault(RejectionReason),
}

/// A status and the node's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RejectionReason {
    /// Nothing where there was no answer.
    pub(super) status: Option<StatusCode>,
    pub(super) words: String,
}

impl BulkAnswer {
    /// The meaning of an error status. Missing rights (401, 403) or a wrong URL (404, 405, 3xx) can be fixed by the
    /// operator, and the documents are intact: they wait.
    pub(super) fn of(status: StatusCode, words: String, after: Option<Duration>) -> BulkAnswer {
        let reason = RejectionReason { status: Some(status), words };
        match status.as_u16() {
            413 => BulkAnswer::TooLarge(reason),
            400 | 406 | 411 | 415 | 422 => BulkAnswer::Refused(reason),
            // A proxy says it otherwise.
            500 if reason.words.starts_with('{') && reason.words.contains("\"type\"") => {
                BulkAnswer::Fault(reason)
            }
            _ => BulkAnswer::Later { reason, after },
        }
    }

    /// The same, where the node repeats a secret without it. What it says of a document is about the document.
    pub(super) fn masked(mut self, secrets: &Secrets) -> BulkAnswer {
        match &mut self {
            BulkAnswer::Taken(_) => {}
            BulkAnswer::Later { reason, .. }
            | BulkAnswer::TooLarge(reason)
            | BulkAnswer::Refused(reason)
            | BulkAnswer::Fault(reason) => reason.words = secrets.mask(std::mem::take(&mut reason.words)),
        }
        self
    }

    /// There was no whole answer: nobody knows what was taken.
    pub(super) fn lost(words: String) -> BulkAnswer {
        BulkAnswer::Later { reason: RejectionReason { status: None, words }, after: None }
    }
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status, self.words.as_str()) {
            (None, words) => f.write_str(words),
            (Some(status), "") => write!(f, "{status}"),
            (Some(status), words) => write!(f, "{status}: {words}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is dropped that a person can still help.
    #[test]
    fn only_document_errors_are_final() {
        for code in 300..=599 {
            let answer = BulkAnswer::of(StatusCode::from_u16(code).unwrap(), String::new(), None);
            let dropped = matches!(answer, BulkAnswer::TooLarge(_) | BulkAnswer::Refused(_));
            assert_eq!(dropped, matches!(code, 400 | 406 | 411 | 413 | 415 | 422), "{code}");
        }
    }
}

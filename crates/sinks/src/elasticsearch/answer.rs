//! What an answer means for a request as a whole.

use super::reply::Reply;
use crate::secrets::Secrets;
use hyper::StatusCode;
use std::fmt;
use std::time::Duration;

/// What the node said to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// It looked at each item.
    Taken(Reply),
    /// It does not take the request now, or not from us.
    Later { reason: Reason, after: Option<Duration> },
    /// The request is larger than it takes.
    TooLarge(Reason),
    /// There is something in the request that it cannot read, which may be one item of many.
    Refused(Reason),
    /// It failed over the request, and says of what: it may fail over it again, for one item of many.
    Fault(Reason),
}

/// A status and the node's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    /// Nothing where there was no answer.
    pub(super) status: Option<StatusCode>,
    pub(super) words: String,
}

impl Answer {
    /// What a status other than success means. Whoever is not let in (401, 403), or is at the wrong door (404, 405,
    /// 3xx), can be helped by a person, and the documents are as good as before: they wait.
    pub(super) fn of(status: StatusCode, words: String, after: Option<Duration>) -> Answer {
        let reason = Reason { status: Some(status), words };
        match status.as_u16() {
            413 => Answer::TooLarge(reason),
            400 | 406 | 411 | 415 | 422 => Answer::Refused(reason),
            // A proxy says it otherwise.
            500 if reason.words.starts_with('{') && reason.words.contains("\"type\"") => {
                Answer::Fault(reason)
            }
            _ => Answer::Later { reason, after },
        }
    }

    /// The same, where the node repeats a secret without it. What it says of a document is about the document.
    pub(super) fn masked(mut self, secrets: &Secrets) -> Answer {
        match &mut self {
            Answer::Taken(_) => {}
            Answer::Later { reason, .. }
            | Answer::TooLarge(reason)
            | Answer::Refused(reason)
            | Answer::Fault(reason) => reason.words = secrets.mask(std::mem::take(&mut reason.words)),
        }
        self
    }

    /// There was no whole answer: nobody knows what was taken.
    pub(super) fn lost(words: String) -> Answer {
        Answer::Later { reason: Reason { status: None, words }, after: None }
    }
}

impl fmt::Display for Reason {
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
    fn only_what_is_about_the_documents_is_not_sent_again() {
        for code in 300..=599 {
            let answer = Answer::of(StatusCode::from_u16(code).unwrap(), String::new(), None);
            let dropped = matches!(answer, Answer::TooLarge(_) | Answer::Refused(_));
            assert_eq!(dropped, matches!(code, 400 | 406 | 411 | 413 | 415 | 422), "{code}");
        }
    }
}

//! A caller's result: an answer, a failure, or a refusal.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::Window;

/// The most bytes of a server's reason that are kept.
pub(crate) const MAX_REASON_BYTES: usize = 256;

/// A state of a document, for conditional writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Revision {
    /// `_seq_no`.
    pub seq_no: u64,
    /// `_primary_term`.
    pub primary_term: u64,
}

/// A write was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteResponse {
    /// Its status: 200 or 201.
    pub status: u16,
    /// Whether it changed nothing (`noop`).
    pub unchanged: bool,
    /// The document's version now.
    pub version: u64,
    /// The values for a later conditional write that must not overwrite another's.
    pub revision: Revision,
    /// The document's id, where the server chose it.
    pub id: Option<Box<str>>,
}

/// A document that was read.
#[derive(Debug, Clone)]
pub struct FetchedDocument {
    /// `_source`, empty where there is none.
    pub source: ResponseBytes,
    /// The document's version.
    pub version: u64,
    /// The values for a later conditional write that must not overwrite another's.
    pub revision: Revision,
}

/// The answer to a search: one element of `responses`, as JSON.
#[derive(Debug, Clone)]
pub struct SearchResponse {
    /// The element's bytes.
    pub body: ResponseBytes,
}

/// The response to a forwarded item, as the server wrote it: `{"index":{…,"status":201}}`.
#[derive(Debug, Clone)]
pub struct ItemResponse {
    /// The status of the item.
    pub status: u16,
    /// Whether it has an error. Deleting a missing document is no error, and has status 404.
    pub failed: bool,
    /// The element; `None` when there was no memory to keep it.
    pub body: Option<ResponseBytes>,
    /// Where the element was not kept: type and reason of its error, cut.
    pub reason: Option<Box<str>>,
}

/// Bytes of an answer, in memory that all answers of one request share and that is paid for until the last of
/// them is dropped.
#[derive(Clone)]
pub struct ResponseBytes {
    window: Arc<Window>,
    start: u32,
    end: u32,
}

impl ResponseBytes {
    /// The bytes `range` of `window`.
    pub(crate) fn new(window: &Arc<Window>, range: &Range<usize>) -> ResponseBytes {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        ResponseBytes { window: Arc::clone(window), start: place(range.start), end: place(range.end) }
    }
}

impl Deref for ResponseBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.window.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl fmt::Debug for ResponseBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(self).fmt(f)
    }
}

/// Why an item was not carried out, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Failure {
    /// The category of a failure that a caller can act upon.
    pub kind: FailureKind,
    /// The status that the server gave the item or the request; 0 where there was none.
    pub status: u16,
    /// The server's or the connection's words, cut.
    pub reason: Option<Box<str>>,
}

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// There is no such document.
    NotFound,
    /// There is no such index.
    IndexNotFound,
    /// The document is there already, or is not in the state that was named.
    VersionConflict,
    /// The server was overloaded until the deadline. The item was not carried out.
    Rejected,
    /// It could not be sent before the deadline. It was not carried out.
    Timeout,
    /// It was sent and not answered: it may or may not have been carried out.
    Unanswered,
    /// The server cannot make sense of it.
    Invalid,
    /// The server does not allow it.
    Denied,
    /// It, or its answer, is longer than the server or the engine takes.
    TooLarge,
    /// There was no memory for the answer.
    NoRoom,
    /// The engine ended. It was not sent.
    Stopped,
    /// The server failed.
    Server,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureKind::NotFound => "there is no such document",
            FailureKind::IndexNotFound => "there is no such index",
            FailureKind::VersionConflict => "the document is in another state than the write expects",
            FailureKind::Rejected => "the server stayed overloaded until the deadline",
            FailureKind::Timeout => "it could not be sent before the deadline",
            FailureKind::Unanswered => "it was sent and not answered, and may have been carried out",
            FailureKind::Invalid => "the server cannot make sense of it",
            FailureKind::Denied => "the server does not allow it",
            FailureKind::TooLarge => "it or its answer is too large",
            FailureKind::NoRoom => "there was no memory for the answer",
            FailureKind::Stopped => "the engine ended before it was sent",
            FailureKind::Server => "the server failed",
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if self.status != 0 {
            write!(f, " (status {})", self.status)?;
        }
        match &self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

impl Failure {
    /// A failure without words.
    pub(crate) fn new(kind: FailureKind, status: u16) -> Failure {
        Failure { kind, status, reason: None }
    }

    /// The same with the server's words, cut.
    pub(crate) fn with_reason(self, reason: &str) -> Failure {
        let reason = reason.get(..reason.floor_char_boundary(MAX_REASON_BYTES)).unwrap_or_default();
        Failure { reason: (!reason.is_empty()).then(|| reason.into()), ..self }
    }
}

/// Why an item was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BulkSubmitError {
    /// The engine has no free memory or slot.
    #[error("as much as is allowed waits to be sent; try again in {retry_after:?}")]
    Full {
        /// The estimated delay, from the throughput of the last requests.
        retry_after: Duration,
    },
    /// It never fits.
    #[error("an item of {bytes} bytes is more than the {most} that can be sent")]
    TooLarge {
        /// Its length with its action, in bytes.
        bytes: usize,
        /// The most that is possible.
        most: usize,
    },
    /// It would spoil the request for all others in it.
    #[error("the item cannot be sent: {0}")]
    Invalid(&'static str),
    /// The engine is ending.
    #[error("the engine is ending; send it elsewhere or later")]
    Stopping,
}

/// The result kept in a slot until its caller takes it.
#[derive(Debug)]
pub(crate) enum Outcome {
    Written(WriteResponse),
    Found(FetchedDocument),
    Hits(SearchResponse),
    Element(ItemResponse),
    Failed(Failure),
}

/// The answer type of a ticket.
pub trait Answer: Sized + sealed::Sealed {
    /// Converts the stored outcome.
    #[doc(hidden)]
    fn of(stored: StoredOutcome) -> Result<Self, Failure>;
}

/// An outcome taken from its slot.
#[doc(hidden)]
pub struct StoredOutcome(pub(crate) Outcome);

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::WriteResponse {}
    impl Sealed for super::FetchedDocument {}
    impl Sealed for super::SearchResponse {}
    impl Sealed for super::ItemResponse {}
}

macro_rules! answers {
    ($($variant:ident($response:ident)),*) => {$(
        impl Answer for $response {
            fn of(stored: StoredOutcome) -> Result<Self, Failure> {
                match stored.0 {
                    Outcome::$variant(answer) => Ok(answer),
                    Outcome::Failed(failure) => Err(failure),
                    _ => Err(Failure::new(FailureKind::Server, 0)),
                }
            }
        }
    )*};
}
answers!(Written(WriteResponse), Found(FetchedDocument), Hits(SearchResponse), Element(ItemResponse));

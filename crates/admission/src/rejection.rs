//! A refusal: reason, message and delay.

use crate::canned_refusal::CannedRefusal;
use crate::deliverable::Undeliverable;
use crate::origin;
use std::fmt;
use tidegate_http1::Content;
use tidegate_ledger::{OpenRequest, Refusal, RefusalDetails, SubmittedRequest};

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The reason, as the ledger counts it.
    pub reason: Refusal,
    /// The reason and the remedy, for the reader of the client's log.
    pub words: RejectionText,
    /// Seconds after which a retry may succeed; `None` when none ever will.
    pub retry_after: Option<u32>,
}

/// The message of a refusal; fixed messages need no allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectionText {
    /// A constant; ends with a line feed.
    Fixed(&'static str),
    /// The message of a frequent refusal, whose answer is prepared.
    CannedRefusal(CannedRefusal),
    /// A sentence around a number; ends with a line feed.
    Around(&'static [&'static str; 2], usize),
    /// Composed for this request, with a bounded length; ends with a line feed.
    Own(String),
}

impl Rejection {
    /// A permanent refusal with a constant message.
    pub const fn new(reason: Refusal, words: &'static str) -> Rejection {
        Rejection { reason, words: RejectionText::Fixed(words), retry_after: None }
    }

    /// A frequent refusal.
    #[inline]
    pub const fn canned(canned: CannedRefusal) -> Rejection {
        Rejection { reason: canned.reason(), words: RejectionText::CannedRefusal(canned), retry_after: None }
    }

    /// The body breaks a rule of its format; `fault` says which and where.
    pub fn malformed(fault: impl fmt::Display) -> Rejection {
        Rejection {
            reason: Refusal::Malformed,
            words: RejectionText::Own(format!("{fault}\n")),
            retry_after: None,
        }
    }

    /// The body is larger than `most` bytes.
    pub const fn too_large(most: usize) -> Rejection {
        let around = &[
            "the decompressed body is too large; here at most ",
            " bytes are accepted: send smaller batches\n",
        ];
        Rejection { reason: Refusal::TooLarge, words: RejectionText::Around(around, most), retry_after: None }
    }

    /// An item of the body is longer than `most` bytes with its envelope.
    pub const fn item_too_large(most: usize) -> Rejection {
        let around = &[
            "one item is too large to be forwarded; with its resource, metadata or labels it may have at most ",
            " bytes: make it smaller, or raise the gateway's `memory`\n",
        ];
        Rejection { reason: Refusal::TooLarge, words: RejectionText::Around(around, most), retry_after: None }
    }

    /// The request has more than `most` items.
    pub const fn too_many(most: usize) -> Rejection {
        let around = &[
            "there are too many items; here at most ",
            " are accepted in a request: send smaller batches\n",
        ];
        Rejection { reason: Refusal::TooLarge, words: RejectionText::Around(around, most), retry_after: None }
    }

    /// Closes the books of the request that it refuses, with its words for those who look at the last refusals.
    pub fn close(&self, open: OpenRequest) {
        open.refuse_with(self.reason, &self.details());
    }

    /// As [`close`](Self::close), for a request that was given to the journal.
    pub(crate) fn close_submitted(&self, submitted: SubmittedRequest) {
        submitted.refuse_with(self.reason, &self.details());
    }

    fn details(&self) -> RefusalDetails<'_> {
        let (peer, bytes) = origin::current();
        RefusalDetails { peer, bytes, words: &self.words, ..RefusalDetails::default() }
    }

    /// The same, to be retried after `seconds`.
    #[must_use]
    #[inline]
    pub const fn retry_after(mut self, seconds: u32) -> Rejection {
        self.retry_after = Some(seconds);
        self
    }
}

impl From<Undeliverable> for Rejection {
    fn from(undeliverable: Undeliverable) -> Rejection {
        match undeliverable {
            Undeliverable::Body(most) => Rejection::too_large(most),
            Undeliverable::Item(most) => Rejection::item_too_large(most),
        }
    }
}

impl fmt::Display for RejectionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RejectionText::Fixed(text) => f.write_str(text),
            RejectionText::CannedRefusal(canned) => f.write_str(canned.words()),
            RejectionText::Around([before, after], number) => write!(f, "{before}{number}{after}"),
            RejectionText::Own(text) => f.write_str(text),
        }
    }
}

impl From<RejectionText> for Content {
    fn from(words: RejectionText) -> Content {
        match words {
            RejectionText::Fixed(text) => Content::Fixed(text.as_bytes()),
            RejectionText::CannedRefusal(canned) => Content::Fixed(canned.words().as_bytes()),
            RejectionText::Around(around, number) => Content::Sentence(around, number as u64),
            RejectionText::Own(text) => text.into(),
        }
    }
}

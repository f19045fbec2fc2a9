//! A refusal: the reason, the words, and when to return.

use crate::deliverable::Undeliverable;
use crate::standing::Standing;
use tidegate_http1::Content;
use tidegate_ledger::Refusal;

/// A request that is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The reason, as the books know it.
    pub reason: Refusal,
    /// What is wrong and what to do, for whoever reads the client's log.
    pub words: Words,
    /// After how many seconds it is worth another try; nothing when it never is.
    pub retry_after: Option<u32>,
}

/// A sentence, made without an allocation where it says the same every time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words {
    /// Known when the program was built; ends with a line feed.
    Fixed(&'static str),
    /// The words of a refusal that comes often: its answer is put together already.
    Standing(Standing),
    /// Around a number; ends with a line feed.
    Around(&'static [&'static str; 2], usize),
    /// About this very request; ends with a line feed; bounded by who made it.
    Own(String),
}

impl Refused {
    /// Refused for good, with fixed words.
    pub const fn new(reason: Refusal, words: &'static str) -> Refused {
        Refused { reason, words: Words::Fixed(words), retry_after: None }
    }

    /// Refused as many are.
    #[inline]
    pub const fn standing(standing: Standing) -> Refused {
        Refused { reason: standing.reason(), words: Words::Standing(standing), retry_after: None }
    }

    /// The body breaks a rule of its format; `fault` says which and where.
    pub fn malformed(fault: impl std::fmt::Display) -> Refused {
        Refused { reason: Refusal::Malformed, words: Words::Own(format!("{fault}\n")), retry_after: None }
    }

    /// The body is larger than `most` bytes.
    pub const fn too_large(most: usize) -> Refused {
        let around = &[
            "the decompressed body is too large; here at most ",
            " bytes are taken: send smaller batches\n",
        ];
        Refused { reason: Refusal::TooLarge, words: Words::Around(around, most), retry_after: None }
    }

    /// An item of the body, with what encloses it, is larger than `most` bytes.
    pub const fn item_too_large(most: usize) -> Refused {
        let around = &[
            "one item is too large to be forwarded; here it may have at most ",
            " bytes, with the resource or metadata that it carries: make it smaller, or raise `memory`\n",
        ];
        Refused { reason: Refusal::TooLarge, words: Words::Around(around, most), retry_after: None }
    }

    /// The request has more than `most` items.
    pub const fn too_many(most: usize) -> Refused {
        let around =
            &["there are too many items; here at most ", " are taken in a request: send smaller batches\n"];
        Refused { reason: Refusal::TooLarge, words: Words::Around(around, most), retry_after: None }
    }

    /// The same, worth another try after `seconds`.
    #[must_use]
    #[inline]
    pub const fn retry_after(mut self, seconds: u32) -> Refused {
        self.retry_after = Some(seconds);
        self
    }
}

impl From<Undeliverable> for Refused {
    fn from(undeliverable: Undeliverable) -> Refused {
        match undeliverable {
            Undeliverable::Body(most) => Refused::too_large(most),
            Undeliverable::Item(most) => Refused::item_too_large(most),
        }
    }
}

impl From<Words> for Content {
    fn from(words: Words) -> Content {
        match words {
            Words::Fixed(text) => Content::Fixed(text.as_bytes()),
            Words::Standing(standing) => Content::Fixed(standing.words().as_bytes()),
            Words::Around(around, number) => Content::Sentence(around, number as u64),
            Words::Own(text) => text.into(),
        }
    }
}

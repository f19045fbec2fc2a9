//! The memory that a kind of sink needs to deliver a record.
//!
//! The sources accept a record only when every configured sink can deliver it: for each sink that takes the record, the
//! sum below is at most what that sink can hold while it has the turn to borrow.
//!
//! ```text
//! length as journalled + length decoded (if compressed) + factor × largest item + working
//! ```
//!
//! The largest item counts with its envelope, which is part of every piece: the resource and scope of a span, the
//! metadata line of an event, the labels of a series.

/// Memory that a kind of sink needs beside a record's own bytes to deliver the record item by item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    /// Fixed buffers and the smallest useful piece, in bytes.
    pub working: usize,
    /// Memory for all copies of the largest item that exist at the same time, in multiples of its length.
    pub factor: usize,
}

impl Need {
    /// The need that covers both.
    #[must_use]
    pub const fn max(self, other: Need) -> Need {
        Need {
            working: if self.working > other.working { self.working } else { other.working },
            factor: if self.factor > other.factor { self.factor } else { other.factor },
        }
    }

    /// The bytes that a sink must be able to hold to deliver a record of `kept` bytes as journalled and `decoded` bytes
    /// decompressed (zero if it is not compressed), whose largest item has `item` bytes with its envelope.
    #[must_use]
    pub const fn of(self, kept: usize, decoded: usize, item: usize) -> usize {
        kept.saturating_add(decoded)
            .saturating_add(self.working)
            .saturating_add(item.saturating_mul(self.factor))
    }
}

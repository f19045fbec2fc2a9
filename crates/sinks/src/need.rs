//! What a kind of sink needs to deliver a record.
//!
//! The doors accept a record only when every configured sink can deliver it: the sum below, for each sink that takes
//! the record, is at most what that sink can hold with its turn to borrow.
//!
//! ```text
//! bytes as journalled + bytes decoded (when that differs) + factor × largest item + working
//! ```
//!
//! The largest item is counted with what encloses it, since a piece carries that: the resource and scope of a span,
//! the metadata line of an event, the labels of a series.

/// Memory that a kind of sink needs beside a record's own bytes, to deliver it item by item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    /// Fixed buffers and the smallest useful piece, in bytes.
    pub working: usize,
    /// How many times its own length the largest item takes on its way out, in all copies that exist at a time.
    pub factor: usize,
}

impl Need {
    /// What suffices for both.
    #[must_use]
    pub const fn max(self, other: Need) -> Need {
        Need {
            working: if self.working > other.working { self.working } else { other.working },
            factor: if self.factor > other.factor { self.factor } else { other.factor },
        }
    }

    /// The bytes that a sink must be able to hold to deliver a record: `kept` bytes as journalled, `decoded` more when
    /// they are compressed, of which the largest item with what encloses it has `item`.
    #[must_use]
    pub const fn of(self, kept: usize, decoded: usize, item: usize) -> usize {
        kept.saturating_add(decoded)
            .saturating_add(self.working)
            .saturating_add(item.saturating_mul(self.factor))
    }
}

//! Items that a source forwards to a destination and does not journal.

use crate::reason::Refusal;
use crate::signal::Counts;
use crate::source::{OpenRequest, RefusedItems, Source};
use crate::tenant::TenantHandle;
use std::fmt;

/// The outcome of a forwarded item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The destination carried it out.
    Answered,
    /// The destination answered with an error.
    Rejected,
    /// It was sent, and there was no response: it may have been carried out.
    Unanswered,
    /// It was not sent, and the client was told.
    Refused,
    /// The client left before there was an answer.
    Abandoned,
}

impl Fate {
    /// All of them, in the order of their columns.
    pub const ALL: [Fate; 5] =
        [Fate::Answered, Fate::Rejected, Fate::Unanswered, Fate::Refused, Fate::Abandoned];

    /// The label value and the word for it on the pages.
    pub const fn name(self) -> &'static str {
        match self {
            Fate::Answered => "answered",
            Fate::Rejected => "rejected",
            Fate::Unanswered => "unanswered",
            Fate::Refused => "refused",
            Fate::Abandoned => "abandoned",
        }
    }
}

/// The columns of a source's forwarded items, since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForwardedBook {
    pub(crate) received: u64,
    pub(crate) fates: [u64; Fate::ALL.len()],
    pub(crate) open: u64,
}

impl ForwardedBook {
    /// Items that went to the destination.
    pub(crate) fn sent(&self) -> u64 {
        let sent = [Fate::Answered, Fate::Rejected, Fate::Unanswered];
        sent.iter().map(|fate| self.fates[*fate as usize]).sum()
    }
}

/// A request whose items are being forwarded. Dropping it without a verdict refuses it as [`Refusal::Abandoned`]; items
/// without a fate are abandoned then.
#[must_use = "a request that is dropped without a verdict counts as abandoned"]
pub struct Forwarded {
    source: Option<Source>,
    tenant: Option<TenantHandle>,
    left_out: RefusedItems,
    items: u64,
    fates: [u64; Fate::ALL.len()],
}

impl OpenRequest {
    /// The request's `items` are about to be forwarded. The verdict follows.
    pub fn forward(mut self, items: u64) -> Forwarded {
        let (source, tenant, left_out) = self.take();
        if let Some(source) = &source {
            let mut book = source.book();
            book.forwarded.received += items;
            book.forwarded.open += items;
        }
        Forwarded { source, tenant, left_out, items, fates: [0; Fate::ALL.len()] }
    }
}

impl Forwarded {
    /// Enters the fate of one item.
    pub fn enter(&mut self, fate: Fate) {
        self.fates[fate as usize] += 1;
    }

    /// The request was answered item by item. `counts` are the items that went to the destination, and the body's bytes.
    pub fn accept(mut self, counts: Counts) {
        self.close(Fate::Refused, Ok(counts));
    }

    /// The request was refused as a whole; items without a fate are refused with it.
    pub fn refuse(mut self, reason: Refusal) {
        self.close(Fate::Refused, Err(reason));
    }

    fn close(&mut self, rest: Fate, verdict: Result<Counts, Refusal>) {
        let Some(source) = self.source.take() else { return };
        let mut book = source.book();
        let known: u64 = self.fates.iter().sum();
        self.fates[rest as usize] += self.items.saturating_sub(known);
        book.forwarded.open -= self.items;
        for (sum, count) in book.forwarded.fates.iter_mut().zip(self.fates) {
            *sum += count;
        }
        match verdict {
            Ok(counts) => {
                book.accept(Counts::of(crate::Signal::Logs, 0, counts.bytes()), self.left_out, None)
            }
            Err(reason) => book.refuse(reason),
        }
        drop(book);
        match (self.tenant.take(), verdict) {
            (None, _) => {}
            (Some(tenant), Ok(counts)) => tenant.accept(counts, None),
            (Some(tenant), Err(reason)) => tenant.refuse(reason),
        }
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        self.close(Fate::Abandoned, Err(Refusal::Abandoned));
    }
}

impl fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Forwarded({} items)", self.items)
    }
}

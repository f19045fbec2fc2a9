//! The most that one request may have.

use crate::limiter::LimiterSettings;
use crate::sync::{AtomicU64, Relaxed};

/// The largest request of a route or tenant.
#[derive(Debug)]
pub(crate) struct RequestSizeLimit {
    bytes: AtomicU64,
    items: AtomicU64,
}

/// A request has more than one may have, whenever it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestTooLarge {
    /// More than so many bytes, when decompressed.
    Bytes(u64),
    /// More than so many items.
    Items(u64),
}

impl RequestSizeLimit {
    pub(crate) fn new(limits: &LimiterSettings) -> RequestSizeLimit {
        let largest = RequestSizeLimit { bytes: AtomicU64::new(0), items: AtomicU64::new(0) };
        largest.set_limit(limits);
        largest
    }

    pub(crate) fn set_limit(&self, limits: &LimiterSettings) {
        self.bytes.store(limits.request_bytes.unwrap_or(u64::MAX), Relaxed);
        self.items.store(limits.request_items.unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn check(&self, bytes: u64, items: u64) -> Result<(), RequestTooLarge> {
        let (most_bytes, most_items) = (self.bytes.load(Relaxed), self.items.load(Relaxed));
        if bytes > most_bytes {
            return Err(RequestTooLarge::Bytes(most_bytes));
        }
        if items > most_items { Err(RequestTooLarge::Items(most_items)) } else { Ok(()) }
    }
}

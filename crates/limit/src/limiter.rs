//! All limits of one route or one tenant, decided together.

use crate::clock::Moment;
use crate::concurrency_gauge::ConcurrencyGauge;
use crate::rate::{PerSecond, Rate};
use crate::request_size_limit::{RequestSizeLimit, RequestTooLarge};
use crate::sync::{AtomicU64, Relaxed};
use std::time::Duration;

/// The settings of a limiter. By default nothing is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimiterSettings {
    /// Requests a second.
    pub requests: Option<PerSecond>,
    /// Items a second.
    pub items: Option<PerSecond>,
    /// Bytes of bodies a second, as they are sent.
    pub bytes: Option<PerSecond>,
    /// Requests at a time.
    pub concurrency: Option<u64>,
    /// Bytes of bodies at a time.
    pub in_flight: Option<u64>,
    /// Bytes of one body, when decompressed.
    pub request_bytes: Option<u64>,
    /// Items of one request.
    pub request_items: Option<u64>,
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Requests a second.
    Requests,
    /// Items a second.
    Items,
    /// Bytes a second.
    Bytes,
    /// Requests at a time.
    Concurrency,
    /// Bytes at a time.
    InFlight,
}

/// A limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitReached {
    /// Which.
    pub limit: Limit,
    /// After how long it would not be any more, if nobody else came; nothing where that depends on others.
    pub wait: Option<Duration>,
}

/// The limits of one route or tenant, and what is used of them.
///
/// A request is admitted once, when its head is known: [`acquire`](Self::acquire) checks every limit before it
/// takes from any, so refusing a flood writes to no shared memory. The number of items is known only when the body
/// was read; they are charged afterwards, as debt.
#[derive(Debug)]
pub struct Limiter {
    requests: Rate,
    items: Rate,
    bytes: Rate,
    concurrency: ConcurrencyGauge,
    in_flight: ConcurrencyGauge,
    largest: RequestSizeLimit,
    /// The items of the books that are entered already.
    entered: AtomicU64,
}

impl Limiter {
    /// Set to `limits`.
    pub fn new(limits: &LimiterSettings) -> Limiter {
        Limiter {
            requests: Rate::new(limits.requests),
            items: Rate::new(limits.items),
            bytes: Rate::new(limits.bytes),
            concurrency: ConcurrencyGauge::new(limits.concurrency),
            in_flight: ConcurrencyGauge::new(limits.in_flight),
            largest: RequestSizeLimit::new(limits),
            entered: AtomicU64::new(0),
        }
    }

    /// Is set to `limits` from now on. What is in use stays in use.
    pub fn set_limits(&self, limits: &LimiterSettings) {
        self.requests.set_limit(limits.requests);
        self.items.set_limit(limits.items);
        self.bytes.set_limit(limits.bytes);
        self.concurrency.set_limit(limits.concurrency);
        self.in_flight.set_limit(limits.in_flight);
        self.largest.set_limit(limits);
    }

    /// Requests at a time, now.
    pub fn concurrency(&self) -> u64 {
        self.concurrency.in_use()
    }

    /// Bytes at a time, now.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.in_use()
    }

    /// Whether items are limited: only then must they be [charged](Self::charge_items).
    #[inline]
    pub fn limits_items(&self) -> bool {
        self.items.is_limited()
    }

    /// Enters that the books have `total` items in all. Those that were not entered before are owed from now on;
    /// each once, whoever enters them.
    pub fn charge_items(&self, now: Moment, total: u64) {
        let before = self.entered.fetch_max(total, Relaxed);
        self.items.charge(now, total.saturating_sub(before));
    }

    /// Takes the books' items for entered: for a limiter that begins while they are kept already.
    pub fn skip_items(&self, total: u64) {
        self.entered.fetch_max(total, Relaxed);
    }

    /// Whether one request may have so many bytes, decompressed, and so many items. Asked when its body was read.
    ///
    /// # Errors
    /// When it may never.
    #[inline]
    pub fn fits(&self, bytes: u64, items: u64) -> Result<(), RequestTooLarge> {
        self.largest.check(bytes, items)
    }

    /// Whether a request of so many bytes could come in now.
    ///
    /// # Errors
    /// With the first limit that is reached.
    #[inline]
    pub fn check(&self, now: Moment, bytes: u64) -> Result<(), LimitReached> {
        if !self.concurrency.has_capacity(1) {
            return Err(LimitReached { limit: Limit::Concurrency, wait: None });
        }
        if !self.in_flight.has_capacity(bytes) {
            return Err(LimitReached { limit: Limit::InFlight, wait: None });
        }
        let reached = |limit| move |wait| LimitReached { limit, wait: Some(wait) };
        self.requests.check(now, 1).map_err(reached(Limit::Requests))?;
        self.items.check(now, 1).map_err(reached(Limit::Items))?;
        self.bytes.check(now, bytes).map_err(reached(Limit::Bytes))
    }

    /// Lets a request of so many bytes in.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[inline]
    pub fn acquire(&self, now: Moment, bytes: u64) -> Result<LimiterPermit<'_>, LimitReached> {
        self.check(now, bytes)?;
        self.take(now, bytes)?;
        Ok(LimiterPermit { limiter: self, bytes })
    }

    /// Takes what a request needs, which was checked before. Another may have been faster: then what was taken of
    /// the numbers at a time goes back, and what was taken of a rate does not, so that nothing is given away.
    #[inline]
    pub(crate) fn take(&self, now: Moment, bytes: u64) -> Result<(), LimitReached> {
        if !self.concurrency.try_acquire(1) {
            return Err(LimitReached { limit: Limit::Concurrency, wait: None });
        }
        let reached = |limit| move |wait| LimitReached { limit, wait: Some(wait) };
        let taken = self.requests.take(now, 1).map_err(reached(Limit::Requests));
        let taken = taken.and_then(|()| self.take_bytes(now, 0, bytes));
        if taken.is_err() {
            self.concurrency.release(1);
        }
        taken
    }

    /// Takes bytes for a request that is in already, and has `own` of them. One that has begun to pass a rate passes
    /// it: whatever more it has is owed.
    #[inline]
    pub(crate) fn take_bytes(&self, now: Moment, own: u64, bytes: u64) -> Result<(), LimitReached> {
        if bytes == 0 {
            return Ok(());
        }
        if !self.in_flight.try_acquire_more(own, bytes) {
            return Err(LimitReached { limit: Limit::InFlight, wait: None });
        }
        if own > 0 {
            self.bytes.charge(now, bytes);
            return Ok(());
        }
        self.bytes.take(now, bytes).map_err(|wait| {
            self.in_flight.release(bytes);
            LimitReached { limit: Limit::Bytes, wait: Some(wait) }
        })
    }

    #[inline]
    pub(crate) fn release_bytes(&self, bytes: u64) {
        if bytes > 0 {
            self.in_flight.release(bytes);
        }
    }

    #[inline]
    pub(crate) fn release(&self, bytes: u64) {
        self.concurrency.release(1);
        self.release_bytes(bytes);
    }
}

/// A request that was let in. Dropping it gives back what it had of the numbers at a time.
#[derive(Debug)]
#[must_use = "dropping it gives back what it holds"]
pub struct LimiterPermit<'a> {
    limiter: &'a Limiter,
    bytes: u64,
}

impl Drop for LimiterPermit<'_> {
    fn drop(&mut self) {
        self.limiter.release(self.bytes);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

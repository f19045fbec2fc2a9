//! A rate limit by the generic cell rate algorithm (GCRA): one number, the theoretical arrival time.

use crate::clock::Moment;
use crate::sync::{AtomicU64, Relaxed};
use std::time::Duration;

/// A rate, and the burst allowed after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerSecond {
    /// Units a second; at least one.
    pub rate: u64,
    /// Units at once, after a pause.
    pub burst: u64,
}

/// Limits how many units pass a second.
///
/// The state is one number: the time at which all debt is paid. A request passes while the debt and it fit the burst,
/// or while there is no debt: so a request larger than the burst passes too, and is paid off before the next. In any
/// period `t`, at most `max(burst, the largest request) + rate × t` pass, however many threads ask, because one
/// compare-and-swap decides.
#[derive(Debug)]
pub struct Rate {
    /// When all units taken so far are paid off, as a [`Moment`] in nanoseconds.
    theoretical_arrival: AtomicU64,
    /// Nanoseconds for one unit, times 2¹⁶, rounded up; zero for no limit.
    interval: AtomicU64,
    /// Nanoseconds for the burst.
    burst: AtomicU64,
}

impl Rate {
    /// A limiter with this limit; `None` for no limit.
    pub fn new(limit: Option<PerSecond>) -> Rate {
        let rate = Rate {
            theoretical_arrival: AtomicU64::new(0),
            interval: AtomicU64::new(0),
            burst: AtomicU64::new(0),
        };
        rate.set_limit(limit);
        rate
    }

    /// Replaces the limit. Debt so far stays, at the price at which it was taken.
    pub fn set_limit(&self, limit: Option<PerSecond>) {
        let Some(PerSecond { rate, burst }) = limit else {
            self.interval.store(0, Relaxed);
            return;
        };
        let interval = (1_000_000_000_u64 << 16).div_ceil(rate.max(1));
        self.burst.store(time_of(burst.max(1), interval), Relaxed);
        self.interval.store(interval, Relaxed);
    }

    /// Whether `count` could be taken now.
    ///
    /// # Errors
    /// The time until they can, if no other caller takes any.
    #[inline]
    pub fn check(&self, now: Moment, count: u64) -> Result<(), Duration> {
        let interval = self.interval.load(Relaxed);
        if interval == 0 {
            return Ok(());
        }
        self.fits(self.theoretical_arrival.load(Relaxed), now, time_of(count, interval)).map(|_arrival| ())
    }

    /// Takes `count`. They are never given back, whatever becomes of the request.
    ///
    /// # Errors
    /// As [`check`](Self::check); nothing is taken then.
    #[inline]
    pub fn take(&self, now: Moment, count: u64) -> Result<(), Duration> {
        let interval = self.interval.load(Relaxed);
        if interval == 0 {
            return Ok(());
        }
        let cost = time_of(count, interval);
        let mut arrival = self.theoretical_arrival.load(Relaxed);
        loop {
            let then = self.fits(arrival, now, cost)?;
            match self.theoretical_arrival.compare_exchange_weak(arrival, then, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => arrival = changed,
            }
        }
    }

    /// Charges `count` that passed unchecked: nothing more passes until they are paid off.
    pub fn charge(&self, now: Moment, count: u64) {
        let interval = self.interval.load(Relaxed);
        if interval == 0 || count == 0 {
            return;
        }
        let cost = time_of(count, interval);
        let mut arrival = self.theoretical_arrival.load(Relaxed);
        while let Err(changed) = self.theoretical_arrival.compare_exchange_weak(
            arrival,
            arrival.max(now.0).saturating_add(cost),
            Relaxed,
            Relaxed,
        ) {
            arrival = changed;
        }
    }

    /// Whether there is a limit.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.interval.load(Relaxed) != 0
    }

    /// The theoretical arrival time after `cost` more, if the burst allows it.
    #[inline]
    fn fits(&self, arrival: u64, now: Moment, cost: u64) -> Result<u64, Duration> {
        let debt = arrival.saturating_sub(now.0);
        let with = debt.saturating_add(cost);
        let burst = self.burst.load(Relaxed);
        if debt == 0 || with <= burst {
            return Ok(arrival.max(now.0).saturating_add(cost));
        }
        Err(Duration::from_nanos(debt.min(with - burst)))
    }
}

/// The time for `count` at this interval, rounded up.
#[inline]
fn time_of(count: u64, interval: u64) -> u64 {
    let fine = u128::from(count) * u128::from(interval) + 0xffff;
    u64::try_from(fine >> 16).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests;

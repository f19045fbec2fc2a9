//! So many a second, by the generic cell rate algorithm: one number says until when what was taken is owed.

use crate::clock::Moment;
use crate::sync::{AtomicU64, Relaxed};
use std::time::Duration;

/// So many a second, and how many may come at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerSecond {
    /// How many a second; at least one.
    pub rate: u64,
    /// How many at once, when nothing is owed.
    pub burst: u64,
}

/// Lets through at most as many a second as it is set to.
///
/// The state is one number: the time at which all debt is paid. A request passes while the debt and it fit the burst,
/// or while there is no debt: so a request larger than the burst passes too, and is paid off before the next. In any
/// period `t`, at most `max(burst, the largest request) + rate × t` pass, however many threads ask, because one
/// compare-and-swap decides.
#[derive(Debug)]
pub struct Rate {
    /// Until when what was taken is owed, as [`Moment`] counts.
    owed: AtomicU64,
    /// Nanoseconds for one, times 2¹⁶, rounded up; zero for no limit.
    interval: AtomicU64,
    /// Nanoseconds for the burst.
    burst: AtomicU64,
}

impl Rate {
    /// Set to this; to no limit with nothing.
    pub fn new(limit: Option<PerSecond>) -> Rate {
        let rate = Rate { owed: AtomicU64::new(0), interval: AtomicU64::new(0), burst: AtomicU64::new(0) };
        rate.change(limit);
        rate
    }

    /// Is set to this from now on. What is owed stays owed, at the price at which it was taken.
    pub fn change(&self, limit: Option<PerSecond>) {
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
    /// After how long they can, if nobody else takes any.
    #[inline]
    pub fn check(&self, now: Moment, count: u64) -> Result<(), Duration> {
        let interval = self.interval.load(Relaxed);
        if interval == 0 {
            return Ok(());
        }
        self.fits(self.owed.load(Relaxed), now, time_of(count, interval)).map(|_owed| ())
    }

    /// Takes `count`. They are not given back: what became of what they were taken for came later.
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
        let mut owed = self.owed.load(Relaxed);
        loop {
            let then = self.fits(owed, now, cost)?;
            match self.owed.compare_exchange_weak(owed, then, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => owed = changed,
            }
        }
    }

    /// Enters `count` that passed without being asked for: nothing more passes until they are paid off.
    pub fn owe(&self, now: Moment, count: u64) {
        let interval = self.interval.load(Relaxed);
        if interval == 0 || count == 0 {
            return;
        }
        let cost = time_of(count, interval);
        let mut owed = self.owed.load(Relaxed);
        while let Err(changed) =
            self.owed.compare_exchange_weak(owed, owed.max(now.0).saturating_add(cost), Relaxed, Relaxed)
        {
            owed = changed;
        }
    }

    /// Whether there is a limit.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.interval.load(Relaxed) != 0
    }

    /// Until when is owed what is owed until `owed` and `cost` more, if that may be.
    #[inline]
    fn fits(&self, owed: u64, now: Moment, cost: u64) -> Result<u64, Duration> {
        let debt = owed.saturating_sub(now.0);
        let with = debt.saturating_add(cost);
        let burst = self.burst.load(Relaxed);
        if debt == 0 || with <= burst {
            return Ok(owed.max(now.0).saturating_add(cost));
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

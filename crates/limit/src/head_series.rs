//! How many series each tenant has in the store behind, and how many it may have.
//!
//! The numbers come from outside, at intervals; limits come from the configuration. Both are replaced as a whole.

use crate::hash::HashKey;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The most tenants whose numbers are kept.
pub const MOST_COUNTED_TENANTS: usize = 16_384;

/// The most series of each tenant. Zero is no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeadSeriesLimits {
    /// Of a tenant without an own limit.
    pub default: u64,
    /// By name.
    pub overrides: BTreeMap<String, u64>,
}

/// The numbers and the limits.
#[derive(Debug)]
pub struct HeadSeries {
    key: HashKey,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    limits: HeadSeriesLimits,
    /// Hashes of names and their series, sorted; nothing before the first numbers.
    counts: Option<Box<[(u64, u64)]>>,
}

/// The last answer about a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadSeriesState {
    /// It has no limit, or less series than that.
    Below,
    /// It has a limit, and its number is not known.
    Unknown,
    /// It has at least as many as it may have.
    Reached {
        /// Its series.
        series: u64,
        /// Its limit.
        limit: u64,
    },
}

/// New numbers, which are collected one by one.
#[derive(Debug)]
pub struct HeadSeriesCounts {
    key: HashKey,
    counts: Vec<(u64, u64)>,
    left_out: u64,
}

impl HeadSeriesLimits {
    /// The limit of this tenant; zero is none.
    pub fn of(&self, tenant: &str) -> u64 {
        self.overrides.get(tenant).copied().unwrap_or(self.default)
    }

    /// Whether any tenant has a limit.
    pub fn is_any(&self) -> bool {
        self.default > 0 || self.overrides.values().any(|limit| *limit > 0)
    }
}

impl HeadSeries {
    /// Its memory, with new numbers beside the old ones: a line of the memory plan.
    pub const BYTES: usize = 2 * MOST_COUNTED_TENANTS * size_of::<(u64, u64)>();

    /// Without numbers yet.
    pub fn new(limits: HeadSeriesLimits) -> HeadSeries {
        HeadSeries { key: HashKey::random(), state: RwLock::new(State { limits, counts: None }) }
    }

    /// Other limits from now on.
    pub fn set_limits(&self, limits: HeadSeriesLimits) {
        self.write().limits = limits;
    }

    /// Collects new numbers.
    pub fn collect(&self) -> HeadSeriesCounts {
        HeadSeriesCounts { key: self.key, counts: Vec::new(), left_out: 0 }
    }

    /// These numbers from now on.
    pub fn set_counts(&self, counts: HeadSeriesCounts) {
        let mut counts = counts.counts;
        counts.sort_unstable();
        self.write().counts = Some(counts.into());
    }

    /// Forgets the numbers: nobody is limited until there are new ones.
    pub fn forget_counts(&self) {
        self.write().counts = None;
    }

    /// Whether a request of this tenant may bring series.
    pub fn check(&self, tenant: &str) -> HeadSeriesState {
        let state = self.read();
        let limit = state.limits.of(tenant);
        if limit == 0 {
            return HeadSeriesState::Below;
        }
        let hash = self.key.hash(tenant.as_bytes());
        let counts = state.counts.as_deref().unwrap_or_default();
        let found = counts.binary_search_by_key(&hash, |(hash, _)| *hash).ok().and_then(|at| counts.get(at));
        match found {
            None => HeadSeriesState::Unknown,
            Some((_, series)) if *series < limit => HeadSeriesState::Below,
            Some((_, series)) => HeadSeriesState::Reached { series: *series, limit },
        }
    }

    /// Hands the default limit and those of single tenants to `visit`, the default one under an empty name.
    pub fn each_limit(&self, mut visit: impl FnMut(&str, u64)) {
        let state = self.read();
        visit("", state.limits.default);
        state.limits.overrides.iter().for_each(|(tenant, limit)| visit(tenant, *limit));
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeadSeriesCounts {
    /// The tenant has so many series.
    pub fn add(&mut self, tenant: &str, series: u64) {
        if self.counts.len() >= MOST_COUNTED_TENANTS {
            self.left_out += 1;
            return;
        }
        self.counts.push((self.key.hash(tenant.as_bytes()), series));
    }

    /// The tenants that are kept.
    pub fn tenants(&self) -> usize {
        self.counts.len()
    }

    /// The tenants for which there was no room.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn limits() -> HeadSeriesLimits {
        let overrides = [("big", 1000), ("free", 0)].map(|(name, limit)| (name.to_owned(), limit));
        HeadSeriesLimits { default: 100, overrides: overrides.into() }
    }

    fn with(counts: &[(&str, u64)]) -> HeadSeries {
        let head_series = HeadSeries::new(limits());
        let mut new = head_series.collect();
        counts.iter().for_each(|(tenant, series)| new.add(tenant, *series));
        head_series.set_counts(new);
        head_series
    }

    /// At the limit is beyond it, as in Thanos; zero is no limit; an unknown tenant is not limited.
    #[test]
    fn limits_are_compared_as_thanos_compares_them() {
        let head_series = with(&[("a", 99), ("b", 100), ("big", 999), ("free", u64::MAX)]);
        let reached = |series, limit| HeadSeriesState::Reached { series, limit };
        assert_eq!(head_series.check("a"), HeadSeriesState::Below);
        assert_eq!(head_series.check("b"), reached(100, 100));
        assert_eq!(head_series.check("big"), HeadSeriesState::Below);
        assert_eq!(head_series.check("free"), HeadSeriesState::Below);
        assert_eq!(head_series.check("stranger"), HeadSeriesState::Unknown);
        head_series.set_limits(HeadSeriesLimits { default: 10, ..HeadSeriesLimits::default() });
        assert_eq!(head_series.check("big"), reached(999, 10), "new limits hold at once");
        head_series.forget_counts();
        assert_eq!(head_series.check("b"), HeadSeriesState::Unknown);
    }

    /// However many tenants there are, so many are kept.
    #[test]
    fn tenants_are_bounded() {
        let head_series = HeadSeries::new(limits());
        let mut counts = head_series.collect();
        for tenant in 0..MOST_COUNTED_TENANTS + 7 {
            counts.add(&tenant.to_string(), 1_000_000);
        }
        assert_eq!((counts.tenants(), counts.left_out()), (MOST_COUNTED_TENANTS, 7));
        head_series.set_counts(counts);
        assert!(matches!(head_series.check("0"), HeadSeriesState::Reached { .. }));
    }
}

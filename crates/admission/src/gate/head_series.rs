//! Refuses requests of tenants that have as many series in the store behind as they may have.

use super::Gate;
use crate::canned_refusal::CannedRefusal;
use crate::rejection::Rejection;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use tidegate_ledger::OpenRequest;
use tidegate_limit::{HeadSeries, HeadSeriesState};

/// The tenants whose refused requests are counted by themselves.
const COUNTED: usize = 16;
/// How long a refused client should wait, in seconds: until the next numbers, usually.
const RETRY_AFTER: u64 = 15;

/// The series of the tenants, and how many requests were refused for them.
#[derive(Debug)]
pub struct HeadSeriesGate {
    /// The numbers and limits.
    pub series: HeadSeries,
    /// Requests of tenants with a limit whose number was not known.
    unknown: AtomicU64,
    /// Refused requests of the first tenants.
    refused: Mutex<BTreeMap<Box<str>, u64>>,
    /// Refused requests of all others.
    refused_others: AtomicU64,
}

impl HeadSeriesGate {
    /// Its memory: a line of the memory plan.
    pub const BYTES: usize = HeadSeries::BYTES + COUNTED * 256;

    /// With these limits.
    pub fn new(series: HeadSeries) -> HeadSeriesGate {
        HeadSeriesGate {
            series,
            unknown: AtomicU64::new(0),
            refused: Mutex::default(),
            refused_others: AtomicU64::new(0),
        }
    }

    /// Requests that were accepted since the number of their tenant's series was not known.
    pub fn unknown(&self) -> u64 {
        self.unknown.load(Relaxed)
    }

    /// Hands refused requests to `visit`, by tenant; those of further tenants under `other`.
    pub fn each_refused(&self, mut visit: impl FnMut(&str, u64)) {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.iter().for_each(|(tenant, count)| visit(tenant, *count));
        let others = self.refused_others.load(Relaxed);
        if others > 0 {
            visit(tidegate_limit::OTHER, others);
        }
    }

    fn check(&self, tenant: &str) -> Result<(), ()> {
        match self.series.check(tenant) {
            HeadSeriesState::Below => Ok(()),
            HeadSeriesState::Unknown => {
                self.unknown.fetch_add(1, Relaxed);
                Ok(())
            }
            HeadSeriesState::Reached { series, limit } => {
                self.refuse(tenant, series, limit);
                Err(())
            }
        }
    }

    fn refuse(&self, tenant: &str, series: u64, limit: u64) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = refused.len() >= COUNTED;
        match refused.get_mut(tenant) {
            Some(count) => *count += 1,
            None if is_full => _ = self.refused_others.fetch_add(1, Relaxed),
            None => {
                refused.insert(tenant.into(), 1);
                // Once a tenant; the counter goes on counting.
                tracing::warn!(
                    tenant,
                    series,
                    limit,
                    "the tenant has as many active series as it may have: its requests are refused"
                );
            }
        }
    }
}

impl Gate {
    /// Whether a request that was [admitted](Gate::admit), and brings series, may bring them.
    ///
    /// # Errors
    /// 429 when its tenant has as many series in the store behind as it may have.
    pub fn check_head_series(&self, open: &OpenRequest) -> Result<(), Rejection> {
        let Some((limits, tenant)) = self.0.rules.head_series.as_ref().zip(open.tenant()) else {
            return Ok(());
        };
        limits
            .check(tenant.name())
            .map_err(|()| Rejection::canned(CannedRefusal::HeadSeries).retry_after(self.spread(RETRY_AFTER)))
    }
}

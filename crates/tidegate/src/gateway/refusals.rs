//! Requests that were refused lately because of the gateway and not because of the client.
//!
//! A full disk or short memory lets a request through now and then: whether anything is refused at this very moment says
//! little. So a refusal counts for a while, and the pages, the metrics and the log get the same state from that.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_ledger::{Refusal, SourceBalance};

/// How long a refusal counts.
pub(crate) const REFUSAL_LIFETIME: Duration = Duration::from_secs(10);

/// Refusals whose cause is the gateway.
const OWN: [Refusal; 5] =
    [Refusal::Memory, Refusal::Share, Refusal::Disk, Refusal::Connections, Refusal::Internal];

/// When requests were last refused, by reason.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<BTreeMap<&'static str, LastRefusal>>);

#[derive(Debug, Default)]
struct LastRefusal {
    /// Since the start.
    count: u64,
    at: Option<Duration>,
}

/// How many requests the gateway has refused since the start for reasons of its own.
pub(crate) fn own(sources: &[SourceBalance]) -> BTreeMap<&'static str, u64> {
    let mut refused = BTreeMap::new();
    for (reason, count) in sources.iter().flat_map(|source| &source.refused) {
        if OWN.contains(reason) {
            *refused.entry(reason.name()).or_insert(0) += count;
        }
    }
    refused
}

impl Refusals {
    /// Notes what was [refused](own) until `now`, a time since the start; to be called about once a second. `barred` says
    /// that the journal accepts nothing.
    pub(crate) fn note(&self, now: Duration, barred: bool, refused: &BTreeMap<&'static str, u64>) {
        let mut seen = self.seen();
        for (&reason, &count) in refused {
            let seen = seen.entry(reason).or_default();
            if count > seen.count {
                *seen = LastRefusal { count, at: Some(now) };
            }
        }
        if barred {
            seen.entry(Refusal::Disk.name()).or_default().at = Some(now);
        }
    }

    /// The reasons for which requests were refused shortly before `now`.
    pub(crate) fn lately(&self, now: Duration) -> Vec<&'static str> {
        let seen = self.seen();
        let is_late =
            |seen: &LastRefusal| seen.at.is_some_and(|at| now.saturating_sub(at) < REFUSAL_LIFETIME);
        seen.iter().filter(|(_, seen)| is_late(seen)).map(|(reason, _)| *reason).collect()
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<&'static str, LastRefusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_for_ten_seconds() {
        let (refusals, second) = (Refusals::default(), Duration::from_secs(1));
        refusals.note(second, false, &BTreeMap::new());
        assert!(refusals.lately(second).is_empty());
        for at in 2..20 {
            refusals.note(second * at, false, &BTreeMap::from([("disk", 3)]));
            assert_eq!(refusals.lately(second * at) == ["disk"], at < 12, "{at}");
        }
        refusals.note(second * 20, true, &BTreeMap::from([("disk", 3), ("memory", 1)]));
        assert_eq!(refusals.lately(second * 29), ["disk", "memory"]);
        assert!(refusals.lately(second * 30).is_empty());
    }
}

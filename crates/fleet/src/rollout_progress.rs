//! How far a new revision of a policy has come, and how long that took.

use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The agents that had an older revision when this one was put: how many of them have it, and since when.
pub(crate) struct RolloutProgress {
    put: Instant,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// All agents are in `agents` that are to get the revision.
    are_known: bool,
    agents: u64,
    arrived: u64,
    half: Option<Duration>,
    ninety_nine_percent: Option<Duration>,
    last: Option<Duration>,
}

/// An agent that is to get the revision. Dropped, it does not count any more: it has left, or has another policy.
pub(crate) struct AwaitedAgent(Option<Arc<RolloutProgress>>);

/// The progress of a roll-out as operators see it. Times are seconds since the revision was put.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RolloutView {
    /// Agents that had an older revision when this one was put, and are still there.
    pub agents: u64,
    /// Those of them that say that they have it.
    pub arrived: u64,
    /// When half of them had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_seconds: Option<f64>,
    /// When 99 % had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ninety_nine_percent_seconds: Option<f64>,
    /// When all had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seconds: Option<f64>,
}

impl RolloutProgress {
    /// That of a revision that was put now.
    pub(crate) fn new() -> Arc<RolloutProgress> {
        Arc::new(RolloutProgress { put: Instant::now(), counts: Mutex::default() })
    }

    /// Another agent is to get the revision.
    pub(crate) fn await_agent(self: &Arc<Self>) -> AwaitedAgent {
        self.counts().agents += 1;
        AwaitedAgent(Some(Arc::clone(self)))
    }

    /// All that are to get it are known: shares of them can be told.
    pub(crate) fn all_are_awaited(&self) {
        self.change(|counts| counts.are_known = true);
    }

    /// The progress for operators; `None` when no agent was due to get the revision.
    pub(crate) fn view(&self) -> Option<RolloutView> {
        let counts = self.counts();
        let seconds = |after: Option<Duration>| after.map(|after| after.as_secs_f64());
        (counts.agents > 0).then(|| RolloutView {
            agents: counts.agents,
            arrived: counts.arrived,
            half_seconds: seconds(counts.half),
            ninety_nine_percent_seconds: seconds(counts.ninety_nine_percent),
            last_seconds: seconds(counts.last),
        })
    }

    fn change(&self, change: impl FnOnce(&mut Counts)) {
        let after = self.put.elapsed();
        let mut counts = self.counts();
        change(&mut counts);
        counts.note_shares(after);
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn note_shares(&mut self, after: Duration) {
        if !self.are_known || self.arrived == 0 {
            return;
        }
        let Counts { agents, arrived, .. } = *self;
        for (is_reached, since) in [
            (arrived * 2 >= agents, &mut self.half),
            (arrived * 100 >= agents * 99, &mut self.ninety_nine_percent),
            (arrived >= agents, &mut self.last),
        ] {
            if is_reached {
                since.get_or_insert(after);
            }
        }
    }
}

impl AwaitedAgent {
    /// It has the revision.
    pub(crate) fn arrive(mut self) {
        if let Some(progress) = self.0.take() {
            progress.change(|counts| counts.arrived += 1);
        }
    }
}

impl Drop for AwaitedAgent {
    fn drop(&mut self) {
        if let Some(progress) = self.0.take() {
            progress.change(|counts| counts.agents -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares are of the agents that are still to get the revision, and are told once all of those are known.
    #[test]
    fn shares_are_of_those_that_are_awaited() {
        let progress = RolloutProgress::new();
        assert_eq!(progress.view(), None);
        let mut awaited: Vec<AwaitedAgent> = (0..4).map(|_| progress.await_agent()).collect();
        awaited.pop().unwrap().arrive();
        awaited.pop().unwrap().arrive();
        assert_eq!(progress.view().unwrap().half_seconds, None, "others may be awaited still");
        progress.all_are_awaited();
        let half = progress.view().unwrap();
        assert_eq!((half.agents, half.arrived), (4, 2));
        assert!(half.half_seconds.is_some() && half.ninety_nine_percent_seconds.is_none());
        awaited.pop().unwrap().arrive();
        assert_eq!(progress.view().unwrap().last_seconds, None);
        // The last one leaves.
        drop(awaited);
        let all = progress.view().unwrap();
        assert_eq!((all.agents, all.arrived), (3, 3));
        assert!(all.last_seconds.is_some() && all.ninety_nine_percent_seconds.is_some());
        assert_eq!(all.half_seconds, half.half_seconds);
    }
}

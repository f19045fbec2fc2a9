//! Which node is asked next.

use crate::clock;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The delay before an unreachable node is tried again: at first, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Nodes take turns. Unreachable ones back off, longer each time.
pub(super) struct NodeHealth(Mutex<Rotation>);

struct Rotation {
    next: usize,
    nodes: Vec<NodeBackoff>,
}

#[derive(Clone, Copy)]
struct NodeBackoff {
    until: Instant,
    failures: u32,
}

impl NodeHealth {
    /// Of so many nodes, all well.
    pub(super) fn new(nodes: usize) -> NodeHealth {
        let well = NodeBackoff { until: clock::now(), failures: 0 };
        NodeHealth(Mutex::new(Rotation { next: 0, nodes: vec![well; nodes] }))
    }

    /// The nodes in the order in which to try them. If all back off, the one whose delay ends first comes
    /// first.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut turns = self.rotation();
        let (now, count) = (clock::now(), turns.nodes.len());
        let first = turns.next % count;
        turns.next = first + 1;
        let mut order: Vec<usize> = (first..count).chain(0..first).collect();
        order.sort_by_key(|node| turns.nodes.get(*node).map(|rest| rest.until.max(now)));
        order
    }

    pub(super) fn record_success(&self, node: usize) {
        if let Some(rest) = self.rotation().nodes.get_mut(node) {
            *rest = NodeBackoff { until: clock::now(), failures: 0 };
        }
    }

    pub(super) fn record_failure(&self, node: usize) {
        if let Some(rest) = self.rotation().nodes.get_mut(node) {
            let pause = BACKOFF.0.saturating_mul(1 << rest.failures.min(10)).min(BACKOFF.1);
            *rest = NodeBackoff { until: clock::now() + pause, failures: rest.failures.saturating_add(1) };
        }
    }

    fn rotation(&self) -> MutexGuard<'_, Rotation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Nodes take turns, and one that cannot be reached is asked last until it has rested.
    #[tokio::test(start_paused = true)]
    async fn nodes_take_turns_and_rest() {
        let health = NodeHealth::new(3);
        assert_eq!([health.order(), health.order(), health.order()], [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
        health.record_failure(1);
        assert_eq!([health.order(), health.order()], [[0, 2, 1], [2, 0, 1]]);
        tokio::time::advance(BACKOFF.0).await;
        assert_eq!([health.order(), health.order()], [[2, 0, 1], [0, 1, 2]]);
        (0..20).for_each(|_| health.record_failure(0));
        tokio::time::advance(BACKOFF.1 - Duration::from_millis(1)).await;
        assert_eq!(health.order(), [1, 2, 0]);
        health.record_success(0);
        assert_eq!(health.order(), [2, 0, 1]);
    }
}

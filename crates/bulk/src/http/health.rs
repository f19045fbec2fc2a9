//! Which node is asked next.

use crate::clock;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a node rests after it could not be reached: at first, and at most.
const REST: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Nodes take turns; those that could not be reached rest, longer each time.
pub(super) struct Health(Mutex<Turns>);

struct Turns {
    next: usize,
    nodes: Vec<Rest>,
}

#[derive(Clone, Copy)]
struct Rest {
    until: Instant,
    failures: u32,
}

impl Health {
    /// Of so many nodes, all well.
    pub(super) fn of(nodes: usize) -> Health {
        let well = Rest { until: clock::now(), failures: 0 };
        Health(Mutex::new(Turns { next: 0, nodes: vec![well; nodes] }))
    }

    /// The nodes in the order in which they should be asked. When all rest, those come first whose rest ends first.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut turns = self.turns();
        let (now, count) = (clock::now(), turns.nodes.len());
        let first = turns.next % count;
        turns.next = first + 1;
        let mut order: Vec<usize> = (first..count).chain(0..first).collect();
        order.sort_by_key(|node| turns.nodes.get(*node).map(|rest| rest.until.max(now)));
        order
    }

    pub(super) fn well(&self, node: usize) {
        if let Some(rest) = self.turns().nodes.get_mut(node) {
            *rest = Rest { until: clock::now(), failures: 0 };
        }
    }

    pub(super) fn ill(&self, node: usize) {
        if let Some(rest) = self.turns().nodes.get_mut(node) {
            let pause = REST.0.saturating_mul(1 << rest.failures.min(10)).min(REST.1);
            *rest = Rest { until: clock::now() + pause, failures: rest.failures.saturating_add(1) };
        }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Nodes take turns, and one that cannot be reached is asked last until it has rested.
    #[tokio::test(start_paused = true)]
    async fn nodes_take_turns_and_rest() {
        let health = Health::of(3);
        assert_eq!([health.order(), health.order(), health.order()], [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
        health.ill(1);
        assert_eq!([health.order(), health.order()], [[0, 2, 1], [2, 0, 1]]);
        tokio::time::advance(REST.0).await;
        assert_eq!([health.order(), health.order()], [[2, 0, 1], [0, 1, 2]]);
        (0..20).for_each(|_| health.ill(0));
        tokio::time::advance(REST.1 - Duration::from_millis(1)).await;
        assert_eq!(health.order(), [1, 2, 0]);
        health.well(0);
        assert_eq!(health.order(), [2, 0, 1]);
    }
}

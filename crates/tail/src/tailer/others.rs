//! Changes of checkpoints whose files have no records in a batch.

use crate::destination::{CheckpointChange, Destination};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Changes that wait for a batch to ride with, or are set by themselves after a while. One for each key, in their order.
///
/// Invariant: a change is in every batch until it is durable by itself, since a batch may rely on it: the place of a copy must
/// not be behind that of the truncated original.
#[derive(Debug, Default)]
pub(super) struct OtherChanges {
    waiting: BTreeMap<i64, Waiting>,
    by_key: HashMap<Vec<u8>, i64>,
    /// How many are not set by themselves.
    fresh: usize,
    /// No change that was set is durable before.
    due: Option<Duration>,
}

#[derive(Debug)]
struct Waiting {
    change: CheckpointChange,
    /// When it was set by itself: durable about a second later.
    set_at: Option<Duration>,
}

/// After that time a change that was set is durable.
const DURABLE_AFTER: Duration = Duration::from_secs(3);

impl OtherChanges {
    pub(super) fn push(&mut self, change: CheckpointChange) {
        self.supersede(&change.key);
        self.insert_last(change, None);
    }

    /// Removes a change that a part of a batch replaces.
    pub(super) fn supersede(&mut self, key: &[u8]) {
        if let Some(at) = self.by_key.get(key).copied() {
            self.remove(at);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes those that ride with a batch that has `room` bytes for them. The time is there if all of them are set by themselves: when
    /// the last of them was.
    pub(super) fn take(&mut self, mut room: usize) -> (Vec<CheckpointChange>, Option<Duration>) {
        let (mut taken, mut set_at) = (Vec::new(), Some(Duration::ZERO));
        while let Some((&at, first)) = self.waiting.first_key_value()
            && first.change.bytes() <= room
        {
            room -= first.change.bytes();
            set_at = set_at.zip(first.set_at).map(|(one, other)| one.max(other));
            taken.extend(self.remove(at));
        }
        (taken, set_at)
    }

    /// Takes back those of a batch that was refused, before all others.
    pub(super) fn put_back(&mut self, changes: Vec<CheckpointChange>) {
        self.insert_first(changes, None);
    }

    /// Takes back those that were set at a time, when no batch came of them.
    pub(super) fn put_back_set(&mut self, changes: Vec<CheckpointChange>, at: Duration) {
        if !changes.is_empty() {
            self.due = self.due.or(Some(at + DURABLE_AFTER));
            self.insert_first(changes, Some(at));
        }
    }

    fn insert_first(&mut self, changes: Vec<CheckpointChange>, set_at: Option<Duration>) {
        for change in changes.into_iter().rev() {
            if !self.by_key.contains_key(&change.key) {
                let first = self.waiting.first_key_value().map_or(0, |(at, _)| at - 1);
                self.insert(first, change, set_at);
            }
        }
    }

    /// Forgets those that were set long enough ago to be durable.
    pub(super) fn forget_durable(&mut self, now: Duration) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        let is_durable = |waiting: &Waiting| waiting.set_at.is_some_and(|at| now >= at + DURABLE_AFTER);
        let by_key = &mut self.by_key;
        self.waiting.retain(|_, waiting| {
            let stays = !is_durable(waiting);
            if !stays {
                by_key.remove(&waiting.change.key);
            }
            stays
        });
        self.due =
            self.waiting.values().filter_map(|waiting| waiting.set_at).min().map(|at| at + DURABLE_AFTER);
    }

    /// Keeps changes that were set just now, for the batches that come before they are durable.
    pub(super) fn keep(&mut self, changes: Vec<CheckpointChange>, now: Duration) {
        for change in changes {
            if !self.by_key.contains_key(&change.key) {
                self.insert_last(change, Some(now));
            }
        }
        self.due = self.due.or(Some(now + DURABLE_AFTER));
    }

    /// Sets those that wait, without a batch.
    pub(super) fn set_waiting(&mut self, destination: &impl Destination, now: Duration) {
        if self.fresh == 0 {
            return;
        }
        let fresh = self.waiting.values_mut().filter(|waiting| waiting.set_at.is_none());
        let fresh: Vec<CheckpointChange> = fresh
            .map(|waiting| {
                waiting.set_at = Some(now);
                waiting.change.clone()
            })
            .collect();
        self.fresh = 0;
        self.due = self.due.or(Some(now + DURABLE_AFTER));
        set_in_parts(destination, &fresh);
    }

    /// Sets all of them, at the end.
    pub(super) fn set_all(&mut self, destination: &impl Destination) {
        let waiting = std::mem::take(self).waiting;
        let changes: Vec<CheckpointChange> = waiting.into_values().map(|waiting| waiting.change).collect();
        set_in_parts(destination, &changes);
    }

    /// When those that are set may be forgotten.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }

    fn insert_last(&mut self, change: CheckpointChange, set_at: Option<Duration>) {
        let last = self.waiting.last_key_value().map_or(0, |(at, _)| at + 1);
        self.insert(last, change, set_at);
    }

    fn insert(&mut self, at: i64, change: CheckpointChange, set_at: Option<Duration>) {
        self.fresh += usize::from(set_at.is_none());
        self.by_key.insert(change.key.clone(), at);
        self.waiting.insert(at, Waiting { change, set_at });
    }

    fn remove(&mut self, at: i64) -> Option<CheckpointChange> {
        let Waiting { change, set_at } = self.waiting.remove(&at)?;
        self.fresh -= usize::from(set_at.is_none());
        self.by_key.remove(&change.key);
        Some(change)
    }
}

/// Sets changes, as many at once as a record's note holds.
pub(super) fn set_in_parts(destination: &impl Destination, mut changes: &[CheckpointChange]) {
    while !changes.is_empty() {
        let mut room = CheckpointChange::MOST_BYTES;
        let fitting = changes
            .iter()
            .take_while(|change| {
                let fits = change.bytes() <= room;
                room = room.saturating_sub(change.bytes());
                fits
            })
            .count()
            .max(1);
        let (part, rest) = changes.split_at(fitting);
        destination.set(part);
        changes = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(key: u8) -> CheckpointChange {
        CheckpointChange { key: vec![key], value: Some(vec![key]) }
    }

    /// Changes that come back after a refusal are before those that came meanwhile, in their order, once for each key.
    #[test]
    fn keep_their_order_through_a_refusal() {
        let mut others = OtherChanges::default();
        (0..4).for_each(|key| others.push(change(key)));
        let (taken, set_at) = others.take(3 * change(0).bytes());
        assert!(set_at.is_none());
        others.push(change(9));
        others.push(change(1));
        others.put_back(taken);
        let keys: Vec<u8> = others.take(1000).0.iter().map(|change| change.key[0]).collect();
        assert_eq!(keys, [0, 2, 3, 9, 1]);
        assert!(others.is_empty() && others.by_key.is_empty() && others.fresh == 0);
    }

    /// A change that was set and is taken for nothing keeps its time.
    #[test]
    fn keep_their_time_when_no_batch_comes() {
        let mut others = OtherChanges::default();
        others.keep(vec![change(1)], Duration::from_secs(10));
        others.keep(vec![change(2)], Duration::from_secs(11));
        let (taken, set_at) = others.take(1000);
        assert_eq!((taken.len(), set_at), (2, Some(Duration::from_secs(11))));
        others.put_back_set(taken, Duration::from_secs(11));
        assert_eq!(others.fresh, 0);
        others.forget_durable(Duration::from_secs(13));
        assert_eq!(others.due(), Some(Duration::from_secs(14)));
        others.forget_durable(Duration::from_secs(14));
        assert!(others.is_empty() && others.by_key.is_empty());
    }

    /// A change that was set is kept until it is durable, and not longer.
    #[test]
    fn are_kept_until_they_are_durable() {
        let mut others = OtherChanges::default();
        others.keep(vec![change(1)], Duration::from_secs(10));
        others.keep(vec![change(2)], Duration::from_secs(11));
        others.forget_durable(Duration::from_secs(12));
        assert_eq!(others.by_key.len(), 2);
        others.forget_durable(Duration::from_secs(13));
        assert_eq!(others.due(), Some(Duration::from_secs(14)));
        others.forget_durable(Duration::from_secs(14));
        assert!(others.is_empty() && others.due().is_none());
    }
}

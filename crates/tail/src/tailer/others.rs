//! Changes of checkpoints whose files have no records in a batch.

use crate::destination::{CheckpointChange, Destination};
use std::collections::VecDeque;
use std::time::Duration;

/// Changes that wait for a batch to ride with, or are set by themselves after a while.
///
/// Invariant: a change is in every batch until it is durable by itself, since a batch may rely on it: the place of a copy must
/// not be behind that of the truncated original.
#[derive(Debug, Default)]
pub(super) struct OtherChanges {
    waiting: VecDeque<Waiting>,
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
        self.waiting.retain(|waiting| waiting.change.key != change.key);
        self.waiting.push_back(Waiting { change, set_at: None });
    }

    /// Removes a change that a part of a batch replaces.
    pub(super) fn supersede(&mut self, key: &[u8]) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|waiting| waiting.change.key != key);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes those that ride with a batch that has `room` bytes for them.
    pub(super) fn take(&mut self, mut room: usize) -> Vec<CheckpointChange> {
        let mut taken = Vec::new();
        while let Some(first) = self.waiting.front().filter(|first| first.change.bytes() <= room) {
            room -= first.change.bytes();
            taken.extend(self.waiting.pop_front().map(|first| first.change));
        }
        taken
    }

    /// Takes back those of a batch that was refused.
    pub(super) fn put_back(&mut self, changes: Vec<CheckpointChange>) {
        for change in changes.into_iter().rev() {
            if !self.waiting.iter().any(|waiting| waiting.change.key == change.key) {
                self.waiting.push_front(Waiting { change, set_at: None });
            }
        }
    }

    /// Forgets those that were set long enough ago to be durable.
    pub(super) fn forget_durable(&mut self, now: Duration) {
        self.waiting.retain(|waiting| waiting.set_at.is_none_or(|at| now < at + DURABLE_AFTER));
    }

    /// Keeps changes that were set just now, for the batches that come before they are durable.
    pub(super) fn keep(&mut self, changes: Vec<CheckpointChange>, now: Duration) {
        for change in changes {
            if !self.waiting.iter().any(|waiting| waiting.change.key == change.key) {
                self.waiting.push_back(Waiting { change, set_at: Some(now) });
            }
        }
    }

    /// Sets those that wait, without a batch.
    pub(super) fn set_waiting(&mut self, destination: &impl Destination, now: Duration) {
        let fresh: Vec<CheckpointChange> = self
            .waiting
            .iter_mut()
            .filter(|waiting| waiting.set_at.is_none())
            .map(|waiting| {
                waiting.set_at = Some(now);
                waiting.change.clone()
            })
            .collect();
        set_in_parts(destination, &fresh);
    }

    /// Sets all of them, at the end.
    pub(super) fn set_all(&mut self, destination: &impl Destination) {
        let changes: Vec<CheckpointChange> = self.waiting.drain(..).map(|waiting| waiting.change).collect();
        set_in_parts(destination, &changes);
    }

    /// When those that are set may be forgotten.
    pub(super) fn due(&self) -> Option<Duration> {
        self.waiting.iter().filter_map(|waiting| waiting.set_at).min().map(|at| at + DURABLE_AFTER)
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

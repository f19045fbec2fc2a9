//! Which journal records are done: those of which every request was answered for good, or is on disk for its member.

use super::request::Part;
use crate::losses::Losses;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tidegate_journal::MAX_IN_FLIGHT;
use tidegate_ledger::Dropped;
use tokio::sync::Notify;

/// Fewer records than the journal allows in flight, so that reading never fails for them.
const MOST: usize = MAX_IN_FLIGHT / 2;

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The member took it, but for so many items.
    Delivered { rejected: u64 },
    /// The member never takes it.
    Dropped(Dropped),
    /// It is on disk for the member.
    HandedOff,
}

/// Records in flight, shared by the distributor and the members.
#[derive(Debug, Default)]
pub(super) struct Settlement {
    state: Mutex<State>,
    changed: Notify,
    /// The same for who waits for requests with items from logs.
    rerouted: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// In the order of the journal.
    records: VecDeque<InFlight>,
    /// Done since the last look.
    done: Vec<(u64, Losses)>,
    /// Outcomes of items that were handed off before: delivered, and dropped by reason.
    late: LateOutcomes,
    /// Requests with items from logs of members that left.
    rerouted: usize,
}

#[derive(Debug)]
struct InFlight {
    sequence: u64,
    /// Requests that it has items in, and one while it is distributed.
    open: u32,
    losses: Losses,
}

/// The end of items that were handed off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LateOutcomes {
    pub(super) delivered: u64,
    pub(super) rejected: u64,
    pub(super) quota: u64,
    pub(super) damaged: u64,
}

impl LateOutcomes {
    /// Items that were lost, by the reason.
    pub(super) fn lost(&self) -> [(Dropped, u64); 3] {
        [(Dropped::Rejected, self.rejected), (Dropped::Quota, self.quota), (Dropped::Damaged, self.damaged)]
    }

    /// Takes what is more than `held` items.
    fn take_beyond(&mut self, mut held: u64) -> LateOutcomes {
        let mut taken = std::mem::take(self);
        let (ours, theirs) = (self, &mut taken);
        for (kept, given) in [
            (&mut ours.delivered, &mut theirs.delivered),
            (&mut ours.rejected, &mut theirs.rejected),
            (&mut ours.quota, &mut theirs.quota),
            (&mut ours.damaged, &mut theirs.damaged),
        ] {
            *kept = held.min(*given);
            *given -= *kept;
            held -= *kept;
        }
        taken
    }

    fn add(&mut self, outcome: Outcome, items: u64) {
        match outcome {
            Outcome::Delivered { rejected } => {
                let rejected = rejected.min(items);
                self.delivered += items - rejected;
                self.rejected += rejected;
            }
            Outcome::Dropped(Dropped::Quota) => self.quota += items,
            Outcome::Dropped(Dropped::Damaged) => self.damaged += items,
            Outcome::Dropped(_) => self.rejected += items,
            Outcome::HandedOff => {}
        }
    }
}

impl Settlement {
    /// The memory that it holds, in bytes: records in flight, and those that are done.
    pub(super) const BYTES: usize = 2 * MOST * (size_of::<InFlight>() + size_of::<(u64, Losses)>());

    /// A record is distributed from now on.
    pub(super) fn begin(&self, sequence: u64) {
        self.lock().records.push_back(InFlight { sequence, open: 1, losses: Losses::NONE });
    }

    /// A record has items in one more request.
    pub(super) fn add_request(&self, sequence: u64) {
        if let Some(record) = self.lock().find(sequence) {
            record.open += 1;
        }
    }

    /// A record is distributed, but for `losses`.
    pub(super) fn distributed(&self, sequence: u64, losses: Losses) {
        let mut state = self.lock();
        state.settle(sequence, losses);
    }

    /// A request has items from the log of a member that left.
    pub(super) fn add_rerouted(&self) {
        self.lock().rerouted += 1;
    }

    /// Enters what became of a request with these items.
    pub(super) fn settle(&self, parts: &[Part], rerouted: Option<u64>, outcome: Outcome) {
        let mut state = self.lock();
        let mut rejected_left = match outcome {
            Outcome::Delivered { rejected } => rejected,
            Outcome::Dropped(_) | Outcome::HandedOff => 0,
        };
        for part in parts {
            let mut losses = Losses::NONE;
            match outcome {
                Outcome::Delivered { .. } => {
                    let rejected = rejected_left.min(part.items);
                    rejected_left -= rejected;
                    losses.add(Dropped::Rejected, rejected);
                }
                Outcome::Dropped(reason) => losses.add(reason, part.items),
                Outcome::HandedOff => losses.add_handed_off(part.items),
            }
            state.settle(part.sequence, losses);
        }
        if let Some(items) = rerouted {
            let outcome = match outcome {
                Outcome::Delivered { .. } => Outcome::Delivered { rejected: rejected_left },
                other => other,
            };
            state.late.add(outcome, items);
            state.rerouted = state.rerouted.saturating_sub(1);
            self.rerouted.notify_one();
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Enters what became of items that were handed off before.
    pub(super) fn settle_handed_off(&self, items: u64, outcome: Outcome) {
        self.lock().late.add(outcome, items);
        self.changed.notify_one();
    }

    /// Records that are done, and outcomes of items that were handed off, since the last call.
    pub(super) fn take(&self, done: &mut Vec<(u64, Losses)>) -> LateOutcomes {
        let mut state = self.lock();
        done.append(&mut state.done);
        // The books have handed-off items from when their record is done. What is said of them before then has to wait.
        let unbooked = state.records.iter().map(|record| record.losses.handed_off()).sum();
        state.late.take_beyond(unbooked)
    }

    /// Waits for something to take; at once where something was settled since the last wait.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits until a request with items from a log of a member that left is settled.
    pub(super) async fn settled(&self) {
        self.rerouted.notified().await;
    }

    /// Forgets a record that is not distributed to its end: it is taken again after a restart.
    pub(super) fn abandon(&self, sequence: u64) {
        self.lock().records.retain(|record| record.sequence != sequence);
    }

    /// Whether another record may be begun.
    pub(super) fn has_room(&self) -> bool {
        self.lock().records.len() < MOST
    }

    /// Whether nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.records.is_empty() && state.done.is_empty()
    }

    /// Whether requests with items from logs of members that left are in flight.
    pub(super) fn is_rerouting(&self) -> bool {
        self.lock().rerouted > 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn find(&mut self, sequence: u64) -> Option<&mut InFlight> {
        let index = self.records.binary_search_by_key(&sequence, |record| record.sequence).ok()?;
        self.records.get_mut(index)
    }

    fn settle(&mut self, sequence: u64, losses: Losses) {
        let Ok(index) = self.records.binary_search_by_key(&sequence, |record| record.sequence) else {
            return;
        };
        let Some(record) = self.records.get_mut(index) else { return };
        record.losses = record.losses.and(losses);
        record.open = record.open.saturating_sub(1);
        if record.open == 0
            && let Some(done) = self.records.remove(index)
        {
            self.done.push((done.sequence, done.losses));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(sequence: u64, items: u64) -> Part {
        Part { sequence, items }
    }

    #[test]
    fn a_record_is_done_with_its_last_request() {
        let settlement = Settlement::default();
        let taken = || {
            let mut done = Vec::new();
            settlement.take(&mut done);
            done.into_iter().map(|(sequence, _)| sequence).collect::<Vec<_>>()
        };
        settlement.begin(1);
        settlement.begin(2);
        for sequence in [1, 2, 1] {
            settlement.add_request(sequence);
        }
        settlement.settle(&[part(1, 5), part(2, 5)], None, Outcome::Delivered { rejected: 0 });
        settlement.distributed(2, Losses::NONE);
        assert_eq!(taken(), [2]);
        settlement.distributed(1, Losses::NONE);
        assert!(taken().is_empty() && !settlement.is_idle());
        settlement.settle(&[part(1, 3)], None, Outcome::HandedOff);
        assert_eq!(taken(), [1]);
        assert!(settlement.is_idle());
    }

    #[test]
    fn what_is_delivered_from_a_log_waits_until_it_is_booked_as_handed_off() {
        let settlement = Settlement::default();
        settlement.begin(1);
        settlement.add_request(1);
        settlement.add_request(1);
        settlement.distributed(1, Losses::NONE);
        settlement.settle(&[part(1, 5)], None, Outcome::HandedOff);
        settlement.settle_handed_off(8, Outcome::Delivered { rejected: 0 });
        let mut done = Vec::new();
        let delivered = |delivered| LateOutcomes { delivered, ..LateOutcomes::default() };
        assert_eq!(settlement.take(&mut done), delivered(3), "three are of an earlier record");
        assert!(done.is_empty());
        settlement.settle(&[part(1, 2)], None, Outcome::Delivered { rejected: 0 });
        assert_eq!(settlement.take(&mut done), delivered(5));
        assert_eq!(done.iter().map(|(_, losses)| losses.handed_off()).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn losses_are_of_the_records_that_have_them() {
        let settlement = Settlement::default();
        for sequence in [1, 2] {
            settlement.begin(sequence);
            settlement.add_request(sequence);
            settlement.distributed(sequence, Losses::NONE);
        }
        settlement.settle(&[part(1, 5), part(2, 5)], Some(4), Outcome::Delivered { rejected: 12 });
        let mut done = Vec::new();
        let late = settlement.take(&mut done);
        let lost: Vec<_> = done.iter().map(|(_, losses)| *losses).collect();
        assert_eq!(lost, [Losses::of(Dropped::Rejected, 5), Losses::of(Dropped::Rejected, 5)]);
        assert_eq!(late, LateOutcomes { delivered: 2, rejected: 2, ..LateOutcomes::default() });
    }
}

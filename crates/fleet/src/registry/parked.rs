//! A check-in that waits.

use super::Registry;
use crate::agent_id::AgentId;
use crate::policy::Policy;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tidegate_arena::Window;

/// Why a wait is over.
pub(crate) enum PollOutcome {
    /// There are actions.
    Actions,
    /// There is a new policy, and memory for the answer with it.
    Policy(Window, Arc<Policy>),
    /// It has waited for as long as it wanted.
    TimedOut,
    /// The agent has checked in again.
    Superseded,
    /// The gateway stops.
    Stopped,
    /// The agent was removed.
    Gone,
}

/// The entry's part of a wait.
pub(super) struct Parked {
    number: u32,
    ends_s: u32,
    waker: Option<Waker>,
    outcome: Option<PollOutcome>,
}

/// A wait of an agent. Dropping it ends it.
pub(crate) struct ParkedPoll {
    registry: Arc<Registry>,
    id: AgentId,
    /// Which of the agent's.
    number: u32,
}

impl Parked {
    pub(super) fn new(number: u32, ends_s: u32) -> Parked {
        Parked { number, ends_s, waker: None, outcome: None }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.outcome.is_none()
    }

    pub(super) fn is_over(&self, now_s: u32) -> bool {
        self.is_waiting() && self.ends_s <= now_s
    }

    pub(super) fn wake(&mut self, with: PollOutcome) {
        self.outcome = Some(with);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl ParkedPoll {
    pub(super) fn new(registry: Arc<Registry>, id: AgentId, number: u32) -> ParkedPoll {
        ParkedPoll { registry, id, number }
    }
}

impl Future for ParkedPoll {
    type Output = PollOutcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<PollOutcome> {
        let look = |agent: &mut super::Agent| {
            let Some(parked) = agent.parked.as_mut().filter(|parked| parked.number == self.number) else {
                return Poll::Ready(PollOutcome::Superseded);
            };
            if let Some(outcome) = parked.outcome.take() {
                agent.parked = None;
                return Poll::Ready(outcome);
            }
            match &mut parked.waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            Poll::Pending
        };
        self.registry.with(self.id, look).unwrap_or(Poll::Ready(PollOutcome::Gone))
    }
}

impl Drop for ParkedPoll {
    fn drop(&mut self) {
        let dropped = self.registry.with(self.id, |agent| {
            let is_own = agent.parked.as_ref().is_some_and(|parked| parked.number == self.number);
            is_own.then(|| agent.parked.take())
        });
        // Outside of the lock, since it may give memory back.
        drop(dropped);
    }
}

//! The way of a policy to the agents that wait: one after the other, each when there is memory for its answer.

use super::Fleet;
use crate::agent_id::AgentId;
use crate::policy::Policy;
use crate::registry::{Agent, PollOutcome, Registry};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_arena::{ChargeError, Share};
use tokio::sync::Notify;

/// Answers that are handed out before others have a turn on this worker.
const AT_ONCE: u32 = 64;
/// How long to wait when too many wait for memory.
const CROWDED_PAUSE: Duration = Duration::from_millis(20);

/// The agents that are to get a policy, in the order in which they came. Each is in it once.
#[derive(Default)]
pub(super) struct RolloutQueue {
    agents: Mutex<VecDeque<AgentId>>,
    came: Notify,
}

impl RolloutQueue {
    fn push(&self, id: AgentId) {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner).push_back(id);
        self.came.notify_one();
    }

    fn pop(&self) -> Option<AgentId> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let next = agents.pop_front();
        if agents.is_empty() {
            agents.shrink_to(AT_ONCE as usize);
        }
        next
    }

    /// How many are to get one.
    pub(super) fn len(&self) -> usize {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Fleet {
    /// Delivers policies to the agents that wait for them, for ever.
    pub async fn roll_out(self: Arc<Self>) {
        let mut handed_out = 0;
        loop {
            let came = self.rollout.came.notified();
            match self.rollout.pop() {
                Some(id) => self.deliver(id).await,
                None => came.await,
            }
            handed_out = (handed_out + 1) % AT_ONCE;
            if handed_out == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Has the agent get its policy, if it has an older revision and waits.
    pub(super) fn roll_out_to(&self, id: AgentId) {
        let is_due = self.registry.with(id, |agent| {
            let is_due = !agent.is_in_rollout
                && agent.is_waiting()
                && self.outdated(&agent.policy, agent.revision).is_some();
            agent.is_in_rollout |= is_due;
            is_due
        });
        if is_due == Some(true) {
            self.rollout.push(id);
        }
    }

    /// Has all agents get this policy that have an older revision: those that wait now, and the others when they check in.
    pub(super) fn roll_out_policy(&self, policy: &Policy) {
        for shard in 0..Registry::shards() {
            self.registry.each_of(shard, |id, agent| {
                if *agent.policy != *policy.id || agent.revision >= policy.revision {
                    return;
                }
                agent.awaited = Some(policy.progress.await_agent());
                if !agent.is_in_rollout && agent.is_waiting() {
                    agent.is_in_rollout = true;
                    self.rollout.push(id);
                }
            });
        }
        policy.progress.all_are_awaited();
    }

    /// Takes note that an agent has a revision of its policy.
    pub(super) fn note_revision(&self, agent: &mut Agent, revision: u64) {
        agent.revision = revision;
        if agent.awaited.is_some()
            && self.outdated(&agent.policy, revision).is_none()
            && let Some(awaited) = agent.awaited.take()
        {
            awaited.arrive();
        }
    }

    async fn deliver(&self, id: AgentId) {
        let policy = self.registry.with(id, |agent| {
            agent.is_in_rollout = false;
            let policy = self.outdated(&agent.policy, agent.revision);
            policy.filter(|_| agent.is_waiting())
        });
        let Some(policy) = policy.flatten() else { return };
        // Whether the agent takes it compressed is known when it is woken; hardly one does not.
        let window = loop {
            match self.arena.window(Share::Egress, policy.answer_len(true)).await {
                Ok(window) => break window,
                Err(ChargeError::Never { .. }) => {
                    // It was looked at when it was put.
                    tracing::error!(policy = &*policy.id, "the policy does not fit in `fleet.memory`");
                    return;
                }
                Err(_) => tokio::time::sleep(CROWDED_PAUSE).await,
            }
        };
        let left = self.registry.with(id, |agent| agent.wake(PollOutcome::Policy(window, policy)));
        if matches!(left, Some(None)) {
            self.counts.policies_delivered.fetch_add(1, Relaxed);
        }
    }
}

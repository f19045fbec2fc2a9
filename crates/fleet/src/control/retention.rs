//! Removes actions that are finished, some time later, with what agents said of them.
//!
//! A round reads actions, some at a time, and then all queues for them: an action that is in no queue of an enrolled agent is
//! finished. The first round that finds it so writes that down, and one behind `keep_actions` removes it. Nothing else says when an
//! action is finished, so acknowledgements, expirations and removed agents count alike.

#[cfg(test)]
mod tests;

use super::Fleet;
use super::acknowledge::results_prefix;
use super::file_access::AFTER_END_MS;
use super::load::Pages;
use super::operate::LONGEST_DATA;
use crate::agent_id::AgentId;
use crate::record::{ActionRecord, QueueRecord, decode, encode};
use crate::store::{Expected, KeyRange, StoreError, Table, Write};
use crate::time;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The most and the least time between rounds.
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// Rounds in the time that an action is kept.
const ROUNDS: u32 = 4;
/// Actions for which the queues are read at a time.
const TOGETHER: usize = 2048;
/// Actions, and answers of agents, that are read at a time.
const PAGE: usize = 8;
const RESULTS_PAGE: usize = 50;
/// An action that is younger may still be on its way into the queues.
const ORDERING_MS: u64 = 60_000;
/// The memory of a round, in bytes: actions with their data as they are read, and what is kept of each.
pub const RETENTION_BYTES: usize = 2 * PAGE * LONGEST_DATA + TOGETHER * 160;

/// An action during a round.
struct Candidate {
    created_ms: u64,
    finished_ms: Option<u64>,
    /// When it goes out of all queues.
    leaves_queues_ms: Option<u64>,
    /// The version of its record.
    version: u64,
    /// Whether an enrolled agent has it to do.
    is_queued: bool,
}

type Candidates = HashMap<String, Candidate>;

impl Fleet {
    /// Removes old actions now and then, until the fleet stops.
    pub async fn clean_up_actions(self: Arc<Self>) {
        let pause = (self.settings.keep_actions / ROUNDS).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        while !self.is_stopped() {
            if let Err(error) = self.remove_old_actions(time::now_ms()).await {
                tracing::warn!(%error, "old actions of agents could not be removed; retrying later");
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// One round over all actions. Each of its writes is right by itself, so it may end anywhere, and other gateways may do the same.
    ///
    /// # Errors
    /// When the state cannot be read or written.
    pub(super) async fn remove_old_actions(&self, now_ms: u64) -> Result<(), StoreError> {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let mut candidates = self.candidates(&mut after).await?;
            if candidates.is_empty() {
                return Ok(());
            }
            self.look_through_queues(&mut candidates, now_ms).await?;
            for (id, action) in &candidates {
                match self.settle(id, action, now_ms).await {
                    // Somebody else has changed it meanwhile: the next round sees it as it is then.
                    Ok(()) | Err(StoreError::Conflict) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    /// The actions behind the one that was read last.
    async fn candidates(&self, after: &mut Option<Vec<u8>>) -> Result<Candidates, StoreError> {
        let late = AFTER_END_MS.min(self.keep_actions_ms());
        let mut found = Candidates::new();
        while found.len() < TOGETHER {
            let range = KeyRange { prefix: b"", after: after.as_deref(), limit: PAGE };
            let page = self.store.list(Table::Actions, range).await?;
            let Some((last, _)) = page.last() else { break };
            *after = Some(last.clone());
            for (key, stored) in page {
                let ActionRecord { created_ms, finished_ms, expires_ms, .. } = decode(&stored.value)?;
                let action = Candidate {
                    created_ms,
                    finished_ms,
                    // An agent that has got it in time may be late with its answer.
                    leaves_queues_ms: expires_ms.map(|expires| expires.saturating_add(late)),
                    version: stored.version,
                    is_queued: false,
                };
                found.insert(String::from_utf8_lossy(&key).into_owned(), action);
            }
            // Reading waits for nothing, so others get their turn here.
            tokio::task::yield_now().await;
        }
        Ok(found)
    }

    /// Finds out which actions are queued, and takes those out of queues that nobody will do.
    async fn look_through_queues(&self, actions: &mut Candidates, now_ms: u64) -> Result<(), StoreError> {
        let mut pages = Pages::of(self, Table::Queue);
        while let Some(page) = pages.next().await? {
            let mut over = Vec::new();
            for (key, stored) in page {
                let queued: QueueRecord = decode(&stored.value)?;
                let (Some((agent, _)), Some(action)) =
                    (QueueRecord::place(&key), actions.get_mut(&queued.action_id))
                else {
                    continue;
                };
                let is_over = action.leaves_queues_ms.is_some_and(|end| end <= now_ms);
                if is_over || !self.is_enrolled(agent).await? || self.is_obsolete(agent, &queued).await? {
                    over.push(Write::remove(Table::Queue, key));
                } else {
                    action.is_queued = true;
                }
            }
            // Without an expectation: a number is given once, so what has this key is this entry or nothing.
            if !over.is_empty() {
                self.store.commit(over.into()).await?;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Takes note of whether an action is finished, or removes it when it has been for long.
    async fn settle(&self, id: &str, action: &Candidate, now_ms: u64) -> Result<(), StoreError> {
        let keep_ms = self.keep_actions_ms();
        let is_ordered = action.created_ms.saturating_add(ORDERING_MS.min(keep_ms)) <= now_ms;
        match (action.is_queued, action.finished_ms) {
            (true, Some(_)) => self.set_finished(id, action.version, None).await,
            (false, None) if is_ordered => self.set_finished(id, action.version, Some(now_ms)).await,
            (false, Some(finished)) if finished.saturating_add(keep_ms) <= now_ms => {
                self.remove_action(id, action.version).await
            }
            _ => Ok(()),
        }
    }

    async fn set_finished(&self, id: &str, version: u64, finished_ms: Option<u64>) -> Result<(), StoreError> {
        let Some(mut action) = self.action_record(id).await? else { return Ok(()) };
        action.finished_ms = finished_ms;
        let write = Write::put(Table::Actions, id, encode(&action)).expecting(Expected::Version(version));
        self.store.commit(vec![write].into()).await.map(drop)
    }

    /// Removes what agents said of an action, and then the action: where this ends in between, the next round still finds it.
    async fn remove_action(&self, id: &str, version: u64) -> Result<(), StoreError> {
        let prefix = results_prefix(id);
        loop {
            let range = KeyRange { prefix: &prefix, after: None, limit: RESULTS_PAGE };
            let page = self.store.list(Table::Results, range).await?;
            if page.is_empty() {
                break;
            }
            let removals: Vec<_> =
                page.into_iter().map(|(key, _)| Write::remove(Table::Results, key)).collect();
            self.store.commit(removals.into()).await?;
            tokio::task::yield_now().await;
        }
        let removal = Write::remove(Table::Actions, id).expecting(Expected::Version(version));
        self.store.commit(vec![removal].into()).await.map(drop)
    }

    /// Whether there is such an agent, here or in the state.
    async fn is_enrolled(&self, agent: AgentId) -> Result<bool, StoreError> {
        Ok(self.registry.with(agent, |_| ()).is_some() || self.agent_record(agent).await?.is_some())
    }

    /// Whether an entry cancels what the agent has not to do any more.
    async fn is_obsolete(&self, agent: AgentId, queued: &QueueRecord) -> Result<bool, StoreError> {
        match queued.cancels {
            Some(target) => Ok(!self.is_queued(agent, target).await?),
            None => Ok(false),
        }
    }

    fn keep_actions_ms(&self) -> u64 {
        u64::try_from(self.settings.keep_actions.as_millis()).unwrap_or(u64::MAX)
    }
}

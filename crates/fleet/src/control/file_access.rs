//! Which files an agent may send and fetch: those of its actions and of its policy.

use super::{Fleet, FleetError};
use crate::agent_id::AgentId;
use crate::record::{ActionRecord, ResultRecord, decode};
use crate::store::{StoreError, Table};
use crate::time;

/// Actions for which agents upload files: diagnostics, and what Elastic Defend is asked for.
const UPLOADING_ACTIONS: [&str; 2] = ["REQUEST_DIAGNOSTICS", "INPUT_ACTION"];
/// How long an agent may upload for an action that it has acknowledged.
pub(super) const AFTER_END_MS: u64 = 24 * 60 * 60 * 1000;

impl Fleet {
    /// Whether an agent may upload for this action: it was given to the agent, and is of a type with uploads. One that the agent has
    /// acknowledged counts for a day, since agents acknowledge some before they have done them.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) async fn may_upload(&self, agent: AgentId, action_id: &str) -> Result<bool, FleetError> {
        if !self.queued(agent).await?.contains_key(action_id) {
            let result = self.result_record(action_id, agent).await?;
            let is_recent = |result: ResultRecord| time::now_ms().saturating_sub(result.at_ms) < AFTER_END_MS;
            if !result.is_some_and(is_recent) {
                return Ok(false);
            }
        }
        let action = self.action_record(action_id).await?;
        Ok(action.is_some_and(|action| UPLOADING_ACTIONS.contains(&action.kind.as_str())))
    }

    /// Whether an action that the agent has not acknowledged names this file: it has its id as a text in its data.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) async fn is_file_for(&self, agent: AgentId, file_id: &str) -> Result<bool, FleetError> {
        let quoted = format!("\"{file_id}\"");
        for action_id in self.queued(agent).await?.into_keys() {
            let action = self.action_record(&action_id).await?;
            let data = action.and_then(|action| action.data);
            if data.is_some_and(|data| data.get().contains(&quoted)) {
                return Ok(true);
            }
            // Reading waits for nothing, so others get their turn here.
            tokio::task::yield_now().await;
        }
        Ok(false)
    }

    /// Whether the agent's policy lists an artifact: it has the path of it as a text, as in `relative_url`.
    pub(crate) fn is_artifact_of(&self, agent: AgentId, path: &str) -> bool {
        let policy = self.registry.with(agent, |agent| agent.policy.clone());
        let policy = policy.and_then(|policy| self.policy(&policy));
        policy.is_some_and(|policy| policy.contains(&format!("\"{path}\"")))
    }

    /// The record of an action.
    pub(super) async fn action_record(&self, action_id: &str) -> Result<Option<ActionRecord>, StoreError> {
        let stored = self.store.get(Table::Actions, action_id.as_bytes()).await?;
        stored.map(|stored| decode(&stored.value)).transpose()
    }
}

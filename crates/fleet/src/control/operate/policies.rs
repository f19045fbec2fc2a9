//! Policies: put, shown, removed.

use super::OperatorError;
use crate::control::Fleet;
use crate::policy::{self, Policy};
use crate::record::{PolicyRecord, decode, encode};
use crate::rollout_progress::RolloutView;
use crate::store::{Expected, Table, Write};
use crate::time;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

/// The effect of putting a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PolicyChange {
    pub(crate) id: String,
    /// The revision from now on.
    pub(crate) revision: u64,
    /// Whether it differs from the one before.
    pub(crate) changed: bool,
    /// The agents that have this policy.
    pub(crate) agents: usize,
    /// The lines that go and come, of the policy as indented JSON.
    pub(crate) removed: Vec<String>,
    pub(crate) added: Vec<String>,
}

/// The longest list of lines of a change.
const MOST_LINES: usize = 200;

/// How far the revision of an agent may be ahead of the state.
const FURTHEST_AHEAD: u64 = 100_000;

impl Fleet {
    /// Puts a policy: it is on its way to its agents when this returns. What is as before changes nothing. With `is_trial` nothing
    /// is changed at all.
    ///
    /// # Errors
    /// [`OperatorError`]; the policy is as before then.
    pub(crate) async fn put_policy(
        &self,
        id: &str,
        text: &[u8],
        is_trial: bool,
    ) -> Result<PolicyChange, OperatorError> {
        policy::check_id(id)?;
        let body = policy::body(text, &self.settings.outputs)?;
        let before = self.store.get(Table::Policies, id.as_bytes()).await?;
        let expected = before.as_ref().map_or(Expected::Absent, |before| Expected::Version(before.version));
        let before: Option<PolicyRecord> = before.map(|before| decode(&before.value)).transpose()?;
        let changed = before.as_ref().is_none_or(|before| before.body.get() != body.get());
        let (removed, added) =
            difference(before.as_ref().map_or("{}", |before| before.body.get()), body.get());
        let active = self.policy(id).map_or(0, |policy| policy.revision);
        // A removal that failed may have reached the disk: agents know the revisions before it.
        let newest = before.as_ref().map_or(0, |before| before.revision).max(active);
        let newest = if changed { newest.max(self.newest_of_agents(id, newest)) } else { newest };
        let revision = newest + u64::from(changed);
        // A commit that failed may have reached the disk: then it is there and nobody has it.
        let changed = changed || active < revision;
        let change =
            PolicyChange { id: id.to_owned(), revision, changed, agents: self.agents_of(id), removed, added };
        if is_trial || !changed {
            return Ok(change);
        }
        let record = PolicyRecord { revision, changed_ms: time::now_ms(), body };
        let policy = Policy::new(id, &record, |bytes| self.charge(bytes));
        let mut policy = policy.map_err(|error| OperatorError::Memory(error.to_string()))?;
        let write = Write::put(Table::Policies, id, encode(&record)).expecting(expected);
        policy.version = self.store.commit(vec![write].into()).await?;
        self.activate(policy);
        Ok(change)
    }

    /// The newest revision of a policy that an agent says it has: a state that was restored knows older ones alone. A revision far above the
    /// newest known one is no revision.
    fn newest_of_agents(&self, id: &str, newest: u64) -> u64 {
        let most = newest.saturating_add(FURTHEST_AHEAD);
        let mut found = 0;
        self.registry.each(|_, agent| {
            if *agent.policy == *id && agent.revision <= most {
                found = found.max(agent.revision);
            }
        });
        found
    }

    /// Has agents get a policy from now on.
    pub(in crate::control) fn activate(&self, mut policy: Policy) {
        let policy = {
            let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
            // Agents have the name of the policy as it was when they came.
            if let Some(known) = policies.get(&policy.id) {
                policy.id = Arc::clone(&known.id);
            }
            // By the version: the revisions of a policy that was removed and put again begin anew.
            match policies.get(&policy.id) {
                Some(known) if known.version >= policy.version => Arc::clone(known),
                _ => {
                    let policy = Arc::new(policy);
                    policies.insert(Arc::clone(&policy.id), Arc::clone(&policy));
                    policy
                }
            }
        };
        // Behind the insertion: an agent that begins to wait in between sees the new one.
        self.roll_out_policy(&policy);
    }

    /// All policies: id, revision, when it was changed, how many agents have it and how many have this revision.
    pub fn list_policies(&self) -> Vec<PolicyView> {
        let policies: Vec<_> =
            self.policies.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        let mut views: Vec<PolicyView> = policies
            .iter()
            .map(|policy| PolicyView {
                id: policy.id.to_string(),
                revision: policy.revision,
                changed_at: time::text(policy.changed_ms),
                bytes: policy.len(),
                agents: 0,
                up_to_date: 0,
                rollout: policy.progress.view(),
            })
            .collect();
        self.registry.each(|_, agent| {
            if let Some(view) = views.iter_mut().find(|view| *view.id == *agent.policy) {
                view.agents += 1;
                view.up_to_date += usize::from(agent.revision >= view.revision);
            }
        });
        views
    }

    /// A policy as it was put, with its id and revision: it can be changed and put again.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub(crate) async fn show_policy(&self, id: &str) -> Result<String, OperatorError> {
        let stored = self.store.get(Table::Policies, id.as_bytes()).await?;
        let stored = stored.ok_or_else(|| OperatorError::Unknown(format!("policy `{id:.80}`")))?;
        Ok(policy::shown(id, &decode(&stored.value)?))
    }

    /// Removes a policy that no agent and no token has.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub(crate) async fn remove_policy(&self, id: &str) -> Result<(), OperatorError> {
        let policy = self.find_policy(id).await?;
        let policy = policy.ok_or_else(|| OperatorError::Unknown(format!("policy `{id}`")))?;
        let agents = self.agents_of(id);
        let tokens = {
            let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
            tokens.values().filter(|token| token.policy_id == id).count()
        };
        if agents > 0 || tokens > 0 {
            return Err(OperatorError::InUse(format!(
                "the policy `{id}` has {agents} agents and {tokens} enrolment tokens; reassign the agents and revoke the tokens first"
            )));
        }
        // Another gateway may just put a revision of it.
        let removal = Write::remove(Table::Policies, id).expecting(Expected::Version(policy.version));
        self.store.commit(vec![removal].into()).await?;
        self.policies.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        Ok(())
    }

    /// How many agents have this policy.
    fn agents_of(&self, policy: &str) -> usize {
        let mut agents = 0;
        self.registry.each(|_, agent| agents += usize::from(*agent.policy == *policy));
        agents
    }
}

/// A policy as operators see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyView {
    /// Its id.
    pub id: String,
    /// The newest revision.
    pub revision: u64,
    /// When that was put (RFC 3339).
    pub changed_at: String,
    /// How long it is, in bytes.
    pub bytes: usize,
    /// Agents that have this policy.
    pub agents: usize,
    /// Agents that have its newest revision.
    pub up_to_date: usize,
    /// How far that has come; `None` where no agent was to get it, or it was put before the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutView>,
}

/// The lines of the one that the other does not have, and the reverse, of compact JSON.
fn difference(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let (before, after) = (policy::json::lines(before), policy::json::lines(after));
    (missing(&after, &before), missing(&before, &after))
}

/// The lines of `of` that `from` does not have as often.
fn missing(from: &[String], of: &[String]) -> Vec<String> {
    let mut counts = HashMap::<&str, usize>::new();
    from.iter().for_each(|line| *counts.entry(line).or_default() += 1);
    let mut is_missing = |line: &&String| match counts.get_mut(line.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    of.iter().filter(|line| is_missing(line)).take(MOST_LINES).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_by_its_lines() {
        let (removed, added) = difference("{\"a\":1,\"b\":[2,2]}", "{\"a\":3,\"b\":[2]}");
        assert_eq!(removed, ["  \"a\": 1", "    2"]);
        assert_eq!(added, ["  \"a\": 3"]);
    }
}

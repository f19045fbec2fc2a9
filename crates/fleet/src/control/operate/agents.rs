//! Agents: shown, reassigned, removed.

use super::OperatorError;
use crate::agent_id::AgentId;
use crate::control::Fleet;
use crate::record::{AgentRecord, MetadataPart, decode};
use crate::registry::{Agent, AgentStatus};
use crate::store::{KeyRange, StoreError, Table};
use crate::time;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// An agent as operators see it.
#[derive(Debug, Serialize)]
pub(crate) struct AgentView {
    pub(crate) id: String,
    pub(crate) policy_id: String,
    /// The revision of the policy that it has.
    pub(crate) policy_revision: u64,
    pub(crate) status: &'static str,
    /// Whether it waits here now for something to do.
    pub(crate) waiting: bool,
    pub(crate) version: String,
    pub(crate) enrolled_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_seen: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    /// Of its host, as it says; in a list only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hostname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) audit_unenrolled: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) local_metadata: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user_provided_metadata: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) components: Option<Box<RawValue>>,
    /// How an upgrade goes, in the agent's words, while there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upgrade_details: Option<Box<RawValue>>,
}

/// The agents to list, and what to say of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentFilter<'a> {
    /// Only those that report this health.
    pub(crate) status: Option<AgentStatus>,
    /// Only those with this policy.
    pub(crate) policy: Option<&'a str>,
    /// Only those with this text, in small letters, in the name of their host or at the beginning of their id. Capital letters of a
    /// name match, too.
    pub(crate) host: Option<String>,
    /// Whether the name of the host is read from the metadata of each.
    pub(crate) has_hostnames: bool,
}

impl AgentFilter<'_> {
    /// Whether it leaves nobody out.
    fn is_all(&self) -> bool {
        self.status.is_none() && self.policy.is_none() && self.host.is_none()
    }

    /// Whether an agent's health and policy fit.
    fn matches_agent(&self, agent: &Agent) -> bool {
        self.status.is_none_or(|wanted| agent.status == wanted)
            && self.policy.is_none_or(|wanted| *agent.policy == *wanted)
    }

    /// Whether the name of an agent's host has the text that is looked for, or its id begins with it: inside of an id, which is
    /// random, letters of a name would be found by chance.
    fn matches_text(&self, view: &AgentView) -> bool {
        self.host.as_ref().is_none_or(|wanted| {
            let is_part = |name: &String| name.to_ascii_lowercase().contains(wanted);
            view.id.starts_with(wanted) || view.hostname.as_ref().is_some_and(is_part)
        })
    }
}

/// A few agents, in the order of their ids.
#[derive(Debug)]
pub(crate) struct AgentBatch {
    pub(crate) agents: Vec<AgentView>,
    /// The last that was looked at, whether it is among them or not; nothing when there are no more.
    pub(crate) last: Option<AgentId>,
}

/// The part of an agent's local metadata that a list needs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LocalMetadata {
    host: Host,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Host {
    hostname: String,
}

/// The fleet as a whole.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FleetView {
    /// Agents that have enrolled and are not gone.
    pub agents: usize,
    /// Agents that wait here now for something to do.
    pub waiting: usize,
    /// Agents that are about to get a policy.
    pub in_rollout: usize,
    /// Agents by what they say of their health.
    pub by_status: BTreeMap<&'static str, usize>,
    /// Agents by version, of the first [`MOST_VERSIONS`].
    pub by_version: BTreeMap<String, usize>,
    /// Enrolments since the start.
    pub enrolled: u64,
    /// Check-ins since the start.
    pub check_ins: u64,
    /// Acknowledged events since the start.
    pub acknowledged: u64,
    /// Policies handed to agents since the start.
    pub policies_delivered: u64,
    /// Refused requests since the start.
    pub refused: u64,
}

/// The longest part of an agent's metadata that is shown, in bytes.
const LONGEST_SHOWN: usize = 128 << 10;
/// Ids that are found at a time: all agents are looked at for them. Few in tests, which then come behind them.
const MATCHES: usize = if cfg!(test) { 3 } else { 1_000 };
/// How long agents are read before others have their turn.
const TURN: Duration = Duration::from_millis(100);
/// The longest name of a host that is shown in a list, in bytes: longer than a name of DNS may be.
const LONGEST_HOSTNAME: usize = 256;
/// Versions of agents that are told apart.
pub const MOST_VERSIONS: usize = 100;

impl Fleet {
    /// The fleet as a whole.
    pub fn view(&self) -> FleetView {
        let counts = self.counts();
        let mut view = FleetView {
            in_rollout: self.rollout.len(),
            enrolled: counts.enrolled.load(Relaxed),
            check_ins: counts.check_ins.load(Relaxed),
            acknowledged: counts.acknowledged.load(Relaxed),
            policies_delivered: counts.policies_delivered.load(Relaxed),
            refused: counts.refused.load(Relaxed),
            ..FleetView::default()
        };
        let mut versions = BTreeMap::new();
        self.registry.each(|_, agent| {
            view.agents += 1;
            view.waiting += usize::from(agent.is_waiting());
            *view.by_status.entry(agent.status.name()).or_default() += 1;
            if versions.len() < MOST_VERSIONS || versions.contains_key(&agent.version) {
                *versions.entry(agent.version).or_default() += 1;
            }
        });
        view.by_version =
            versions.into_iter().map(|(version, agents)| (version.to_string(), agents)).collect();
        view
    }

    /// Check-ins since the start.
    pub fn check_ins(&self) -> u64 {
        self.counts().check_ins.load(Relaxed)
    }

    /// Agents behind `after` that fit, without their metadata, until there are `most` or it is time to let others have their turn.
    ///
    /// Health and policy are looked at in memory, and so only of agents that this gateway knows; for a host's name the metadata of each is read.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) async fn list_agents(
        &self,
        after: Option<AgentId>,
        most: usize,
        filter: &AgentFilter<'_>,
    ) -> Result<AgentBatch, OperatorError> {
        let mut batch = AgentBatch { agents: Vec::new(), last: None };
        if filter.is_all() {
            let after = after.map(AgentId::to_bytes);
            let range = KeyRange { prefix: b"", after: after.as_ref().map(|after| &after[..]), limit: most };
            for (key, stored) in self.store.list(Table::Agents, range).await? {
                let Some(id) = key.first_chunk().map(|id| AgentId::from_bytes(*id)) else { continue };
                batch.last = Some(id);
                batch.agents.extend(self.listed(id, decode(&stored.value)?, filter).await?);
            }
            return Ok(batch);
        }
        let begun = Instant::now();
        for id in self.matching(after, filter) {
            batch.last = Some(id);
            // It may be gone since.
            if let Some((record, _)) = self.agent_record(id).await? {
                batch.agents.extend(self.listed(id, record, filter).await?);
            }
            if batch.agents.len() == most || begun.elapsed() >= TURN {
                break;
            }
        }
        Ok(batch)
    }

    /// The first agents behind `after` whose health and policy fit, in the order of their ids.
    fn matching(&self, after: Option<AgentId>, filter: &AgentFilter<'_>) -> Vec<AgentId> {
        // The smallest ids, with the greatest of them on top.
        let mut ids = BinaryHeap::new();
        self.registry.each(|id, agent| {
            let is_behind = after.is_none_or(|after| id > after);
            let has_room = ids.len() < MATCHES || ids.peek().is_some_and(|greatest| id < *greatest);
            if is_behind && has_room && filter.matches_agent(agent) {
                ids.push(id);
                if ids.len() > MATCHES {
                    ids.pop();
                }
            }
        });
        ids.into_sorted_vec()
    }

    /// The agent for a list; nothing where it has not the text that is looked for.
    async fn listed(
        &self,
        id: AgentId,
        record: AgentRecord,
        filter: &AgentFilter<'_>,
    ) -> Result<Option<AgentView>, StoreError> {
        let mut view = self.view_of(id, record);
        if filter.has_hostnames || filter.host.is_some() {
            view.hostname = self.hostname(id).await?;
        }
        Ok(Some(view).filter(|view| filter.matches_text(view)))
    }

    /// The name of an agent's host, if its metadata has one.
    async fn hostname(&self, id: AgentId) -> Result<Option<String>, StoreError> {
        let stored = self.store.get(Table::Metadata, &MetadataPart::Local.key(id)).await?;
        // What an agent says may have any shape.
        let local = stored.and_then(|stored| decode::<LocalMetadata>(&stored.value).ok());
        Ok(local
            .map(|local| local.host.hostname)
            .filter(|name| !name.is_empty() && name.len() <= LONGEST_HOSTNAME))
    }

    /// An agent, with its metadata.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub(crate) async fn show_agent(&self, id: AgentId) -> Result<AgentView, OperatorError> {
        let (record, _) = self.agent_record(id).await?.ok_or_else(|| unknown(id))?;
        let local_metadata = self.metadata(id, MetadataPart::Local).await?;
        let user_provided_metadata = self.metadata(id, MetadataPart::UserProvided).await?;
        let components = self.metadata(id, MetadataPart::Components).await?;
        let upgrade_details = self.metadata(id, MetadataPart::Upgrade).await?;
        let (hostname, view) = (self.hostname(id).await?, self.view_of(id, record));
        Ok(AgentView {
            hostname,
            local_metadata,
            user_provided_metadata,
            components,
            upgrade_details,
            ..view
        })
    }

    async fn metadata(&self, id: AgentId, part: MetadataPart) -> Result<Option<Box<RawValue>>, StoreError> {
        let stored = self.store.get(Table::Metadata, &part.key(id)).await?;
        let json: Option<Box<RawValue>> = stored.map(|stored| decode(&stored.value)).transpose()?;
        let shown = json.map(|json| match json.get().len() {
            0..=LONGEST_SHOWN => Ok(json),
            len => RawValue::from_string(format!("{{\"omitted_bytes\":{len}}}")),
        });
        shown.transpose().map_err(|error| StoreError::Unusable(error.to_string()))
    }

    /// Gives an agent another policy, which is on its way to it when this returns.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub(crate) async fn reassign(&self, id: AgentId, policy_id: &str) -> Result<(), OperatorError> {
        let policy = self.find_policy(policy_id).await?;
        let policy = policy.ok_or_else(|| OperatorError::Unknown(format!("policy `{policy_id}`")))?;
        let change = |record: &mut AgentRecord| {
            let is_new = record.policy_id != policy_id;
            if is_new {
                (record.policy_id, record.revision) = (policy_id.to_owned(), 0);
            }
            is_new.then(Vec::new)
        };
        let version = self.change_agent(id, None, change).await?.ok_or_else(|| unknown(id))?;
        self.registry.with(id, |agent| {
            if agent.advance(version) && agent.policy != policy.id {
                (agent.policy, agent.revision, agent.awaited) = (Arc::clone(&policy.id), 0, None);
            }
        });
        self.roll_out_to(id);
        Ok(())
    }

    /// Removes an agent at once, whether it knows or not: its key is nobody's from now on.
    ///
    /// # Errors
    /// [`OperatorError`].
    pub(crate) async fn force_unenroll(&self, id: AgentId) -> Result<(), OperatorError> {
        match self.remove_agent(id, Vec::new()).await? {
            true => Ok(()),
            false => Err(unknown(id)),
        }
    }

    fn view_of(&self, id: AgentId, record: AgentRecord) -> AgentView {
        let now = self.registry.with(id, |agent| {
            (agent.revision, agent.status.name(), agent.is_waiting(), agent.seen_s, agent.version)
        });
        let (revision, status, waiting, seen_s, version) = now.unwrap_or_default();
        AgentView {
            id: id.to_string(),
            policy_id: record.policy_id,
            policy_revision: revision,
            status,
            waiting,
            version: version.to_string(),
            enrolled_at: time::text(record.enrolled_ms),
            last_seen: (seen_s != 0).then(|| time::text(u64::from(seen_s) * 1000)),
            tags: record.tags,
            hostname: None,
            audit_unenrolled: record.audit_unenrolled,
            local_metadata: None,
            user_provided_metadata: None,
            components: None,
            upgrade_details: None,
        }
    }
}

pub(super) fn unknown(id: AgentId) -> OperatorError {
    OperatorError::Unknown(format!("agent {id}"))
}

#[cfg(test)]
mod tests;

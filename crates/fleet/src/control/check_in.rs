//! Check-ins: an agent says how it is, and waits for what it is to do.

use super::unordered::unordered_hash;
use super::{Fleet, FleetError};
use crate::agent_id::AgentId;
use crate::api_key::KeyHash;
use crate::policy::Policy;
use crate::record::{ActionRecord, MetadataPart, QueueRecord, decode};
use crate::registry::{AgentStatus, AgentVersion, ParkedPoll, PollStart};
use crate::store::{KeyRange, StoreError, Table, Write};
use crate::time;
use serde_json::value::RawValue;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidegate_arena::{Charge, Share};
use xxhash_rust::xxh3::xxh3_64;

/// Actions of an answer.
const MOST_ACTIONS: usize = 32;
/// The longest actions of an answer together, in bytes.
pub(crate) const LONGEST_ACTIONS: usize = 256 << 10;
/// Taken from the time that an agent can wait, so that the answer is there in time.
const MARGIN: Duration = Duration::from_secs(120);
const SHORTEST_POLL: Duration = Duration::from_secs(60);
const LONGEST_POLL: Duration = Duration::from_secs(3600);

/// The contents of a check-in.
#[derive(Debug, Default)]
pub(crate) struct CheckIn<'a> {
    /// The hash of the key that it has proven.
    pub(crate) key: Option<KeyHash>,
    pub(crate) version: AgentVersion,
    pub(crate) status: Option<AgentStatus>,
    /// The newest action that it has received.
    pub(crate) received: Option<u64>,
    pub(crate) local_metadata: Option<&'a RawValue>,
    pub(crate) components: Option<&'a RawValue>,
    /// How an upgrade goes, while there is one.
    pub(crate) upgrade_details: Option<&'a RawValue>,
    /// How long it can wait.
    pub(crate) poll_timeout: Option<Duration>,
    /// The policy that it has, and its revision.
    pub(crate) policy: Option<(&'a str, u64)>,
}

/// How the answer to a check-in begins.
pub(crate) enum CheckInStart {
    /// It waits.
    Wait(ParkedPoll),
    /// There are actions.
    Actions,
}

impl Fleet {
    /// Takes note of what an agent says, and has it wait unless there is something for it.
    ///
    /// # Errors
    /// [`FleetError`].
    pub(crate) async fn check_in(&self, id: AgentId, said: &CheckIn<'_>) -> Result<CheckInStart, FleetError> {
        self.counts.check_ins.fetch_add(1, Relaxed);
        let changes = self.take_note(id, said).ok_or(FleetError::Unauthorized)?;
        if changes.any() {
            match self.keep(id, said, changes).await {
                // The agent says it again with its next check-in, and waits meanwhile.
                Err(FleetError::Store(_) | FleetError::Busy) if changes.are_of_components() => {}
                kept => kept?,
            }
        }
        if self.is_stopped() {
            return Ok(CheckInStart::Actions);
        }
        let poll = self.registry.park(id, self.end_of_poll(said.poll_timeout));
        // Behind the parking: one that takes its place later ends this wait.
        if said.key.is_some_and(|key| !self.has_key(id, &key)) {
            return Err(FleetError::Unauthorized);
        }
        match poll {
            PollStart::Gone => Err(FleetError::Unauthorized),
            PollStart::Actions => Ok(CheckInStart::Actions),
            PollStart::Parked(parked) => {
                // Behind the parking: a policy that is put in between finds the agent waiting, or is seen here.
                self.roll_out_to(id);
                // As is the end, which wakes all that wait.
                if self.is_stopped() {
                    return Ok(CheckInStart::Actions);
                }
                Ok(CheckInStart::Wait(parked))
            }
        }
    }

    /// The newest action that an agent has received: it gives this back with its next check-in.
    pub(crate) fn ack_token(&self, id: AgentId) -> u64 {
        self.registry.with(id, |agent| agent.received).unwrap_or(0)
    }

    /// The answer with the actions that an agent has not received; an empty one where there are none.
    ///
    /// # Errors
    /// When the state cannot be read.
    pub(crate) async fn actions_for(&self, id: AgentId) -> Result<String, FleetError> {
        let known = self.registry.with(id, |agent| {
            let received = Received { newest: agent.received, is_all: agent.has_received_no_more };
            (received, agent.newest)
        });
        let (received, newest) = known.ok_or(FleetError::Unauthorized)?;
        let (prefix, after) = (id.to_bytes(), QueueRecord::key(id, received.newest));
        let range = KeyRange { prefix: &prefix, after: Some(&after), limit: MOST_ACTIONS };
        let queued = self.store.list(Table::Queue, range).await?;
        let (mut token, mut actions) = (received.newest, String::new());
        let mut over = Vec::new();
        for (key, stored) in &queued {
            let queued: QueueRecord = decode(&stored.value)?;
            let Some((_, number)) = QueueRecord::place(key) else { continue };
            match self.due(id, &queued, received).await? {
                Due::Delivery(action) => {
                    let written = action_text(id, &queued, &action);
                    if !actions.is_empty() && actions.len() + written.len() > LONGEST_ACTIONS {
                        break;
                    }
                    let separator = if actions.is_empty() { "" } else { "," };
                    // A string takes everything.
                    let _ = write!(actions, "{separator}{written}");
                }
                Due::Nothing => {}
                Due::Removal => over.push(Write::remove(Table::Queue, key.as_slice())),
            }
            token = number;
        }
        if !over.is_empty() {
            self.store.commit(over.into()).await?;
        }
        if queued.is_empty() {
            self.registry.with(id, |agent| agent.none_is_queued(Some(newest)));
        }
        Ok(format!("{{\"action\":\"checkin\",\"ack_token\":\"{token}\",\"actions\":[{actions}]}}"))
    }

    /// Decides whether to deliver an entry of the queue that the agent has not received.
    async fn due(&self, id: AgentId, queued: &QueueRecord, received: Received) -> Result<Due, FleetError> {
        let Some(action) = self.action_record(&queued.action_id).await? else { return Ok(Due::Removal) };
        if action.expires_ms.is_some_and(|expires| expires <= time::now_ms()) {
            return Ok(Due::Removal);
        }
        if action.cancelled.is_some() {
            // If it has it after all, the cancellation behind it still finds it.
            return Ok(if received.is_all { Due::Removal } else { Due::Nothing });
        }
        let Some(target) = queued.cancels else { return Ok(Due::Delivery(action)) };
        let may_have_it = target <= received.newest || !received.is_all;
        match may_have_it && self.is_queued(id, target).await? {
            true => Ok(Due::Delivery(action)),
            false => Ok(Due::Removal),
        }
    }

    /// Whether an entry is in the queue of an agent.
    pub(super) async fn is_queued(&self, id: AgentId, number: u64) -> Result<bool, StoreError> {
        Ok(self.store.get(Table::Queue, &QueueRecord::key(id, number)).await?.is_some())
    }

    /// The policy that an agent is to have and does not have.
    pub(super) fn outdated(&self, policy: &str, revision: u64) -> Option<Arc<Policy>> {
        self.policy(policy).filter(|policy| policy.revision > revision)
    }

    /// Takes note in memory; what has changed that the state is to have. `None` when there is no such agent, or it has another key.
    fn take_note(&self, id: AgentId, said: &CheckIn<'_>) -> Option<Changes> {
        let hash_of = |json: Option<&RawValue>| json.map(|json| xxh3_64(json.get().as_bytes()));
        let metadata = hash_of(said.local_metadata);
        let components = (said.components.is_some() || said.upgrade_details.is_some()).then(|| {
            let upgrade = said.upgrade_details.map_or(0, unordered_hash);
            said.components.map_or(0, unordered_hash).wrapping_add(upgrade.rotate_left(1))
        });
        let noted = self.registry.with(id, |agent| {
            // Another may have taken its place since the head was looked at.
            if said.key.is_some_and(|key| !agent.key.is(&key)) {
                return None;
            }
            let version = (agent.version != said.version).then_some(said.version);
            agent.version = said.version;
            if let Some(status) = said.status {
                agent.status = status;
            }
            let newest = agent.newest.max(agent.received);
            agent.has_received_no_more = match said.received {
                // It may have come from another gateway, with what is not known here yet.
                Some(received) => received <= newest,
                None => agent.seen_s == 0,
            };
            if let Some(received) = said.received {
                // It cannot have received what was never queued for it.
                agent.received = agent.received.max(received.min(newest));
            }
            match said.policy {
                Some((policy, revision)) if *policy == *agent.policy => self.note_revision(agent, revision),
                Some(_) => agent.revision = 0,
                None => {}
            }
            agent.seen_s = time::now_s();
            agent.is_unsaved = true;
            Some(Changes {
                metadata: metadata.filter(|hash| *hash != agent.metadata_hash),
                components: components.filter(|hash| *hash != agent.components_hash),
                version,
                clears_audit_unenrolled: agent.audit_unenrolled,
            })
        });
        noted.flatten()
    }

    /// Has the state keep what has changed.
    async fn keep(&self, id: AgentId, said: &CheckIn<'_>, changes: Changes) -> Result<(), FleetError> {
        let has_other_components = changes.components.is_some();
        let parts = [
            (MetadataPart::Local, said.local_metadata.filter(|_| changes.metadata.is_some())),
            (MetadataPart::Components, said.components.filter(|_| has_other_components)),
            (MetadataPart::Upgrade, said.upgrade_details.filter(|_| has_other_components)),
        ];
        let bytes: usize = parts.iter().filter_map(|(_, json)| Some(json.as_ref()?.get().len())).sum();
        let ends_upgrade = has_other_components && said.upgrade_details.is_none();
        // On the heap: in the batch, and in the store's thread.
        let memory = self.metadata_memory(bytes)?;
        let version = self
            .change_agent(id, Some(memory), |record| {
                record.metadata_hash = changes.metadata.unwrap_or(record.metadata_hash);
                record.components_hash = changes.components.unwrap_or(record.components_hash);
                if let Some(version) = changes.version {
                    record.version = version.to_string();
                }
                record.audit_unenrolled = None;
                let written = parts.iter().filter_map(|(part, json)| Some(part.write(id, json.as_ref()?)));
                let removed = Write::remove(Table::Metadata, MetadataPart::Upgrade.key(id));
                Some(written.chain(ends_upgrade.then_some(removed)).collect())
            })
            .await?;
        let version = version.ok_or(FleetError::Unauthorized)?;
        self.registry.with(id, |agent| {
            // What another has written since is followed.
            if !agent.advance(version) {
                return;
            }
            agent.metadata_hash = changes.metadata.unwrap_or(agent.metadata_hash);
            agent.components_hash = changes.components.unwrap_or(agent.components_hash);
            agent.audit_unenrolled = false;
        });
        Ok(())
    }

    /// Pays for metadata of so many bytes on its way to the state: in the batch, and where it is written.
    pub(super) fn metadata_memory(&self, bytes: usize) -> Result<Arc<Charge>, FleetError> {
        let charge = self.arena.try_charge(Share::Ingest, (2 * bytes + 1) as u64);
        charge.map(Arc::new).map_err(|_| FleetError::Busy)
    }

    /// When a poll ends, in [`time::uptime_s`]: some time before it must, by chance, so that agents that came together do not come
    /// together again.
    fn end_of_poll(&self, timeout: Option<Duration>) -> u32 {
        let longest = match timeout {
            Some(timeout) => timeout.saturating_sub(MARGIN).clamp(SHORTEST_POLL, LONGEST_POLL),
            None => self.settings.long_poll,
        };
        let early = longest.min(Duration::from_secs(300)).mul_f64(rand::random::<f64>() / 10.0);
        let seconds = u32::try_from(longest.saturating_sub(early).as_secs()).unwrap_or(u32::MAX);
        time::uptime_s().saturating_add(seconds.max(1))
    }
}

/// How far an agent has received its queue.
#[derive(Debug, Clone, Copy)]
struct Received {
    /// The newest that it says.
    newest: u64,
    /// Whether it can have no more than that.
    is_all: bool,
}

/// The decision about an entry of a queue at a check-in.
enum Due {
    Delivery(ActionRecord),
    /// It stays, and is not delivered.
    Nothing,
    Removal,
}

/// Differences between a check-in and the stored agent.
#[derive(Debug, Clone, Copy)]
struct Changes {
    metadata: Option<u64>,
    components: Option<u64>,
    version: Option<AgentVersion>,
    /// It has said that it is gone.
    clears_audit_unenrolled: bool,
}

impl Changes {
    fn any(&self) -> bool {
        self.metadata.is_some()
            || self.components.is_some()
            || self.version.is_some()
            || self.clears_audit_unenrolled
    }

    /// Whether there is nothing but what the agent says with each check-in.
    fn are_of_components(&self) -> bool {
        self.metadata.is_none() && self.version.is_none() && !self.clears_audit_unenrolled
    }
}

/// An action as agents read it.
fn action_text(agent: AgentId, queued: &QueueRecord, action: &ActionRecord) -> String {
    let data = action.data.as_ref().map_or("{}", |data| data.get());
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let mut out = format!(
        "{{\"agent_id\":\"{agent}\",\"created_at\":\"{}\",\"id\":{},\"input_type\":{},\"type\":{},\"data\":{data}",
        time::text(action.created_ms),
        text(&queued.action_id),
        text(action.input_type.as_deref().unwrap_or_default()),
        text(&action.kind),
    );
    if let Some(expires) = action.expires_ms {
        let _ = write!(out, ",\"expiration\":\"{}\"", time::text(expires));
    }
    if let Some(start) = queued.start_ms {
        let _ = write!(out, ",\"start_time\":\"{}\"", time::text(start));
    }
    out.push('}');
    out
}

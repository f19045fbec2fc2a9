//! The fleet's operations: agents enrol, check in and acknowledge; operators change policies and act on agents.

mod acknowledge;
mod check_in;
mod enroll;
mod file_access;
mod follow;
mod load;
mod lookup;
mod operate;
mod output_senders;
mod retention;
mod rollout;
#[cfg(test)]
mod tests;
mod unordered;
mod upkeep;

pub(crate) use acknowledge::{AckEvent, AckItem};
use check_in::LONGEST_ACTIONS;
pub(crate) use check_in::{CheckIn, CheckInStart};
pub(crate) use enroll::{Enrolled, Enrollment};
use lookup::Lookups;
pub(crate) use lookup::{Lookup, Proof};
use operate::LONGEST_DATA;
pub(crate) use operate::{ActionOrder, AgentFilter, OperatorError};
pub use operate::{FleetView, MOST_VERSIONS, PolicyView};
pub use retention::RETENTION_BYTES;

use crate::agent_id::AgentId;
use crate::api_key::KeyHash;
use crate::output_keys::OutputKeys;
use crate::policy::{LONGEST_POLICY, OutputSettings, Policy};
use crate::record::{AgentRecord, TokenRecord, decode, encode};
use crate::registry::Registry;
use crate::store::{Batch, Expected, Store, StoreError, Table, Write};
use rollout::RolloutQueue;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tidegate_arena::{Arena, Charge, ChargeError, Share};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The longest answer that does not depend on settings, in bytes: a policy, or actions.
pub const LONGEST_ANSWER: usize = longer(LONGEST_POLICY + (16 << 10), LONGEST_ACTION_ANSWER);
/// Answers with actions that are put together at a time.
pub const ACTION_ANSWERS: usize = 8;
/// The longest answer with actions, in bytes.
pub const LONGEST_ACTION_ANSWER: usize = LONGEST_ACTIONS + LONGEST_DATA + (16 << 10);
/// How often a write that was decided on an older version is decided on again.
const ATTEMPTS: u32 = 8;

/// The settings of the fleet.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a check-in waits for something to do, where the agent does not say how long it can.
    pub long_poll: Duration,
    /// The longest body of a request, as received and decompressed, in bytes.
    pub max_body: usize,
    /// How long an action is kept that no agent has to do any more.
    pub keep_actions: Duration,
    /// How agents reach this gateway with their data.
    pub outputs: OutputSettings,
}

/// The control plane.
pub struct Fleet {
    store: Arc<dyn Store>,
    registry: Arc<Registry>,
    policies: RwLock<BTreeMap<Arc<str>, Arc<Policy>>>,
    tokens: RwLock<HashMap<String, TokenRecord>>,
    output_keys: OutputKeys,
    rollout: RolloutQueue,
    lookups: Lookups,
    /// The position of the state that was read at the start.
    loaded_at: u64,
    /// Turns of answers with actions: [`ACTION_ANSWERS`].
    action_turns: Semaphore,
    /// The memory of requests and answers.
    arena: Arena,
    /// The memory that agents and policies are charged to.
    memory: Arena,
    settings: Settings,
    is_stopped: AtomicBool,
    counts: Counts,
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) enrolled: AtomicU64,
    pub(crate) check_ins: AtomicU64,
    pub(crate) acknowledged: AtomicU64,
    pub(crate) policies_delivered: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// Why an agent is not answered as it wished.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FleetError {
    /// Its credentials are unknown, were revoked, or are another's.
    #[error("the API key is unknown or was revoked")]
    Unauthorized,
    /// It may not have the id that it asks for.
    #[error("{0}")]
    NotReplaceable(&'static str),
    /// There is no memory for what it says.
    #[error("the memory for requests of agents is in use; try again")]
    Busy,
    /// There is no memory for it.
    #[error("there is no memory for another agent; raise `memory`")]
    Memory,
    /// The state is not available.
    #[error(transparent)]
    Store(#[from] StoreError),
}

const fn longer(one: usize, other: usize) -> usize {
    if one > other { one } else { other }
}

impl From<ChargeError> for FleetError {
    fn from(_: ChargeError) -> FleetError {
        FleetError::Memory
    }
}

impl Fleet {
    /// The settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The memory of requests and answers.
    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Waits for a turn to put an answer with actions together.
    pub(crate) async fn action_turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.action_turns.acquire().await.ok()
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether this is the key of this agent.
    pub(crate) fn is_key_of(&self, agent: AgentId, secret: &[u8]) -> bool {
        self.has_key(agent, &KeyHash::of(secret))
    }

    /// Whether this is the hash of the key of this agent.
    pub(crate) fn has_key(&self, agent: AgentId, hash: &KeyHash) -> bool {
        self.registry.with(agent, |agent| agent.key.is(hash)).unwrap_or(false)
    }

    /// Whether this is the secret of this token of enrolment.
    pub(crate) fn is_enrollment_token(&self, id: &str, secret: &[u8]) -> bool {
        let hash = KeyHash::of(secret);
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.get(id).is_some_and(|token| token.key.is(&hash))
    }

    /// The newest revision of a policy.
    pub(crate) fn policy(&self, id: &str) -> Option<Arc<Policy>> {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Whether it has stopped: it answers what waits, and lets nobody wait.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    fn charge(&self, bytes: u64) -> Result<Charge, ChargeError> {
        self.memory.try_charge(Share::Ingest, bytes)
    }

    /// The record of an agent, with its version.
    async fn agent_record(&self, agent: AgentId) -> Result<Option<(AgentRecord, u64)>, StoreError> {
        let stored = self.store.get(Table::Agents, &agent.to_bytes()).await?;
        stored.map(|stored| Ok((decode(&stored.value)?, stored.version))).transpose()
    }

    /// Changes the record of an agent, with other writes in the same transaction; decides again when somebody else has changed
    /// it meanwhile. `memory` pays for the other writes. `change` says whether there is anything to write. The version of the record
    /// from now on; none when there is no such agent.
    async fn change_agent(
        &self,
        agent: AgentId,
        memory: Option<Arc<Charge>>,
        mut change: impl FnMut(&mut AgentRecord) -> Option<Vec<Write>>,
    ) -> Result<Option<u64>, StoreError> {
        for _ in 0..ATTEMPTS {
            let Some((mut record, version)) = self.agent_record(agent).await? else { return Ok(None) };
            let Some(mut batch) = change(&mut record) else { return Ok(Some(version)) };
            let write = Write::put(Table::Agents, agent.to_bytes(), encode(&record));
            batch.push(write.expecting(Expected::Version(version)));
            match self.store.commit(Batch { writes: batch, memory: memory.clone() }).await {
                Err(StoreError::Conflict) => {}
                outcome => return outcome.map(Some),
            }
        }
        Err(StoreError::Conflict)
    }
}

//! Reads the state at the start.

use super::{ACTION_ANSWERS, Counts, Fleet, RolloutQueue, Settings, output_senders};
use crate::agent_id::AgentId;
use crate::policy::Policy;
use crate::record::{AgentRecord, PolicyRecord, SeenRecord, TokenRecord, decode};
use crate::registry::{Agent, AgentStatus, Registry};
use crate::store::{KeyRange, Store, StoreError, Stored, Table};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use tidegate_arena::Arena;
use tokio::sync::Semaphore;

/// Entries that are read at a time.
const PAGE: usize = 1000;

impl Fleet {
    /// Reads the state. Requests and answers take the memory of `arena`; agents and policies are charged to `memory`.
    ///
    /// # Errors
    /// When the state cannot be read, or there is not the memory for the agents in it.
    pub async fn load(
        store: Arc<dyn Store>,
        settings: Settings,
        (arena, memory): (Arena, Arena),
    ) -> Result<Arc<Fleet>, StoreError> {
        let output_keys = output_senders::load_keys(&*store).await?;
        let fleet = Fleet {
            output_keys,
            registry: Arc::new(Registry::new(memory.clone())),
            policies: RwLock::default(),
            tokens: RwLock::default(),
            rollout: RolloutQueue::default(),
            action_turns: Semaphore::new(ACTION_ANSWERS),
            is_stopped: AtomicBool::new(false),
            counts: Counts::default(),
            store,
            arena,
            memory,
            settings,
        };
        fleet.load_policies().await?;
        fleet.load_tokens().await?;
        fleet.load_agents().await?;
        Ok(Arc::new(fleet))
    }

    async fn load_policies(&self) -> Result<(), StoreError> {
        let mut pages = Pages::of(self, Table::Policies);
        while let Some(page) = pages.next().await? {
            for (key, stored) in page {
                let id = String::from_utf8_lossy(&key);
                let record: PolicyRecord = decode(&stored.value)?;
                let policy = Policy::new(&id, &record, |bytes| self.charge(bytes));
                let policy = Arc::new(policy.map_err(|_| no_memory("policies"))?);
                let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
                policies.insert(Arc::clone(&policy.id), policy);
            }
        }
        Ok(())
    }

    async fn load_tokens(&self) -> Result<(), StoreError> {
        let mut pages = Pages::of(self, Table::Tokens);
        while let Some(page) = pages.next().await? {
            for (key, stored) in page {
                let record: TokenRecord = decode(&stored.value)?;
                let id = String::from_utf8_lossy(&key).into_owned();
                self.tokens.write().unwrap_or_else(PoisonError::into_inner).insert(id, record);
            }
        }
        Ok(())
    }

    async fn load_agents(&self) -> Result<(), StoreError> {
        let mut pages = Pages::of(self, Table::Agents);
        while let Some(page) = pages.next().await? {
            for (key, stored) in page {
                let Some(id) = agent_of(&key) else { continue };
                let record: AgentRecord = decode(&stored.value)?;
                let policy = self.policy(&record.policy_id).map(|policy| Arc::clone(&policy.id));
                let mut agent =
                    Agent::new(record.key, policy.unwrap_or_else(|| record.policy_id.as_str().into()));
                agent.revision = record.revision;
                (agent.metadata_hash, agent.components_hash) = (record.metadata_hash, record.components_hash);
                agent.audit_unenrolled = record.audit_unenrolled.is_some();
                agent.version = record.version.parse().unwrap_or_default();
                self.registry.reserve().map_err(|_| no_memory("agents"))?;
                self.registry.insert(id, agent);
            }
        }
        let mut pages = Pages::of(self, Table::Seen);
        while let Some(page) = pages.next().await? {
            for (key, stored) in page {
                let record: SeenRecord = decode(&stored.value)?;
                let status = AgentStatus::named(&record.status).unwrap_or(AgentStatus::Unknown);
                if let Some(id) = agent_of(&key) {
                    self.registry.with(id, |agent| (agent.seen_s, agent.status) = (record.at_s, status));
                }
            }
        }
        let mut pages = Pages::of(self, Table::Queue);
        while let Some(page) = pages.next().await? {
            for (key, _) in page {
                let number = key.get(16..).and_then(|number| number.first_chunk());
                if let (Some(id), Some(number)) = (agent_of(&key), number) {
                    self.registry.with(id, |agent| agent.queue(u64::from_be_bytes(*number)));
                }
            }
        }
        Ok(())
    }
}

/// A whole table, some entries at a time.
struct Pages<'a> {
    fleet: &'a Fleet,
    table: Table,
    last: Option<Vec<u8>>,
}

impl Pages<'_> {
    fn of(fleet: &Fleet, table: Table) -> Pages<'_> {
        Pages { fleet, table, last: None }
    }

    async fn next(&mut self) -> Result<Option<Vec<(Vec<u8>, Stored)>>, StoreError> {
        let range = KeyRange { prefix: b"", after: self.last.as_deref(), limit: PAGE };
        let page = self.fleet.store.list(self.table, range).await?;
        let Some((last, _)) = page.last() else { return Ok(None) };
        self.last = Some(last.clone());
        Ok(Some(page))
    }
}

/// The agent that a key begins with.
fn agent_of(key: &[u8]) -> Option<AgentId> {
    key.first_chunk().map(|bytes| AgentId::from_bytes(*bytes))
}

fn no_memory(what: &str) -> StoreError {
    StoreError::Unusable(format!("there is not the memory for the {what} of the fleet; raise `memory`"))
}

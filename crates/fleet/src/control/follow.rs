//! Follows the changes that other gateways make to the same state.

#[cfg(test)]
pub(super) mod tests;

use super::Fleet;
use super::load::{Pages, agent_of};
use crate::agent_id::AgentId;
use crate::policy::Policy;
use crate::record::{AgentRecord, PolicyRecord, QueueRecord, SeenRecord, TokenRecord, decode};
use crate::registry::{Agent, AgentStatus};
use crate::store::{ChangedValue, KeyRange, StoreError, Stored, Table};
use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The tables that are kept in memory, in the order in which they are read: an agent has a policy, and an action an agent.
pub(super) const FOLLOWED: [Table; 5] =
    [Table::Policies, Table::Tokens, Table::Agents, Table::Seen, Table::Queue];
/// How soon it is tried again when the state is not available.
const RETRY: Duration = Duration::from_secs(1);
/// How soon all is read again when there was no memory for some of it.
const AGAIN: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(60) };
/// Queued actions of an agent that are looked at.
const MOST_QUEUED: usize = 1000;
/// Entries that are taken before others have a turn on this worker.
const AT_ONCE: usize = 64;

/// How far a gateway has followed the state.
struct Follower {
    position: u64,
    /// From when changes are missing until all has been read again, however often that fails.
    is_stale: bool,
    skipped: Skipped,
}

/// Entries for which there was no memory. They are not remembered, since that takes memory: all is read again while there are some.
#[derive(Default)]
struct Skipped {
    /// When all is read again, if some were skipped.
    again: Option<Instant>,
}

impl Fleet {
    /// Brings memory up to date with what is written to the state, for ever.
    pub async fn follow(self: Arc<Self>) {
        let mut follower =
            Follower { position: self.loaded_at, is_stale: false, skipped: Skipped::default() };
        loop {
            if self.follow_from(&mut follower).await.is_err() {
                // The store says it now and then.
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Takes the next changes.
    async fn follow_from(&self, follower: &mut Follower) -> Result<(), StoreError> {
        let mut watch = pin!(self.store.watch(&FOLLOWED, Some(follower.position)));
        let found = loop {
            let again = follower.skipped.again;
            // The wait for changes goes on meanwhile: what it has found must not be lost.
            tokio::select! {
                biased;
                found = &mut watch => break found?,
                () = tokio::time::sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {
                    follower.skipped = match self.take_skipped().await {
                        Ok(still) => still,
                        Err(_) => Skipped { again: Some(Instant::now() + RETRY) },
                    };
                }
            }
        };
        follower.is_stale |= !found.is_complete;
        if follower.is_stale {
            follower.skipped = self.read_again().await?;
            follower.is_stale = false;
            follower.position = found.position;
            return Ok(());
        }
        for (at, change) in found.changes.iter().enumerate() {
            let taken = match &change.value {
                ChangedValue::Removed => {
                    self.forget(change.table, &change.key);
                    Ok(())
                }
                ChangedValue::Stored(stored) => self.take_change(change.table, &change.key, stored).await,
                ChangedValue::Long => match self.store.get(change.table, &change.key).await? {
                    Some(stored) => self.take_change(change.table, &change.key, &stored).await,
                    // It was removed meanwhile, which comes.
                    None => Ok(()),
                },
            };
            follower.skipped.unless_taken(taken)?;
            if at % AT_ONCE == AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
        }
        follower.position = found.position;
        Ok(())
    }

    /// Reads all tables for the entries that were skipped; those that are skipped again. What else is in the tables is known already,
    /// or comes.
    async fn take_skipped(&self) -> Result<Skipped, StoreError> {
        let mut skipped = Skipped::default();
        for table in FOLLOWED {
            let mut pages = Pages::of(self, table);
            while let Some(page) = pages.next().await? {
                for (at, (key, stored)) in page.into_iter().enumerate() {
                    skipped.unless_taken(self.take(table, &key, &stored))?;
                    if at % AT_ONCE == AT_ONCE - 1 {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
        Ok(skipped)
    }

    /// Takes an entry that has changed.
    async fn take_change(&self, table: Table, key: &[u8], stored: &Stored) -> Result<(), StoreError> {
        // An entry comes where it has changed last: an agent that has changed since comes behind its actions.
        if table == Table::Queue
            && let Some(id) = agent_of(key)
            && self.registry.with(id, |_| ()).is_none()
        {
            return self.find_agent(id).await.map(|_| ());
        }
        self.take(table, key, stored)
    }

    /// Takes an entry of the state into memory, unless what is known is newer.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] when it cannot be read, and [`StoreError::NoMemory`] when there is no memory for it.
    pub(super) fn take(&self, table: Table, key: &[u8], stored: &Stored) -> Result<(), StoreError> {
        match table {
            Table::Policies => {
                let id = String::from_utf8_lossy(key);
                if self.policy(&id).is_some_and(|known| known.version >= stored.version) {
                    return Ok(());
                }
                let record: PolicyRecord = decode(&stored.value)?;
                let policy = Policy::new(&id, &record, |bytes| self.charge(bytes));
                let mut policy = policy.map_err(|_| StoreError::NoMemory("policies"))?;
                policy.version = stored.version;
                self.activate(policy);
            }
            Table::Tokens => {
                let record: TokenRecord = decode(&stored.value)?;
                let id = String::from_utf8_lossy(key).into_owned();
                self.tokens.write().unwrap_or_else(PoisonError::into_inner).insert(id, record);
            }
            Table::Agents => {
                let Some(id) = agent_of(key) else { return Ok(()) };
                self.take_agent(id, &decode(&stored.value)?, stored.version)?;
            }
            Table::Seen => {
                let record: SeenRecord = decode(&stored.value)?;
                let status = AgentStatus::named(&record.status).unwrap_or(AgentStatus::Unknown);
                let Some(id) = agent_of(key) else { return Ok(()) };
                self.registry.with(id, |agent| match record.at_s.cmp(&agent.seen_s) {
                    std::cmp::Ordering::Greater => {
                        (agent.seen_s, agent.status, agent.is_unsaved) = (record.at_s, status, false);
                    }
                    // Another has written what it knew, which is older.
                    std::cmp::Ordering::Less => agent.is_unsaved = true,
                    std::cmp::Ordering::Equal => {}
                });
            }
            Table::Queue => {
                if let Some((id, number)) = QueueRecord::place(key) {
                    self.registry.with(id, |agent| agent.queue(number));
                }
            }
            // Not in memory.
            _ => {}
        }
        Ok(())
    }

    fn take_agent(&self, id: AgentId, record: &AgentRecord, version: u64) -> Result<(), StoreError> {
        let is_known = self.registry.with(id, |agent| {
            agent.is_listed = true;
            if !agent.key.is(&record.key) {
                // It has enrolled anew, or does so here now.
                return agent.record_version() > version;
            }
            if agent.advance(version) {
                if *agent.policy != *record.policy_id {
                    let policy = self.policy_name(&record.policy_id);
                    (agent.policy, agent.revision, agent.awaited) = (policy, 0, None);
                }
                self.note_revision(agent, agent.revision.max(record.revision));
                (agent.metadata_hash, agent.components_hash) = (record.metadata_hash, record.components_hash);
                agent.audit_unenrolled = record.audit_unenrolled.is_some();
                agent.version = record.version.parse().unwrap_or_default();
            }
            true
        });
        if is_known == Some(true) {
            self.roll_out_to(id);
            return Ok(());
        }
        let mut agent = Agent::new(record.key, self.policy_name(&record.policy_id));
        agent.advance(version);
        agent.revision = record.revision;
        (agent.metadata_hash, agent.components_hash) = (record.metadata_hash, record.components_hash);
        agent.audit_unenrolled = record.audit_unenrolled.is_some();
        agent.version = record.version.parse().unwrap_or_default();
        if self.registry.reserve().is_err() {
            if is_known == Some(false) {
                // Its former key must not go on counting here.
                self.registry.remove(id);
            }
            self.registry.reserve().map_err(|_| StoreError::NoMemory("agents"))?;
        }
        self.registry.insert(id, agent);
        Ok(())
    }

    /// The name of a policy, shared with it where it is there.
    fn policy_name(&self, id: &str) -> Arc<str> {
        self.policy(id).map_or_else(|| id.into(), |policy| Arc::clone(&policy.id))
    }

    /// Takes what was removed out of memory.
    fn forget(&self, table: Table, key: &[u8]) {
        let id = String::from_utf8_lossy(key);
        match table {
            Table::Policies => {
                self.policies.write().unwrap_or_else(PoisonError::into_inner).remove(&*id);
            }
            Table::Tokens => {
                self.tokens.write().unwrap_or_else(PoisonError::into_inner).remove(&*id);
            }
            Table::Agents => {
                if let Some(id) = agent_of(key) {
                    self.registry.remove(id);
                }
            }
            // What an agent has received is known by its next check-in.
            _ => {}
        }
    }

    /// Reads all tables, and takes out of memory what is not in them any more. Returns what was skipped. A server that has taken the
    /// place of another may lack its last commits, and give their versions to others: so versions in memory mean nothing here.
    async fn read_again(&self) -> Result<Skipped, StoreError> {
        let mut skipped = Skipped::default();
        let mut keys = HashSet::new();
        self.registry.each(|_, agent| {
            agent.is_listed = false;
            agent.forget_version();
        });
        for table in FOLLOWED {
            let mut pages = Pages::of(self, table);
            while let Some(page) = pages.next().await? {
                for (at, (key, stored)) in page.into_iter().enumerate() {
                    if table == Table::Policies {
                        self.forget_other_policy(&key, &stored);
                    }
                    skipped.unless_taken(self.take(table, &key, &stored))?;
                    if matches!(table, Table::Policies | Table::Tokens) {
                        keys.insert((table, key));
                    }
                    if at % AT_ONCE == AT_ONCE - 1 {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
        let mut missing = Vec::new();
        let known = |table, id: &str| (table, id.as_bytes().to_vec());
        missing.extend(self.list_policies().iter().map(|policy| known(Table::Policies, &policy.id)));
        missing.extend(self.list_tokens().iter().map(|token| known(Table::Tokens, &token.id)));
        missing.retain(|key| !keys.contains(key));
        self.registry.each(|id, agent| {
            if !agent.is_listed {
                missing.push((Table::Agents, id.to_bytes().to_vec()));
            }
        });
        for (table, key) in missing {
            // It may have come since its page was read.
            if self.store.get(table, &key).await?.is_none() {
                self.forget(table, &key);
            }
        }
        Ok(skipped)
    }

    /// Takes a policy out of memory that is not the one of this record.
    fn forget_other_policy(&self, key: &[u8], stored: &Stored) {
        let Some(known) = self.policy(&String::from_utf8_lossy(key)) else { return };
        let is_same = decode(&stored.value).is_ok_and(|record: PolicyRecord| {
            (record.revision, record.changed_ms, stored.version)
                == (known.revision, known.changed_ms, known.version)
        });
        if !is_same {
            self.forget(Table::Policies, key);
        }
    }

    /// An agent that may be in the state and not yet in memory. False where it is not there.
    pub(super) async fn find_agent(&self, id: AgentId) -> Result<bool, StoreError> {
        let Some((record, version)) = self.agent_record(id).await? else { return Ok(false) };
        self.take_agent(id, &record, version)?;
        let range = KeyRange { prefix: &id.to_bytes(), after: None, limit: MOST_QUEUED };
        for (key, stored) in self.store.list(Table::Queue, range).await? {
            self.take(Table::Queue, &key, &stored)?;
        }
        if let Some(stored) = self.store.get(Table::Seen, &id.to_bytes()).await? {
            self.take(Table::Seen, &id.to_bytes(), &stored)?;
        }
        Ok(true)
    }

    /// A policy, also where another gateway has just put it.
    pub(super) async fn find_policy(&self, id: &str) -> Result<Option<Arc<Policy>>, StoreError> {
        if let Some(policy) = self.policy(id) {
            return Ok(Some(policy));
        }
        self.find(Table::Policies, id).await?;
        Ok(self.policy(id))
    }

    /// Takes an entry that may be in the state and not yet in memory.
    pub(super) async fn find(&self, table: Table, id: &str) -> Result<(), StoreError> {
        if self.store.is_shared()
            && let Some(stored) = self.store.get(table, id.as_bytes()).await?
        {
            self.take(table, id.as_bytes(), &stored)?;
        }
        Ok(())
    }
}

impl Skipped {
    /// An entry that this version cannot use, or for which there is no memory, stops nobody from following the others.
    fn unless_taken(&mut self, taken: Result<(), StoreError>) -> Result<(), StoreError> {
        match taken {
            Err(StoreError::Unusable(words)) => {
                tracing::error!(error = words, "skipped a change of the fleet that another gateway made");
                Ok(())
            }
            Err(error @ StoreError::NoMemory(_)) => {
                // So it is said once a minute.
                if self.again.is_none() {
                    tracing::warn!(%error, "skipped a change of the fleet that another gateway made; trying again in a minute");
                    self.again = Some(Instant::now() + AGAIN);
                }
                Ok(())
            }
            taken => taken,
        }
    }
}

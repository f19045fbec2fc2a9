//! Forgets agents that do not come back.

use super::receive::ATTEMPTS;
use super::{Opamp, OrderError};
use crate::registry::Agent;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;
use tidegate_fleet::{AgentId, Expected, StoreError, Table, Write};

/// How often agents are looked at.
const ROUND: Duration = Duration::from_secs(60);
/// Agents that are forgotten in a round; the others wait for the next.
const TOGETHER: usize = 1000;

impl Opamp {
    /// Forgets agents that were not seen for long, until it stops.
    pub async fn forget(self: Arc<Self>) {
        while !self.is_stopped.load(Acquire) {
            tokio::time::sleep(ROUND).await;
            if let Err(error) = self.forget_once().await {
                tracing::warn!(%error, "agents that are gone could not be removed from the state; retrying in a minute");
            }
        }
    }

    /// Stops the tasks.
    pub fn stop(&self) {
        self.is_stopped.store(true, Release);
    }

    async fn forget_once(&self) -> Result<(), OrderError> {
        let mut gone = Vec::new();
        self.registry.each(|id, agent| {
            if gone.len() < TOGETHER && self.is_gone(agent) {
                gone.push(id);
            }
        });
        for id in gone {
            self.remove(id, |agent| self.is_gone(agent)).await?;
        }
        Ok(())
    }

    /// Removes an agent. One that is connected or comes back is a new one.
    pub(crate) async fn remove_agent(&self, id: AgentId) -> Result<(), OrderError> {
        match self.remove(id, |_| true).await? {
            true => Ok(()),
            false => Err(OrderError::Unknown(format!("collector `{id}`"))),
        }
    }

    /// Removes an agent that `may_go`: first from the state, so that what fails is done again. Says whether there was one.
    pub(super) async fn remove(
        &self,
        id: AgentId,
        may_go: impl Fn(&Agent) -> bool,
    ) -> Result<bool, OrderError> {
        for _ in 0..ATTEMPTS {
            let version = self.version(id).await?;
            let may = self.registry.with(id, |agent| may_go(agent));
            if may == Some(false) || (may.is_none() && version == Expected::Absent) {
                return Ok(false);
            }
            if self.erase(id, version).await? {
                if !self.registry.remove(id, may_go) {
                    // It has come back since: it says all again, and that is written.
                    self.registry.with(id, Agent::forget_state);
                }
                return Ok(true);
            }
        }
        Err(StoreError::Conflict.into())
    }

    async fn version(&self, id: AgentId) -> Result<Expected, OrderError> {
        let stored = self.store.get(Table::OpampAgents, &id.to_bytes()).await?;
        Ok(stored.map_or(Expected::Absent, |stored| Expected::Version(stored.version)))
    }

    /// Removes the record of an agent; not one that has come back and written another since this version.
    async fn erase(&self, id: AgentId, version: Expected) -> Result<bool, OrderError> {
        let key = id.to_bytes();
        let writes = vec![
            Write::remove(Table::OpampAgents, key).expecting(version),
            Write::remove(Table::OpampEffective, key),
        ];
        match self.store.commit(writes.into()).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn is_gone(&self, agent: &Agent) -> bool {
        !agent.is_live() && agent.seen.elapsed() >= self.settings.forget_after
    }
}

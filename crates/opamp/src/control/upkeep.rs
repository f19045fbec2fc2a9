//! Forgets agents that do not come back.

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
            let version = self.version(id).await?;
            if self.registry.remove(id, |agent| self.is_gone(agent)) {
                self.erase(id, version).await?;
            }
        }
        Ok(())
    }

    /// Removes an agent. One that is connected or comes back is a new one.
    pub(crate) async fn remove_agent(&self, id: AgentId) -> Result<(), OrderError> {
        let version = self.version(id).await?;
        if !self.registry.remove(id, |_| true) {
            return Err(OrderError::Unknown(format!("collector `{id}`")));
        }
        self.erase(id, version).await
    }

    async fn version(&self, id: AgentId) -> Result<Expected, OrderError> {
        let stored = self.store.get(Table::OpampAgents, &id.to_bytes()).await?;
        Ok(stored.map_or(Expected::Absent, |stored| Expected::Version(stored.version)))
    }

    /// Removes the record of an agent, unless it has come back and written another since this version.
    async fn erase(&self, id: AgentId, version: Expected) -> Result<(), OrderError> {
        let key = id.to_bytes();
        let writes = vec![
            Write::remove(Table::OpampAgents, key).expecting(version),
            Write::remove(Table::OpampEffective, key),
        ];
        match self.store.commit(writes.into()).await {
            Ok(_) | Err(StoreError::Conflict) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn is_gone(&self, agent: &Agent) -> bool {
        !agent.is_live() && agent.seen.elapsed() >= self.settings.forget_after
    }
}

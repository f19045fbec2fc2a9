//! Reads the state at the start.

use super::{Counts, Opamp, Settings, WRITES};
use crate::message::TelemetryOffer;
use crate::record::{AgentRecord, ConfigRecord};
use crate::registry::{Agent, Registry};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use tidegate_arena::Arena;
use tidegate_fleet::{AgentId, KeyRange, Store, StoreError, Stored, Table, decode};
use tokio::sync::{Mutex, Semaphore};

/// Entries that are read at a time.
const PAGE: usize = 200;

impl Opamp {
    /// Reads the state. Messages take the memory of `arena`; agents and configurations are charged to `memory`.
    ///
    /// # Errors
    /// When the state cannot be read, or there is not the memory for what is in it.
    pub async fn load(
        store: Arc<dyn Store>,
        settings: Settings,
        (arena, memory): (Arena, Arena),
    ) -> Result<Arc<Opamp>, StoreError> {
        let opamp = Opamp {
            registry: Registry::new(memory.clone()),
            configs: RwLock::default(),
            tokens: RwLock::default(),
            changing: Mutex::default(),
            is_assigned: AtomicBool::new(true),
            writes: Semaphore::new(WRITES),
            offer: settings.own_telemetry.clone().map(|url| TelemetryOffer { url }),
            is_stopped: AtomicBool::new(false),
            counts: Counts::default(),
            store,
            arena,
            memory,
            settings,
        };
        opamp
            .each(Table::OpampConfigs, |key, stored| {
                let record: ConfigRecord = decode(&stored.value)?;
                let config = opamp.config(record).map_err(|_| no_memory("configurations"))?;
                let mut configs = opamp.configs.write().unwrap_or_else(PoisonError::into_inner);
                configs.insert(String::from_utf8_lossy(key).as_ref().into(), Arc::new(config));
                Ok(())
            })
            .await?;
        opamp
            .each(Table::OpampTokens, |key, stored| {
                let mut tokens = opamp.tokens.write().unwrap_or_else(PoisonError::into_inner);
                tokens.insert(String::from_utf8_lossy(key).into_owned(), decode(&stored.value)?);
                Ok(())
            })
            .await?;
        opamp
            .each(Table::OpampAgents, |key, stored| {
                let Some(id) = key.first_chunk() else { return Ok(()) };
                let record: AgentRecord = decode(&stored.value)?;
                let mut agent = Agent::new();
                agent.capabilities = record.capabilities;
                agent.description_hash = record.description_hash;
                agent.effective_hash = record.effective_hash;
                agent.config =
                    (record.description_hash != 0).then(|| opamp.config_for(&record.attributes)).flatten();
                (agent.reported, agent.status) = (record.config_hash, record.config_status);
                opamp.registry.add(AgentId::from_bytes(*id), agent).map_err(|_| no_memory("agents"))
            })
            .await?;
        Ok(Arc::new(opamp))
    }

    /// Looks at all entries of a table, some at a time.
    async fn each(
        &self,
        table: Table,
        mut look: impl FnMut(&[u8], Stored) -> Result<(), StoreError> + Send,
    ) -> Result<(), StoreError> {
        let mut last: Option<Vec<u8>> = None;
        loop {
            let range = KeyRange { prefix: b"", after: last.as_deref(), limit: PAGE };
            let page = self.store.list(table, range).await?;
            let Some((key, _)) = page.last() else { return Ok(()) };
            last = Some(key.clone());
            for (key, stored) in page {
                look(&key, stored)?;
            }
        }
    }
}

fn no_memory(what: &str) -> StoreError {
    StoreError::Unusable(format!("there is not the memory for the {what} of OpAMP; raise `memory`"))
}

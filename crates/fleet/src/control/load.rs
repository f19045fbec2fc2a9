//! Reads the state at the start.

use super::follow::FOLLOWED;
use super::{ACTION_ANSWERS, Counts, Fleet, Lookups, RolloutQueue, Settings, output_senders};
use crate::agent_id::AgentId;
use crate::registry::Registry;
use crate::store::{KeyRange, Store, StoreError, Stored, Table};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLock};
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
        // First, so that what is written meanwhile is followed.
        let loaded_at = store.watch(&FOLLOWED, None).await?.position;
        let output_keys = output_senders::load_keys(&*store).await?;
        let fleet = Fleet {
            output_keys,
            registry: Arc::new(Registry::new(memory.clone())),
            policies: RwLock::default(),
            tokens: RwLock::default(),
            rollout: RolloutQueue::default(),
            lookups: Lookups::default(),
            loaded_at,
            action_turns: Semaphore::new(ACTION_ANSWERS),
            is_stopped: AtomicBool::new(false),
            counts: Counts::default(),
            store,
            arena,
            memory,
            settings,
        };
        for table in FOLLOWED {
            let mut pages = Pages::of(&fleet, table);
            while let Some(page) = pages.next().await? {
                page.iter().try_for_each(|(key, stored)| fleet.take(table, key, stored))?;
            }
        }
        Ok(Arc::new(fleet))
    }
}

/// A whole table, some entries at a time.
pub(super) struct Pages<'a> {
    fleet: &'a Fleet,
    table: Table,
    last: Option<Vec<u8>>,
}

impl Pages<'_> {
    pub(super) fn of(fleet: &Fleet, table: Table) -> Pages<'_> {
        Pages { fleet, table, last: None }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Vec<(Vec<u8>, Stored)>>, StoreError> {
        let range = KeyRange { prefix: b"", after: self.last.as_deref(), limit: PAGE };
        let page = self.fleet.store.list(self.table, range).await?;
        let Some((last, _)) = page.last() else { return Ok(None) };
        self.last = Some(last.clone());
        Ok(Some(page))
    }
}

/// The agent that a key begins with.
pub(super) fn agent_of(key: &[u8]) -> Option<AgentId> {
    key.first_chunk().map(|bytes| AgentId::from_bytes(*bytes))
}

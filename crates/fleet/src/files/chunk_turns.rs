//! Turns to receive chunks of agents: they bound how many bodies of chunks are in memory at a time.
//!
//! A chunk that has no turn waits on its head alone: a real agent cannot send a chunk again, since its retry has only what was left of
//! the body. Turns are given in the order in which chunks have come, and one agent has half of them at most.

use super::FileError;
use crate::agent_id::AgentId;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tidegate_http1::AdmissionFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a chunk waits for its turn.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Chunks of one agent that wait.
const MOST_WAITING: usize = 4;

/// The turns of all agents.
pub(super) struct ChunkTurns {
    all: Arc<Semaphore>,
    /// The most turns of one agent.
    each: usize,
    /// Chunks that may wait.
    waiting: Arc<Semaphore>,
    /// Agents that have turns or wait for some.
    agents: Mutex<HashMap<AgentId, Weak<AgentTurns>>>,
    /// Turns for requests that are about to be decided on, by the client's address.
    granted: Mutex<HashMap<SocketAddr, ChunkTurn>>,
}

/// A turn to receive a chunk of an agent.
pub(crate) struct ChunkTurn {
    _of_all: OwnedSemaphorePermit,
    _of_agent: OwnedSemaphorePermit,
    /// Keeps the count of the agent's turns.
    _agent: Arc<AgentTurns>,
}

struct AgentTurns {
    turns: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl ChunkTurns {
    /// So many turns, for which so many chunks may wait.
    pub(super) fn new(turns: usize, waiting: usize) -> ChunkTurns {
        ChunkTurns {
            all: Arc::new(Semaphore::new(turns.clamp(1, Semaphore::MAX_PERMITS))),
            each: (turns / 2).clamp(1, Semaphore::MAX_PERMITS),
            waiting: Arc::new(Semaphore::new(waiting.clamp(MOST_WAITING, Semaphore::MAX_PERMITS))),
            agents: Mutex::default(),
            granted: Mutex::default(),
        }
    }

    /// Has a turn ready for the request of this client, which is decided on next: at once, or when the future has ended. There
    /// is none where all turns stay in use for too long, or too many chunks of the agent wait.
    pub(super) fn reserve(self: &Arc<Self>, agent: AgentId, client: SocketAddr) -> Option<AdmissionFuture> {
        let of_agent = self.of_agent(agent);
        if let Some(turn) = self.try_take(&of_agent) {
            self.granted().insert(client, turn);
            return None;
        }
        let waiting = Arc::clone(&of_agent.waiting).try_acquire_owned().ok()?;
        let waiting = (waiting, Arc::clone(&self.waiting).try_acquire_owned().ok()?);
        let turns = Arc::clone(self);
        Some(Box::pin(async move {
            let _waiting = waiting;
            // The agent's own first: what waits for it keeps no turn from others.
            let turn = async {
                let own = Arc::clone(&of_agent.turns).acquire_owned().await.ok()?;
                let of_all = Arc::clone(&turns.all).acquire_owned().await.ok()?;
                Some(ChunkTurn { _of_all: of_all, _of_agent: own, _agent: Arc::clone(&of_agent) })
            };
            if let Ok(Some(turn)) = tokio::time::timeout(LONGEST_WAIT, turn).await {
                turns.granted().insert(client, turn);
            }
        }))
    }

    /// The turn that is ready for the request of this client.
    pub(super) fn granted_to(&self, client: SocketAddr) -> Option<ChunkTurn> {
        self.granted().remove(&client)
    }

    /// A turn, if there is one now.
    ///
    /// # Errors
    /// When all turns are in use, or the agent has half of them.
    pub(super) fn take(&self, agent: AgentId) -> Result<ChunkTurn, FileError> {
        self.try_take(&self.of_agent(agent)).ok_or(FileError::TooMany("chunks"))
    }

    fn try_take(&self, agent: &Arc<AgentTurns>) -> Option<ChunkTurn> {
        let of_agent = Arc::clone(&agent.turns).try_acquire_owned().ok()?;
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(ChunkTurn { _of_all: of_all, _of_agent: of_agent, _agent: Arc::clone(agent) })
    }

    fn of_agent(&self, agent: AgentId) -> Arc<AgentTurns> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = agents.get(&agent).and_then(Weak::upgrade) {
            return known;
        }
        agents.retain(|_, known| known.strong_count() > 0);
        let (turns, waiting) = (Semaphore::new(self.each), Semaphore::new(MOST_WAITING));
        let of_agent = Arc::new(AgentTurns { turns: Arc::new(turns), waiting: Arc::new(waiting) });
        agents.insert(agent, Arc::downgrade(&of_agent));
        of_agent
    }

    fn granted(&self) -> MutexGuard<'_, HashMap<SocketAddr, ChunkTurn>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

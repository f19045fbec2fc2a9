//! Agents in memory: what a message needs, and who is connected. The map is split, and a lock is held for a lookup alone.

use crate::message::ConfigStatus;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tidegate_arena::{Arena, ChargeError};
use tidegate_fleet::{AgentId, AgentMemory};

const SHARDS: usize = 64;
/// An agent in memory, with its place in the map, its waker and the allocator's rounding, in bytes.
pub const AGENT_BYTES: u64 = 512;
/// How far ahead of the last message the first one on a new connection may be: some were lost with the old one.
const AHEAD: u64 = 8;
/// The longest text about its health that is kept.
pub(crate) const LONGEST_TEXT: usize = 96;

/// The agents.
pub(crate) struct Registry {
    shards: Box<[Mutex<Shard>]>,
    memory: AgentMemory,
    /// The number of the newest connection. An agent that is removed and comes back has no number twice.
    connections: AtomicU32,
}

type Shard = HashMap<AgentId, Box<Agent>>;

/// An agent.
pub(crate) struct Agent {
    /// Of its last message; none before the first since the start.
    pub(crate) sequence: Option<u64>,
    pub(crate) capabilities: u64,
    pub(crate) description_hash: u64,
    pub(crate) effective_hash: u64,
    /// The name of the configuration that it is to have.
    pub(crate) config: Option<Arc<str>>,
    /// Hash and status of the configuration that it says it was sent last.
    pub(crate) reported: Option<[u8; 16]>,
    pub(crate) status: ConfigStatus,
    /// The hash that it was sent last, on this connection or a short time ago.
    pub(crate) offered: Option<([u8; 16], Instant)>,
    /// The hash of the configuration whose outcome a roll-out waits for, and since when.
    pub(crate) awaited: Option<([u8; 16], Instant)>,
    /// It was asked for its full state.
    pub(crate) is_asked_for_all: bool,
    pub(crate) is_telemetry_offered: bool,
    pub(crate) is_healthy: Option<bool>,
    pub(crate) health_text: Box<str>,
    pub(crate) seen: Instant,
    /// It is to restart.
    pub(crate) restart: bool,
    live: Option<Box<Live>>,
}

/// Its connection.
struct Live {
    number: u32,
    waker: Option<Waker>,
    has_news: bool,
}

/// A notification for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Push {
    /// There is something for its agent.
    News,
    /// Another connection of the same agent has come, or the agent was removed.
    Replaced,
}

/// The result of attaching a connection to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attached {
    /// It is the agent's now, with this number.
    As(u32),
    /// Another agent with this uid is connected.
    Duplicate,
    /// There is no such agent.
    Unknown,
}

impl Agent {
    pub(crate) fn new() -> Agent {
        Agent {
            sequence: None,
            capabilities: 0,
            description_hash: 0,
            effective_hash: 0,
            config: None,
            reported: None,
            status: ConfigStatus::Unset,
            offered: None,
            awaited: None,
            is_asked_for_all: false,
            is_telemetry_offered: false,
            is_healthy: None,
            health_text: Box::default(),
            seen: Instant::now(),
            restart: false,
            live: None,
        }
    }

    /// Nothing of it is in the state any more: its next message makes it say all.
    pub(crate) fn forget_state(&mut self) {
        self.sequence = None;
        (self.description_hash, self.effective_hash) = (0, 0);
        (self.reported, self.status) = (None, ConfigStatus::Unset);
    }

    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Has its connection look whether there is something for it.
    pub(crate) fn wake(&mut self) {
        if let Some(live) = &mut self.live {
            live.has_news = true;
            if let Some(waker) = live.waker.take() {
                waker.wake();
            }
        }
    }
}

impl Registry {
    /// No agents. Their memory is charged to `arena`.
    pub(crate) fn new(arena: Arena) -> Registry {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Registry { shards, memory: AgentMemory::new(arena, AGENT_BYTES), connections: AtomicU32::new(0) }
    }

    /// Adds an agent, unless it is there.
    ///
    /// # Errors
    /// When there is no memory.
    pub(crate) fn add(&self, id: AgentId, agent: Agent) -> Result<(), ChargeError> {
        self.memory.reserve()?;
        let mut agents = self.shard(id);
        let is_new = !agents.contains_key(&id);
        if is_new {
            agents.insert(id, Box::new(agent));
        }
        drop(agents);
        if !is_new {
            self.memory.release();
        }
        Ok(())
    }

    /// Removes an agent that `may_go`; says whether there was one.
    pub(crate) fn remove(&self, id: AgentId, may_go: impl FnOnce(&Agent) -> bool) -> bool {
        let mut agents = self.shard(id);
        if !agents.get(&id).is_some_and(|agent| may_go(agent)) {
            return false;
        }
        let removed = agents.remove(&id);
        drop(agents);
        if let Some(mut removed) = removed {
            removed.wake();
            self.memory.release();
        }
        true
    }

    /// Looks at an agent, if there is one. Nothing in `look` may wait.
    pub(crate) fn with<R>(&self, id: AgentId, look: impl FnOnce(&mut Agent) -> R) -> Option<R> {
        self.shard(id).get_mut(&id).map(|agent| look(agent))
    }

    /// Looks at all agents, a part of them at a time.
    pub(crate) fn each(&self, mut look: impl FnMut(AgentId, &mut Agent)) {
        for shard in &self.shards {
            let mut agents = shard.lock().unwrap_or_else(PoisonError::into_inner);
            agents.iter_mut().for_each(|(id, agent)| look(*id, agent));
        }
    }

    /// Gives an agent a new connection, on which its first message has this sequence number. One that goes on where the last
    /// connection ended takes that one's place.
    pub(crate) fn attach(&self, id: AgentId, sequence: u64) -> Attached {
        let attached = self.with(id, |agent| {
            if agent.is_live() {
                let goes_on = agent.sequence.is_some_and(|last| sequence > last && sequence - last <= AHEAD);
                if !goes_on {
                    return Attached::Duplicate;
                }
                agent.wake();
            }
            let number = self.connections.fetch_add(1, Relaxed);
            (agent.offered, agent.is_telemetry_offered) = (None, false);
            agent.live = Some(Box::new(Live { number, waker: None, has_news: false }));
            Attached::As(number)
        });
        attached.unwrap_or(Attached::Unknown)
    }

    /// The connection of this number has ended.
    pub(crate) fn detach(&self, id: AgentId, number: u32) {
        let live = self.with(id, |agent| {
            let is_own = agent.live.as_ref().is_some_and(|live| live.number == number);
            is_own.then(|| agent.live.take())
        });
        // Outside of the lock, since its waker may be the last of a task.
        drop(live);
    }

    /// Whether there is something for the connection of this number.
    pub(crate) fn poll_push(&self, id: AgentId, number: u32, context: &Context<'_>) -> Poll<Push> {
        let look = |agent: &mut Agent| {
            let Some(live) = agent.live.as_mut().filter(|live| live.number == number) else {
                return Poll::Ready(Push::Replaced);
            };
            if std::mem::take(&mut live.has_news) {
                return Poll::Ready(Push::News);
            }
            match &mut live.waker {
                Some(waker) => waker.clone_from(context.waker()),
                none => *none = Some(context.waker().clone()),
            }
            Poll::Pending
        };
        self.with(id, look).unwrap_or(Poll::Ready(Push::Replaced))
    }

    fn shard(&self, id: AgentId) -> MutexGuard<'_, Shard> {
        let shard = self.shards.get(id.shard(SHARDS)).or_else(|| self.shards.first());
        shard
            .unwrap_or_else(|| unreachable!("there are shards"))
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

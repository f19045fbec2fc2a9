//! Agents in memory: what a check-in needs, and who waits.
//!
//! The map is split, and each part has a lock that is held for a lookup and never across a wait. An agent that waits has its waker
//! here, and no timer: [`Registry::end_polls`] finds those whose time is over.

mod parked;
#[cfg(test)]
mod tests;

pub(crate) use parked::{ParkedPoll, PollOutcome};

use crate::agent_id::AgentId;
use crate::agent_memory::AgentMemory;
use crate::api_key::KeyHash;
use crate::rollout_progress::AwaitedAgent;
use parked::Parked;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate_arena::{Arena, ChargeError};

const SHARDS: usize = 64;
/// An agent in memory, with its place in the map, its waker and the allocator's rounding, in bytes.
pub const AGENT_BYTES: u64 = 448;

/// The agents.
pub(crate) struct Registry {
    shards: Box<[Mutex<Shard>]>,
    memory: AgentMemory,
}

type Shard = HashMap<AgentId, Box<Agent>>;

/// An agent.
pub(crate) struct Agent {
    pub(crate) key: KeyHash,
    /// Shared with the policy.
    pub(crate) policy: Arc<str>,
    /// The revision of its policy that it says it has.
    pub(crate) revision: u64,
    pub(crate) metadata_hash: u64,
    pub(crate) components_hash: u64,
    /// The newest action that is queued for it, and the newest that it has received.
    pub(crate) newest: u64,
    pub(crate) received: u64,
    /// Nothing newer than [`received`](Self::received) can have reached it before its last check-in: it has said so, or had never
    /// been here.
    pub(crate) has_received_no_more: bool,
    /// The version of its record that this is from.
    record_version: u64,
    /// Seconds since 1970; 0 before it was.
    pub(crate) seen_s: u32,
    pub(crate) status: AgentStatus,
    pub(crate) version: AgentVersion,
    /// The state does not know yet when it was seen, or how it is.
    pub(crate) is_unsaved: bool,
    /// It has said that it was uninstalled, or the like.
    pub(crate) audit_unenrolled: bool,
    /// It was in the state when that was read again.
    pub(crate) is_listed: bool,
    /// Its policy is on the way to it.
    pub(crate) is_in_rollout: bool,
    /// It is to get a newer revision of its policy than it has.
    pub(crate) awaited: Option<AwaitedAgent>,
    parked: Option<Box<Parked>>,
    polls: u32,
}

/// The health that an agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AgentStatus {
    Unknown,
    Online,
    Error,
    Degraded,
    Starting,
    Disconnected,
}

/// The version of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct AgentVersion {
    pub(crate) major: u8,
    pub(crate) minor: u8,
    pub(crate) patch: u16,
}

/// How a poll begins.
pub(crate) enum PollStart {
    /// It waits.
    Parked(ParkedPoll),
    /// There are actions.
    Actions,
    /// The agent is gone.
    Gone,
}

impl Agent {
    pub(crate) fn new(key: KeyHash, policy: Arc<str>) -> Agent {
        Agent {
            key,
            policy,
            revision: 0,
            metadata_hash: 0,
            components_hash: 0,
            newest: 0,
            received: 0,
            has_received_no_more: false,
            record_version: 0,
            seen_s: 0,
            status: AgentStatus::Unknown,
            version: AgentVersion::default(),
            is_unsaved: false,
            audit_unenrolled: false,
            is_listed: true,
            is_in_rollout: false,
            awaited: None,
            parked: None,
            polls: 0,
        }
    }

    /// Whether this version of its record is not older than what is known of it; it is known from now on.
    pub(crate) fn advance(&mut self, version: u64) -> bool {
        let is_newest = version >= self.record_version;
        self.record_version = self.record_version.max(version);
        is_newest
    }

    /// The version of its record that this is from.
    pub(crate) fn record_version(&self) -> u64 {
        self.record_version
    }

    /// Has any version of its record be newer than what is known.
    pub(crate) fn forget_version(&mut self) {
        self.record_version = 0;
    }

    /// Whether it waits, and nothing has come for it.
    pub(crate) fn is_waiting(&self) -> bool {
        self.parked.as_ref().is_some_and(|parked| parked.is_waiting())
    }

    /// Ends its wait, if it waits; else what was for it is given back.
    pub(crate) fn wake(&mut self, with: PollOutcome) -> Option<PollOutcome> {
        match &mut self.parked {
            Some(parked) if parked.is_waiting() => {
                parked.wake(with);
                None
            }
            _ => Some(with),
        }
    }

    /// Nothing is queued for it, unless something has come since `newest` was the newest.
    pub(crate) fn none_is_queued(&mut self, newest: Option<u64>) {
        if newest == Some(self.newest) {
            self.newest = self.received;
        }
    }

    /// Takes the place of another with the same id, which waits no more.
    fn take_place_of(&mut self, replaced: &mut Agent) {
        // What is queued stays queued.
        self.newest = self.newest.max(replaced.newest);
        // Its wait is found here by its number, so no number comes twice.
        self.polls = replaced.polls;
        replaced.wake(PollOutcome::Gone);
        self.parked = replaced.parked.take();
    }

    /// Tells it of an action of this number.
    pub(crate) fn queue(&mut self, number: u64) {
        self.newest = self.newest.max(number);
        self.wake(PollOutcome::Actions);
    }
}

impl Registry {
    /// No agents. Their memory is charged to `arena`.
    pub(crate) fn new(arena: Arena) -> Registry {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Registry { shards, memory: AgentMemory::new(arena, AGENT_BYTES) }
    }

    /// Pays for one more agent. Whoever does not insert it then calls [`release`](Self::release).
    ///
    /// # Errors
    /// When there is no memory.
    pub(crate) fn reserve(&self) -> Result<(), ChargeError> {
        self.memory.reserve()
    }

    /// Gives the memory of an agent back.
    pub(crate) fn release(&self) {
        self.memory.release();
    }

    /// Adds an agent that was paid for, or puts it in the place of the one with this id.
    pub(crate) fn insert(&self, id: AgentId, mut agent: Agent) {
        let mut agents = self.shard(id);
        let Some(replaced) = agents.get_mut(&id) else {
            agents.insert(id, Box::new(agent));
            return;
        };
        if replaced.record_version <= agent.record_version {
            agent.take_place_of(replaced);
            **replaced = agent;
        }
        drop(agents);
        self.release();
    }

    /// Removes an agent; says whether there was one.
    pub(crate) fn remove(&self, id: AgentId) -> bool {
        let removed = self.shard(id).remove(&id);
        let Some(mut removed) = removed else { return false };
        removed.wake(PollOutcome::Gone);
        self.release();
        true
    }

    /// Looks at an agent, if there is one. Nothing in `look` may wait.
    pub(crate) fn with<R>(&self, id: AgentId, look: impl FnOnce(&mut Agent) -> R) -> Option<R> {
        self.shard(id).get_mut(&id).map(|agent| look(agent))
    }

    /// Looks at all agents, some at a time.
    pub(crate) fn each(&self, mut look: impl FnMut(AgentId, &mut Agent)) {
        for shard in 0..SHARDS {
            self.each_of(shard, &mut look);
        }
    }

    /// Looks at the agents of one of [`shards`](Self::shards).
    pub(crate) fn each_of(&self, shard: usize, mut look: impl FnMut(AgentId, &mut Agent)) {
        let Some(shard) = self.shards.get(shard) else { return };
        let mut agents = shard.lock().unwrap_or_else(PoisonError::into_inner);
        agents.iter_mut().for_each(|(id, agent)| look(*id, agent));
    }

    /// The parts of the map.
    pub(crate) const fn shards() -> usize {
        SHARDS
    }

    /// Has an agent wait, at the longest until `ends_s` of [`uptime_s`](crate::time::uptime_s), unless there are actions for it. A poll of it that waits already ends.
    pub(crate) fn park(self: &Arc<Self>, id: AgentId, ends_s: u32) -> PollStart {
        let start = self.with(id, |agent| {
            agent.wake(PollOutcome::Superseded);
            agent.polls = agent.polls.wrapping_add(1);
            if agent.newest > agent.received {
                return None;
            }
            agent.parked = Some(Box::new(Parked::new(agent.polls, ends_s)));
            Some(agent.polls)
        });
        match start {
            Some(Some(number)) => PollStart::Parked(ParkedPoll::new(Arc::clone(self), id, number)),
            Some(None) => PollStart::Actions,
            None => PollStart::Gone,
        }
    }

    /// Ends the polls of a shard whose time is over.
    pub(crate) fn end_polls(&self, shard: usize, now_s: u32) {
        self.each_of(shard, |_, agent| {
            if agent.parked.as_ref().is_some_and(|parked| parked.is_over(now_s)) {
                agent.wake(PollOutcome::TimedOut);
            }
        });
    }

    fn shard(&self, id: AgentId) -> MutexGuard<'_, Shard> {
        let shard = self.shards.get(id.shard(SHARDS)).or_else(|| self.shards.first());
        shard
            .unwrap_or_else(|| unreachable!("there are shards"))
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentStatus {
    pub(crate) const ALL: [AgentStatus; 6] = [
        AgentStatus::Unknown,
        AgentStatus::Online,
        AgentStatus::Error,
        AgentStatus::Degraded,
        AgentStatus::Starting,
        AgentStatus::Disconnected,
    ];

    /// The word of the protocol.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            AgentStatus::Unknown => "unknown",
            AgentStatus::Online => "online",
            AgentStatus::Error => "error",
            AgentStatus::Degraded => "degraded",
            AgentStatus::Starting => "starting",
            AgentStatus::Disconnected => "disconnected",
        }
    }

    /// Reads the word of the protocol: agents since 8.0 send it in capitals at times.
    pub(crate) fn named(name: &str) -> Option<AgentStatus> {
        AgentStatus::ALL.into_iter().find(|status| status.name().eq_ignore_ascii_case(name))
    }
}

impl std::fmt::Display for AgentVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl std::str::FromStr for AgentVersion {
    type Err = ();

    /// Reads `8.15.0`, or `8.15.0-SNAPSHOT+build`.
    fn from_str(text: &str) -> Result<AgentVersion, ()> {
        let number = text.split(['-', '+']).next().unwrap_or_default();
        let mut parts = number.split('.');
        let version = AgentVersion {
            major: parts.next().and_then(|part| part.parse().ok()).ok_or(())?,
            minor: parts.next().and_then(|part| part.parse().ok()).ok_or(())?,
            patch: parts.next().and_then(|part| part.parse().ok()).ok_or(())?,
        };
        parts.next().map_or(Ok(version), |_| Err(()))
    }
}

//! The memory of agents that are known: charged for some at a time, and bounded.

use std::sync::{Mutex, PoisonError};
use tidegate_arena::{Arena, Charge, ChargeError, Share};

/// Memory is charged for so many agents at a time.
pub(crate) const STEP: u64 = 64;
/// The part of the share of requests that agents may take: whoever holds a token can invent them, and the rest stays for telemetry.
const PART: u64 = 3;

/// Charges the memory of agents to an arena.
pub struct AgentMemory {
    arena: Arena,
    /// Of one agent, in bytes.
    each: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    charges: Vec<Charge>,
    agents: u64,
}

impl AgentMemory {
    /// For agents that take `each` bytes.
    pub fn new(arena: Arena, each: u64) -> AgentMemory {
        AgentMemory { arena, each, state: Mutex::default() }
    }

    /// Pays for one more agent. [`release`](Self::release) gives its memory back.
    ///
    /// # Errors
    /// When there is no memory, or agents have a third of the share of requests.
    pub fn reserve(&self) -> Result<(), ChargeError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let charged = state.charges.len() as u64 * STEP;
        if state.agents == charged {
            if (charged + STEP) * self.each > self.arena.ceiling(Share::Ingest) / PART {
                return Err(ChargeError::Short);
            }
            let charge = self.arena.try_charge(Share::Ingest, self.each * STEP)?;
            state.charges.push(charge);
        }
        state.agents += 1;
        Ok(())
    }

    /// Gives the memory of an agent back.
    pub fn release(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.agents = state.agents.saturating_sub(1);
        // One step is kept, so that one agent that comes and goes does not charge each time.
        if state.charges.len() as u64 * STEP >= state.agents + 2 * STEP {
            state.charges.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_arena::Floors;

    /// However many agents come, two thirds of the memory stay for others; what agents had is there again when they leave.
    #[test]
    fn agents_leave_memory_for_others() {
        let arena = Arena::new(3 << 20, Floors::NONE, 1 << 20, 64, 64).unwrap();
        let memory = AgentMemory::new(arena.clone(), 512);
        let agents = (0..100_000).take_while(|_| memory.reserve().is_ok()).count();
        assert_eq!(agents, 2048);
        assert_eq!(arena.free(Share::Ingest), 2 << 20);
        (0..agents).for_each(|_| memory.release());
        assert!(arena.free(Share::Ingest) >= (3 << 20) - 2 * 512 * STEP);
        assert!(memory.reserve().is_ok());
    }
}

//! A sink's part of the memory for what is read back from the journal.
//!
//! Each sink has a part of its own that always suffices for its usual requests. What is larger (one body
//! as large as the source allows, to be decompressed) is borrowed, by one sink at a time and never across
//! a wait for a peer; so whoever waits for its turn waits for computing, not for a stalled peer.

use std::sync::Arc;
use tidegate_arena::{Arena, Charge, Refused, Share, Window};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a sink may hold, and the turn to borrow more.
#[derive(Clone)]
pub struct Room {
    arena: Arena,
    share: Share,
    /// Bytes that are this sink's alone.
    part: usize,
    /// The most that it can ever hold: its part, and all that is nobody's.
    most: usize,
    turn: Arc<Semaphore>,
}

impl Room {
    /// A room with a part of `part` bytes in `share`. All rooms take turns with one `turn`.
    pub fn new(arena: &Arena, share: Share, part: usize, turn: &Arc<Semaphore>) -> Room {
        let usage = arena.usage();
        let floor: u64 =
            usage.shares.iter().filter(|known| known.share == share).map(|known| known.floor).sum();
        let free = usize::try_from(arena.ceiling(share) - floor).unwrap_or(usize::MAX);
        Room { arena: arena.clone(), share, part, most: free.saturating_add(part), turn: Arc::clone(turn) }
    }

    /// Bytes that are this sink's alone.
    pub(crate) fn part(&self) -> usize {
        self.part
    }

    /// The most that this sink can ever hold, with its turn to borrow.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Waits for the turn to borrow more than the sink's own part. To be kept until it is given back.
    pub(crate) async fn turn(&self) -> Turn {
        // The semaphore is never closed.
        Turn(Arc::clone(&self.turn).acquire_owned().await.ok())
    }

    /// Pays for `bytes` on the heap, waiting for them.
    pub(crate) async fn charge(&self, bytes: usize) -> Result<Charge, Refused> {
        self.arena.charge(self.share, bytes as u64).await
    }

    /// A window with `bytes` charged, waiting for them.
    pub(crate) async fn window(&self, bytes: usize) -> Result<Window, Refused> {
        self.arena.window(self.share, bytes).await
    }
}

/// The turn to borrow; dropping it lets the next one borrow.
pub(crate) struct Turn(#[expect(dead_code, reason = "held for its drop")] Option<OwnedSemaphorePermit>);

impl Turn {
    /// What needs no turn.
    pub(crate) const fn none() -> Turn {
        Turn(None)
    }
}

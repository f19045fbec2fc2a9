//! Memory: reservations and use.

use crate::resident::Resident;
use serde::Serialize;
use tidegate_arena::{Arena, Reservation};

/// The process's memory against its limit. Everything is in bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// The bound on the whole process's resident memory.
    pub limit: u64,
    /// Where the limit comes from, in words: `three quarters of the cgroup's limit of 512 MiB`.
    pub origin: String,
    /// The kernel's count; `None` if it is not available.
    pub resident: Option<Resident>,
    /// Bytes allocated on the heap and not freed.
    pub heap_live: u64,
    /// Everything but payload: the plan's lines, in its order.
    pub declared: Vec<DeclaredLine>,
    /// The memory for payload, and its holders.
    pub payload: Payload,
    /// Connections that are open on the ingest port.
    pub connections_open: u64,
    /// The most that may be.
    pub connections_limit: u64,
}

/// "At most `count` things of at most `each` bytes", and what is known of their use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeclaredLine {
    /// The declaring component.
    pub owner: String,
    /// A short description of one of them.
    pub what: String,
    /// The most there can be.
    pub count: u64,
    /// The most that one can take.
    pub each: u64,
    /// The most that all of them can take.
    pub declared: u64,
    /// Their current use, if known.
    pub used: Option<u64>,
    /// The most they have taken, where that is known.
    pub peak: Option<u64>,
}

/// The arena: the memory of bodies and batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Payload {
    /// The most that all shares can hold together.
    pub total: u64,
    /// Hot pages of idle windows: they count against the total and yield to any charge.
    pub idle: u64,
    /// The shares, upstream first.
    pub shares: Vec<ShareLine>,
}

/// The use of one share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShareLine {
    /// Its name.
    pub name: String,
    /// The bytes that nobody else can take.
    pub floor: u64,
    /// The most it can ever hold.
    pub at_most: u64,
    /// The bytes charged now.
    pub used: u64,
    /// The most charged at any moment so far.
    pub peak: u64,
    /// How many charges wait.
    pub waiting: u64,
}

impl Memory {
    /// The limit for everything but payload.
    pub fn overhead(&self) -> u64 {
        self.declared.iter().fold(0, |sum, line| sum.saturating_add(line.declared))
    }
}

impl DeclaredLine {
    /// A line of the plan, its use unknown.
    pub fn of(line: &Reservation) -> DeclaredLine {
        DeclaredLine {
            owner: line.owner.to_owned(),
            what: line.what.to_owned(),
            count: line.count,
            each: line.each,
            declared: line.bytes(),
            used: None,
            peak: None,
        }
    }

    /// With what its things take now, and have taken at most where that is known.
    #[must_use]
    pub fn using(mut self, used: u64, peak: Option<u64>) -> DeclaredLine {
        (self.used, self.peak) = (Some(used), peak);
        self
    }
}

impl Payload {
    /// The current use of `arena`. Shares that have no memory of their own and never held any are left out.
    pub fn of(arena: &Arena) -> Payload {
        let usage = arena.usage();
        let in_use = usage.shares.iter().filter(|share| share.floor > 0 || share.peak > 0);
        let line = |share: &tidegate_arena::ShareUse| ShareLine {
            name: share.share.name().to_owned(),
            floor: share.floor,
            at_most: arena.ceiling(share.share),
            used: share.used,
            peak: share.peak,
            waiting: share.waiting as u64,
        };
        Payload { total: usage.total, idle: usage.idle, shares: in_use.map(line).collect() }
    }

    /// The bytes charged now, over all shares.
    pub fn used(&self) -> u64 {
        self.shares.iter().fold(0, |sum, share| sum.saturating_add(share.used))
    }
}

//! Chooses the memory budget when the configuration sets none.
//!
//! It is at most three quarters of the smallest memory limit of the control groups that this process is in, version 1
//! or 2, from its own group up to the root; 256 MiB when none of them has a limit. The rest is for what the kernel
//! charges to the group beside resident memory: sockets, page tables, page cache. Where a quarter is too little for
//! that, the budget is smaller; the estimate ([`kernel_needs`]) is the one that `tidegate plan` prints.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::model::{Config, Limits};
use crate::values::Bytes;

/// The bound on resident memory and its origin. `Display` says both in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryBudget {
    /// The bound.
    pub bytes: Bytes,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where the bound on memory comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The setting `memory`.
    Configured,
    /// A control group's limit, less the kernel's part.
    Cgroup {
        /// The limit.
        limit: Bytes,
        /// The file that contains it.
        file: PathBuf,
    },
    /// There is neither a setting nor a limit.
    Unlimited,
}

/// The bound when nothing limits memory.
const WITHOUT_LIMIT: Bytes = Bytes::mib(256);

/// The number of the arena's windows: stretches of address space, each for a body or a head. Every connection may hold
/// one while it sends a head; the rest is for bodies and sinks.
pub fn windows(memory: Bytes, connections: u32) -> usize {
    const BESIDE_CONNECTIONS: usize = 512;
    let by_memory = usize::try_from(memory.get() / Bytes::kib(16).get()).unwrap_or(usize::MAX);
    by_memory.clamp(1024, 16 * 1024).max(connections as usize + BESIDE_CONNECTIONS)
}

/// Memory that the kernel may charge to the control group in addition to `memory`, for this many connections:
/// sockets, the page tables of windows, and a working page cache.
pub fn kernel_needs(memory: Bytes, connections: u32) -> Bytes {
    const SOCKET: u64 = 5 << 10;
    const PAGE_TABLE: u64 = 4 << 10;
    let cache = (memory.get() / 4).clamp(Bytes::mib(8).get(), Bytes::mib(16).get());
    Bytes::new(u64::from(connections) * SOCKET + windows(memory, connections) as u64 * PAGE_TABLE + cache)
}

impl Config {
    /// How many connections may be open: as configured, or as many as `budget` suffices for.
    pub fn connections(&self, budget: &MemoryBudget) -> u32 {
        let tls = self.uses_tls();
        let affordable = self.limits.connections(budget.bytes, tls);
        let (Origin::Cgroup { limit, .. }, None) = (&budget.origin, self.limits.connections) else {
            return affordable;
        };
        // As many as the kernel has memory for beside the budget, by bisection.
        let fits = |count: u32| budget.bytes.get() + kernel_needs(budget.bytes, count).get() <= limit.get();
        let (mut least, mut most) = (Limits::least_connections(tls).min(affordable), affordable);
        while least < most {
            let middle = most - (most - least) / 2;
            if fits(middle) {
                least = middle;
            } else {
                most = middle - 1;
            }
        }
        least
    }

    /// The bound on resident memory: as configured, or as the control group of this process suggests.
    pub fn memory_budget(&self) -> MemoryBudget {
        self.memory_budget_in(Path::new("/"))
    }

    /// As [`memory_budget`](Self::memory_budget), with the file system at `root`.
    pub fn memory_budget_in(&self, root: &Path) -> MemoryBudget {
        if let Some(bytes) = self.memory {
            return MemoryBudget { bytes, origin: Origin::Configured };
        }
        match smallest_limit(root) {
            Some((limit, file)) => {
                let connections = self.limits.connections;
                let connections = connections.unwrap_or(Limits::least_connections(self.uses_tls()));
                let fits = |mib: &u64| {
                    let memory = Bytes::mib(*mib);
                    memory.get() + kernel_needs(memory, connections).get() <= limit.get()
                };
                let most = limit.get() / 4 * 3 / Bytes::mib(1).get();
                let bytes = Bytes::mib((1..=most).rev().find(fits).unwrap_or(1));
                MemoryBudget { bytes, origin: Origin::Cgroup { limit, file } }
            }
            None => MemoryBudget { bytes: WITHOUT_LIMIT, origin: Origin::Unlimited },
        }
    }
}

impl fmt::Display for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.bytes)?;
        match &self.origin {
            Origin::Configured => write!(f, "as `memory` says"),
            Origin::Cgroup { limit, file } => {
                let rest = Bytes::new(limit.get().saturating_sub(self.bytes.get()));
                let file = file.display();
                write!(f, "the cgroup's limit of {limit}, less {rest} for the kernel ({file})")
            }
            Origin::Unlimited => write!(f, "the default, as `memory` is not set and no cgroup sets a limit"),
        }
    }
}

fn smallest_limit(root: &Path) -> Option<(Bytes, PathBuf)> {
    let groups = read_short(&root.join("proc/self/cgroup"))?;
    groups.lines().flat_map(|line| limits_of(root, line)).min_by_key(|(limit, _)| *limit)
}

/// The limits of the groups in one line of `/proc/self/cgroup`: `hierarchy:controllers:path`.
fn limits_of(root: &Path, line: &str) -> Vec<(Bytes, PathBuf)> {
    let mut parts = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next()) else {
        return Vec::new();
    };
    let (mounts, name): (&[&str], _) = if controllers.is_empty() {
        (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], "memory.max")
    } else if controllers.split(',').any(|controller| controller == "memory") {
        (&["sys/fs/cgroup/memory"], "memory.limit_in_bytes")
    } else {
        return Vec::new();
    };
    // Inside a container the group's own folder may be mounted as the root, and its outer path may not exist: the
    // walk up still ends at the root.
    let group: PathBuf =
        Path::new(group).components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let mounted = mounts.iter().map(|mount| root.join(mount));
    let places = mounted.flat_map(|mount| group.ancestors().map(move |part| mount.join(part).join(name)));
    places.filter_map(|file| Some((limit_in(&file)?, file))).collect()
}

/// The limit in a file; none for `max`, or for the huge number that means the same in version 1.
fn limit_in(file: &Path) -> Option<Bytes> {
    const NO_LIMIT: u64 = 1 << 60;
    let limit: u64 = read_short(file)?.trim().parse().ok()?;
    (limit < NO_LIMIT).then_some(Bytes::new(limit))
}

fn read_short(file: &Path) -> Option<String> {
    const LONGEST: u64 = 64 << 10;
    let mut text = String::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    File::open(file).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests;

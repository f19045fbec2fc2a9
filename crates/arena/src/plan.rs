//! The plan of declared overhead: who may use how much, and whether it fits.

use crate::share::{Floors, Share};
use crate::units::Bytes;
use std::fmt;

/// "At most `count` things of at most `each` bytes", said by the owner before anything starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Who: `connections`, `binary`, `meters` …
    pub owner: &'static str,
    /// A short description of one of them.
    pub what: &'static str,
    /// The most there can be.
    pub count: u64,
    /// The most that one can take, in bytes.
    pub each: u64,
    /// The setting that makes it smaller, when there is one: `limits.connections`.
    pub setting: Option<&'static str>,
}

impl Reservation {
    /// The bytes that all of them may take.
    pub fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.each)
    }
}

/// All that is declared under one bound on the process's resident memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPlan {
    memory: u64,
    declared: Vec<Reservation>,
    floors: Floors,
}

/// The configuration does not fit in its memory, and what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DoesNotFit {
    message: String,
}

impl MemoryPlan {
    /// An empty plan for a process of at most `memory` resident bytes.
    pub fn new(memory: u64) -> MemoryPlan {
        MemoryPlan { memory, declared: Vec::new(), floors: Floors::default() }
    }

    /// Adds an owner's declaration.
    pub fn declare(&mut self, declared: Reservation) {
        self.declared.push(declared);
    }

    /// Sets the part of the payload that `share` can always reach, in bytes.
    pub fn floor(&mut self, share: Share, bytes: u64) {
        self.floors = self.floors.with(share, bytes);
    }

    /// The bound on the whole process, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// All declarations, in the order in which they were made.
    pub fn declared(&self) -> &[Reservation] {
        &self.declared
    }

    /// The floors of the shares.
    pub fn floors(&self) -> Floors {
        self.floors
    }

    /// The total of all declarations, in bytes.
    pub fn overhead(&self) -> u64 {
        self.declared.iter().fold(0, |sum, declared| sum.saturating_add(declared.bytes()))
    }

    /// The rest, available for payload: the arena's total, in bytes.
    pub fn payload(&self) -> u64 {
        self.memory.saturating_sub(self.overhead())
    }

    /// The most that `share` can ever hold, in bytes.
    pub fn ceiling(&self, share: Share) -> u64 {
        let others = self.floors.sum() - self.floors.of(share);
        self.payload().saturating_sub(others)
    }

    /// Whether everything fits.
    ///
    /// # Errors
    /// When it does not; the message names the largest declarations that a setting can shrink, where that would help.
    pub fn check(&self) -> Result<(), DoesNotFit> {
        let needed = self.overhead().saturating_add(self.floors.sum());
        if needed <= self.memory {
            return Ok(());
        }
        let (memory, missing) = (Bytes(self.memory), Bytes(needed - self.memory));
        let mut message = format!(
            "the configuration needs {} of memory, {missing} more than `memory: {memory}` allows.\n",
            Bytes(needed)
        );
        // A small part of the missing memory would help nobody.
        let helps = |declared: &&Reservation| {
            declared.setting.is_some() && declared.bytes() >= (needed - self.memory) / 20
        };
        let mut movable: Vec<&Reservation> = self.declared.iter().filter(helps).collect();
        movable.sort_by_key(|declared| std::cmp::Reverse(declared.bytes()));
        message.push_str(&format!("Raise `memory` to at least {}", Bytes(needed.next_multiple_of(1 << 20))));
        for declared in movable.iter().take(3) {
            if let Some(setting) = declared.setting {
                message.push_str(&format!(
                    ",\nor lower `{setting}` ({} × {} = {})",
                    declared.count,
                    Bytes(declared.each),
                    Bytes(declared.bytes())
                ));
            }
        }
        message.push('.');
        Err(DoesNotFit { message })
    }
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<22} {:>9} {:>10} {:>10}  what", "declared overhead", "at most", "each", "bytes")?;
        for declared in &self.declared {
            let Reservation { owner, what, count, each, setting } = declared;
            write!(
                f,
                "  {owner:<20} {count:>9} {:>10} {:>10}  {what}",
                Bytes(*each),
                Bytes(declared.bytes())
            )?;
            match setting {
                Some(setting) => writeln!(f, " (`{setting}`)")?,
                None => writeln!(f)?,
            }
        }
        writeln!(f, "  {:<20} {:>9} {:>10} {:>10}", "all overhead", "", "", Bytes(self.overhead()))?;
        writeln!(f, "\n{:<22} {:>9} {:>10} {:>10}", "payload shares", "", "floor", "at most")?;
        for share in Share::ALL {
            let (floor, most) = (self.floors.of(share), self.ceiling(share));
            if floor > 0 {
                writeln!(f, "  {:<20} {:>9} {:>10} {:>10}", share.name(), "", Bytes(floor), Bytes(most))?;
            }
        }
        writeln!(f, "  {:<20} {:>9} {:>10} {:>10}", "all payload", "", "", Bytes(self.payload()))?;
        writeln!(f, "\n{:<22} {:>9} {:>10} {:>10}", "memory", "", "", Bytes(self.memory))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn connections(count: u64) -> Reservation {
        let (what, setting) = ("parked connections", Some("limits.connections"));
        Reservation { owner: "connections", what, count, each: 2048, setting }
    }

    #[test]
    fn a_plan_that_does_not_fit_names_the_setting_to_change() {
        let mut plan = MemoryPlan::new(32 << 20);
        plan.floor(Share::Egress, 1 << 20);
        plan.declare(connections(1000));
        assert_eq!(plan.check(), Ok(()));
        plan.declare(connections(20_000));
        let message = plan.check().unwrap_err().to_string();
        assert!(message.contains("limits.connections"), "{message}");
        assert!(message.contains("Raise `memory` to at least 43 MiB"), "{message}");
    }

    #[test]
    fn payload_is_the_budget_minus_overhead() {
        let mut plan = MemoryPlan::new(32 << 20);
        plan.declare(connections(1024));
        plan.floor(Share::Ingest, 1 << 20);
        plan.floor(Share::Decode, 4 << 20);
        assert_eq!(plan.payload(), 30 << 20);
        assert_eq!(plan.ceiling(Share::Decode), 29 << 20);
    }
}

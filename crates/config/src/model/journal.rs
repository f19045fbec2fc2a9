use crate::declare::{choices, settings};
use crate::values::Bytes;

settings! {
    /// The journal on disk.
    pub struct Journal {
        /// What must have happened before a request is acknowledged.
        durability: Durability = Durability::Fsync,
        /// How much disk the journal may take.
        quota: Bytes [Bytes::mib(2)..=Bytes::gib(1 << 20)] = Bytes::gib(20),
        /// What happens when the quota is used up because a sink is behind.
        when_full: WhenFull = WhenFull::Block,
        /// The size of one file of the journal. Space is given back a file at a time.
        segment: Bytes [Bytes::mib(1)..=Bytes::gib(4)] = Bytes::mib(64),
    }
}

choices! {
    /// What must have happened before a request is acknowledged.
    pub enum Durability is "a durability" {
        /// It is on disk: survives a power cut.
        Fsync = "fsync",
        /// The operating system has it: survives a crash or kill of tidegate, not a power cut.
        PageCache = "page_cache",
        /// Every sink has it; nothing is written to disk. What waits is bounded by `memory`.
        Memory = "memory",
    }
}

choices! {
    /// What happens when the journal's quota is used up.
    pub enum WhenFull is "a policy" {
        /// New requests are refused until a sink has caught up. Loses nothing.
        Block = "block",
        /// The oldest data that the slowest sink still has to send is dropped, and counted as dropped.
        DropOldest = "drop_oldest",
    }
}

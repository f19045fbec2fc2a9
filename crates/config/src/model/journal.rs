use crate::declare::{choices, settings};
use crate::values::{Bytes, Duration};

settings! {
    /// The journal on disk.
    pub struct Journal {
        /// When a request is acknowledged.
        durability: Durability = Durability::Fsync,
        /// Most disk space for the journal.
        quota: Bytes [Bytes::mib(2)..=Bytes::gib(1 << 20)] = Bytes::gib(20),
        /// Behaviour when the quota is used up because a sink is behind.
        when_full: WhenFull = WhenFull::Block,
        /// Size of one journal file. Disk space is freed one file at a time.
        segment: Bytes [Bytes::mib(1)..=Bytes::gib(4)] = Bytes::mib(64),
        /// How long data stays that every sink has had, so that `tidegate replay journal` can send it again. It gives way when
        /// `quota` or the disk needs the space. Zero: it is deleted at once.
        keep: Duration [Duration::seconds(0)..=Duration::days(365)] = Duration::seconds(0),
    }
}

choices! {
    /// When a request is acknowledged.
    pub enum Durability is "a durability" {
        /// After it is on disk: survives a power failure.
        Fsync = "fsync",
        /// After the operating system has it: survives a crash of tidegate, but not a power failure.
        PageCache = "page_cache",
        /// After every sink has delivered it; nothing is written to disk. `memory` bounds the waiting data.
        Memory = "memory",
    }
}

choices! {
    /// Behaviour when the journal's quota is used up.
    pub enum WhenFull is "a policy" {
        /// Refuse new requests until a sink has caught up. Loses nothing.
        Block = "block",
        /// Drop the oldest data that the slowest sink has not sent, and count it as dropped.
        DropOldest = "drop_oldest",
    }
}

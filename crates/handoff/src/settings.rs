//! The owner's settings, and what they cost.

use crate::address::ADDRESS_MAX;
use crate::cursors;
use crate::queue::Request;
use crate::scan::SCRATCH;
use crate::state::MemberState;
use crate::worker::{self, STACK_BYTES};
use std::path::PathBuf;
use tidegate_arena::Reservation;

/// How the logs of one folder are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The folder. Made if it is not there. One process at a time may have it open.
    pub dir: PathBuf,
    /// The length of a segment, in bytes. A quarter of the quota is taken where that is less.
    pub segment_bytes: u64,
    /// The most that the files of one member may take on disk, in bytes.
    pub quota: u64,
    /// The most that the files of all members may take together, in bytes; beside them there are the cursors, and at most four
    /// damaged segments.
    pub total_quota: u64,
    /// The treatment of appends when either is used up.
    pub when_full: WhenFull,
    /// When an append is acknowledged.
    pub durability: Durability,
    /// How many requests may wait for the disk; a task with one more waits for its turn.
    pub queue: usize,
    /// How many members may have a log. Those found on disk are always opened.
    pub members: usize,
}

/// When an append is acknowledged, and so what it survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After `fdatasync`: it survives a power cut.
    Fsync,
    /// After `write`: it survives the end of the process, not a power cut.
    PageCache,
}

/// The treatment of an append when the quota is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused.
    Block,
    /// The member's own oldest segments go, and their undelivered records are counted as dropped. It is refused where the
    /// quota of all members is used up by others.
    DropOldest,
}

/// The shortest segment, in bytes.
const SEGMENT_MIN: u64 = 4096;
/// The allocator's bytes for an `Arc`, a box or a one-shot channel, beside its content, in bytes.
const ALLOCATION: usize = 64;
/// An open file in memory, in bytes: its handle behind an `Arc`.
const OPEN_FILE: usize = 96;
/// The name of a segment in a list, in bytes.
const NAME_BYTES: usize = 160;
/// The most files of one member that are open at a time: one to write, one to read.
const FILES_PER_MEMBER: u64 = 2;

impl Settings {
    /// Everything as it is without a configuration.
    pub fn new(dir: impl Into<PathBuf>) -> Settings {
        Settings {
            dir: dir.into(),
            segment_bytes: 16 << 20,
            quota: 1 << 30,
            total_quota: 20 << 30,
            when_full: WhenFull::Block,
            durability: Durability::Fsync,
            queue: 256,
            members: 100,
        }
    }

    pub(crate) fn normalised(mut self) -> Settings {
        self.quota = self.quota.min(self.total_quota);
        self.segment_bytes = self.segment_bytes.min(self.quota / 4).max(SEGMENT_MIN);
        self.queue = self.queue.max(1);
        self
    }

    /// The entries in the memory plan: all memory but bodies and windows, which their owners pay for.
    pub fn overhead(&self) -> Vec<Reservation> {
        // Its state and its log, its files, and twice its cursor while that is encoded.
        let member = size_of::<MemberState>()
            + worker::LOG_BYTES
            + ADDRESS_MAX
            + FILES_PER_MEMBER as usize * OPEN_FILE
            + 2 * cursors::ENTRY_MAX
            + 2 * ALLOCATION;
        // In the queue, taken from it, in the group that is being synced; its outcome.
        let request = 3 * size_of::<Request>() + worker::OUTCOME_BYTES + 2 * ALLOCATION;
        let segments =
            self.total_quota / self.clone().normalised().segment_bytes.max(1) + self.members as u64;
        let declared = |what, count, each: usize, setting| Reservation {
            owner: "handoff",
            what,
            count,
            each: each as u64,
            setting,
        };
        vec![
            declared("members' logs", self.members as u64, member, None),
            declared("requests waiting for the disk", self.queue as u64, request, None),
            declared("names of segments while they are listed", segments, NAME_BYTES, None),
            declared("thread and read buffer", 1, STACK_BYTES + SCRATCH, None),
        ]
    }

    /// The most file descriptors that are open at a time.
    pub fn descriptors(&self) -> u64 {
        // The lock, the two files of cursors, one that is scanned or deleted, the folder while it is synced.
        self.members as u64 * FILES_PER_MEMBER + 5
    }
}

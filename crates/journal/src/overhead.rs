//! The journal's memory in addition to the windows of bodies, declared before it starts.

use crate::append::{AppendResult, PendingAppend};
use crate::cursor::Cursor;
use crate::meta::TENANT_MAX;
use crate::queue;
use crate::receive_times::{MAX_MARKS, Mark};
use crate::record::HEADER;
use crate::record_scanner::READ_AHEAD;
use crate::segment::Segment;
use crate::settings::Settings;
use crate::writer::STACK_BYTES;
use std::mem::size_of;
use std::task::Waker;
use tidegate_arena::Reservation;

/// A name, a lock, a file handle, and what the allocator rounds up to.
const SUNDRIES: usize = 1024;

impl Settings {
    /// At most so many things of at most so many bytes each: the journal's entries in the plan.
    pub fn overhead(&self) -> [Reservation; 5] {
        let hands = self.durability.writer_threads();
        // In its slot, in the group that was taken, its outcome and its waker with the writer or in one of the
        // groups on their way, its header.
        let batch = queue::slot_len::<PendingAppend, AppendResult>()
            + size_of::<(u32, PendingAppend)>()
            + (hands + 1) * (size_of::<(u32, AppendResult)>() + size_of::<Waker>())
            + HEADER
            + TENANT_MAX
            + 3 * size_of::<usize>();
        // The next records and the re-read ones, each through a buffer.
        let sink = Cursor::most_bytes() + 2 * READ_AHEAD + SUNDRIES;
        let segments = self.quota / self.segment_bytes.max(1) + 2;
        let declared = |what, count: u64, each: usize, setting| Reservation {
            owner: "journal",
            what,
            count,
            each: each as u64,
            setting,
        };
        [
            declared("batches being written", self.queue as u64, batch, None),
            declared("threads that write, beside the first", hands as u64 - 1, STACK_BYTES, None),
            declared("sinks' cursors", self.followers as u64, sink, Some("sinks")),
            declared("marks of when records were received", MAX_MARKS as u64, size_of::<Mark>(), None),
            // A deque keeps up to twice what it holds.
            declared(
                "segments, as known in memory",
                segments,
                2 * size_of::<Segment>(),
                Some("journal.quota"),
            ),
        ]
    }
}

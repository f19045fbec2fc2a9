//! Counters of a tailer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_lines::Counts;

/// The counters of a tailer. Clones share them; the tailer writes, others read.
#[derive(Debug, Clone, Default)]
pub struct TailMeters(Arc<Cells>);

#[derive(Debug, Default)]
struct Cells {
    files: AtomicU64,
    held: AtomicU64,
    held_bytes: AtomicU64,
    untracked: AtomicU64,
    bytes: AtomicU64,
    records: AtomicU64,
    lost: [AtomicU64; LossReason::ALL.len()],
    truncations: AtomicU64,
    rotations: AtomicU64,
    skipped_compressed: AtomicU64,
    too_large: AtomicU64,
    overflows: AtomicU64,
    retries: AtomicU64,
    errors: AtomicU64,
    cut: AtomicU64,
    dropped: AtomicU64,
    invalid_text: AtomicU64,
    malformed: AtomicU64,
}

/// Why bytes of a file were never read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReason {
    /// The file was truncated before they were read, and no copy of it was found.
    Truncated,
    /// The file was deleted or left the patterns, and nothing could be read from it for too long.
    RotateWait,
    /// They could not be read: an I/O error, or a damaged compressed file.
    Unreadable,
}

impl LossReason {
    /// All of them.
    pub const ALL: [LossReason; 3] = [LossReason::Truncated, LossReason::RotateWait, LossReason::Unreadable];

    /// The value of the label `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            LossReason::Truncated => "truncated",
            LossReason::RotateWait => "rotate_wait",
            LossReason::Unreadable => "unreadable",
        }
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident, $write:ident: $how:ident;)*) => {
        impl TailMeters {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> u64 {
                    self.0.$name.load(Relaxed)
                }

                pub(crate) fn $write(&self, n: u64) {
                    counters!(@$how self.0.$name, n);
                }
            )*
        }
    };
    (@add $cell:expr, $n:expr) => { $cell.fetch_add($n, Relaxed) };
    (@set $cell:expr, $n:expr) => { $cell.store($n, Relaxed) };
}

counters! {
    /// Files known.
    files, set_files: set;
    /// Files without a name that are still open.
    held, set_held: set;
    /// The length of these files, in bytes: disk space that their deletion has not freed.
    held_bytes, set_held_bytes: set;
    /// Files and directories of the patterns that are left out, because too many are known.
    untracked, set_untracked: set;
    /// Bytes of files whose records are durable.
    bytes, add_bytes: add;
    /// Records that are durable.
    records, add_records: add;
    /// Files found truncated.
    truncations, add_truncations: add;
    /// Files that lost their names.
    rotations, add_rotations: add;
    /// Compressed files not read.
    skipped_compressed, add_skipped_compressed: add;
    /// Records lost because they were larger than the destination takes.
    too_large, add_too_large: add;
    /// Times that the kernel lost changes: everything was looked at then.
    overflows, add_overflows: add;
    /// Batches that were refused and read again.
    retries, add_retries: add;
    /// Files that could not be opened or read.
    errors, add_errors: add;
    /// Lines cut to the longest allowed.
    cut, add_cut: add;
    /// Lines dropped because they were too long.
    dropped, add_dropped: add;
    /// Records with bytes that are not text in the file's encoding.
    invalid_text, add_invalid_text: add;
    /// Lines without the format of their file.
    malformed, add_malformed: add;
}

impl TailMeters {
    /// Bytes that were never read, for `reason`.
    pub fn lost(&self, reason: LossReason) -> u64 {
        self.0.lost.get(reason as usize).map_or(0, |cell| cell.load(Relaxed))
    }

    pub(crate) fn add_lost(&self, reason: LossReason, bytes: u64) {
        if let Some(cell) = self.0.lost.get(reason as usize) {
            cell.fetch_add(bytes, Relaxed);
        }
    }

    /// Adds the irregular lines that are durable.
    pub(crate) fn add_counts(&self, counts: &Counts) {
        self.add_cut(counts.cut);
        self.add_dropped(counts.dropped);
        self.add_invalid_text(counts.invalid_text);
        self.add_malformed(counts.malformed);
    }
}

//! The journal in numbers.

use super::raw;
use serde::Serialize;
use std::time::Duration;

/// The journal: what every sink follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Journal {
    /// Its folder.
    pub dir: String,
    /// When an append is acknowledged, as the configuration says it: `fsync`.
    pub durability: String,
    /// Size on disk, in bytes.
    pub bytes: u64,
    /// The most it may take, in bytes.
    pub quota: u64,
    /// How many segments there are.
    pub segments: u64,
    /// The age of the oldest record, when there is one.
    #[serde(rename = "oldest_age_seconds", serialize_with = "raw::maybe_seconds")]
    pub oldest_age: Option<Duration>,
    /// The sequence that the next record gets.
    pub head: u64,
    /// The items of all records, ever.
    pub items_total: u64,
    /// Items appended per second lately, where that is known.
    pub items_per_second: Option<f64>,
    /// When it is full, should it go on as it did lately; nothing when it does not fill.
    #[serde(rename = "full_in_seconds", serialize_with = "raw::maybe_seconds")]
    pub full_in: Option<Duration>,
    /// Unreadable parts.
    pub damage: Damage,
    /// How often and how long it waited for the disk.
    pub syncs: Syncs,
    /// Why it takes nothing now, in words that follow "it takes nothing: ".
    pub trouble: Option<String>,
}

/// Unreadable parts of the journal since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Records that were skipped.
    pub records: u64,
    /// Bytes that were skipped.
    pub bytes: u64,
    /// Segments set aside, kept on disk until somebody looks.
    pub quarantined_segments: u64,
}

/// The journal's calls to `fdatasync` since the process started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Syncs {
    /// How many.
    pub count: u64,
    /// How long one took on average; zero when there was none.
    #[serde(rename = "mean_seconds", serialize_with = "raw::seconds")]
    pub mean: Duration,
}

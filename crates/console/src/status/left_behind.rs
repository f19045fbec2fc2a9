//! Cursors without a sink, in numbers.

use super::raw;
use serde::Serialize;
use std::time::Duration;

/// A sink that is not configured any more, and whose cursor still holds back what it has not sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftBehind {
    /// Its name, when it was configured.
    pub name: String,
    /// Items that it has not sent.
    pub items: u64,
    /// The bytes of the journal behind its cursor.
    pub bytes: u64,
    /// The age of the oldest record of those; nothing when there is none.
    #[serde(rename = "age_seconds", serialize_with = "raw::maybe_seconds")]
    pub age: Option<Duration>,
    /// The command that lets it go.
    pub command: String,
}

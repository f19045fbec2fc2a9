//! One sink.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A sink. Its requests, failures and bytes are counted since the process started, its items since it was attached.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sink {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) target: String,
    pub(crate) lag: Lag,
    pub(crate) usual_lag_seconds: f64,
    pub(crate) in_flight: u64,
    /// Requests that may be in flight now, where that adapts.
    pub(crate) concurrency_limit: Option<f64>,
    pub(crate) requests: u64,
    pub(crate) last_success: Option<String>,
    pub(crate) failures: u64,
    pub(crate) bytes: u64,
    pub(crate) resent: u64,
    pub(crate) restarts: u64,
    pub(crate) broken: bool,
    pub(crate) items_per_second: Option<f64>,
    pub(crate) last_error: Option<LastError>,
    pub(crate) waiting: Vec<BlockedIndex>,
    pub(crate) members: Vec<Member>,
    pub(crate) retry_at: Option<String>,
    pub(crate) delivered: u64,
    pub(crate) dropped: BTreeMap<String, u64>,
}

/// The distance to the journal's head.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Lag {
    pub(crate) items: u64,
    pub(crate) bytes: u64,
    pub(crate) age_seconds: Option<f64>,
}

/// The last thing that went wrong.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LastError {
    pub(crate) message: String,
    /// RFC 3339.
    pub(crate) at: String,
}

/// An index of the peer that takes nothing now.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BlockedIndex {
    pub(crate) index: String,
    pub(crate) documents: u64,
    pub(crate) reason: String,
}

/// A member that a sink spreads items over.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Member {
    pub(crate) address: String,
    pub(crate) behind: bool,
    pub(crate) handed_off_bytes: u64,
    pub(crate) last_error: Option<LastError>,
}

/// How a sink does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SinkState {
    /// It keeps up.
    Fine,
    /// It is behind for longer than is usual for it.
    Late,
    /// It waits for another attempt, or failed itself.
    Failing,
}

impl SinkState {
    /// A word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            SinkState::Fine => "ok",
            SinkState::Late => "late",
            SinkState::Failing => "failing",
        }
    }
}

impl Sink {
    /// How it does.
    pub(crate) fn state(&self) -> SinkState {
        let is_late = self.lag.age_seconds.is_some_and(|age| age > self.usual_lag_seconds);
        match () {
            () if self.broken || self.retry_at.is_some() => SinkState::Failing,
            () if is_late || !self.waiting.is_empty() || self.members.iter().any(|member| member.behind) => {
                SinkState::Late
            }
            () => SinkState::Fine,
        }
    }

    /// The error that explains its state, or else the last one.
    pub(crate) fn error(&self) -> Option<&LastError> {
        let of_member =
            || self.members.iter().filter(|member| member.behind).find_map(|m| m.last_error.as_ref());
        self.last_error.as_ref().or_else(of_member)
    }
}

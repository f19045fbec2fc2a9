//! One answer of `/status.json`.
//!
//! What an older or newer gateway leaves out is zero or absent here, so that both can be watched.

mod books;
mod memory;
mod sink;

pub(crate) use books::{Books, SourceBook};
#[cfg(test)]
pub(crate) use memory::DeclaredLine;
pub(crate) use memory::{Memory, Owner};
pub(crate) use sink::{LastError, Sink, SinkState};

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// The most entries of each list in a status. A gateway has fewer.
const MOST: usize = 256;

/// The gateway's numbers at one moment, as `/status.json` has them.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Frame {
    pub(crate) version: String,
    /// The state: `pushing_back`.
    pub(crate) state: String,
    /// The reason for the state.
    pub(crate) reason: String,
    /// When the numbers were taken, as RFC 3339.
    #[serde(default)]
    pub(crate) at: String,
    pub(crate) uptime_seconds: f64,
    #[serde(default)]
    pub(crate) memory: Memory,
    #[serde(default)]
    pub(crate) journal: Journal,
    #[serde(default)]
    pub(crate) sinks: Vec<Sink>,
    #[serde(default)]
    pub(crate) left_behind: Vec<LeftBehind>,
    #[serde(default)]
    pub(crate) destination: Option<Destination>,
    #[serde(default)]
    pub(crate) tenants: Option<Tenants>,
    #[serde(default)]
    pub(crate) books: Books,
}

/// The journal.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Journal {
    pub(crate) dir: String,
    pub(crate) durability: String,
    pub(crate) bytes: u64,
    pub(crate) quota: u64,
    pub(crate) segments: u64,
    pub(crate) oldest_age_seconds: Option<f64>,
    pub(crate) head: u64,
    pub(crate) items_total: u64,
    pub(crate) items_per_second: Option<f64>,
    pub(crate) full_in_seconds: Option<f64>,
    pub(crate) damage: Damage,
    pub(crate) syncs: Syncs,
    pub(crate) trouble: Option<String>,
}

/// Unreadable parts of the journal.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Damage {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

/// Waits for the disk.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Syncs {
    pub(crate) count: u64,
    pub(crate) mean_seconds: f64,
}

/// A sink that is not configured any more, and holds back the journal.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LeftBehind {
    pub(crate) name: String,
    pub(crate) items: u64,
    pub(crate) bytes: u64,
    pub(crate) command: String,
}

/// The cluster that answers a `_bulk` itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Destination {
    pub(crate) source: String,
    pub(crate) sink: String,
    pub(crate) in_flight: u64,
    pub(crate) requests: u64,
    pub(crate) failures: u64,
    pub(crate) last_error: Option<LastError>,
    pub(crate) failing_since: Option<String>,
}

/// The tenants' traffic.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Tenants {
    pub(crate) known: u64,
    pub(crate) most: u64,
    pub(crate) shown: Vec<Tenant>,
}

/// One tenant since the process started.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) received: u64,
    pub(crate) refused: u64,
    pub(crate) mostly: Option<String>,
    pub(crate) open: u64,
    pub(crate) items: u64,
    pub(crate) bytes: u64,
    pub(crate) held: u64,
}

/// An answer that is no status of a gateway.
#[derive(Debug)]
pub struct NotAStatus(serde_json::Error);

impl fmt::Display for NotAStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer is not the status of a gateway ({})", self.0)
    }
}

impl std::error::Error for NotAStatus {}

impl Frame {
    /// Reads an answer of `/status.json`.
    ///
    /// # Errors
    /// When it is not JSON, or lacks what every gateway says.
    pub fn parse(answer: &str) -> Result<Frame, NotAStatus> {
        let mut frame: Frame = serde_json::from_str(answer).map_err(NotAStatus)?;
        frame.bound();
        Ok(frame)
    }

    /// Cuts every list that is longer than a gateway's: the time to draw one follows its length, and may be its square.
    fn bound(&mut self) {
        self.sinks.truncate(MOST);
        self.left_behind.truncate(MOST);
        self.books.sources.truncate(MOST);
        self.memory.declared.truncate(MOST);
        self.memory.payload.shares.truncate(MOST);
        for sink in &mut self.sinks {
            sink.waiting.truncate(MOST);
            sink.members.truncate(MOST);
            cut(&mut sink.dropped);
        }
        for source in &mut self.books.sources {
            cut(&mut source.refused);
            cut(&mut source.items);
            cut(&mut source.items_refused);
        }
        if let Some(tenants) = &mut self.tenants {
            tenants.shown.truncate(MOST);
        }
    }

    /// How long before this answer `moment` was, in seconds; both are RFC 3339.
    pub(crate) fn seconds_since(&self, moment: &str) -> Option<f64> {
        let (now, then): (jiff::Timestamp, jiff::Timestamp) = (self.at.parse().ok()?, moment.parse().ok()?);
        Some(now.duration_since(then).as_secs_f64())
    }
}

fn cut(counts: &mut BTreeMap<String, u64>) {
    while counts.len() > MOST {
        counts.pop_last();
    }
}

#[cfg(test)]
mod tests;

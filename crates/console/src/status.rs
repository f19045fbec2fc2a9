//! The gateway's state at one moment: plain numbers, filled in by the gateway.
//!
//! As JSON, bytes and counts are numbers, lengths of time are seconds (`…_seconds`), moments are RFC 3339.

mod destination;
mod fleet;
mod handshakes;
mod journal;
mod left_behind;
mod memory;
pub(crate) mod raw;
mod sink;
mod source_pipeline;
mod tenants;

pub use destination::Destination;
pub use fleet::{Fleet, FleetPolicy};
pub use handshakes::{Failed, Handshakes};
pub use journal::{Damage, Journal, Syncs};
pub use left_behind::LeftBehind;
pub use memory::{DeclaredLine, Memory, Payload, ShareLine};
pub use sink::{
    BlockedIndex, DerivedMetrics, Lag, LastError, MOST_MEMBERS, MOST_POLICIES, MOST_SAMPLED, MOST_STEPS,
    MOST_WAITING, PipelineStep, PolicyDecisions, RingMember, Sink, TraceDecisions,
};
pub use source_pipeline::SourcePipeline;
pub use tenants::{Tenant, Tenants};

use crate::state::StateReport;
use serde::Serialize;
use std::time::{Duration, SystemTime};
use tidegate_ledger::Balance;

/// Everything that `/status` shows but the verdict, which follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// The commit that it was made from, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// When these numbers were taken.
    #[serde(serialize_with = "raw::moment")]
    pub at: SystemTime,
    /// How long the process has been running.
    #[serde(rename = "uptime_seconds", serialize_with = "raw::seconds")]
    pub uptime: Duration,
    /// The process was told to stop.
    pub stopping: bool,
    /// Why requests were refused within the last seconds, where the gateway is the cause: the reasons of the books.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused_lately: Vec<&'static str>,
    /// Memory: reservations and use.
    pub memory: Memory,
    /// The cluster that answers a `_bulk` itself, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<Destination>,
    /// The pipelines of sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_pipelines: Vec<SourcePipeline>,
    /// The journal, between the sources and the sinks.
    pub journal: Journal,
    /// The sinks, in the order of the configuration.
    pub sinks: Vec<Sink>,
    /// Sinks that are not configured any more, and whose cursors hold back the journal.
    pub left_behind: Vec<LeftBehind>,
    /// The tenants' traffic, if there are tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenants: Option<Tenants>,
    /// How TLS handshakes end, where any address speaks TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshakes: Option<Handshakes>,
    /// The agents that are managed here, where `listen.fleet` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Fleet>,
    /// Items received, and their outcomes.
    #[serde(serialize_with = "raw::books")]
    pub books: Balance,
}

impl Status {
    /// Writes the verdict and the numbers as one JSON object.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write_json(&self, out: impl std::io::Write) -> serde_json::Result<()> {
        #[derive(Serialize)]
        struct Judged<'a> {
            #[serde(flatten)]
            verdict: &'a StateReport,
            #[serde(flatten)]
            status: &'a Status,
        }
        serde_json::to_writer(out, &Judged { verdict: &StateReport::of(self), status: self })
    }
}

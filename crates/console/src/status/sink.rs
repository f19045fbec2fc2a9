//! A sink in numbers.

use super::raw;
use serde::Serialize;
use std::time::{Duration, SystemTime};
use tidegate_ledger::Dropped;

/// One sink. Its counts of requests, failures and bytes begin with the process; its items are those of the
/// books, since it was attached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sink {
    /// Its name in the configuration.
    pub name: String,
    /// Its type: `prometheus_remote_write`.
    pub kind: String,
    /// Where it sends, without secrets.
    pub target: String,
    /// How far it is behind the journal's head.
    pub lag: Lag,
    /// How old its lag is by design: a file is not closed with every record. Only beyond that it is behind.
    #[serde(rename = "usual_lag_seconds", serialize_with = "raw::seconds")]
    pub usual_lag: Duration,
    /// The sequence of the first record that it has not completed.
    pub cursor: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// Requests that may be under way now, over all endpoints, where that adapts to the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_limit: Option<f64>,
    /// Requests (or files) finished with success.
    pub requests: u64,
    /// When one was finished with success last, if any was.
    #[serde(serialize_with = "raw::maybe_moment")]
    pub last_success: Option<SystemTime>,
    /// Attempts that failed.
    pub failures: u64,
    /// Bytes sent with success.
    pub bytes: u64,
    /// Items that were sent again, each time counted, because a request with them failed. The peer may have some of them
    /// twice.
    pub resent: u64,
    /// Times that it ended unexpectedly and was started again.
    pub restarts: u64,
    /// It ended unexpectedly, or could not be started again, and has completed nothing since.
    pub broken: bool,
    /// Items completed per second lately, where that is known.
    pub items_per_second: Option<f64>,
    /// The last thing that went wrong, whether it is over or not.
    pub last_error: Option<LastError>,
    /// Destinations at the peer that accept nothing while the sink goes on, and the size of their backlog: a few by
    /// name.
    pub waiting: Vec<BlockedIndex>,
    /// The members that it spreads items over, if it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<RingMember>,
    /// How many more members it has than are shown.
    #[serde(skip_serializing_if = "is_zero")]
    pub members_left_out: u64,
    /// The steps of its pipeline, in order.
    pub pipeline: Vec<PipelineStep>,
    /// How many more steps it has than are shown.
    #[serde(skip_serializing_if = "is_zero")]
    pub pipeline_left_out: u64,
    /// Its decisions about traces, if it takes a part of them: of the first [`MOST_SAMPLED`] such sinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<TraceDecisions>,
    /// The metrics that it derives, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived: Option<DerivedMetrics>,
    /// When the next attempt is made, while one is waited for: it is failing now.
    #[serde(serialize_with = "raw::maybe_moment")]
    pub retry_at: Option<SystemTime>,
    /// Items that the peer took.
    pub delivered: u64,
    /// Items dropped, by reason.
    #[serde(serialize_with = "raw::by_reason")]
    pub dropped: Vec<(Dropped, u64)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the attribute wants it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The distance between a cursor and the journal's head.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Lag {
    /// In items.
    pub items: u64,
    /// In bytes on disk.
    pub bytes: u64,
    /// The age of the oldest record that is not completed; nothing when all are.
    #[serde(rename = "age_seconds", serialize_with = "raw::maybe_seconds")]
    pub age: Option<Duration>,
}

/// The most [`BlockedIndex`] that a status has, over all sinks: what is beyond is left to the log.
pub const MOST_WAITING: usize = 4;

/// An index of the peer that takes nothing now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockedIndex {
    /// Its name; or that it is several.
    pub index: String,
    /// Records that wait for it alone, and documents of them.
    pub records: u64,
    /// See `records`.
    pub documents: u64,
    /// Since when.
    #[serde(serialize_with = "raw::moment")]
    pub since: SystemTime,
    /// The peer's message, without secrets.
    pub reason: String,
}

/// The most [`PipelineStep`]s that a status has, over all sources and sinks: what is beyond is left to the metrics.
pub const MOST_STEPS: usize = 32;

/// The counts of a pipeline's step since its source or sink was configured with it. A record that a sink reads again for another
/// attempt is not counted again; a request that a client sends again is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PipelineStep {
    /// The pipeline; empty for a setting of the sink itself.
    pub pipeline: String,
    /// Its name in the pipeline, or the setting of the sink.
    pub step: String,
    /// Items that reached it.
    pub items: u64,
    /// Items that it dropped.
    pub filtered: u64,
    /// Items that it left out of the sample.
    pub sampled_out: u64,
    /// Statements and conditions that failed on an item.
    pub failures: u64,
}

/// The numbers of metrics that a sink derives. But for the series they are counted since it began to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DerivedMetrics {
    /// Series now.
    pub series: u64,
    /// Observations that they were made of.
    pub observations: u64,
    /// Those counted in a series for all that have no room.
    pub overflowed: u64,
    /// Those that have no series at all.
    pub lost: u64,
    /// Series that got nothing any more, and ended.
    pub expired: u64,
    /// Edges of service graphs of which one span did not come.
    pub expired_edges: u64,
    /// Spans left out of service graphs for want of room.
    pub dropped_spans: u64,
}

/// The most sinks whose [`TraceDecisions`] a status has: those of others are left to the metrics.
pub const MOST_SAMPLED: usize = 4;

/// The most [`PolicyDecisions`] that a status has, over all sinks: what is beyond is left to the metrics.
pub const MOST_POLICIES: usize = 16;

/// The decisions about traces since the sink began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceDecisions {
    /// Traces that wait for their decision.
    pub undecided: u64,
    /// The most that may wait.
    pub most_undecided: u64,
    /// Decisions that are remembered.
    pub remembered: u64,
    /// Bytes of the journal that are kept to decide again after a restart.
    pub held_back_bytes: u64,
    /// Traces that were decided before their time.
    pub early: u64,
    /// Spans that came when their trace was kept.
    pub late_kept: u64,
    /// Spans that came when their trace was not kept.
    pub late_dropped: u64,
    /// Decisions forgotten before all spans of their traces were sent.
    pub forgotten: u64,
    /// Spans sent because no decision about their trace was known.
    pub unknown: u64,
    /// Traces that a policy kept.
    pub kept_traces: u64,
    /// Traces that no policy kept.
    pub unkept_traces: u64,
    /// Their spans.
    pub unkept_spans: u64,
    /// The decisions by policy, in the order of the configuration.
    pub policies: Vec<PolicyDecisions>,
    /// How many more policies it has than are shown.
    #[serde(skip_serializing_if = "is_zero")]
    pub policies_left_out: u64,
}

/// The traces that a policy decided about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyDecisions {
    /// Its name.
    pub policy: String,
    /// The decision: `kept`, or `dropped` by a policy that drops.
    pub decision: &'static str,
    /// Traces.
    pub traces: u64,
    /// Their spans, up to the decision.
    pub spans: u64,
}

/// The most [`RingMember`]s that a status has, over all sinks: what is beyond is left to the metrics.
pub const MOST_MEMBERS: usize = 32;

/// A member of a sink's ring. Its counts are copies of items, and begin with the process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RingMember {
    /// Where it is: `host:port`.
    pub address: String,
    /// Whether it belongs to a ring; one that left may have a backlog.
    pub in_ring: bool,
    /// Whether it cannot take what comes, which goes to disk first.
    pub behind: bool,
    /// Its part of the keys of the default tenant, from 0 to 1, where it has one.
    pub share: Option<f64>,
    /// Requests under way.
    pub in_flight: u64,
    /// Copies that it took.
    pub delivered: u64,
    /// Copies that it never takes.
    pub rejected: u64,
    /// Copies that it did not store because of what it has, by reason.
    #[serde(serialize_with = "raw::by_name")]
    pub conflicts: Vec<(&'static str, u64)>,
    /// Attempts that failed.
    pub failures: u64,
    /// Bytes on disk that wait for it.
    pub handed_off_bytes: u64,
    /// Requests on disk that wait for it.
    pub handed_off_requests: u64,
    /// When the oldest of those data were received.
    #[serde(serialize_with = "raw::maybe_moment")]
    pub oldest: Option<SystemTime>,
    /// The last thing that went wrong, whether it is over or not.
    pub last_error: Option<LastError>,
}

/// The last error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastError {
    /// In words, without secrets.
    pub message: String,
    /// When.
    #[serde(serialize_with = "raw::moment")]
    pub at: SystemTime,
}

impl Sink {
    /// By how much it is late, when it is: behind for longer than is usual for it.
    pub fn late(&self) -> Option<Duration> {
        self.lag.age.filter(|age| *age > self.usual_lag)
    }
}

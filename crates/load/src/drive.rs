mod report;
mod sender;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tidegate_meters::{Buckets, Histogram};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

pub use report::LoadReport;

use crate::model::SeriesModel;
use crate::remote_write::{RequestExtras, Version};
use crate::target::Target;
use sender::{SenderPlan, send};

/// How to drive a target. Each connection owns a contiguous part of the series and sends them request by
/// request, pass after pass; so every series' samples are sent in order, by one connection.
#[derive(Clone, Debug)]
pub struct LoadProfile {
    /// Connections, each with one request in flight.
    pub connections: usize,
    /// Series in a request.
    pub series_per_request: usize,
    /// Samples of each series in a request.
    pub samples_per_series: u64,
    /// The number of the first sample: where an earlier run ended.
    pub first: u64,
    /// The protocol's version.
    pub version: Version,
    /// The contents of requests in addition to samples.
    pub extras: RequestExtras,
    /// When to end.
    pub limit: RunLimit,
    /// Requests per second of all connections together; as fast as answers come when `None`.
    pub rate: Option<f64>,
    /// The reaction to a refused or unanswered request.
    pub on_refused: OnRefused,
    /// How long an answer may take.
    pub answer_within: Duration,
    /// When to end in any case.
    pub deadline: Duration,
    /// Encode this many bodies per connection before starting, and send them again and again: for benches,
    /// where encoding would take the processor from what is measured. Nothing is entered as acknowledged.
    pub prebuilt: Option<usize>,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLimit {
    /// After each series was sent this many times.
    Passes(u64),
    /// After this many requests, answered or not.
    Requests(u64),
    /// After this long.
    Time(Duration),
}

/// The reaction to a refused or unanswered request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefused {
    /// Send it again after `Retry-After` (but at most after `at_most`), until it is accepted; a refusal that
    /// is final (4xx but 429) is only counted.
    Retry {
        /// The longest wait.
        at_most: Duration,
    },
    /// Count it and go on.
    Count,
}

impl Default for LoadProfile {
    fn default() -> Self {
        Self {
            connections: 4,
            series_per_request: 500,
            samples_per_series: 1,
            first: 0,
            version: Version::V1,
            extras: RequestExtras::default(),
            limit: RunLimit::Passes(1),
            rate: None,
            on_refused: OnRefused::Retry { at_most: Duration::from_secs(1) },
            answer_within: Duration::from_secs(30),
            deadline: Duration::from_secs(60),
            prebuilt: None,
        }
    }
}

/// Sends `model`'s samples to `target` as `profile` says. Always ends, at the profile's deadline at last.
pub async fn drive(target: &Target, model: &Arc<SeriesModel>, profile: &LoadProfile) -> LoadReport {
    let started = Instant::now();
    let latency = Histogram::new(Buckets::durations(), 8);
    let deadline = match profile.limit {
        RunLimit::Time(limit) => limit.min(profile.deadline),
        RunLimit::Passes(_) | RunLimit::Requests(_) => profile.deadline,
    };
    let mut senders = JoinSet::new();
    for plan in plans(target, model, profile, &latency) {
        senders.spawn(async move {
            let mut report = LoadReport::of(plan.series.len());
            // The report contains all requests sent so far, whether the sender ended or was ended.
            let _ended = timeout(deadline, Box::pin(send(&plan, &mut report))).await;
            (plan.series.start, report)
        });
    }
    let mut report = LoadReport::of(model.len());
    while let Some(sent) = senders.join_next().await {
        match sent {
            Ok((index, sent)) => report.merge(index, &sent),
            Err(_panicked) => report.failed += 1,
        }
    }
    report.elapsed = started.elapsed();
    report.latency = latency.summary();
    report
}

/// [`drive`] on a runtime of its own, on this thread.
///
/// # Errors
/// When the system has no means for a runtime.
pub fn drive_blocking(
    target: &Target,
    model: &Arc<SeriesModel>,
    profile: &LoadProfile,
) -> io::Result<LoadReport> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(drive(target, model, profile)))
}

fn plans(
    target: &Target,
    model: &Arc<SeriesModel>,
    profile: &LoadProfile,
    latency: &Histogram,
) -> Vec<SenderPlan> {
    let connections = profile.connections.clamp(1, model.len().max(1));
    let plan = |connection: usize| {
        let share = |n: usize| model.len() * n / connections;
        let requests = match profile.limit {
            // Spread so that the shares add up.
            RunLimit::Requests(all) => {
                let share = |n: u64| all * n / connections as u64;
                share(connection as u64 + 1) - share(connection as u64)
            }
            RunLimit::Passes(_) | RunLimit::Time(_) => u64::MAX,
        };
        SenderPlan {
            target: target.clone(),
            model: Arc::clone(model),
            profile: profile.clone(),
            series: share(connection)..share(connection + 1),
            requests,
            interval: profile.rate.map(|rate| Duration::from_secs_f64(connections as f64 / rate.max(1e-3))),
            latency: latency.clone(),
        }
    };
    (0..connections).map(plan).collect()
}

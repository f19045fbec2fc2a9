//! The kinds of sinks: what the gateway asks of each, whatever it is.
//!
//! A kind is its file below and its line in [`of`]. The settings of a sink are its descriptor: the plan, the start, the
//! reload and the pages walk over the configured sinks and ask those.

mod blackhole;
mod derive;
pub(crate) mod elasticsearch;
mod http;
mod lake;
mod loki;
mod network;
mod otlp;
pub(crate) mod prometheus_remote_write;
mod splunk_hec;
mod spread;
pub(crate) mod thanos_receive;

use super::start::Starter;
use crate::Failure;
use std::path::Path;
use std::time::Duration;
use tidegate_arena::{Reservation, Share};
use tidegate_config::{HandoffSettings, Sink};
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{Need, Probe};

/// The interface of a sink's settings.
pub(crate) trait SinkKind {
    /// Where it sends, for people: without secrets.
    fn target(&self, data: &Path) -> String;

    /// How it is started, and where it runs.
    fn starter(&self) -> Starter;

    /// Its memory for records of this protocol and signal; `None` if it does not accept them, or needs none.
    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need>;

    /// The lines of the plan for what it takes beside payload.
    fn declared(&self) -> Vec<Reservation> {
        Vec::new()
    }

    /// How many files it has open, beside those of every sink.
    fn files(&self) -> u64 {
        0
    }

    /// How it keeps on disk what members cannot take now, if it has members.
    fn handoff(&self) -> Option<&HandoffSettings> {
        None
    }

    /// How much of its `part` of the memory it leaves to what waits on disk for members; records of the journal have the rest. All in
    /// bytes.
    fn log_reserve(&self, _part: usize) -> usize {
        0
    }

    /// The share charged for its payload: part of the lake's or of that for all others.
    fn share(&self) -> Share {
        Share::Egress
    }

    /// The largest item that it can take when the lake writer's slice has so many bytes, whatever `need` says.
    fn largest_item(&self, _slice: u64) -> usize {
        usize::MAX
    }

    /// Whether its pipeline relabels the series that it translates OTLP to.
    fn relabels_translated(&self) -> bool {
        false
    }

    /// Requests that show whether its peers take what it sends, and that store nothing.
    ///
    /// # Errors
    /// When its settings cannot be used.
    fn probes(&self) -> Result<Vec<Probe>, Failure> {
        Ok(Vec::new())
    }

    /// How far behind it is when all is well.
    fn usual_lag(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// The descriptor of a sink. A line for each kind: nothing else in the gateway tells them apart.
pub(crate) fn of(sink: &Sink) -> &dyn SinkKind {
    match sink {
        Sink::Lake(settings) => settings,
        Sink::PrometheusRemoteWrite(settings) => settings,
        Sink::Otlp(settings) => settings,
        Sink::Elasticsearch(settings) => settings,
        Sink::Http(settings) => settings,
        Sink::SplunkHec(settings) => settings,
        Sink::Loki(settings) => settings,
        Sink::ThanosReceive(settings) => settings,
        Sink::Derive(settings) => settings,
        Sink::Blackhole(settings) => settings,
    }
}

/// A line of the plan for what a sink takes, which `setting` makes smaller.
fn line(what: &'static str, count: u64, each: u64, setting: Option<&'static str>) -> Reservation {
    Reservation { owner: "sink", what, count, each, setting }
}

mod blackhole;
mod elasticsearch;
mod lake;
mod otlp;
mod prometheus_remote_write;

pub use blackhole::BlackholeSink;
pub use elasticsearch::{BulkCompression, ElasticsearchSink, Mapping, Product};
pub use lake::{LakeSink, Retention};
pub use otlp::{Compression, OtlpSink, OtlpTransport, Tls};
pub use prometheus_remote_write::{Backoff, Deltas, Naming, Protocol, RemoteWriteSink, Translation};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Journal, WhenFull};
use crate::checks::SinkCheck;
use crate::declare::{choices, kinds};
use crate::values::{HeaderName, Secret, Url};

kinds! {
    /// Where everything goes.
    pub enum Sink: SinkSettings {
        /// Parquet files in folders by the hour in which it was received, for DuckDB, Trino and `tidegate lake cat`.
        Lake(LakeSink) = "lake",
        /// Anything that takes Prometheus remote write: Prometheus, Mimir, Thanos, VictoriaMetrics,
        /// another tidegate.
        PrometheusRemoteWrite(RemoteWriteSink) = "prometheus_remote_write",
        /// Anything that takes OTLP: an OpenTelemetry Collector, a vendor, another tidegate.
        Otlp(OtlpSink) = "otlp",
        /// Elasticsearch 8 and 9, and OpenSearch.
        Elasticsearch(ElasticsearchSink) = "elasticsearch",
        /// Takes everything and forgets it: for measuring and for trying things out.
        Blackhole(BlackholeSink) = "blackhole",
    }
}

choices! {
    /// A kind of telemetry.
    pub enum Signal is "a signal" {
        /// Spans; transactions and spans of Elastic APM.
        Traces = "traces",
        /// Samples, histograms and their metadata; metricsets of Elastic APM.
        Metrics = "metrics",
        /// Log records and documents; errors and logs of Elastic APM.
        Logs = "logs",
        /// Profiles.
        Profiles = "profiles",
    }
}

/// What the rest of the program asks of the settings of a sink, whatever its kind.
pub(crate) trait SinkSettings {
    /// The signals that it takes; everything else passes it by.
    fn signals(&self) -> &[Signal];

    /// What happens to what it has not sent when the journal is full.
    fn when_full(&self, journal: &Journal) -> WhenFull {
        journal.when_full
    }

    /// Where it sends, if that is over the network.
    fn outbound(&self) -> Option<Outbound<'_>> {
        None
    }

    /// The folder that is this sink's alone, if it has one, when `data` is the data folder.
    fn folder(&self, _data: &Path) -> Option<PathBuf> {
        None
    }

    /// Finds values that are each valid, but not beside each other, and that only this kind has.
    fn check(&self, _check: &mut SinkCheck<'_>) {}
}

/// Where a sink sends, and what it shows there.
pub(crate) struct Outbound<'a> {
    /// The setting with the URLs.
    pub(crate) setting: &'static str,
    pub(crate) urls: &'a [Url],
    /// The settings with credentials, beside `headers`.
    pub(crate) credentials: Vec<&'static str>,
    pub(crate) headers: &'a BTreeMap<HeaderName, Secret>,
    pub(crate) tenant_header: Option<&'a HeaderName>,
    pub(crate) backoff: &'a Backoff,
    pub(crate) tls: Option<&'a Tls>,
    /// Whether credentials may be sent without TLS.
    pub(crate) insecure: bool,
}

impl Sink {
    /// The signals that it takes; everything else passes it by.
    pub fn signals(&self) -> &[Signal] {
        self.settings().signals()
    }

    /// What happens to what it has not sent when the journal is full.
    pub fn when_full(&self, journal: &Journal) -> WhenFull {
        self.settings().when_full(journal)
    }

    /// The URLs that it sends to; none where that is not over the network.
    pub fn urls(&self) -> &[Url] {
        self.settings().outbound().map_or(&[], |outbound| outbound.urls)
    }
}

mod blackhole;
mod delivery;
mod derive;
mod discovery;
mod elasticsearch;
mod handoff;
mod http;
mod lake;
mod loki;
mod otlp;
mod prometheus_remote_write;
mod sink_routing;
mod splunk_hec;
mod thanos_receive;

pub use blackhole::BlackholeSink;
pub use delivery::{Backoff, Delivery, Tls};
pub use derive::DeriveSink;
pub use discovery::DiscoverySettings;
pub use elasticsearch::{BulkCompression, ElasticsearchSink, Mapping, Product};
pub use handoff::{HandoffFull, HandoffSettings};
pub use http::{HttpFormat, HttpMethod, HttpSink};
pub use lake::{LakeSink, Retention};
pub use loki::LokiSink;
pub use otlp::{Compression, OtlpSink, OtlpTransport, RouteBy};
pub use prometheus_remote_write::{
    Deltas, Naming, Protocol, RemoteWriteCompression, RemoteWriteSink, Translation,
};
pub use sink_routing::SinkRouting;
pub use splunk_hec::SplunkHecSink;
pub use thanos_receive::{HashringAlgorithm, IngestorVersion, ThanosCompression, ThanosReceiveSink};

use std::path::{Path, PathBuf};

use super::{Journal, RelabelRule, SinkSample, WhenFull};
use crate::checks::SinkCheck;
use crate::declare::{choices, kinds};
use crate::values::{Name, Url};

kinds! {
    /// Destinations.
    pub enum Sink: SinkSettings {
        /// Parquet files in folders by hour of receipt, for DuckDB, Trino and `tidegate lake cat`.
        Lake(LakeSink) = "lake",
        /// A Prometheus remote write receiver: Prometheus, Mimir, Thanos, VictoriaMetrics, another tidegate.
        PrometheusRemoteWrite(RemoteWriteSink) = "prometheus_remote_write",
        /// An OTLP receiver: an OpenTelemetry Collector, a vendor, another tidegate.
        Otlp(OtlpSink) = "otlp",
        /// Elasticsearch 8 and 9, and OpenSearch.
        Elasticsearch(ElasticsearchSink) = "elasticsearch",
        /// An HTTP server that takes JSON: Vector, Fluent Bit, Logstash, ClickHouse, a Collector, an application.
        Http(HttpSink) = "http",
        /// Splunk's HTTP Event Collector, for logs.
        SplunkHec(SplunkHecSink) = "splunk_hec",
        /// Loki, by its push API: log records only.
        Loki(LokiSink) = "loki",
        /// Ingestors of Thanos Receive, spread by its hashrings: what its router does.
        ThanosReceive(ThanosReceiveSink) = "thanos_receive",
        /// Metrics derived from spans, log records and data points: calls and durations of spans, counts, sums of values.
        Derive(DeriveSink) = "derive",
        /// Discards everything: for measurements and trials.
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

/// The settings that all kinds of sinks have in common.
pub(crate) trait SinkSettings {
    /// The signals that it receives; the sink skips everything else.
    fn signals(&self) -> &[Signal];

    /// The items that it takes, and the pipeline that they pass; `None` for one that takes everything without being asked about.
    fn routing(&self) -> Option<&SinkRouting>;

    /// The pipeline that items pass on their way to it.
    fn pipeline(&self) -> Option<&Name> {
        self.routing().and_then(|routing| routing.pipeline.as_ref())
    }

    /// The part of the traces that it takes; `None` for all.
    fn sample(&self) -> Option<&SinkSample> {
        None
    }

    /// Its settings, if it is a sink that derives metrics.
    fn derive(&self) -> Option<&DeriveSink> {
        None
    }

    /// Relabeling of everything that it sends, after its pipeline.
    fn relabel(&self) -> &[RelabelRule] {
        &[]
    }

    /// Its network destination, if it has one.
    fn outbound(&self) -> Option<Outbound<'_>> {
        None
    }

    /// The folder that only this sink uses, if it has one; `data` is the data folder.
    fn folder(&self, _data: &Path) -> Option<PathBuf> {
        None
    }

    /// Reports values that are valid alone but conflict with each other, for this kind only.
    fn check(&self, _check: &mut SinkCheck<'_>) {}
}

/// The network destination of a sink and its credentials.
pub(crate) struct Outbound<'a> {
    /// The setting with the URLs.
    pub(crate) setting: &'static str,
    pub(crate) urls: &'a [Url],
    /// The settings with credentials, beside `headers`.
    pub(crate) credentials: Vec<&'static str>,
    pub(crate) delivery: &'a Delivery,
}

impl Sink {
    /// The signals that it receives; the sink skips everything else.
    pub fn signals(&self) -> &[Signal] {
        self.settings().signals()
    }

    /// The part of the traces that it takes; `None` for all.
    pub fn sample(&self) -> Option<&SinkSample> {
        self.settings().sample()
    }

    /// The settings of a sink that derives metrics.
    pub fn derive(&self) -> Option<&DeriveSink> {
        self.settings().derive()
    }

    /// Behaviour of its unsent data when the journal is full.
    pub fn when_full(&self, journal: &Journal) -> WhenFull {
        let own = self.settings().outbound().and_then(|outbound| outbound.delivery.when_full);
        own.unwrap_or(journal.when_full)
    }

    /// The TLS settings of a sink that sends over the network.
    pub fn tls(&self) -> Option<&Tls> {
        self.settings().outbound().map(|outbound| &outbound.delivery.tls)
    }

    /// Its URLs; none if it does not send over the network.
    pub fn urls(&self) -> &[Url] {
        self.settings().outbound().map_or(&[], |outbound| outbound.urls)
    }
}

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

use crate::declare::{choices, kinds};

kinds! {
    /// Where everything goes.
    pub enum Sink {
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
        /// Spans.
        Traces = "traces",
        /// Samples, histograms and their metadata.
        Metrics = "metrics",
        /// Log records.
        Logs = "logs",
        /// Profiles.
        Profiles = "profiles",
    }
}

impl Sink {
    /// The signals that it takes; everything else passes it by.
    pub fn signals(&self) -> &[Signal] {
        match self {
            Sink::Lake(lake) => &lake.signals,
            Sink::PrometheusRemoteWrite(_) => &[Signal::Metrics],
            Sink::Otlp(otlp) => &otlp.signals,
            Sink::Elasticsearch(elasticsearch) => &elasticsearch.signals,
            Sink::Blackhole(blackhole) => &blackhole.signals,
        }
    }
}

mod file;
mod fluent_forward;
mod journald;
mod kubernetes_logs;
mod source_pipeline;
mod syslog;

pub use file::{FileEncoding, FileFormat, FileInput, FileMultiline, FileSource, FileStart, OnLongLine};
pub use fluent_forward::FluentForwardSource;
pub use journald::{JournaldFields, JournaldInput, JournaldPriority, JournaldSource, JournaldStart};
pub use kubernetes_logs::{KubernetesApi, KubernetesLogsSource};
pub use source_pipeline::{Before, Source, SourcePipeline};
pub use syslog::{SyslogFormat, SyslogFraming, SyslogListener, SyslogSource};

use std::collections::BTreeMap;

use super::access::ListenerTls;
use crate::declare::{choices, settings};
use crate::values::{Bytes, Duration, Name};

settings! {
    /// The protocols received.
    pub struct Sources {
        /// OpenTelemetry: traces, metrics, logs and profiles, over HTTP at `/v1/traces`, `/v1/metrics`, `/v1/logs`
        /// and `/v1development/profiles`, and over gRPC.
        otlp: Source<OtlpSource> = Source::default(),
        /// Prometheus remote write 1.0 and 2.0, at `/api/v1/write` and `/api/v1/receive`.
        prometheus_remote_write: Source<RemoteWriteSource> = Source::default(),
        /// The part of the Elasticsearch API that shippers use: `_bulk`, and the requests that clients make before
        /// it. Served under the path `prefix`, and on a separate address if `listen.elasticsearch` is set.
        elasticsearch: Source<ElasticsearchSource> = Source::default(),
        /// Elastic APM: events from its agents at `/intake/v2/events`, agent configuration at `/config/v1/agents`,
        /// and server information at `/` for requests from agents.
        elastic_apm: Source<ElasticApmSource> = Source::default(),
        /// Log records from any HTTP client, under the path `path`: each line of `text/plain` and each object of
        /// `application/x-ndjson` and `application/json` becomes one record.
        http: Source<HttpLogsSource> = Source::default(),
        /// Log files. Without inputs there is no such source.
        file: Source<FileSource> = Source::default(),
        /// Loki's push API, at `/loki/api/v1/push`, for Promtail, Alloy, Fluent Bit, the Docker driver and client libraries.
        loki: Source<LokiSource> = Source::default(),
        /// Syslog over TCP, TLS, UDP and Unix sockets, each on an address of its own. Without listeners there is no such source.
        syslog: Source<SyslogSource> = Source::default(),
        /// Fluentd's forward protocol: log records from Fluentd, Fluent Bit and Fluentd's loggers. It listens only if `address` or
        /// `unix` is set.
        fluent_forward: Source<FluentForwardSource> = Source::default(),
        /// The systemd journal, read by `journalctl`. It is read only if there are `inputs`.
        journald: Source<JournaldSource> = Source::default(),
        /// Logs of the containers of a Kubernetes node, with the metadata of their pods. They are read only if `enabled` is set.
        kubernetes_logs: Source<KubernetesLogsSource> = Source::default(),
    }
}

impl Sources {
    /// The TLS settings of the addresses that sources have of their own, where they use TLS.
    pub(crate) fn tls(&self) -> impl Iterator<Item = &ListenerTls> {
        let forward = &self.fluent_forward;
        let of_forward = forward.address.iter().filter_map(|_| forward.tls.as_ref());
        self.syslog.tls().chain(of_forward)
    }
}

settings! {
    /// Prometheus remote write.
    pub struct RemoteWriteSource {
        /// Largest decompressed request. A larger one is answered 413.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(32),
        /// Most labels per series. A series with more is refused; the other series of its request are accepted.
        max_labels: u32 [1..=4096] = 1024,
        /// Longest label name. A series with a longer one is refused.
        max_label_name: Bytes [Bytes::new(16)..=Bytes::kib(64)] = Bytes::kib(4),
        /// Longest label value. A series with a longer one is refused.
        max_label_value: Bytes [Bytes::new(16)..=Bytes::mib(1)] = Bytes::kib(64),
    }
}

settings! {
    /// OpenTelemetry.
    pub struct OtlpSource {
        /// Largest request, both as sent and decompressed. A larger one is answered 413, or `RESOURCE_EXHAUSTED` over
        /// gRPC.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(64),
    }
}

settings! {
    /// Elasticsearch.
    pub struct ElasticsearchSource {
        /// Path prefix on the shared addresses. Clients send to `http://HOST:PORT` plus this prefix; clients that
        /// cannot have a path need `listen.elasticsearch`.
        prefix: String = "/elasticsearch".to_owned(),
        /// Version that it reports. Clients refuse servers older than themselves.
        version: String = "8.19.0".to_owned(),
        /// Largest request, both as sent and decompressed. A larger one is answered 413.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(64),
        /// When a `_bulk` request is acknowledged.
        acknowledge: Acknowledge = Acknowledge::Journal,
        /// With `acknowledge: destination`, the sink of type `elasticsearch` whose cluster answers. Default: the only sink of
        /// that type.
        destination: Option<Name> = None,
        /// With `acknowledge: destination`, how long the gateway sends items again that the cluster refuses with 429 or 503, or
        /// while no node can be reached, before it answers the client with 429 or 503. Clients retry themselves, so keep it
        /// below their timeouts: 10 s by default for the Python clients. A shorter `timeout` in a request's URL takes
        /// precedence.
        retry_for: Duration [Duration::milliseconds(0)..=Duration::seconds(30)] = Duration::seconds(5),
    }
}

choices! {
    /// When a `_bulk` request is acknowledged.
    pub enum Acknowledge is "a way to acknowledge" {
        /// The journal: the gateway answers when it has the items. Every sink gets them.
        Journal = "journal",
        /// The cluster of a sink of type `elasticsearch`: the client gets its answer to each item. Items of many clients share
        /// a request. Nothing is journalled, so other sinks do not get these items; while the cluster cannot be reached,
        /// clients are answered 503.
        Destination = "destination",
    }
}

settings! {
    /// Elastic APM.
    pub struct ElasticApmSource {
        /// Largest request, both as sent and decompressed. A larger one is answered 413.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(64),
        /// Longest line of a request. A longer one is refused; the other lines are accepted.
        max_event: Bytes [Bytes::kib(1)..=Bytes::mib(64)] = Bytes::kib(300),
        /// Version of APM Server reported to agents. From 8.0 on, agents do not send unsampled transactions.
        version: String = "8.19.0".to_owned(),
        /// Agents in browsers (RUM).
        rum: RumSource = RumSource::default(),
        /// Central configuration for agents: one named entry per service and environment. The most specific entry
        /// applies; the service takes precedence over the environment.
        agents: BTreeMap<Name, ApmAgents> = BTreeMap::new(),
    }
}

settings! {
    /// Log records in JSON or plain text.
    pub struct HttpLogsSource {
        /// The path of this source.
        path: String = "/ingest/logs".to_owned(),
        /// Largest request, both as sent and decompressed. A larger one is answered 413.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(16),
    }
}

settings! {
    /// Loki's push API.
    pub struct LokiSource {
        /// Largest decompressed request. A larger one is answered 413.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(16),
    }
}

settings! {
    /// Elastic APM in browsers, whose agents have no credentials.
    pub struct RumSource {
        /// Whether to accept them, at `/intake/v2/rum/events`. Otherwise they are answered 403.
        enabled: bool = false,
        /// Events per second and client address, with bursts of three times as many. More are answered 429.
        events_per_second: u32 [1..=1_000_000] = 300,
        /// Whether to accept them without credentials, even if `access.credentials_file` requires credentials from
        /// other clients. Such events belong to the default tenant; a tenant header is ignored.
        anonymous: bool = true,
        /// Names of the agents accepted without credentials, as reported by the agents. Others are answered 403.
        anonymous_agents: Vec<String> = vec!["rum-js".to_owned(), "js-base".to_owned()],
    }
}

settings! {
    /// Configuration for the agents of a service.
    pub struct ApmAgents {
        /// The service; empty: every service not named in another entry.
        service: String = String::new(),
        /// The environment; empty: every environment not named in another entry.
        environment: String = String::new(),
        /// Settings under the agents' own names, such as `transaction_sample_rate`.
        settings: BTreeMap<Name, String> = BTreeMap::new(),
    }
}

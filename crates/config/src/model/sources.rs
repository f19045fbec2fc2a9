use std::collections::BTreeMap;

use crate::declare::settings;
use crate::values::{Bytes, Name};

settings! {
    /// What is received.
    pub struct Sources {
        /// OpenTelemetry: traces, metrics, logs and profiles, over HTTP at `/v1/traces`, `/v1/metrics`, `/v1/logs`
        /// and `/v1development/profiles`, and over gRPC.
        otlp: OtlpSource = OtlpSource::default(),
        /// Prometheus remote write 1.0 and 2.0, at `/api/v1/write` and `/api/v1/receive`.
        prometheus_remote_write: RemoteWriteSource = RemoteWriteSource::default(),
        /// Elasticsearch, as far as those go who send documents to it: `_bulk`, and what clients ask before they send.
        /// Under the path `prefix`, and on an address of its own where `listen.elasticsearch` gives one.
        elasticsearch: ElasticsearchSource = ElasticsearchSource::default(),
        /// Elastic APM: the intake of its agents at `/intake/v2/events`, their configuration at `/config/v1/agents`, and
        /// who is there at `/` for those who say that they are agents.
        elastic_apm: ElasticApmSource = ElasticApmSource::default(),
        /// Log records from whatever can send HTTP, under the path `path`: each line of `text/plain` and each object of
        /// `application/x-ndjson` and `application/json` is one.
        http: HttpLogsSource = HttpLogsSource::default(),
    }
}

settings! {
    /// Prometheus remote write.
    pub struct RemoteWriteSource {
        /// The largest request, measured when decompressed. A larger one is answered 413.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(32),
        /// The most labels of a series. A series with more is refused; the others of its request are not.
        max_labels: u32 [1..=4096] = 1024,
        /// The longest name of a label, likewise.
        max_label_name: Bytes [Bytes::new(16)..=Bytes::kib(64)] = Bytes::kib(4),
        /// The longest value of a label, likewise.
        max_label_value: Bytes [Bytes::new(16)..=Bytes::mib(1)] = Bytes::kib(64),
    }
}

settings! {
    /// OpenTelemetry.
    pub struct OtlpSource {
        /// The largest request, as sent and when decompressed. A larger one is answered 413, or
        /// `RESOURCE_EXHAUSTED` over gRPC.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(64),
    }
}

settings! {
    /// Elasticsearch.
    pub struct ElasticsearchSource {
        /// The path under which it is served beside the other sources. Clients send to `http://HOST:PORT` and this;
        /// those that cannot have a path need `listen.elasticsearch`.
        prefix: String = "/elasticsearch".to_owned(),
        /// The version that it says it has. Clients refuse those that are older than themselves.
        version: String = "8.19.0".to_owned(),
        /// The largest request, as sent and when decompressed. A larger one is answered 413.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(64),
    }
}

settings! {
    /// Elastic APM.
    pub struct ElasticApmSource {
        /// The largest request, as sent and when decompressed. A larger one is answered 413.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(64),
        /// The longest line of a request. A longer one is refused; those around it are not.
        max_event: Bytes [Bytes::kib(1)..=Bytes::mib(64)] = Bytes::kib(300),
        /// The version of APM Server that agents are told. From 8.0 on they do not send what is not sampled.
        version: String = "8.19.0".to_owned(),
        /// Agents in browsers.
        rum: RumSource = RumSource::default(),
        /// What agents are told to do, for each service and environment under a name of its own. The most specific one
        /// counts, the service before the environment.
        agents: BTreeMap<Name, ApmAgents> = BTreeMap::new(),
    }
}

settings! {
    /// Log records in JSON or plain text.
    pub struct HttpLogsSource {
        /// The path under which it is served.
        path: String = "/ingest/logs".to_owned(),
        /// The largest request, as sent and when decompressed. A larger one is answered 413.
        max_body: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(16),
    }
}

settings! {
    /// Elastic APM in browsers, whose agents have no secret by which to know them.
    pub struct RumSource {
        /// Whether they are heard, at `/intake/v2/rum/events`. Otherwise they are answered 403.
        enabled: bool = false,
        /// How many events a second one address may send, and three times as many at once. More are answered 429.
        events_per_second: u32 [1..=1_000_000] = 300,
        /// Whether they are heard without credentials where `access.credentials_file` asks everybody else for them. Such
        /// events belong to the default tenant, whatever a header says.
        anonymous: bool = true,
        /// The agents that are heard without credentials, by the names that they give themselves. Others are answered
        /// 403.
        anonymous_agents: Vec<String> = vec!["rum-js".to_owned(), "js-base".to_owned()],
    }
}

settings! {
    /// What the agents of a service are told.
    pub struct ApmAgents {
        /// The service; every one that is not named elsewhere when this is empty.
        service: String = String::new(),
        /// The environment; every one that is not named elsewhere when this is empty.
        environment: String = String::new(),
        /// Settings by the names under which agents take them, such as `transaction_sample_rate`.
        settings: BTreeMap<Name, String> = BTreeMap::new(),
    }
}

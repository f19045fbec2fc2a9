use super::{Delivery, Outbound, Signal, SinkRouting, SinkSample, SinkSettings};
use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::values::{Bytes, Duration, IndexPattern, Secret, Url};

settings! {
    /// Elasticsearch or OpenSearch.
    pub struct ElasticsearchSink with delivery: Delivery, routing: SinkRouting {
        /// The nodes: one, or several of the same cluster. Requests rotate between them; a failing node is left out
        /// until it answers again. A URL may have a path before `/_bulk`. A node on another machine is reached
        /// through the proxy in the environment variable `http_proxy` or `https_proxy`, unless `no_proxy` names the node.
        endpoints: Vec<Url>,
        /// The product that the nodes run.
        product: Product = Product::Elasticsearch,
        /// API key, base64-encoded as Elasticsearch issues it.
        api_key: Option<Secret> = None,
        /// User name, if there is no `api_key`.
        user: Option<String> = None,
        /// Password of `user`.
        password: Option<Secret> = None,
        /// How requests are compressed. Requests with forwarded documents (`acknowledge: destination`) never are.
        compression: BulkCompression = BulkCompression::Gzip,
        /// Schema of the documents made from OpenTelemetry signals and Elastic APM events. Documents received over
        /// `_bulk` stay unchanged.
        mapping: Mapping = Mapping::Otel,
        /// Dataset for data without one: the middle part of the data stream's name.
        dataset: String = "generic".to_owned(),
        /// Namespace for data without one: the last part of the data stream's name.
        namespace: String = "default".to_owned(),
        /// Pattern for index names, for example `telemetry-{service.name}-{yyyy.MM.dd}`: documents made by tidegate
        /// go to this index instead of a data stream, and always have an `_id`. The date comes from the document's
        /// timestamp. Field values are converted to lower case; characters not allowed in an index name become `_`.
        index: Option<IndexPattern> = None,
        /// Whether documents without an `_id` get one, derived from their position in the journal. Retries then
        /// create no duplicates. Elasticsearch indexes documents without `_id` somewhat faster.
        ids: bool = true,
        /// Whether metric documents get an `_id`, too. Elasticsearch's time series data streams reject it.
        metric_ids: bool = true,
        /// Signals to send; the sink skips everything else. Profiles cannot be sent as documents.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs],
        /// Most concurrent requests; times `max_request_bytes` this is the most bytes in flight. The actual number
        /// adapts to the nodes' response times.
        max_in_flight: u32 [1..=64] = 4,
        /// Largest request before compression. Queued documents are batched up to this size.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::mib(100)] = Bytes::mib(8),
        /// How long an incomplete batch waits for more data.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::milliseconds(200),
        /// Response timeout; after it the request is retried.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(60),
        /// The part of the traces that it takes, decided when they are complete. Default: all.
        sample: Option<SinkSample> = None,
    }
}

choices! {
    /// The product behind the `_bulk` API.
    pub enum Product is "a product" {
        /// Elasticsearch 8 and 9.
        Elasticsearch = "elasticsearch",
        /// OpenSearch 2 and 3.
        OpenSearch = "opensearch",
    }
}

choices! {
    /// How requests are compressed.
    pub enum BulkCompression is "a compression" {
        /// No compression.
        None = "none",
        /// gzip.
        Gzip = "gzip",
    }
}

choices! {
    /// The schema of documents.
    pub enum Mapping is "a mapping" {
        /// The schema of the OpenTelemetry Collector's mapping mode `otel`.
        Otel = "otel",
        /// The Elastic Common Schema, as written by Elastic APM.
        Ecs = "ecs",
    }
}

impl SinkSettings for ElasticsearchSink {
    fn routing(&self) -> Option<&SinkRouting> {
        Some(&self.routing)
    }

    fn sample(&self) -> Option<&SinkSample> {
        self.sample.as_ref()
    }

    fn signals(&self) -> &[Signal] {
        &self.signals
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        let credentials = [("api_key", self.api_key.is_some()), ("password", self.password.is_some())];
        let credentials =
            credentials.into_iter().filter_map(|(setting, is_given)| is_given.then_some(setting));
        Some(Outbound {
            setting: "endpoints",
            urls: &self.endpoints,
            credentials: credentials.collect(),
            delivery: &self.delivery,
        })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        check.no_query(&self.endpoints);
        let name = check.name;
        if self.user.is_some() != self.password.is_some() {
            let there = if self.user.is_some() { "user" } else { "password" };
            let message = format!("`sinks.{name}` has a `{there}` but not the other one");
            check.clash(there, message, "set `user` and `password` together, or an `api_key`");
        }
        if self.user.is_some() && self.api_key.is_some() {
            let message = format!("`sinks.{name}` has an `api_key` and a `user`");
            check.clash("user", message, "remove one of them");
        }
        if self.signals.contains(&Signal::Profiles) {
            let message =
                format!("`sinks.{name}.signals` contains profiles, which cannot be sent as documents");
            check.clash("signals", message, "remove them; a sink of type `otlp` accepts profiles");
        }
        if let Some((setting, _)) = [("dataset", &self.dataset), ("namespace", &self.namespace)]
            .into_iter()
            .find(|(_, part)| !is_stream_part(part))
        {
            let message = format!("`sinks.{name}.{setting}` cannot be a part of a data stream's name");
            check.clash(setting, message, "at most 100 bytes of lower case letters, digits, `_` and `.`");
        }
    }
}

/// Whether a text is valid as the dataset or namespace of a data stream.
fn is_stream_part(text: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'.';
    !text.is_empty() && text.len() <= 100 && text.bytes().all(allowed)
}

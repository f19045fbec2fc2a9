use std::collections::BTreeMap;

use super::{Backoff, Outbound, Signal, SinkSettings, Tls};
use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::model::{Journal, WhenFull};
use crate::values::{Bytes, Duration, HeaderName, IndexPattern, Secret, Url};

settings! {
    /// Elasticsearch or OpenSearch.
    pub struct ElasticsearchSink {
        /// The nodes, one or several of the same cluster: requests go to them in turn, and one that fails is left out
        /// until it answers again. A path before `/_bulk` may be given. An `https` one on another machine is reached
        /// through the proxy that the environment names in `HTTPS_PROXY`, unless `NO_PROXY` names it.
        endpoints: Vec<Url>,
        /// What the nodes are.
        product: Product = Product::Elasticsearch,
        /// The API key to show, as Elasticsearch gives it: encoded in base64.
        api_key: Option<Secret> = None,
        /// The user to be, where there is no `api_key`.
        user: Option<String> = None,
        /// The password of `user`.
        password: Option<Secret> = None,
        /// How requests are compressed.
        compression: BulkCompression = BulkCompression::Gzip,
        /// How documents are made of OpenTelemetry's signals and of Elastic APM's events. What came as documents
        /// stays as it is.
        mapping: Mapping = Mapping::Otel,
        /// The dataset of what does not name one: it becomes the middle of the data stream's name.
        dataset: String = "generic".to_owned(),
        /// The namespace of what does not name one: it becomes the end of the data stream's name.
        namespace: String = "default".to_owned(),
        /// A pattern for names of indexes, for example `telemetry-{service.name}-{yyyy.MM.dd}`: what is made here goes
        /// there instead of to data streams, with an `_id` always. The date is that of the document's time. What
        /// fields say becomes lower case, with `_` for what a name may not have.
        index: Option<IndexPattern> = None,
        /// Whether documents without an `_id` get one, made of their place in the journal. What has to be sent again
        /// then makes no duplicates. Elasticsearch takes documents without it somewhat faster.
        ids: bool = true,
        /// Whether documents of metrics get one, too. Time series data streams of Elasticsearch refuse it.
        metric_ids: bool = true,
        /// What is sent; the sink passes over everything else. Profiles have no documents.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs],
        /// The most requests in flight at once; `max_request_bytes` times that is the most bytes. How many there are
        /// follows from how fast the nodes answer.
        max_in_flight: u32 [1..=64] = 4,
        /// The largest request, measured before compression. Queued documents are joined up to this.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::mib(100)] = Bytes::mib(8),
        /// How long to wait for more before a request that is not full is sent.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::milliseconds(200),
        /// How long an answer may take before the request is sent again.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(60),
        /// How long to wait between attempts.
        backoff: Backoff = Backoff::default(),
        /// Headers to add to every request. Their values are never shown.
        headers: BTreeMap<HeaderName, Secret> = BTreeMap::new(),
        /// A header that says whose data a request carries, for example `X-Scope-OrgID`: the name of the tenant with
        /// which the data came. What came without one is sent without the header.
        tenant_header: Option<HeaderName> = None,
        /// Whom to trust and who to be, for endpoints that begin with `https`.
        tls: Tls = Tls::default(),
        /// Whether keys, passwords and tokens may go to another machine over plain `http`: everybody on the way can read
        /// them. Only where the network itself is trusted.
        insecure: bool = false,
        /// What happens when this sink is so far behind that the journal is full. Without it: as
        /// `journal.when_full` says.
        when_full: Option<WhenFull> = None,
    }
}

choices! {
    /// What speaks Elasticsearch's protocol.
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
        /// Not at all.
        None = "none",
        /// gzip.
        Gzip = "gzip",
    }
}

choices! {
    /// The shape of documents.
    pub enum Mapping is "a mapping" {
        /// OpenTelemetry's own words, as in the Collector's mode `otel`.
        Otel = "otel",
        /// The Elastic Common Schema, as Elastic APM writes.
        Ecs = "ecs",
    }
}

impl SinkSettings for ElasticsearchSink {
    fn signals(&self) -> &[Signal] {
        &self.signals
    }

    fn when_full(&self, journal: &Journal) -> WhenFull {
        self.when_full.unwrap_or(journal.when_full)
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        let credentials = [("api_key", self.api_key.is_some()), ("password", self.password.is_some())];
        let credentials =
            credentials.into_iter().filter_map(|(setting, is_given)| is_given.then_some(setting));
        Some(Outbound {
            setting: "endpoints",
            urls: &self.endpoints,
            credentials: credentials.collect(),
            headers: &self.headers,
            tenant_header: self.tenant_header.as_ref(),
            backoff: &self.backoff,
            tls: Some(&self.tls),
            insecure: self.insecure,
        })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        let name = check.name;
        if self.user.is_some() != self.password.is_some() {
            let there = if self.user.is_some() { "user" } else { "password" };
            let message = format!("`sinks.{name}` has a `{there}` alone");
            check.clash(there, message, "give `user` and `password` together, or an `api_key`");
        }
        if self.user.is_some() && self.api_key.is_some() {
            let message = format!("`sinks.{name}` has an `api_key` and a `user`");
            check.clash("user", message, "one of them is enough: take the other out");
        }
        if self.signals.contains(&Signal::Profiles) {
            let message = format!("`sinks.{name}.signals` has profiles, of which there are no documents");
            check.clash("signals", message, "leave them out; a sink of type `otlp` takes them");
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

/// Whether a text can be the dataset or the namespace of a data stream.
fn is_stream_part(text: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'.';
    !text.is_empty() && text.len() <= 100 && text.bytes().all(allowed)
}

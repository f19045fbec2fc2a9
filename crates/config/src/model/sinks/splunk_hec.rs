use super::{BulkCompression, Delivery, Outbound, Signal, SinkRouting, SinkSettings};
use crate::checks::SinkCheck;
use crate::declare::settings;
use crate::values::{Bytes, Duration, Secret, Url};

settings! {
    /// Splunk's HTTP Event Collector. Receives logs only.
    pub struct SplunkHecSink with delivery: Delivery, routing: SinkRouting {
        /// The URLs: one, or several equivalent ones. Requests rotate between them; a failing endpoint is left out until it
        /// answers again. `/services/collector/event` is appended to the path unless it ends so. An endpoint on another
        /// machine is reached through the proxy in the environment variable `http_proxy` or `https_proxy`, unless `no_proxy`
        /// names the endpoint.
        endpoints: Vec<Url>,
        /// The token of the collector's input.
        token: Secret,
        /// Value of `host` for events without `host_attribute`. Default: Splunk uses the address of the connection.
        host: Option<String> = None,
        /// Value of `source` for events without `source_attribute`. Default: the token's.
        source: Option<String> = None,
        /// Value of `sourcetype` for events without `sourcetype_attribute`. Default: the token's.
        sourcetype: Option<String> = None,
        /// Value of `index` for events without `index_attribute`. Default: the token's.
        index: Option<String> = None,
        /// Attribute of the log record, or of its resource, that becomes `host`.
        host_attribute: String = "host.name".to_owned(),
        /// Attribute that becomes `source`.
        source_attribute: String = "com.splunk.source".to_owned(),
        /// Attribute that becomes `sourcetype`.
        sourcetype_attribute: String = "com.splunk.sourcetype".to_owned(),
        /// Attribute that becomes `index`.
        index_attribute: String = "com.splunk.index".to_owned(),
        /// Whether events count as delivered only when Splunk has indexed them. The token needs indexer acknowledgment
        /// enabled. Requests are in flight until then: raise `max_in_flight` with it.
        acknowledgement: bool = false,
        /// How often Splunk is asked which events are indexed.
        acknowledgement_interval: Duration [Duration::milliseconds(10)..=Duration::minutes(1)] = Duration::seconds(1),
        /// Events that are not indexed within this time are sent again.
        acknowledgement_timeout: Duration [Duration::seconds(1)..=Duration::minutes(60)] = Duration::minutes(5),
        /// How requests are compressed.
        compression: BulkCompression = BulkCompression::Gzip,
        /// Most concurrent requests. The actual number adapts to the collector's response times.
        max_in_flight: u32 [1..=256] = 8,
        /// Largest request before compression. Queued events are batched up to this size; a larger event is sent alone.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::mib(512)] = Bytes::mib(2),
        /// How long an incomplete batch waits for more data.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::seconds(1),
        /// Response timeout; after it the request is retried.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(30),
    }
}

/// The longest default of a member of the metadata, in bytes: each event repeats it.
const MAX_METADATA: usize = 1024;

impl SinkSettings for SplunkHecSink {
    fn routing(&self) -> Option<&SinkRouting> {
        Some(&self.routing)
    }

    fn signals(&self) -> &[Signal] {
        &[Signal::Logs]
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        Some(Outbound {
            setting: "endpoints",
            urls: &self.endpoints,
            credentials: vec!["token"],
            delivery: &self.delivery,
        })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        check.no_query(&self.endpoints);
        let name = check.name;
        for (setting, value) in [
            ("host", &self.host),
            ("source", &self.source),
            ("sourcetype", &self.sourcetype),
            ("index", &self.index),
        ] {
            if value.as_ref().is_some_and(|value| value.is_empty() || value.len() > MAX_METADATA) {
                let message =
                    format!("`sinks.{name}.{setting}` is empty, or longer than {MAX_METADATA} bytes");
                check.clash(setting, message, "shorten it, or remove it");
            }
        }
    }
}

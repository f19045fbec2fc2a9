use super::{Delivery, DiscoverySettings, HandoffSettings, Outbound, Signal, SinkRouting, SinkSettings};
use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::model::RelabelRule;
use crate::setting::Sequence;
use crate::values::{Bytes, DnsUrl, Duration, ShardBy, Url};

settings! {
    /// A receiver of Prometheus remote write.
    pub struct RemoteWriteSink with delivery: Delivery, routing: SinkRouting {
        /// The receivers' URLs, with paths: one, or several equivalent ones. Requests rotate between them; a failing
        /// endpoint is left out for a while. With `shard_by` each has a part of the series instead. An endpoint on another machine is reached through the proxy in the
        /// environment variable `http_proxy` or `https_proxy`, unless `no_proxy` names the endpoint.
        endpoints: Option<Vec<Url>> = None,
        /// Short for `endpoints` with one URL.
        url: Option<Url> = None,
        /// Spreads series over the endpoints, by the hash of these labels: each series goes to the same endpoint always, and a changed
        /// list of endpoints moves few series. A series without any of the labels is placed by all of its labels. Requests are of
        /// version 1.0.
        shard_by: Option<ShardBy> = None,
        /// With `shard_by`: at how many endpoints each series is.
        replicas: u32 [1..=7] = 1,
        /// With `shard_by`: endpoints from DNS or a file.
        discovery: DiscoverySettings = DiscoverySettings::default(),
        /// With `shard_by`: the most endpoints at a time, for which memory is planned; others are not used. Default: twice as many as
        /// `endpoints` has, four at least, and 32 with `discovery`.
        max_members: Option<u32> [1..=10_000] = None,
        /// With `shard_by`: data that an endpoint cannot take now.
        handoff: HandoffSettings = HandoffSettings::default(),
        /// Protocol version to send.
        protocol: Protocol = Protocol::Auto,
        /// How requests are compressed. The protocol permits nothing else.
        compression: RemoteWriteCompression = RemoteWriteCompression::Snappy,
        /// Most concurrent requests. With more than one, series are assigned to lanes by hash, so each series still
        /// arrives in order. Default: `lanes`.
        max_in_flight: Option<u32> [1..=64] = None,
        /// Another name for `max_in_flight`: set only one of the two.
        lanes: u32 [1..=64] = 1,
        /// Largest request before compression. Queued requests are batched up to this size.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(8),
        /// Most samples in one request.
        max_request_samples: u32 [1..=10_000_000] = 20_000,
        /// How long an incomplete batch waits for more data.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::milliseconds(100),
        /// Response timeout; after it the request is retried.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(30),
        /// Translation of OTLP metrics to Prometheus series.
        otlp: Translation = Translation::default(),
        /// Prometheus relabeling of everything that this sink sends, after its `pipeline`.
        write_relabel_configs: Option<Sequence<RelabelRule>> = None,
    }
}

settings! {
    /// Translation of OTLP metrics to Prometheus series.
    pub struct Translation {
        /// Translation strategy for names.
        naming: Naming = Naming::UnderscoreEscapingWithSuffixes,
        /// Resource attributes that become labels of each series of the resource, for example `k8s.namespace.name`.
        promote: Option<Vec<String>> = None,
        /// Whether series have `otel_scope_…` labels from their instrumentation scope.
        scope_labels: bool = true,
        /// Whether to send a `target_info` series per resource, with its attributes as labels.
        target_info: bool = true,
        /// Treatment of delta sums and delta histograms. Non-monotonic delta sums and delta exponential histograms
        /// are refused either way.
        deltas: Deltas = Deltas::Refuse,
        /// Most delta series to accumulate; about 110 bytes each. A histogram counts as one series per bucket plus
        /// two. Points of further series are refused until others have been idle for an hour.
        delta_series: u32 [1..=100_000_000] = 10_000,
    }
}

choices! {
    /// Treatment of delta points.
    pub enum Deltas is "a way to treat deltas" {
        /// Drop and count them.
        Refuse = "refuse",
        /// Convert them to cumulative counters, which start again from zero when tidegate restarts.
        Accumulate = "accumulate",
    }
}

choices! {
    /// How metric names are translated, with Prometheus's names for the strategies.
    pub enum Naming is "a way to make names" {
        /// Invalid characters become `_`; units and `_total` are appended.
        UnderscoreEscapingWithSuffixes = "UnderscoreEscapingWithSuffixes",
        /// Invalid characters become `_`.
        UnderscoreEscapingWithoutSuffixes = "UnderscoreEscapingWithoutSuffixes",
        /// Names stay unchanged, with units and `_total` appended.
        NoUTF8EscapingWithSuffixes = "NoUTF8EscapingWithSuffixes",
        /// Names stay unchanged.
        NoTranslation = "NoTranslation",
    }
}

choices! {
    /// How remote write is compressed.
    pub enum RemoteWriteCompression is "a compression of remote write" {
        /// Snappy, in its block format.
        Snappy = "snappy",
    }
}

choices! {
    /// The version of Prometheus remote write to send.
    pub enum Protocol is "a protocol version" {
        /// As received; as 1.0 to a receiver without 2.0.
        Auto = "auto",
        /// Always 1.0.
        V1 = "1.0",
        /// 2.0; falls back to 1.0 if the receiver answers 415.
        V2 = "2.0",
    }
}

impl SinkSettings for RemoteWriteSink {
    fn routing(&self) -> Option<&SinkRouting> {
        Some(&self.routing)
    }

    fn relabel(&self) -> &[RelabelRule] {
        self.write_relabel_configs.as_deref().unwrap_or_default()
    }

    fn signals(&self) -> &[Signal] {
        &[Signal::Metrics]
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        Some(Outbound {
            setting: self.setting(),
            urls: self.endpoints(),
            credentials: Vec::new(),
            delivery: &self.delivery,
        })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        let (name, setting) = (check.name, self.setting());
        match (&self.endpoints, &self.url) {
            (Some(endpoints), Some(url)) if !endpoints.contains(url) => {
                let message = format!("`sinks.{name}.url` is not one of its `endpoints`");
                check.clash(
                    "url",
                    message,
                    "`url` is short for `endpoints` with one URL: set only one of the two",
                );
            }
            _ if self.endpoints().is_empty() && !(self.shard_by.is_some() && self.discovery.is_used()) => {
                let message = format!("`sinks.{name}` has no `endpoints`");
                let help =
                    "add `endpoints:` with a list of URLs, for example `http://127.0.0.1:9090/api/v1/write`";
                check.clash_or_sink("endpoints", message, help);
            }
            _ => {}
        }
        if self.max_in_flight.is_some_and(|most| self.lanes != 1 && self.lanes != most) {
            let message = format!("`sinks.{name}.lanes` is not its `max_in_flight`");
            check.clash(
                "lanes",
                message,
                "`lanes` is another name for `max_in_flight`: set only one of the two",
            );
        }
        match &self.shard_by {
            Some(_) => self.check_sharded(check),
            None => self.check_unsharded(check),
        }
        if self.endpoints().iter().any(|url| !url.path().starts_with('/')) {
            let message = format!("`sinks.{name}.{setting}` has no path");
            check.clash(setting, message, "add it; Prometheus takes remote write at `/api/v1/write`");
        }
    }
}

impl RemoteWriteSink {
    /// Reports settings that have no effect without `shard_by`.
    fn check_unsharded(&self, check: &mut SinkCheck<'_>) {
        let name = check.name;
        let unused = [
            ("replicas", self.replicas != 1),
            ("discovery", self.discovery != DiscoverySettings::default()),
            ("max_members", self.max_members.is_some()),
            ("handoff", self.handoff != HandoffSettings::default()),
        ];
        for (setting, _) in unused.into_iter().filter(|(_, is_set)| *is_set) {
            let message = format!("`sinks.{name}.{setting}` has no effect: its endpoints are equivalent");
            check.clash(setting, message, "set `shard_by`, for example to `all`, or take the setting out");
        }
    }

    /// Reports settings that do not go with `shard_by`.
    fn check_sharded(&self, check: &mut SinkCheck<'_>) {
        let name = check.name;
        self.handoff.check(self.max_request_bytes, check);
        if self.protocol == Protocol::V2 {
            let message = format!("`sinks.{name}` has `shard_by` and sends 2.0");
            check.clash("protocol", message, "spread series are sent as 1.0: take `protocol` out");
        }
        if self.max_in_flight() != 1 {
            let setting = if self.max_in_flight.is_some() { "max_in_flight" } else { "lanes" };
            let message = format!("`sinks.{name}` has `shard_by` and several requests in flight");
            check.clash(
                setting,
                message,
                "each endpoint is sent one request at a time: take the setting out",
            );
        }
        if self.otlp.deltas == Deltas::Accumulate {
            let message = format!("`sinks.{name}` has `shard_by` and accumulates deltas");
            check.clash("otlp", message, "take `deltas` out; deltas are dropped and counted");
        }
        if self.endpoints().len() < self.replicas as usize && !self.discovery.is_used() {
            let message = format!(
                "`sinks.{name}` has {} endpoints for {} replicas",
                self.endpoints().len(),
                self.replicas
            );
            check.clash_or_sink("replicas", message, "each replica is at another endpoint: add some");
        }
        if self.endpoints().len() > self.max_members() {
            let message = format!("`sinks.{name}` has more `endpoints` than `max_members`");
            check.clash("max_members", message, "raise it");
        }
        let found = self.discovery.dns.as_deref().unwrap_or_default();
        if found.iter().any(|url| !url.example().path().starts_with('/')) {
            let message = format!("`sinks.{name}.discovery` has a URL without a path");
            check.clash("discovery", message, "add it; Prometheus takes remote write at `/api/v1/write`");
        }
        check.no_cleartext("discovery", found.iter().map(DnsUrl::example), &self.delivery);
    }

    /// The most endpoints that are planned for, with `shard_by`.
    pub fn max_members(&self) -> usize {
        /// Fewer are not worth a refusal.
        const LEAST: usize = 4;
        /// Where nobody knows how many there will be.
        const DISCOVERED: usize = 32;
        let least = if self.discovery.is_used() { DISCOVERED } else { LEAST };
        self.max_members.map_or_else(|| (2 * self.endpoints().len()).max(least), |most| most as usize)
    }

    /// The receivers' URLs.
    pub fn endpoints(&self) -> &[Url] {
        match (&self.endpoints, &self.url) {
            (Some(endpoints), _) => endpoints,
            (None, url) => url.as_slice(),
        }
    }

    /// The most concurrent requests.
    pub fn max_in_flight(&self) -> u32 {
        self.max_in_flight.unwrap_or(self.lanes)
    }

    /// The setting with the URLs.
    fn setting(&self) -> &'static str {
        if self.endpoints.is_some() { "endpoints" } else { "url" }
    }
}

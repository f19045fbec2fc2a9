use super::{
    Delivery, DiscoverySettings, HandoffSettings, Outbound, Signal, SinkRouting, SinkSample, SinkSettings,
};
use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::values::{Bytes, DnsUrl, Duration, Url};

/// The signals that are sent by default.
const ALL_SIGNALS: [Signal; 4] = [Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles];
const MAX_IN_FLIGHT: u32 = 8;

settings! {
    /// A receiver of OTLP.
    pub struct OtlpSink with delivery: Delivery, routing: SinkRouting {
        /// The receivers: one, or several equivalent ones. Requests rotate between them; a failing endpoint is left
        /// out until it answers again. With `route_by` each has a part of the data instead. For HTTP, a URL may have a path before `/v1/traces`. An endpoint on another
        /// machine is reached through the proxy in the environment variable `http_proxy` or `https_proxy`, unless
        /// `no_proxy` names the endpoint.
        endpoints: Option<Vec<Url>> = None,
        /// Routes data to the endpoints by a key: all items with one key go to the same endpoint always, and a changed list of endpoints
        /// moves few keys. Only data that came as OTLP is sent. What the Collector's `loadbalancing` exporter calls `routing_key`.
        route_by: Option<RouteBy> = None,
        /// With `route_by`: at how many endpoints each item is.
        replicas: u32 [1..=7] = 1,
        /// With `route_by`: endpoints from DNS or a file.
        discovery: DiscoverySettings = DiscoverySettings::default(),
        /// With `route_by`: the most endpoints at a time, for which memory is planned; others are not used. Default: twice as many as
        /// `endpoints` has, four at least, and 32 with `discovery`.
        max_members: Option<u32> [1..=10_000] = None,
        /// With `route_by`: data that an endpoint cannot take now.
        handoff: HandoffSettings = HandoffSettings::default(),
        /// Transport protocol.
        protocol: OtlpTransport = OtlpTransport::Grpc,
        /// How requests are compressed.
        compression: Compression = Compression::Gzip,
        /// Whether the receivers accept a body of several gzip members or zstd frames. If so, compressed requests are
        /// batched without decompressing them.
        join_members: bool = false,
        /// Signals to send; the sink skips everything else. With `route_by`, the default is those that have the key.
        signals: Vec<Signal> = ALL_SIGNALS.to_vec(),
        /// Most concurrent requests. The actual number adapts to the receivers' response times. With `route_by` it is one for each
        /// endpoint, so that items with one key arrive in order.
        max_in_flight: u32 [1..=256] = MAX_IN_FLIGHT,
        /// Largest request before compression. Queued requests are batched up to this size.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(4),
        /// How long an incomplete batch waits for more data.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::milliseconds(100),
        /// Response timeout; after it the request is retried.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(10),
        /// The part of the traces that it takes, decided when they are complete. Default: all.
        sample: Option<SinkSample> = None,
    }
}

choices! {
    /// Keys that data is routed by.
    pub enum RouteBy is "a key to route by" {
        /// The trace id of spans and log records; log records without one go by their resource. Metrics have none.
        TraceId = "trace_id",
        /// The resource's `service.name`.
        Service = "service",
        /// All attributes of the resource.
        Resource = "resource",
        /// The name of a metric. Only metrics have one.
        Metric = "metric",
    }
}

impl RouteBy {
    /// The signals that have the key.
    fn signals(self) -> &'static [Signal] {
        match self {
            RouteBy::TraceId => &[Signal::Traces, Signal::Logs],
            RouteBy::Service | RouteBy::Resource => &[Signal::Traces, Signal::Metrics, Signal::Logs],
            RouteBy::Metric => &[Signal::Metrics],
        }
    }
}

choices! {
    /// Transports of OTLP.
    pub enum OtlpTransport is "a transport" {
        /// gRPC over HTTP/2.
        Grpc = "grpc",
        /// Protobuf over HTTP/1.1.
        Http = "http",
    }
}

choices! {
    /// How requests are compressed.
    pub enum Compression is "a compression" {
        /// No compression.
        None = "none",
        /// gzip, supported by every receiver.
        Gzip = "gzip",
        /// zstd: smaller and cheaper than gzip, if the receiver supports it.
        Zstd = "zstd",
    }
}

impl SinkSettings for OtlpSink {
    fn routing(&self) -> Option<&SinkRouting> {
        Some(&self.routing)
    }

    fn sample(&self) -> Option<&SinkSample> {
        self.sample.as_ref()
    }

    fn signals(&self) -> &[Signal] {
        match self.route_by {
            Some(key) if self.signals == ALL_SIGNALS => key.signals(),
            _ => &self.signals,
        }
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        Some(Outbound {
            setting: "endpoints",
            urls: self.endpoints(),
            credentials: Vec::new(),
            delivery: &self.delivery,
        })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        check.no_query(self.endpoints());
        if self.endpoints().is_empty() && !(self.route_by.is_some() && self.discovery.is_used()) {
            let message = format!("`sinks.{}` has no `endpoints`", check.name);
            let help = "add `endpoints:` with a list of URLs, for example `http://127.0.0.1:4317`";
            check.clash_or_sink("endpoints", message, help);
        }
        match self.route_by {
            Some(key) => self.check_routed(key, check),
            None => self.check_unrouted(check),
        }
    }
}

impl OtlpSink {
    /// The receivers' URLs.
    pub fn endpoints(&self) -> &[Url] {
        self.endpoints.as_deref().unwrap_or_default()
    }

    /// The most endpoints that are planned for, with `route_by`.
    pub fn max_members(&self) -> usize {
        /// Fewer are not worth a refusal.
        const LEAST: usize = 4;
        /// Where nobody knows how many there will be.
        const DISCOVERED: usize = 32;
        let least = if self.discovery.is_used() { DISCOVERED } else { LEAST };
        self.max_members.map_or_else(|| (2 * self.endpoints().len()).max(least), |most| most as usize)
    }

    /// Reports settings that have no effect without `route_by`.
    fn check_unrouted(&self, check: &mut SinkCheck<'_>) {
        let name = check.name;
        let unused = [
            ("replicas", self.replicas != 1),
            ("discovery", self.discovery != DiscoverySettings::default()),
            ("max_members", self.max_members.is_some()),
            ("handoff", self.handoff != HandoffSettings::default()),
        ];
        for (setting, _) in unused.into_iter().filter(|(_, is_set)| *is_set) {
            let message = format!("`sinks.{name}.{setting}` has no effect: its endpoints are equivalent");
            check.clash(
                setting,
                message,
                "set `route_by`, for example to `trace_id`, or take the setting out",
            );
        }
    }

    /// Reports settings that do not go with `route_by`.
    fn check_routed(&self, key: RouteBy, check: &mut SinkCheck<'_>) {
        let name = check.name;
        self.handoff.check(self.max_request_bytes, check);
        for signal in self.signals().iter().filter(|signal| !key.signals().contains(signal)) {
            let message = format!("`sinks.{name}` cannot route {signal} by `{key}`: they have no such key");
            let help = "take the signal out of `signals`, or send it by another sink with another `route_by`";
            check.clash("signals", message, help);
        }
        let unused = [
            (
                "max_in_flight",
                self.max_in_flight != MAX_IN_FLIGHT,
                "each endpoint is sent one request at a time",
            ),
            ("join_members", self.join_members, "requests are routed item by item"),
        ];
        for (setting, _, why) in unused.into_iter().filter(|(_, is_set, _)| *is_set) {
            let message = format!("`sinks.{name}.{setting}` has no effect with `route_by`: {why}");
            check.clash(setting, message, "take the setting out");
        }
        if self.endpoints().len() < self.replicas as usize && !self.discovery.is_used() {
            let endpoints = self.endpoints().len();
            let message = format!("`sinks.{name}` has {endpoints} endpoints for {} replicas", self.replicas);
            check.clash_or_sink("replicas", message, "each replica is at another endpoint: add some");
        }
        if self.endpoints().len() > self.max_members() {
            let message = format!("`sinks.{name}` has more `endpoints` than `max_members`");
            check.clash("max_members", message, "raise it");
        }
        let found = self.discovery.dns.as_deref().unwrap_or_default();
        if found.iter().any(|url| url.example().path().contains('?')) {
            let message = format!("`sinks.{name}.discovery` has a URL with a query, which is not sent");
            let help = "take it out; credentials and other constants can be sent in `headers`";
            check.clash("discovery", message, help);
        }
        check.no_cleartext("discovery", found.iter().map(DnsUrl::example), &self.delivery);
    }
}

use super::{Delivery, Outbound, Signal, SinkRouting, SinkSettings};
use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::values::{Bytes, Duration, Url};

settings! {
    /// A receiver of OTLP.
    pub struct OtlpSink with delivery: Delivery, routing: SinkRouting {
        /// The receivers: one, or several equivalent ones. Requests rotate between them; a failing endpoint is left
        /// out until it answers again. For HTTP, a URL may have a path before `/v1/traces`. An endpoint on another
        /// machine is reached through the proxy in the environment variable `http_proxy` or `https_proxy`, unless
        /// `no_proxy` names the endpoint.
        endpoints: Vec<Url>,
        /// Transport protocol.
        protocol: OtlpTransport = OtlpTransport::Grpc,
        /// How requests are compressed.
        compression: Compression = Compression::Gzip,
        /// Whether the receivers accept a body of several gzip members or zstd frames. If so, compressed requests are
        /// batched without decompressing them.
        join_members: bool = false,
        /// Signals to send; the sink skips everything else.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles],
        /// Most concurrent requests. The actual number adapts to the receivers' response times.
        max_in_flight: u32 [1..=256] = 8,
        /// Largest request before compression. Queued requests are batched up to this size.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(4),
        /// How long an incomplete batch waits for more data.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::milliseconds(100),
        /// Response timeout; after it the request is retried.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(10),
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
    fn routing(&self) -> &SinkRouting {
        &self.routing
    }

    fn signals(&self) -> &[Signal] {
        &self.signals
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        Some(Outbound {
            setting: "endpoints",
            urls: &self.endpoints,
            credentials: Vec::new(),
            delivery: &self.delivery,
        })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        check.no_query(&self.endpoints);
    }
}

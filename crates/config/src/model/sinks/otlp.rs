use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Backoff, Outbound, Signal, SinkSettings};
use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::model::{Journal, Route, WhenFull};
use crate::setting::Sequence;
use crate::values::{Bytes, Condition, Duration, HeaderName, Name, Secret, Url};

settings! {
    /// A receiver of OTLP.
    pub struct OtlpSink {
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
        /// Delay between attempts.
        backoff: Backoff = Backoff::default(),
        /// Headers to add to every request, for example `authorization`. Their values are never shown.
        headers: BTreeMap<HeaderName, Secret> = BTreeMap::new(),
        /// Header for the tenant's name, for example `X-Scope-OrgID`. A request contains the data of one tenant only;
        /// data without a tenant is sent without the header.
        tenant_header: Option<HeaderName> = None,
        /// TLS settings for `https` endpoints.
        tls: Tls = Tls::default(),
        /// Whether keys, passwords and tokens may be sent to another machine over plain `http`, where anyone on the
        /// network can read them. Only for trusted networks.
        insecure: bool = false,
        /// Behaviour when this sink is so far behind that the journal is full. Default: `journal.when_full`.
        when_full: Option<WhenFull> = None,
        /// The pipeline that items pass through on their way to this sink: a name under `pipelines`.
        pipeline: Option<Name> = None,
        /// OTTL conditions: the sink takes only items that meet at least one of them. A condition about one kind of
        /// telemetry leaves the others as they are.
        when: Option<Sequence<Condition>> = None,
        /// Whether the sink takes what no other sink takes by its `when`.
        otherwise: bool = false,
    }
}

settings! {
    /// TLS towards the receivers.
    pub struct Tls {
        /// PEM file with the certificate authorities to trust. Default: the system's.
        ca_file: Option<PathBuf> = None,
        /// PEM file with the client certificate, if the receivers require one.
        cert_file: Option<PathBuf> = None,
        /// PEM file with the private key of `cert_file`.
        key_file: Option<PathBuf> = None,
        /// Host name that the receivers' certificates must match, if it differs from the endpoint's, for example
        /// behind an IP address or a tunnel.
        server_name: Option<String> = None,
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
    fn route(&self) -> Route<'_> {
        Route {
            pipeline: self.pipeline.as_ref(),
            when: self.when.as_deref().unwrap_or_default(),
            otherwise: self.otherwise,
            relabel: &[],
        }
    }

    fn signals(&self) -> &[Signal] {
        &self.signals
    }

    fn when_full(&self, journal: &Journal) -> WhenFull {
        self.when_full.unwrap_or(journal.when_full)
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        Some(Outbound {
            setting: "endpoints",
            urls: &self.endpoints,
            credentials: Vec::new(),
            headers: &self.headers,
            tenant_header: self.tenant_header.as_ref(),
            backoff: &self.backoff,
            tls: Some(&self.tls),
            insecure: self.insecure,
        })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        check.no_query(&self.endpoints);
    }
}

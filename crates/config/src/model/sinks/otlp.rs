use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Backoff, Outbound, Signal, SinkSettings};
use crate::declare::{choices, settings};
use crate::model::{Journal, WhenFull};
use crate::values::{Bytes, Duration, HeaderName, Secret, Url};

settings! {
    /// A receiver of OTLP.
    pub struct OtlpSink {
        /// The receivers, one or several that are the same to the sender: requests go to them in turn, and one
        /// that fails is left out until it answers again. For HTTP the path before `/v1/traces` may be given. An `https`
        /// one on another machine is reached through the proxy that the environment names in `HTTPS_PROXY`, unless
        /// `NO_PROXY` names it.
        endpoints: Vec<Url>,
        /// How to speak to them.
        protocol: OtlpTransport = OtlpTransport::Grpc,
        /// How requests are compressed.
        compression: Compression = Compression::Gzip,
        /// Whether the receivers read a body of several gzip members or zstd frames. Then what came compressed
        /// is joined as it came, without being decompressed.
        join_members: bool = false,
        /// What is sent; the sink passes over everything else.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs, Signal::Profiles],
        /// The most requests in flight at once. How many there are follows from how fast the receivers answer.
        max_in_flight: u32 [1..=256] = 8,
        /// The largest request, measured before compression. Queued requests are joined up to this.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(4),
        /// How long to wait for more before a request that is not full is sent.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::milliseconds(100),
        /// How long an answer may take before the request is sent again.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(10),
        /// How long to wait between attempts.
        backoff: Backoff = Backoff::default(),
        /// Headers to add to every request, for example `authorization`. Their values are never shown.
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

settings! {
    /// Encryption on the way out.
    pub struct Tls {
        /// A PEM file with the certificates that sign for the receivers. Without it: those of the system.
        ca_file: Option<PathBuf> = None,
        /// A PEM file with the certificate to show, when the receivers ask for one.
        cert_file: Option<PathBuf> = None,
        /// A PEM file with the key of `cert_file`.
        key_file: Option<PathBuf> = None,
        /// The name that the receivers' certificates must be for, where that is not the host of the endpoint: for
        /// example behind an address or a tunnel.
        server_name: Option<String> = None,
    }
}

choices! {
    /// How to speak OTLP.
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
        /// Not at all.
        None = "none",
        /// gzip, which every receiver reads.
        Gzip = "gzip",
        /// zstd: smaller and cheaper, where the receiver reads it.
        Zstd = "zstd",
    }
}

impl SinkSettings for OtlpSink {
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
}

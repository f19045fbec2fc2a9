use super::{Delivery, HandoffSettings, Outbound, Signal, SinkRouting, SinkSettings, Tls, Translation};
use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::setting::Sequence;
use crate::values::{Bytes, Duration, Hashring, HeaderName, TenantName, Url};
use std::path::PathBuf;

settings! {
    /// The ingestors of Thanos Receive, as its router serves them.
    pub struct ThanosReceiveSink with delivery: Delivery, routing: SinkRouting {
        /// File with the hashrings in Thanos' format (`--receive.hashrings-file`). It is read again when it changes; one that
        /// cannot be used leaves the old hashrings in use.
        hashrings_file: Option<PathBuf> = None,
        /// The hashrings themselves, instead of a file.
        hashrings: Option<Sequence<Hashring>> = None,
        /// The algorithm of hashrings without one of their own (`--receive.hashrings-algorithm`).
        algorithm: HashringAlgorithm = HashringAlgorithm::Hashmod,
        /// On how many ingestors each series is stored (`--receive.replication-factor`).
        replication_factor: u32 [1..=7] = 1,
        /// The most ingestors at a time: memory is planned for them, and hashrings with more are refused. Default: twice as
        /// many as the hashrings have at the start, and four at least.
        max_members: Option<u32> [1..=10_000] = None,
        /// The tenant of data without one (`--receive.default-tenant-id`).
        default_tenant: Option<TenantName> = None,
        /// A label whose value becomes the tenant of a series, which loses the label (`--receive.split-tenant-label-name`).
        split_tenant_label: Option<String> = None,
        /// Oldest version of the ingestors. Those of 0.43 read requests with series of several tenants.
        ingestors: IngestorVersion = IngestorVersion::V042,
        /// How requests are compressed (`--receive.grpc-compression`).
        compression: ThanosCompression = ThanosCompression::Snappy,
        /// Whether the ingestors speak TLS. `tls` has the certificates.
        secure: bool = false,
        /// Largest request before compression. With little memory requests are shorter.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(1),
        /// How long an incomplete request waits for more series.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::milliseconds(100),
        /// Response timeout; after it the request is retried (`--receive-forward-timeout`).
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(5),
        /// Data that an ingestor cannot take now.
        handoff: HandoffSettings = HandoffSettings::default(),
        /// Translation of OTLP metrics to series. Deltas are dropped as untranslatable.
        otlp: Translation = Translation::default(),
    }
}

choices! {
    /// How series are placed on the members of a hashring.
    pub enum HashringAlgorithm is "an algorithm of hashrings" {
        /// The hash modulo the number of members.
        Hashmod = "hashmod",
        /// Consistent hashing: a changed membership moves few series. Needed for zones and shuffle sharding.
        Ketama = "ketama",
    }
}

choices! {
    /// The oldest version of the ingestors.
    pub enum IngestorVersion is "a version of ingestors" {
        /// Before 0.43.
        V042 = "0.42",
        /// 0.43 and later.
        V043 = "0.43",
    }
}

choices! {
    /// How requests to ingestors are compressed.
    pub enum ThanosCompression is "a compression of requests to ingestors" {
        /// No compression.
        None = "none",
        /// Snappy, in its framing format.
        Snappy = "snappy",
    }
}

impl SinkSettings for ThanosReceiveSink {
    fn routing(&self) -> Option<&SinkRouting> {
        Some(&self.routing)
    }

    fn signals(&self) -> &[Signal] {
        &[Signal::Metrics]
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        Some(Outbound { setting: "hashrings", urls: &[], credentials: Vec::new(), delivery: &self.delivery })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        let name = check.name;
        match (&self.hashrings_file, &self.hashrings) {
            (None, None) => check.clash_or_sink(
                "hashrings_file",
                format!("`sinks.{name}` has no hashrings"),
                "set `hashrings_file` to the file that Thanos Receive has in `--receive.hashrings-file`, or write `hashrings`",
            ),
            (Some(_), Some(_)) => check.clash(
                "hashrings",
                format!("`sinks.{name}` has `hashrings` and a `hashrings_file`"),
                "set only one of the two",
            ),
            _ => {}
        }
        self.handoff.check(self.max_request_bytes, check);
        if !self.secure && self.delivery.tls != Tls::default() {
            check.clash(
                "tls",
                format!("`sinks.{name}` has `tls` settings, but not `secure: true`"),
                "nothing would be encrypted: write `secure: true`, or take `tls` out",
            );
        }
        if let (false, false, Some(header)) = (self.secure, self.delivery.insecure, self.credential_header())
        {
            check.clash(
                "headers",
                format!("`sinks.{name}` would send its header `{header}` unencrypted"),
                "write `secure: true`; or, where the network is trusted, set `insecure: true` for this sink",
            );
        }
        if self.delivery.tenant_header.is_some() {
            check.clash(
                "tenant_header",
                format!("`sinks.{name}` has a `tenant_header`, but requests to ingestors carry their tenant themselves"),
                "take it out",
            );
        }
    }
}

impl ThanosReceiveSink {
    /// A header with credentials that others could read on the way, were it not encrypted: the file of hashrings may name any host.
    fn credential_header(&self) -> Option<&HeaderName> {
        let rings = self.hashrings.iter().flat_map(|rings| rings.iter());
        let mut endpoints = rings.flat_map(|ring| &ring.ring().endpoints);
        let is_loopback = |address: &str| {
            let url: Result<Url, _> = format!("http://{address}").parse();
            url.is_ok_and(|url| url.is_loopback())
        };
        let is_seen = self.hashrings_file.is_some() || endpoints.any(|one| !is_loopback(&one.address));
        self.delivery.headers.keys().find(|header| is_seen && header.is_credential())
    }
}

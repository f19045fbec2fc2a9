use std::path::PathBuf;

use super::allowance::SourceLimits;
use crate::declare::settings;
use crate::values::{Bytes, Duration, Text, Url};

settings! {
    /// Limits on the resources that clients may use.
    pub struct Limits {
        /// Most open connections, including idle ones. Further connections are answered 503 and closed. Default: one
        /// per 8 KiB of `memory` above 28.5 MiB, from 768 to 12000; with TLS one per 24 KiB, at least 256. An HTTP/2
        /// connection counts as seventeen. The system's limit on open files may lower the number.
        connections: Option<u32> [1..=1_000_000] = None,
        /// Most open connections per client address (IPv6: per /64 network). Further connections are answered 503 and
        /// closed. Default: no separate limit. Do not set it behind a proxy.
        connections_per_peer: Option<u32> [1..=1_000_000] = None,
        /// Where the number of active series of each tenant is asked for, which `tenants.head_series` limits. Default: nowhere.
        head_series: Option<HeadSeriesQuery> = None,
        /// Limits for each source.
        sources: SourceLimits = SourceLimits::default(),
        /// Timeout for a request's headers, from their first byte.
        header_timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(10),
        /// Timeout for a request's body.
        body_timeout: Duration [Duration::milliseconds(100)..=Duration::hours(1)] = Duration::seconds(60),
        /// Timeout for a connection without requests.
        // Longer than the five minutes for which Prometheus keeps a connection: the client should close first, or its
        // next request may arrive on a closing connection.
        idle_timeout: Duration [Duration::seconds(1)..=Duration::days(1)] = Duration::minutes(6),
        /// How long a request waits for memory before it is refused.
        memory_wait: Duration [Duration::milliseconds(0)..=Duration::minutes(5)] = Duration::seconds(5),
        /// How long requests in flight may take to finish at shutdown.
        shutdown_timeout: Duration [Duration::milliseconds(100)..=Duration::hours(1)] = Duration::seconds(25),
    }
}

settings! {
    /// A query for the number of active series of each tenant: that of Thanos' meta-monitoring. Until the first answer, and after ten
    /// intervals without one, no tenant is limited.
    pub struct HeadSeriesQuery {
        /// URL of a Prometheus, or of another server with its query API. `/api/v1/query` is appended.
        url: Url,
        /// Query in PromQL. Each series of its result has a label `tenant`.
        query: Text = Text::from("sum(prometheus_tsdb_head_series) by (tenant)"),
        /// Time from one query to the next.
        interval: Duration [Duration::seconds(1)..=Duration::hours(1)] = Duration::seconds(15),
        /// File with a bearer token to show. It is read again for each query.
        token_file: Option<PathBuf> = None,
        /// Certificate authorities to trust, as PEM. Default: those of the system.
        ca_file: Option<PathBuf> = None,
    }
}

impl Limits {
    /// The connection limit for this much memory, with or without TLS.
    pub fn connections(&self, memory: Bytes, tls: bool) -> u32 {
        let each = if tls { Bytes::kib(24).get() } else { Bytes::kib(8).get() };
        let least = Limits::least_connections(tls);
        const MOST: u32 = 12_000;
        let beyond = memory.get().saturating_sub(Bytes::kib(28 * 1024 + 512).get());
        let affordable = u32::try_from(beyond / each).unwrap_or(MOST);
        self.connections.unwrap_or(affordable.clamp(least, MOST))
    }

    /// The connection limit of the smallest budget.
    pub(crate) const fn least_connections(tls: bool) -> u32 {
        if tls { 256 } else { 768 }
    }
}

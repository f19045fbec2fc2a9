use super::allowance::SourceLimits;
use crate::declare::settings;
use crate::values::{Bytes, Duration};

settings! {
    /// What clients may use up.
    pub struct Limits {
        /// How many connections may be open at once, idle ones included. One more is answered 503 and
        /// closed. Without it: one for every 8 KiB of `memory` beyond 28.5 MiB, from 768 to 12000; with TLS one
        /// for every 24 KiB, from 256 on.
        /// A connection that speaks HTTP/2 counts as seventeen. There are fewer where the system's limit on open files is
        /// lower.
        connections: Option<u32> [1..=1_000_000] = None,
        /// How many connections one address may have open, or one network of 64 bits with IPv6. One more is answered
        /// 503 and closed. Without it: as many as there may be at all. Not to be set where a proxy is between.
        connections_per_peer: Option<u32> [1..=1_000_000] = None,
        /// How much may be sent to each source.
        sources: SourceLimits = SourceLimits::default(),
        /// How long a request's headers may take from their first byte.
        header_timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(10),
        /// How long a request's body may take.
        body_timeout: Duration [Duration::milliseconds(100)..=Duration::hours(1)] = Duration::seconds(60),
        /// How long a connection may stay open with no request on it.
        // Longer than the five minutes for which Prometheus keeps a connection: who closes first should be
        // the client, or its next request may meet a connection that is just being closed.
        idle_timeout: Duration [Duration::seconds(1)..=Duration::days(1)] = Duration::minutes(6),
        /// How long a request waits for memory before it is refused.
        memory_wait: Duration [Duration::milliseconds(0)..=Duration::minutes(5)] = Duration::seconds(5),
        /// How long requests in flight may take to finish when tidegate is asked to stop.
        shutdown_timeout: Duration [Duration::milliseconds(100)..=Duration::hours(1)] = Duration::seconds(25),
    }
}

impl Limits {
    /// How many connections may be open at once with this much memory, some of them perhaps with TLS.
    pub fn connections(&self, memory: Bytes, tls: bool) -> u32 {
        let each = if tls { Bytes::kib(24).get() } else { Bytes::kib(8).get() };
        let least = Limits::least_connections(tls);
        const MOST: u32 = 12_000;
        let beyond = memory.get().saturating_sub(Bytes::kib(28 * 1024 + 512).get());
        let affordable = u32::try_from(beyond / each).unwrap_or(MOST);
        self.connections.unwrap_or(affordable.clamp(least, MOST))
    }

    /// The fewest connections that a budget affords, however small it is.
    pub(crate) const fn least_connections(tls: bool) -> u32 {
        if tls { 256 } else { 768 }
    }
}

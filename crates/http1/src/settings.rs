//! The limits and deadlines of connections.

use std::time::Duration;
use tidegate_arena::Share;

/// The limits and deadlines of every connection of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The share charged for the memory of requests.
    pub share: Share,
    /// The most bytes of a head, request line included.
    pub max_head: usize,
    /// How long a connection may stay open without a request.
    pub idle: Duration,
    /// How long a head may take from its first byte to its last.
    pub head: Duration,
    /// How long a body may take in all.
    pub body: Duration,
    /// How long a body may take before its rate counts.
    pub body_grace: Duration,
    /// The least bytes a second that a body must bring after [`body_grace`](Self::body_grace).
    pub body_rate: u32,
    /// How long a body may pause.
    pub body_stall: Duration,
    /// How long a request may wait for memory.
    pub memory_wait: Duration,
    /// How long a client may take to receive an answer.
    pub write: Duration,
    /// After an answer that ends the connection, what the client still sends is thrown away, so that it can read the
    /// answer instead of seeing a reset: for as long as this brings [`linger_least`](Self::linger_least) each time.
    pub linger: Duration,
    /// The least bytes that a client sends in each [`linger`](Self::linger) for the next one.
    pub linger_least: usize,
    /// How long that may take in all.
    pub linger_total: Duration,
    /// The most bytes thrown away then.
    pub linger_bytes: usize,
    /// The most bytes of a refused body that are thrown away for the sake of the next request.
    pub skip_bytes: usize,
    /// After so many requests a connection is closed, so that clients spread over new servers.
    pub max_requests: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            share: Share::Ingest,
            max_head: 64 << 10,
            idle: Duration::from_secs(90),
            head: Duration::from_secs(10),
            body: Duration::from_secs(60),
            body_grace: Duration::from_secs(5),
            body_rate: 1 << 10,
            body_stall: Duration::from_secs(5),
            memory_wait: Duration::from_secs(2),
            write: Duration::from_secs(10),
            linger: Duration::from_secs(1),
            linger_least: 16 << 10,
            linger_total: Duration::from_secs(30),
            linger_bytes: 64 << 20,
            skip_bytes: 256 << 10,
            max_requests: u32::MAX,
        }
    }
}

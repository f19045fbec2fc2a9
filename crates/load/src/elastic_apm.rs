//! Recorded requests of Elastic APM agents: decompressed bodies of the intake, for tests and for the bench.

mod drive;

pub use drive::{SentItems, batches, drive_blocking};

/// An agent's bodies.
#[derive(Debug, Clone, Copy)]
pub struct Agent {
    /// Its name.
    pub name: &'static str,
    /// The coding in which it compresses.
    pub coding: &'static str,
    /// Transactions with their spans, an error, metrics.
    pub busy: &'static str,
    /// Metrics alone.
    pub idle: &'static str,
}

/// Four agents, each of which did the same.
pub const AGENTS: [Agent; 4] = [
    Agent {
        name: "go",
        coding: "deflate",
        busy: include_str!("../data/apm/go-0.ndjson"),
        idle: include_str!("../data/apm/go-1.ndjson"),
    },
    Agent {
        name: "java",
        coding: "",
        busy: include_str!("../data/apm/java-0.ndjson"),
        idle: include_str!("../data/apm/java-1.ndjson"),
    },
    Agent {
        name: "nodejs",
        coding: "gzip",
        busy: include_str!("../data/apm/nodejs-0.ndjson"),
        idle: include_str!("../data/apm/nodejs-1.ndjson"),
    },
    Agent {
        name: "python",
        coding: "gzip",
        busy: include_str!("../data/apm/python-0.ndjson"),
        idle: include_str!("../data/apm/python-1.ndjson"),
    },
];

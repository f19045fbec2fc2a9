mod blackhole;
mod lake;
mod prometheus_remote_write;

pub use blackhole::BlackholeSink;
pub use lake::{LakeSink, Retention};
pub use prometheus_remote_write::{Backoff, Protocol, RemoteWriteSink};

use crate::declare::kinds;

kinds! {
    /// Where everything goes.
    pub enum Sink {
        /// Parquet files in folders by hour, for DuckDB, Trino and `tidegate lake cat`.
        Lake(LakeSink) = "lake",
        /// Anything that takes Prometheus remote write: Prometheus, Mimir, Thanos, VictoriaMetrics,
        /// another tidegate.
        PrometheusRemoteWrite(RemoteWriteSink) = "prometheus_remote_write",
        /// Takes everything and forgets it: for measuring and for trying things out.
        Blackhole(BlackholeSink) = "blackhole",
    }
}

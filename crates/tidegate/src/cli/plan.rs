//! The arguments of `tidegate plan`.

use super::{AdminArgs, ConfigArgs};
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// What comes, once for each kind: '200k samples/s', '5k spans/s', '1M points/min', '30MB/s logs'
    #[arg(long, value_name = "RATE", requires = "outage", conflicts_with = "measure")]
    pub(crate) rate: Vec<String>,
    /// How long the stores are out: 6h, 30m, 2d
    #[arg(long, value_name = "DURATION")]
    pub(crate) outage: Option<String>,
    /// Open connections to plan for. Default: `limits.connections`
    #[arg(long, value_name = "N", requires = "outage", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// Largest body that a client sends, decompressed: 4MiB
    #[arg(long, value_name = "SIZE", requires = "outage")]
    pub(crate) body: Option<String>,
    /// Bytes of an item in the journal. Default: those of tidegate's own load generator
    #[arg(long, value_name = "N", requires = "rate")]
    pub(crate) bytes_per_item: Option<f64>,
    /// The clients do not compress
    #[arg(long, requires = "rate", conflicts_with = "bytes_per_item")]
    pub(crate) uncompressed: bool,
    /// What a store takes when it is back, as for --rate. Default: as measured with a receiver that takes everything
    #[arg(long, value_name = "RATE", requires = "outage")]
    pub(crate) delivery: Vec<String>,
    /// Take rate and bytes of an item from a running gateway, over five seconds
    #[arg(long, requires = "outage")]
    pub(crate) measure: bool,
    /// Format of the answer
    #[arg(long, value_enum, default_value_t = PlanFormat::Text, requires = "outage")]
    pub(crate) format: PlanFormat,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

/// The format of a sizing answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// Sentences
    Text,
    /// One JSON object
    Json,
}

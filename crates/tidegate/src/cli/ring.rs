//! The commands about hashrings.

use super::ConfigArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum RingCommand {
    /// Say which members hold a series, and why
    ///
    /// Prints the hashring that is for the tenant, the tenant's shard, the series' hash, the section of the ring that the hash belongs to,
    /// and the members with their zones. Reads the hashrings of a sink `thanos_receive` as they are now, also those in a file, or
    /// the endpoints of a sink `prometheus_remote_write` with `shard_by`; a gateway need not run.
    Explain(ExplainArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The series, as Prometheus shows it: `{__name__="up", job="a"}` or `up{job="a"}`. Relabeling in the sink's pipeline comes first: give
    /// the labels behind it
    #[arg(long, value_name = "SERIES")]
    pub(crate) labels: String,
    /// The tenant. Default: the sink's `default_tenant`. It does not matter to `shard_by`
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Name of the sink, if several have a ring
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

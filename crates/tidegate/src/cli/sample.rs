//! The commands about sampled traces.

use super::ConfigArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SampleCommand {
    /// Say whether a trace is kept, by which policy, and why
    ///
    /// Reads the spans of the trace that are in the journal, as the sink's sampler does, and prints what is known of the trace and the
    /// word of each policy. The gateway may run. What every sink has had leaves the journal soon, unless `journal.keep` says otherwise.
    Explain(ExplainTraceArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ExplainTraceArgs {
    /// The trace's id: 32 hexadecimal digits
    #[arg(long, value_name = "ID")]
    pub(crate) trace: String,
    /// Name of the sink, if several sample traces
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

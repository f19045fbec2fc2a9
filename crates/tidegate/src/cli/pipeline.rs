//! The commands that run pipelines on given items.

use super::ConfigArgs;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Run only tests whose name contains this
    pub(crate) filter: Option<String>,
    /// Show what each statement, condition and rule changed
    #[arg(long)]
    pub(crate) explain: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PipelineCommand {
    /// Run a pipeline over standard input, and print what comes out
    ///
    /// Reads OTLP as protobuf, or lines of JSON: OTLP/JSON requests, as the Collector's file exporter writes them, or
    /// items as the sink `http` writes them; or lines of series, such as `up{job="a"} 1`. Writes the same
    /// form. Reports on standard error how many items each step dropped, and which statements failed.
    Eval(EvalArgs),
    /// Try steps for a running gateway, which starts this itself
    #[command(hide = true)]
    Trial {
        /// The most memory to take, in bytes
        #[arg(long)]
        memory: u64,
    },
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The pipeline; not needed if the configuration has only one
    #[arg(long, value_name = "NAME")]
    pub(crate) pipeline: Option<String>,
    /// The form of the input. Default: found out from its first bytes, where they are not protobuf
    #[arg(long, value_enum)]
    pub(crate) format: Option<EvalFormat>,
    /// The signal of protobuf, or of items without the member `signal`
    #[arg(long, value_enum)]
    pub(crate) signal: Option<EvalSignal>,
    /// Show what each statement, condition and rule changed, instead of what comes out
    #[arg(long)]
    pub(crate) explain: bool,
}

/// The form of `pipeline eval`'s input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalFormat {
    /// An OTLP export request as protobuf
    Protobuf,
    /// Lines of JSON
    Json,
    /// Lines of series
    Series,
}

/// A signal of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalSignal {
    /// Spans
    Traces,
    /// Metric points
    Metrics,
    /// Log records
    Logs,
}

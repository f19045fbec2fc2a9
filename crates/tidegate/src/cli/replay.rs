//! The arguments of `tidegate replay`.

use super::DataArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ReplayCommand {
    /// Send records of a journal again: those that are still in its folder
    ///
    /// Of the journal of a running gateway, without what waits for the sink anyway. Of a journal that no process has open, all
    /// of it, or with --unsent what its sink had not had: that is how the data of a gateway that is gone reaches another one.
    Journal(ReplayJournalArgs),
    /// Send rows of a lake again, by the hour in which they were received
    ///
    /// Log records, spans and metrics become OTLP requests, and samples of Prometheus become Remote-Write requests.
    Lake(ReplayToArgs),
    /// Send dead letters again, to the sink that could not deliver them or to another one
    DeadLetters(ReplayLettersArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ReplayJournalArgs {
    #[command(flatten)]
    pub(crate) to: ReplayToArgs,
    /// Only what the sink of this name had not had when the gateway of the journal ended
    #[arg(long)]
    pub(crate) unsent: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayToArgs {
    /// The sink that gets it, and no other
    #[arg(long, value_name = "SINK")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayLettersArgs {
    /// The sink that gets them, and no other. Default: the one that could not deliver them
    #[arg(long, value_name = "SINK")]
    pub(crate) to: Option<String>,
    /// Only dead letters of this sink
    #[arg(long, value_name = "SINK")]
    pub(crate) sink: Option<String>,
    #[command(flatten)]
    pub(crate) replay: ReplayArgs,
}

/// Arguments of every replay.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Only what was received (of dead letters: rejected) from this time on, as in 2026-01-31T12:00:00Z; of a lake, whole hours
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Only what was received before this time. Default: now
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only what was received in this last period: 30m, 6h, 2d
    #[arg(long, value_name = "DURATION", conflicts_with = "from")]
    pub(crate) last: Option<String>,
    /// Only data of this tenant; empty for data without one
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only these signals: traces, metrics, logs, profiles. Default: those that the sink receives, if the configuration has it
    #[arg(long, value_name = "SIGNALS", value_delimiter = ',')]
    pub(crate) signal: Vec<String>,
    /// At most so much a second: 5000/s for items, 10MB/s for bytes as they are sent
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,
    /// Say what would be sent, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Forget how far an interrupted replay came, and begin anew
    #[arg(long)]
    pub(crate) restart: bool,
    /// The file that says how far the replay is. Default: one for each sink, in `replay` in the data folder
    #[arg(long, value_name = "FILE")]
    pub(crate) progress: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) receiver: ReceiverArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// The gateway that takes what is sent again.
#[derive(Debug, Args)]
pub(crate) struct ReceiverArgs {
    /// The gateway to send to; by default the configuration's `listen.http`
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// File with the certificates to trust where the URL begins with `https://`. Default: those of the system
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Admin token to send. Prefer a file: other users can see arguments
    #[arg(long, env = "TIDEGATE_TOKEN", hide_env_values = true, hide = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// File with an admin token (`access.admin_credentials_file`), required by a gateway with credentials or tenants;
    /// or set TIDEGATE_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

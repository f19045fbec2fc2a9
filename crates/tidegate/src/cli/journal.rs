//! The commands about the journal and its dead letters.

use super::{AdminArgs, DataArgs, ReceiverArgs, ReplayLettersArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// List segments and cursors
    Ls(DataArgs),
    /// Read and check every record
    Verify(DataArgs),
    /// Forget the cursor of a removed sink, and drop its unsent data
    ///
    /// Asks the gateway that has the journal open, or does it directly if none has. A sink that a running gateway is
    /// configured with cannot be forgotten: remove it from the configuration and reload it first (SIGHUP).
    Forget(ForgetArgs),
    /// Forget the checkpoints of a removed source, so that it begins anew if it is configured again
    ///
    /// For `file`, `journald` and `kubernetes_logs`. The gateway must not be running.
    ForgetSource(ForgetSourceArgs),
    /// List dead letters: items that sinks could not deliver, with what their peers said
    DeadLetters(DeadLetterArgs),
    /// Resend dead letters to a running gateway, as new requests, to all sinks
    ///
    /// Each dead letter keeps its tenant, so this requires an admin token if the gateway has credentials or tenants.
    Resend(ResendArgs),
    /// Discard dead letters: they are not listed or resent any more
    Discard(DiscardArgs),
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DeadLetterArgs {
    #[command(subcommand)]
    pub(crate) order: Option<DeadLetterCommand>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Only dead letters of this sink
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Write their bodies, as they would be sent, to files in this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) export: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetterCommand {
    /// Send them again, to the sink that could not deliver them: the same as `tidegate replay dead-letters`
    Replay(Box<ReplayLettersArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Dead letters of this sink
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: String,
    /// Only those up to this number, which `tidegate journal dead-letters` lists
    #[arg(long, value_name = "NUMBER")]
    pub(crate) through: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// The sink's name
    pub(crate) sink: String,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetSourceArgs {
    /// The source's name
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResendArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Only dead letters of this sink
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    #[command(flatten)]
    pub(crate) receiver: ReceiverArgs,
}

//! The commands about followed log files.

use super::{AdminArgs, ConfigArgs};
use clap::{Args, Subcommand, ValueEnum};
use std::num::NonZeroUsize;

#[derive(Debug, Subcommand)]
pub(crate) enum FileCommand {
    /// List the files: how far each is read, how far it is behind, and why it is not read
    ///
    /// Asks a running gateway. Each file has its offset, which is durable; its size; its lag, the bytes that are not
    /// durable yet; and the lines a second of the last ten seconds. Deleted files that are still read or held are listed with
    /// the disk space that they take, and files that are not read with the reason.
    Ls(FileLsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FileLsArgs {
    /// Only paths that match: a pattern such as '/var/log/**/*.log' or '*.log', or a text that the path contains
    pub(crate) pattern: Option<String>,
    /// Only files of this source
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Order of the files
    #[arg(long, value_enum, default_value_t = FileSort::Lag)]
    pub(crate) sort: FileSort,
    /// Print at most N files
    #[arg(long, value_name = "N", default_value = "100")]
    pub(crate) limit: NonZeroUsize,
    /// Print all files
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// Print a line of JSON for each file
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// The order of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileSort {
    /// Those with the most lag
    Lag,
    /// By path
    Path,
    /// The largest
    Size,
}

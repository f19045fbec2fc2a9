//! The commands that take over from other programs.

use super::DataArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// An OpenTelemetry Collector's configuration
    ///
    /// Prints a configuration: receivers become listening addresses, processors become pipelines, exporters become sinks.
    /// Everything without an exact counterpart is named in comments, and on standard error.
    Otelcol {
        /// The file
        file: PathBuf,
        /// The Collector's version. Before 0.163, `set` did nothing when its value was absent: its statements get a
        /// condition that keeps this
        #[arg(long, value_name = "VERSION")]
        collector_version: Option<tidegate_config::CollectorVersion>,
    },
    /// A Fluent Bit's configuration, in the classic format or in YAML
    ///
    /// Prints a configuration: inputs become sources, filters become pipelines, outputs become sinks. Reads the files that it
    /// includes, and those of its parsers; their paths are relative to it. Everything without an exact counterpart is named
    /// in comments, and on standard error.
    FluentBit {
        /// The file
        file: PathBuf,
    },
    /// The remote writes of a Prometheus server, with their relabeling
    ///
    /// Everything without an exact counterpart is named in comments, and on standard error.
    Prometheus {
        /// The file
        file: PathBuf,
    },
    /// The command line of vmagent: its remote writes with their relabeling
    ///
    /// Reads the relabeling files that the flags name. Everything without an exact counterpart is named in comments, and
    /// on standard error.
    Vmagent {
        /// The flags, as vmagent has them: `tidegate import vmagent -- -remoteWrite.url=…`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "FLAGS")]
        arguments: Vec<String>,
    },
    /// A configuration of Vector, in YAML, JSON or TOML
    ///
    /// Prints a configuration: sources, transforms and sinks become sources, pipelines and sinks. Several files are one
    /// configuration, as in Vector. Everything without an exact counterpart is named in comments, and on standard error.
    Vector {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Checkpoints of a program that reads log files, for the source `file`
    ///
    /// Reads how far the program has read each file, compares that with the files on disk, prints the result, and stores the
    /// offsets in the data folder. The source `file` starts there with files that it has not read before. Stop the
    /// program first, and run this before tidegate reads the files for the first time.
    Checkpoints(CheckpointsArgs),
    /// The command line of a Thanos Receive router
    ///
    /// Prints a configuration that takes its place: the address of its senders, its hashrings, tenants, limits and relabeling.
    /// Reads the files with limits and relabeling that the flags name. Everything without an exact counterpart is named in
    /// comments, and on standard error.
    ThanosReceive {
        /// The arguments, as they stand in a manifest: `tidegate import thanos-receive -- receive --receive.hashrings-file=…`
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            required = true,
            value_name = "ARGUMENTS"
        )]
        arguments: Vec<String>,
    },
    /// Limits of Thanos Receive (`--receive.limits-config-file`), as tenant limits
    ///
    /// Settings without a counterpart become comments.
    ThanosLimits {
        /// The file
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointsArgs {
    /// The program
    #[arg(value_enum)]
    pub(crate) program: CheckpointProgram,
    /// Its checkpoints: the positions file of Promtail or Alloy, Filebeat's folder `registry`, the `db` of Fluent Bit's input
    /// `tail`, the `directory` of the Collector's extension `file_storage`
    pub(crate) path: PathBuf,
    /// Print the result, and store nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// A program whose checkpoints can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckpointProgram {
    /// Promtail: `positions.yaml`
    Promtail,
    /// Grafana Alloy: `positions.yml` of a `loki.source.file`
    Alloy,
    /// Filebeat: `registry`
    Filebeat,
    /// Fluent Bit: the `db` of an input `tail`
    FluentBit,
    /// The OpenTelemetry Collector: the `directory` of a `file_storage`
    Otelcol,
}

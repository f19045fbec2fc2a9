//! The command line: what can be said, and the help texts, which are the reference.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// A telemetry gateway that holds its memory budget and loses nothing that it acknowledged.
///
/// tidegate receives metrics, logs and traces (OTLP, Prometheus Remote-Write, Elasticsearch's `_bulk`, Elastic APM),
/// puts them in a journal on disk, answers, and hands them on to every configured sink: other receivers of OTLP,
/// Prometheus-compatible servers, Elasticsearch and OpenSearch, and a lake of Parquet files. When something downstream
/// is slow, the journal grows and memory does not.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version = crate::VERSION, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to log: error, warn, info, debug or trace, also by module (`info,tidegate_sinks=debug`)
    #[arg(long, global = true, env = "TIDEGATE_LOG", default_value = "info", value_name = "LEVEL")]
    pub(crate) log: String,
    /// How to log: for people, or one JSON object a line. By default for people on a terminal, else JSON
    #[arg(long, global = true, env = "TIDEGATE_LOG_FORMAT", value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway
    ///
    /// Without a configuration it listens on 127.0.0.1:4318 and keeps the journal and a lake under
    /// ./tidegate-data.
    ///
    /// SIGTERM and SIGINT: stop accepting, answer what is in flight, sync, leave.
    /// SIGHUP: read the configuration again and take over its sinks and what sources, tenants and addresses may
    /// send; read certificates and credentials again. Other settings that changed are named, and need a restart.
    /// An invalid configuration is reported, and the old one stays.
    Run(ConfigArgs),
    /// Check a configuration, and whether it fits in its memory
    ///
    /// Prints every error with its line, or the effective configuration with secrets masked. Files that the
    /// configuration names are looked at: those that cannot be used are errors too.
    Check(CheckArgs),
    /// Print who may use how much memory, and the largest body that fits
    Plan(ConfigArgs),
    /// Run the gateway with no configuration and send it a trickle of telemetry
    ///
    /// Everything is kept under the data folder; look at it with `tidegate lake cat metric_points`, `spans` and `logs`.
    Demo(DemoArgs),
    /// Look at what passes a source or a sink, live, as NDJSON
    ///
    /// Asks a running gateway for what it receives, or for what a sink takes, and prints a line for each span, log
    /// record, metric point and sample. It costs the gateway nothing before and after, and never slows the flow:
    /// what passes faster than it can be shown is passed over and counted, on standard error. Of a record 200
    /// items are shown, and of one longer than 256 KiB as it came, or 1 MiB decompressed, only what it was.
    ///
    /// Ends at Ctrl-C, or after --count lines, or after --for.
    Tap(TapArgs),
    /// Look into the lake
    #[command(subcommand)]
    Lake(LakeCommand),
    /// Look into the journal
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Prepare Elasticsearch or OpenSearch for what a sink writes
    #[command(subcommand)]
    Elasticsearch(ElasticsearchCommand),
    /// Make a token, an API key or a password's hash, and the line about it for the file of credentials
    ///
    /// Prints the secret first, which is kept nowhere, and then the line for `access.credentials_file` or
    /// `access.admin_credentials_file`, which has a hash of it. A running gateway reads the file again when it changes.
    /// A password is read from standard input.
    Token(TokenArgs),
    /// Print a configuration of another program as one of tidegate
    #[command(subcommand)]
    Import(ImportCommand),
    /// Print the JSON Schema of the configuration, for editors
    Schema,
    /// Print a commented configuration with every setting at its default
    Example,
    /// Print a completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, in roff
    Man,
    /// Moved to a program of its own, `tidegate-bench`
    #[command(hide = true)]
    Bench {
        /// Whatever it was told
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Thanos Receive's limits (`--receive.limits-config-file`), as limits of tenants
    ///
    /// What has no counterpart is said in comments.
    ThanosLimits {
        /// The file
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// The configuration file; every setting in it is optional
    #[arg(long, short, env = "TIDEGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The configuration file
    pub(crate) file: PathBuf,
    /// How to print the errors
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    pub(crate) format: CheckFormat,
}

/// How `check` prints what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// For people
    Text,
    /// One JSON object on standard output, for editors and pipelines
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// By what name its owner is known; an API key has it as its id, and a password as its user
    pub(crate) name: String,
    /// What to make
    #[arg(long, value_enum, value_name = "KIND", default_value_t = TokenKind::Bearer)]
    pub(crate) kind: TokenKind,
    /// The tenant that it speaks for; `*` for a proxy, whose header names it. Without it: the default tenant only
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
    /// What it may do over Elasticsearch's `_bulk` beside `create` and `index`: update, delete, script, pipeline, with
    /// commas
    #[arg(long, value_name = "ACTIONS")]
    pub(crate) bulk: Option<String>,
    /// The indices that it may write to over `_bulk`: patterns with `*` and `{tenant}`, with commas. Without it: all but
    /// those that begin with a dot
    #[arg(long, value_name = "PATTERNS")]
    pub(crate) indices: Option<String>,
}

/// What identifies somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenKind {
    /// `Authorization: Bearer TOKEN`
    Bearer,
    /// `Authorization: ApiKey base64(NAME:KEY)`
    ApiKey,
    /// `Authorization: Basic base64(NAME:PASSWORD)`, with a password of your own
    Basic,
}

#[derive(Debug, Args)]
pub(crate) struct TapArgs {
    /// What this source receives: otlp, prometheus_remote_write, elasticsearch, elastic_apm, http, or `*`. All of it by default,
    /// unless --sink is given
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// What this sink takes from the journal; `*` for all sinks
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Only metrics, logs, traces or profiles
    #[arg(long, value_name = "SIGNAL")]
    pub(crate) signal: Option<String>,
    /// Only items of this service (`service.name`; in remote write the label `job`)
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// Only spans, events or metrics of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only lines that have this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) contains: Option<String>,
    /// Only one of so many records (requests as they came)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) every: u32,
    /// End after so many lines
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// End after this time: 30s, 5m
    #[arg(long = "for", value_name = "DURATION")]
    pub(crate) duration: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// Where a running gateway is asked.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    /// The gateway's admin address; by default the configuration's `listen.admin`
    #[arg(long, value_name = "ADDR", conflicts_with = "config")]
    pub(crate) admin: Option<String>,
    /// The token for the admin address, where that asks for one. A file is better: arguments can be seen by others
    #[arg(long, env = "TIDEGATE_ADMIN_TOKEN", hide_env_values = true, hide = true, value_name = "TOKEN")]
    pub(crate) admin_token: Option<String>,
    /// A file with the token for the admin address, where that asks for one; or set TIDEGATE_ADMIN_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
}

/// Where the data folder is: said directly, or by a configuration.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// The data folder; by default that of the configuration, or ./tidegate-data
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LakeCommand {
    /// List tables, hours and files
    Ls(DataArgs),
    /// Print rows
    Cat(Box<CatArgs>),
    /// Read every file and compare it with the manifest
    Verify(DataArgs),
    /// Print statements that make views over the lake for another program
    Views(ViewsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ViewsArgs {
    /// For DuckDB, with the names and shapes of the ClickHouse exporter's tables
    #[arg(long, required = true)]
    pub(crate) duckdb: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    /// The table: metric_points, metric_histograms, spans or logs. By default metric_points, or with --trace spans
    pub(crate) table: Option<String>,
    /// Only rows of the last so long, by their own time: 1m, 2h30m, 7d
    #[arg(long, value_name = "DURATION", conflicts_with = "from")]
    pub(crate) last: Option<String>,
    /// Only rows from this time on (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Only rows before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    /// Only rows of this metric
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Option<String>,
    /// Only spans and log records of this trace (32 hexadecimal digits). Spans are printed as a tree, with times from
    /// the trace's beginning, unless --columns or --format ask for rows
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<String>,
    /// Only rows of this service
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// Only spans, events or metrics of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only log records that have this text in their body
    #[arg(long, value_name = "TEXT")]
    pub(crate) contains: Option<String>,
    /// Only log records of this severity and above: trace, debug, info, warn, error, fatal, or 1 to 24
    #[arg(long, value_name = "SEVERITY")]
    pub(crate) severity: Option<String>,
    /// Only rows with this label or attribute (name=value) or without it (name!=value); may be given several times
    #[arg(long = "label", value_name = "MATCHER")]
    pub(crate) labels: Vec<String>,
    /// At most so many rows
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Only these columns, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns, for people
    Table,
    /// One JSON object a line
    Ndjson,
    /// Comma-separated, as RFC 4180 says
    Csv,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// List segments and cursors
    Ls(DataArgs),
    /// Read every record and check it
    Verify(DataArgs),
    /// Forget the cursor of a sink that is gone for good, and what it had not sent
    ///
    /// Asks the gateway that has the journal open, or does it itself when none has. A sink that is configured in a
    /// running gateway is not forgotten: take it out first, and have the configuration read again (SIGHUP).
    Forget(ForgetArgs),
    /// List what sinks could not deliver
    DeadLetters(DataArgs),
    /// Send what sinks could not deliver once more: into a running gateway, as new requests
    ///
    /// Each letter keeps its tenant, so this takes an admin's token where the gateway has credentials or tenants.
    Resend(ResendArgs),
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
pub(crate) struct ResendArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Only what this sink could not deliver
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Where to send it; by default the configuration's `listen.http`
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The admin's token to send it with. A file is better: arguments can be seen by others
    #[arg(long, env = "TIDEGATE_TOKEN", hide_env_values = true, hide = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// A file with an admin's token (`access.admin_credentials_file`), which a gateway with credentials or tenants asks
    /// for; or set TIDEGATE_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ElasticsearchCommand {
    /// Put the index templates of a sink's documents where it sends them
    ///
    /// What came as documents needs none of them: their senders have their own. Templates that are there already
    /// under the same names are replaced.
    Setup(SetupArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The sink, where there are several of type `elasticsearch`
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Print the requests instead of sending them
    #[arg(long)]
    pub(crate) print: bool,
}

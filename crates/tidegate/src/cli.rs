//! The command line and its help texts, which are the reference.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// A telemetry gateway with bounded memory that never loses acknowledged data
///
/// tidegate receives metrics, logs and traces (OTLP, Prometheus Remote-Write, Elasticsearch's `_bulk`, Elastic APM),
/// writes them to a journal on disk, acknowledges them, and forwards them to every configured sink: OTLP receivers,
/// Prometheus-compatible servers, Elasticsearch and OpenSearch, and a lake of Parquet files. When a sink is slow, the
/// journal grows and memory does not.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version = crate::VERSION, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Log level: error, warn, info, debug or trace, also by module (`info,tidegate_sinks=debug`)
    #[arg(long, global = true, env = "TIDEGATE_LOG", default_value = "info", value_name = "LEVEL")]
    pub(crate) log: String,
    /// Log format: text, or one JSON object per line. Default: text on a terminal, else JSON
    #[arg(long, global = true, env = "TIDEGATE_LOG_FORMAT", value_enum, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Plain text.
    Text,
    /// One JSON object per line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway
    ///
    /// Without a configuration it listens on 127.0.0.1:4318 and stores the journal and a lake under ./tidegate-data.
    ///
    /// SIGTERM and SIGINT: stop accepting, answer requests in flight, sync, exit. SIGHUP: reload the configuration
    /// and apply changes to sinks, inputs of log files, limits, tenants and access rights; reload certificates and credentials. The log
    /// names other changed settings, which need a restart. An invalid configuration is reported, and the old one
    /// stays in effect.
    Run(ConfigArgs),
    /// Check a configuration, and whether its memory budget is sufficient
    ///
    /// Prints every error with its line, or the effective configuration with secrets masked. Also checks the files
    /// named by the configuration: an unusable file is an error.
    Check(CheckArgs),
    /// Print the memory plan, and the largest body that fits
    Plan(ConfigArgs),
    /// Run the gateway with the default configuration and send it sample telemetry
    ///
    /// Stores everything under the data folder; inspect it with `tidegate lake cat metric_points`, `spans` and
    /// `logs`.
    Demo(DemoArgs),
    /// Show items that pass a source or a sink, live, as NDJSON
    ///
    /// Connects to a running gateway and prints one line per span, log record, metric point and sample that it
    /// receives, or that a sink reads. The gateway pays nothing before and after, and tap never slows the flow: items
    /// that arrive faster than they can be printed are skipped and counted on standard error. Tap shows at most 200
    /// items of a record, and only a summary of a record longer than 256 KiB as received or 1 MiB decompressed.
    ///
    /// Ends on Ctrl-C, after --count lines, or after --for.
    Tap(TapArgs),
    /// Inspect the log files that a running gateway follows
    #[command(subcommand)]
    File(FileCommand),
    /// Run the tests in a configuration
    ///
    /// Each entry of `tests` names a pipeline, the items that go in, and what must come out. Prints the differences of
    /// those that fail, and exits with an error if one does.
    Test(TestArgs),
    /// Try pipelines out
    #[command(subcommand)]
    Pipeline(PipelineCommand),
    /// Inspect the lake
    #[command(subcommand)]
    Lake(LakeCommand),
    /// Inspect the journal
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Prepare Elasticsearch or OpenSearch for a sink's documents
    #[command(subcommand)]
    Elasticsearch(ElasticsearchCommand),
    /// Generate a token, an API key or a password hash, with its line for the credentials file
    ///
    /// Prints the secret first, which is not stored anywhere, and then the line with its hash for
    /// `access.credentials_file` or `access.admin_credentials_file`. A running gateway reloads the file when it
    /// changes. A password is read from standard input.
    Token(TokenArgs),
    /// Convert another program's configuration to tidegate's, or take over its checkpoints
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
    /// Moved to the separate program `tidegate-bench`
    #[command(hide = true)]
    Bench {
        /// Ignored arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
}

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
    /// Checkpoints of a program that reads log files, for the source `file`
    ///
    /// Reads how far the program has read each file, compares that with the files on disk, prints the result, and stores the
    /// offsets in the data folder. The source `file` starts there with files that it has not read before. Stop the
    /// program first, and run this before tidegate reads the files for the first time.
    Checkpoints(CheckpointsArgs),
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

/// How `check` prints errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Plain text
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
    /// Name of the credential; the id of an API key, the user name of a password
    pub(crate) name: String,
    /// Kind of credential
    #[arg(long, value_enum, value_name = "KIND", default_value_t = TokenKind::Bearer)]
    pub(crate) kind: TokenKind,
    /// Tenant that it acts for; `*` for a proxy whose header names the tenant. Default: the default tenant only
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
    /// Actions allowed over Elasticsearch's `_bulk` in addition to `create` and `index`: update, delete, script,
    /// pipeline, separated by commas
    #[arg(long, value_name = "ACTIONS")]
    pub(crate) bulk: Option<String>,
    /// Indices allowed over `_bulk`: patterns with `*` and `{tenant}`, separated by commas. Default: all whose names
    /// do not begin with a dot
    #[arg(long, value_name = "PATTERNS")]
    pub(crate) indices: Option<String>,
}

/// The kind of a credential.
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
    /// Show items received by this source: otlp, prometheus_remote_write, elasticsearch, elastic_apm, http, loki,
    /// fluent_forward, syslog, file, journald, kubernetes_logs, or `*`.
    /// Default: all sources, unless --sink is given
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Show items that this sink reads from the journal; `*` for all sinks
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Show items before and after this pipeline: as all sources receive them, and as the sinks take them that it is for
    #[arg(long, value_name = "NAME", conflicts_with_all = ["source", "sink"])]
    pub(crate) pipeline: Option<String>,
    /// Only metrics, logs, traces or profiles
    #[arg(long, value_name = "SIGNAL")]
    pub(crate) signal: Option<String>,
    /// Only items of this service (`service.name`; in remote write the label `job`)
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// Only spans, events or metrics of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only lines that contain this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) contains: Option<String>,
    /// Only one in N records (requests as received)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) every: u32,
    /// Stop after N lines
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Stop after this time: 30s, 5m
    #[arg(long = "for", value_name = "DURATION")]
    pub(crate) duration: Option<String>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

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
    /// What comes first
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

/// The address of a running gateway.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    /// The gateway's admin address; by default the configuration's `listen.admin`
    #[arg(long, value_name = "ADDR", conflicts_with = "config")]
    pub(crate) admin: Option<String>,
    /// Token for the admin address, if it requires one. Prefer a file: other users can see arguments
    #[arg(long, env = "TIDEGATE_ADMIN_TOKEN", hide_env_values = true, hide = true, value_name = "TOKEN")]
    pub(crate) admin_token: Option<String>,
    /// File with the token for the admin address, if it requires one; or set TIDEGATE_ADMIN_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
}

/// The data folder, given directly or by a configuration.
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
    /// Print SQL statements that create views over the lake
    Views(ViewsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ViewsArgs {
    /// For DuckDB, with the names and columns of the ClickHouse exporter's tables
    #[arg(long, required = true)]
    pub(crate) duckdb: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    /// The table: metric_points, metric_histograms, spans or logs. By default metric_points, or with --trace spans
    pub(crate) table: Option<String>,
    /// Only rows of this last period, by their own timestamps: 1m, 2h30m, 7d
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
    /// Only log records whose body contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) contains: Option<String>,
    /// Only log records of this severity and above: trace, debug, info, warn, error, fatal, or 1 to 24
    #[arg(long, value_name = "SEVERITY")]
    pub(crate) severity: Option<String>,
    /// Only rows with this label or attribute (name=value) or without it (name!=value); may be given several times
    #[arg(long = "label", value_name = "MATCHER")]
    pub(crate) labels: Vec<String>,
    /// Print at most N rows
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Only these columns, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// The output format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns
    Table,
    /// One JSON object per line
    Ndjson,
    /// Comma-separated values, as in RFC 4180
    Csv,
}

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
    /// List dead letters: items that sinks could not deliver
    DeadLetters(DataArgs),
    /// Resend dead letters to a running gateway, as new requests
    ///
    /// Each dead letter keeps its tenant, so this requires an admin token if the gateway has credentials or tenants.
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
    /// Where to send it; by default the configuration's `listen.http`
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Admin token to send. Prefer a file: other users can see arguments
    #[arg(long, env = "TIDEGATE_TOKEN", hide_env_values = true, hide = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// File with an admin token (`access.admin_credentials_file`), required by a gateway with credentials or tenants;
    /// or set TIDEGATE_TOKEN
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
    /// Install the index templates for a sink's documents at its endpoints
    ///
    /// Documents received over `_bulk` need no template: their clients have their own. Replaces existing templates of
    /// the same names.
    Setup(SetupArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Name of the sink, if several have the type `elasticsearch`
    #[arg(long, value_name = "NAME")]
    pub(crate) sink: Option<String>,
    /// Print the requests instead of sending them
    #[arg(long)]
    pub(crate) print: bool,
}

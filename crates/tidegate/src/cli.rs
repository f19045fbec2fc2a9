//! The command line and its help texts, which are the reference.

mod connect;
mod doctor;
mod file;
mod fleet;
mod import;
mod journal;
mod lake;
mod mistakes;
mod opamp;
mod pipeline;
mod plan;
mod replay;
mod ring;
mod sample;

use clap::{Args, Parser, Subcommand, ValueEnum};
pub(crate) use connect::{ConnectArgs, ConnectFormat};
pub(crate) use doctor::DoctorArgs;
pub(crate) use file::{FileCommand, FileLsArgs, FileSort};
pub(crate) use fleet::{
    ActionCommand, AgentCommand, AgentFileCommand, AgentFilter, ArtifactCommand, EnrollCommandArgs,
    FleetArgs, FleetCommand, PolicyCommand, TokenCommand, UploadCommand,
};
pub(crate) use import::{CheckpointProgram, CheckpointsArgs, ImportCommand};
pub(crate) use journal::{
    DeadLetterArgs, DeadLetterCommand, DiscardArgs, ForgetArgs, ForgetSourceArgs, JournalCommand, ResendArgs,
};
pub(crate) use lake::{CatArgs, Format, LakeCommand};
pub(crate) use mistakes::explained;
pub(crate) use opamp::{CollectorCommand, CollectorTokenCommand, ConfigCommand, ConfigPutArgs};
pub(crate) use pipeline::{EvalArgs, EvalFormat, EvalSignal, PipelineCommand, TestArgs};
pub(crate) use plan::{PlanArgs, PlanFormat};
pub(crate) use replay::{
    ReceiverArgs, ReplayArgs, ReplayCommand, ReplayJournalArgs, ReplayLettersArgs, ReplayToArgs,
};
pub(crate) use ring::{ExplainArgs, RingCommand};
pub(crate) use sample::{ExplainTraceArgs, SampleCommand};
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
    /// Find out what is wrong with a gateway that does not start or misbehaves
    ///
    /// Looks at the configuration and the data folder, at the machine, at peers and at a gateway that is running, and prints what is
    /// wrong, worst first: how it was seen, and what to do. It changes nothing. Run it as the gateway's user, where the gateway runs.
    ///
    /// Exit codes: 0 all is fine, 3 something is at risk, 4 something is broken; 1 and 2 are failures of the command itself and of its
    /// arguments.
    Doctor(DoctorArgs),
    /// Print the memory plan and the largest body that fits, or what a load needs through an outage
    ///
    /// With --rate or --measure, and --outage: says in sentences how fast the journal grows and how long an outage its
    /// quota lasts, whether the memory budget takes the load and what the smallest is that does, how long catching up takes,
    /// and how many cores. A rate is a number, a unit and a time: '200k samples/s', '5k spans/s', '1M points/min', '900
    /// logs/s'; or bytes: '30MB/s logs'. Items are samples (Remote-Write), points (OTLP metrics), spans and logs.
    Plan(PlanArgs),
    /// Run the gateway with the default configuration and send it sample telemetry
    ///
    /// Stores everything under the data folder; inspect it with `tidegate lake cat metric_points`, `spans` and
    /// `logs`.
    Demo(DemoArgs),
    /// Print what to paste into a sender's configuration
    ///
    /// For this configuration: its addresses, TLS, credentials (as placeholders) and tenants. Without KIND, lists the kinds of senders,
    /// and which of them this configuration receives.
    Connect(ConnectArgs),
    /// Show items that pass a source or a sink, live, as NDJSON
    ///
    /// Connects to a running gateway and prints one line per span, log record, metric point and sample that it
    /// receives, or that a sink reads. The gateway pays nothing before and after, and tap never slows the flow: items
    /// that arrive faster than they can be printed are skipped and counted on standard error. Tap shows at most 200
    /// items of a record, and only a summary of a record longer than 256 KiB as received or 1 MiB decompressed.
    ///
    /// Ends on Ctrl-C, after --count lines, or after --for.
    Tap(TapArgs),
    /// Watch a running gateway: overview, flow and tenants, in a terminal
    ///
    /// Asks a gateway once a second, this one or a remote one, and shows its state, rates, memory, journal, sinks and
    /// tenants. When the gateway does not answer, the last numbers stay, and top goes on asking. Keys: 1, 2, 3 or Tab for
    /// the screens, j and k to choose a line, s to sort tenants, p to pause, ? for help, q to quit.
    ///
    /// NO_COLOR turns colours off; a locale without UTF-8 gets ASCII.
    Top(TopArgs),
    /// Inspect the log files that a running gateway follows
    #[command(subcommand)]
    File(FileCommand),
    /// Manage Elastic Agents and collectors: policies, configurations, tokens, agents, actions
    ///
    /// Asks a running gateway with `listen.fleet` or `listen.opamp`.
    #[command(subcommand)]
    Fleet(FleetCommand),
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
    /// Send stored data again, to one sink of a running gateway
    ///
    /// From a journal, a lake or the dead letters. Each body becomes a request to the gateway's ingest address that names its only
    /// sink: the gateway checks, limits, journals and acknowledges it as any other, no other sink gets it, and the books count it as
    /// replayed. The receiver may have some of it already; whether it stores that twice depends on the receiver.
    ///
    /// An interrupted replay goes on where it was when it is started again with the same arguments; nothing that was
    /// acknowledged is sent twice. Each body keeps its tenant, so this requires an admin token if the gateway has credentials
    /// or tenants.
    #[command(subcommand)]
    Replay(ReplayCommand),
    /// Inspect the hashrings of a sink
    #[command(subcommand)]
    Ring(RingCommand),
    /// Say why a sink keeps a trace or does not
    #[command(subcommand)]
    Sample(SampleCommand),
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
    /// Search for a running gateway, which starts this itself
    #[command(hide = true)]
    SearchProcess {
        /// The most memory to take, in bytes
        #[arg(long)]
        memory: u64,
    },
    /// Moved to the separate program `tidegate-bench`
    #[command(hide = true)]
    Bench {
        /// Ignored arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
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

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print the overview once as text, for scripts and `watch`
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
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

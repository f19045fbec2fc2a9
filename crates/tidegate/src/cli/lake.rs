//! The commands about lakes.

use super::DataArgs;
use clap::{Args, Subcommand, ValueEnum};

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

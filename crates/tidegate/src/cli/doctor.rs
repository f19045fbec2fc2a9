//! The arguments of `tidegate doctor`.

use super::{CheckFormat, ConfigArgs};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Ask no peer of a sink
    #[arg(long)]
    pub(crate) offline: bool,
    /// How to print the findings
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    pub(crate) format: CheckFormat,
    /// Also write a bug report to this new file, `NAME.tar.gz`: the findings, the effective configuration, versions, limits, the
    /// status and metrics of a running gateway, and the names of its files; no secrets and no telemetry
    #[arg(long, value_name = "FILE")]
    pub(crate) archive: Option<PathBuf>,
    /// Token for the admin address, if it requires one. Prefer a file: other users can see arguments
    #[arg(long, env = "TIDEGATE_ADMIN_TOKEN", hide_env_values = true, hide = true, value_name = "TOKEN")]
    pub(crate) admin_token: Option<String>,
    /// File with the token for the admin address, if it requires one; or set TIDEGATE_ADMIN_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
}

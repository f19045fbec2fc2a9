//! `tidegate connect`

use super::ConfigArgs;
use clap::{Args, ValueEnum};
use tidegate_config::{HostName, TenantName};

#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// The sender: `otel-python`, `collector`, `prometheus`, `filebeat`, … Default: list them all
    pub(crate) kind: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Name or address by which senders reach this gateway. Default: the address in the configuration, or this machine's name for one
    /// that listens on all addresses
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub(crate) host: Option<HostName>,
    /// Tenant to name, where a header names it. Default: the placeholder TENANT
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    pub(crate) tenant: Option<TenantName>,
    /// Where the sender has the authority of the gateway's certificate
    #[arg(long, value_name = "FILE", default_value = "/etc/tidegate/ca.pem")]
    pub(crate) ca_file: String,
    /// Where the sender has its own certificate
    #[arg(long, value_name = "FILE", default_value = "/etc/tidegate/client.pem")]
    pub(crate) cert_file: String,
    /// Where the sender has the key of its certificate
    #[arg(long, value_name = "FILE", default_value = "/etc/tidegate/client.key")]
    pub(crate) key_file: String,
    /// Where the sender has its token, if it reads it from a file
    #[arg(long, value_name = "FILE", default_value = "/etc/tidegate/token")]
    pub(crate) token_file: String,
    /// How to print it
    #[arg(long, value_enum, default_value_t = ConnectFormat::Text)]
    pub(crate) format: ConnectFormat,
}

/// How `connect` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConnectFormat {
    /// Plain text
    Text,
    /// A list of objects with `title`, `file`, `language`, `content` and `notes`
    Json,
}

fn host(text: &str) -> Result<HostName, String> {
    // As in a URL.
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    text.parse().map_err(|error: tidegate_config::Invalid| error.to_string())
}

fn tenant(text: &str) -> Result<TenantName, String> {
    text.parse().map_err(|error: tidegate_config::Invalid| error.to_string())
}

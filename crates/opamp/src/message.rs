//! The protobuf messages of OpAMP. What an agent sends is read in place; what it gets is small, or was encoded before.

mod attributes;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use attributes::Attributes;
pub(crate) use read::{AgentToServer, config_files};
pub(crate) use write::{EncodedConfig, ErrorKind, ServerToAgent, TelemetryOffer};
#[cfg(test)]
pub(crate) use write::{bytes, varint};

/// Bits of what an agent can do.
pub(crate) mod agent_capability {
    pub(crate) const ACCEPTS_REMOTE_CONFIG: u64 = 2;
    pub(crate) const REPORTS_OWN_TRACES: u64 = 32;
    pub(crate) const REPORTS_OWN_METRICS: u64 = 64;
    pub(crate) const REPORTS_OWN_LOGS: u64 = 128;
    pub(crate) const ACCEPTS_RESTART_COMMAND: u64 = 1024;
    pub(crate) const REPORTS_REMOTE_CONFIG: u64 = 4096;
}

/// Bits of what a server can do.
pub(crate) mod server_capability {
    pub(crate) const ACCEPTS_STATUS: u64 = 1;
    pub(crate) const OFFERS_REMOTE_CONFIG: u64 = 2;
    pub(crate) const ACCEPTS_EFFECTIVE_CONFIG: u64 = 4;
    pub(crate) const OFFERS_CONNECTION_SETTINGS: u64 = 32;
}

/// The agent wants another uid.
pub(crate) const REQUEST_INSTANCE_UID: u64 = 1;

/// The status of the last configuration that an agent was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConfigStatus {
    /// It has said nothing.
    #[default]
    Unset,
    /// It runs with it.
    Applied,
    /// It is about to.
    Applying,
    /// It could not.
    Failed,
}

impl ConfigStatus {
    pub(crate) fn of(number: u64) -> ConfigStatus {
        match number {
            1 => ConfigStatus::Applied,
            2 => ConfigStatus::Applying,
            3 => ConfigStatus::Failed,
            _ => ConfigStatus::Unset,
        }
    }

    /// Its word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ConfigStatus::Unset => "unset",
            ConfigStatus::Applied => "applied",
            ConfigStatus::Applying => "applying",
            ConfigStatus::Failed => "failed",
        }
    }
}

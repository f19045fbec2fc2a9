//! How series are spread over receivers.

use crate::prometheus_remote_write::Settings;
use crate::spread::SpreadSettings;
use std::time::Duration;
use tidegate_journal::Tenant;

/// How series are spread over receivers.
#[derive(Debug, Clone)]
pub struct Sharding {
    /// The labels that place a series.
    pub shard_by: ShardBy,
    /// At how many receivers each series is.
    pub replicas: usize,
    /// The receivers' URLs, which replace [`Settings::endpoints`].
    pub members: tidegate_members::Settings,
    /// How long a request waits for a receiver before it is handed off.
    pub patience: Duration,
    /// Where and how records are handed off.
    pub handoff: tidegate_handoff::Settings,
}

/// The labels that place a series. A series without any of them is placed by all of its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShardBy {
    /// All labels.
    All,
    /// These.
    Labels(Vec<String>),
    /// All but these.
    Without(Vec<String>),
}

impl ShardBy {
    /// Whether a label of this name counts.
    #[must_use]
    #[inline]
    pub fn has(&self, name: &[u8]) -> bool {
        let is_named = |names: &[String]| names.iter().any(|one| one.as_bytes() == name);
        match self {
            ShardBy::All => true,
            ShardBy::Labels(names) => is_named(names),
            ShardBy::Without(names) => !is_named(names),
        }
    }
}

impl Sharding {
    /// The engine's settings.
    pub(super) fn spread(&self, settings: &Settings) -> SpreadSettings {
        SpreadSettings {
            replication: self.replicas,
            default_tenant: Tenant::NONE,
            max_request_bytes: settings.max_bytes,
            max_request_items: u32::try_from(settings.max_items).unwrap_or(u32::MAX),
            linger: settings.linger,
            backoff: settings.backoff,
            patience: self.patience,
            handoff: self.handoff.clone(),
        }
    }
}

//! Stored records of agents, configurations and tokens.

use crate::message::{Attributes, ConfigStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegate_fleet::KeyHash;

/// An agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct AgentRecord {
    pub(crate) attributes: Attributes,
    /// Of the description as it was sent.
    pub(crate) description_hash: u64,
    /// Of the effective configuration as it was sent.
    #[serde(default)]
    pub(crate) effective_hash: u64,
    pub(crate) capabilities: u64,
    /// Hash, status and error of the last remote configuration, as the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config_hash: Option<[u8; 16]>,
    #[serde(default)]
    pub(crate) config_status: ConfigStatus,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) config_error: String,
}

/// A configuration that is assigned by labels.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ConfigRecord {
    pub(crate) revision: u64,
    pub(crate) changed_ms: u64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) body: String,
    /// The last that was rolled out whole, which agents have that the roll-out has not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<String>,
    pub(crate) rollout: Rollout,
}

/// How far a revision has come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rollout {
    pub(crate) state: RolloutState,
    /// The part of its agents that get it, in hundredths of a percent.
    pub(crate) released: u32,
    /// The part that a step adds, in the same.
    pub(crate) step: u32,
    /// The part of the released agents that may fail, in percent.
    pub(crate) max_failed: u32,
}

/// The state of a roll-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RolloutState {
    /// Steps follow each other.
    Running,
    /// Too many agents have failed: it goes no further.
    Stopped,
    /// All agents get it.
    Done,
}

/// A token with which agents connect.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TokenRecord {
    pub(crate) name: String,
    pub(crate) key: KeyHash,
}

/// The effective configuration of an agent, with secrets masked: texts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EffectiveRecord(pub(crate) BTreeMap<String, String>);
